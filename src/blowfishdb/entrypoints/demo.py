"""The demonstration: two private questions about 500,000 synthetic salaries, end to end."""

from __future__ import annotations

import shutil
from pathlib import Path

from rich.console import Console
from rich.rule import Rule

from blowfishdb.adapters.synthetic import PEOPLE, salary_domain, write_salaries
from blowfishdb.asking import Asking
from blowfishdb.core.errors import WorkspaceError
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.policy import Policy
from blowfishdb.datasets import Dataset
from blowfishdb.entrypoints.terminal import answer_chart, budget_line, quote_panel, receipt_line
from blowfishdb.workspace import Workspace

HIDE_WITHIN = 1_000  # dollars
AGE_GROUPS = [18, 25, 35, 45, 55, 65, 75]


def run(folder: Path, out: Console, *, reset: bool = False) -> None:
    """Make what is missing, ask twice, ask the first again, and check the ledger."""
    if reset and folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _make_data(folder / "salaries.duckdb", out)
    with Workspace(folder / "demo.blowfish", user="analyst") as workspace:
        salaries = _declare(workspace, folder / "salaries.duckdb")
        out.print(
            "\n[bold]Policy[/bold]  Hide which of two salaries someone has when they are within "
            f"${HIDE_WITHIN:,} of each other. Everything else about a person stays hidden too.\n"
        )
        first = salaries["salary"].cumulative(width=10_000).accurate_to(50, confidence=0.95)
        second = salaries["age"].histogram(edges=AGE_GROUPS).accurate_to(50, confidence=0.95)
        for asking in (first, second):
            _ask(asking, salaries, out)
        out.print(Rule("The first question once more", style="dim"))
        _ask(first, salaries, out, chart=False)
        problems = workspace.verify()
        if problems:
            raise WorkspaceError(f"The ledger does not add up: {problems[0]}")
        out.print("[green]The ledger verifies: every charge and every hash adds up.[/green]")


def _make_data(path: Path, out: Console) -> None:
    if path.exists():
        return
    with out.status(f"Making {PEOPLE:,} synthetic salaries …"):
        write_salaries(path)


def _declare(workspace: Workspace, data: Path) -> Dataset:
    if "salaries" in workspace:
        return workspace["salaries"]
    domain = salary_domain()
    salaries = workspace.add_dataset("salaries", data, domain=domain, table="salaries")
    salary = domain["salary"]
    policy = Policy.by_column(domain, {"salary": Threshold(salary.size, salary.threshold(HIDE_WITHIN))})
    return salaries.publish(policy)


def _ask(asking: Asking, dataset: Dataset, out: Console, *, chart: bool = True) -> None:
    out.print(quote_panel(asking.quote()))
    answer = asking.ask()
    if chart:
        out.print(answer_chart(answer))
    out.print(receipt_line(answer.receipt))
    status = dataset.budget.status
    out.print(budget_line(status.total, status.remaining))
    out.print()
