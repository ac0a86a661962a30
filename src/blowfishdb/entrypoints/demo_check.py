"""The demonstration's check of itself: a fresh one on the same rows, asked through a server as each user.

It is thrown away afterwards, so that the demonstration itself stays as it was left.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import httpx
from rich.console import Console
from rich.text import Text

from blowfishdb.adapters.accounts import Role
from blowfishdb.asking import Asking
from blowfishdb.core.errors import WorkspaceError
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.policy import Policy
from blowfishdb.datasets import Dataset
from blowfishdb.entrypoints.background import serving
from blowfishdb.entrypoints.client import Remote, connect
from blowfishdb.entrypoints.demo import PASSWORDS, declare
from blowfishdb.entrypoints.terminal import answer_chart, budget_line, quote_panel, receipt_line
from blowfishdb.gateway import Gateway
from blowfishdb.workspace import Workspace

HIDE_WITHIN: Final = 1_000  # dollars


def check(workspace: Path, out: Console) -> None:
    """Sign in as everybody, ask, pay, loosen the policy, verify the ledgers; raise if anything is amiss."""
    from blowfishdb.entrypoints.api.app import create_app
    from blowfishdb.entrypoints.api.settings import Settings

    with tempfile.TemporaryDirectory(prefix="blowfishdb-demo-") as folder:
        fresh = Path(folder) / workspace.name
        declare(fresh, workspace.parent)
        with serving(create_app(fresh, settings=Settings(demo=True, warm_up=False))) as address:
            _check_health(address)
            everyone = {role: sign_in(address, role) for role in Role}
            try:
                _tell(everyone, out)
            finally:
                for remote in everyone.values():
                    remote.close()
    with Workspace(workspace) as original:
        _check_books(original)
    out.print(Text("The ledger verifies: every charge and every hash adds up.", style="green"))
    out.print()


def sign_in(address: str, role: Role) -> Remote:
    """Sign in with the password of a demonstration's user, and take a token instead of it."""
    with httpx.Client(base_url=f"{address}/api/v1", timeout=60) as http:
        who = {"user": role.value, "password": PASSWORDS[role]}
        entered = http.post("/session", json=who)
        _check(entered, f"Signing in as {role.value}")
        http.headers["X-CSRF-Token"] = entered.json()["csrf"]
        token = http.post("/tokens", json={"label": "self-check", "days": 1})
        _check(token, f"A token for {role.value}")
        http.delete("/session")
    return connect(address, token=token.json()["token"])


def _check_health(address: str) -> None:
    _check(httpx.get(f"{address}/api/v1/health", timeout=60), "The server's health")


def _check(response: httpx.Response, what: str) -> None:
    if not response.is_success:
        raise WorkspaceError(
            f"{what} failed with status {response.status_code}.", fixes=("blowfishdb demo --reset",)
        )


def _tell(everyone: dict[Role, Remote], out: Console) -> None:
    curator, analyst, auditor = (everyone[role] for role in (Role.CURATOR, Role.ANALYST, Role.AUDITOR))
    out.print(Text("A first look, through a server, at a workspace that is thrown away afterwards."))
    salaries, checkins = analyst["salaries"], analyst["checkins"]
    incomes = salaries["salary"].cumulative(width=10_000).accurate_to(50, confidence=0.95)

    _head("Everything is hidden (plain differential privacy)", out)
    out.print(quote_panel(incomes.quote()))
    _head(f"Hidden are salaries within ${HIDE_WITHIN:,} of each other", out)
    _loosen(curator["salaries"])
    _ask(incomes, salaries, out)
    _head("The same question once more", out)
    _ask(incomes, salaries, out, chart=False)
    _head("Where people were seen", out)
    _ask(checkins["district"].histogram().accurate_to(50, confidence=0.95), checkins, out)
    _check_books(auditor)


def _check_books(books: Gateway) -> None:
    problems = books.verify()
    if problems:
        raise WorkspaceError(f"The ledger does not add up: {problems[0]}", fixes=("blowfishdb demo --reset",))


def _head(words: str, out: Console) -> None:
    out.print(Text(f"\n{words}", style="bold"))


def _loosen(salaries: Dataset) -> None:
    domain = salaries.schema
    salary = domain["salary"]
    hide = Threshold(salary.value_count, salary.threshold(HIDE_WITHIN))
    salaries.publish(Policy.by_column(domain, {"salary": hide}))


def _ask(asking: Asking, dataset: Dataset, out: Console, *, chart: bool = True) -> None:
    out.print(quote_panel(asking.quote()))
    answer = asking.ask()
    if chart:
        out.print(answer_chart(answer))
    out.print(receipt_line(answer.receipt))
    status = dataset.budget.status
    out.print(budget_line(status.total, status.remaining))
