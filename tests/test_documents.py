"""What the documents say can be done."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pandas as pd
import pytest
import yaml

import blowfishdb as bf
from blowfishdb.core.policy import codec
from blowfishdb.entrypoints.demo_data import write_salaries
from blowfishdb.workspace.embedded import Workspace

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_command_exists(document: Path) -> None:
    text = document.read_text()
    named = set(re.findall(r"`make ([a-z]+)`", text)) | set(re.findall(r"^make ([a-z]+)", text, re.MULTILINE))
    assert named <= make_targets()


def test_the_readme_begins_with_a_picture_and_two_commands() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:30])
    assert "![" in first_screen
    block = re.search(r"```(?:sh|bash)\n(.*?)```", first_screen, flags=re.DOTALL)
    assert block is not None
    commands = [line.split("#")[0].strip() for line in block.group(1).strip().splitlines()]
    assert commands == ["make demo", "make test"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_and_picture_is_there(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_the_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert block is not None
    monkeypatch.chdir(tmp_path)
    write_salaries(tmp_path / "salaries.duckdb", 20_000)
    names: dict[str, object] = {}
    exec(block.group(1), names)  # the documentation is ours
    workspace, quote = names["ws"], names["q"].quote()  # type: ignore[attr-defined]
    assert quote.owned and f"{names['a'].receipt.epsilon:.3f}" in block.group(1)  # type: ignore[attr-defined]
    workspace.close()  # type: ignore[attr-defined]


def test_the_example_of_a_changed_policy_runs(tmp_path: Path) -> None:
    block = re.search(
        r"```pycon\n(.*?)```", (ROOT / "docs" / "changing-a-policy.md").read_text(), flags=re.DOTALL
    )
    assert block is not None
    domain = bf.Domain(salary=bf.Integer(0, 199_999))
    within = bf.Policy.by_column(domain, {"salary": bf.graphs.Threshold(200_000, 1_000)})
    rows = pd.DataFrame({"salary": [number * 7919 % 200_000 for number in range(5_000)]})
    with bf.open(tmp_path / "work.blowfish") as workspace:
        salaries = workspace.add_dataset("salaries", rows, domain=domain)
        salaries["salary"].histogram(bins=10).spend("0.235").ask()
        names = {"salaries": salaries, "within_1000": within}
        example = doctest.DocTestParser().get_doctest(block.group(1), names, "changing-a-policy", None, 0)
        assert doctest.DocTestRunner().run(example).failed == 0


def test_the_python_of_several_tables_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "tables.md").read_text()
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(block, names)  # the documentation is ours
    workspace = names["ws"]
    assert isinstance(workspace, Workspace)
    assert [table.name for table in workspace["shop"].tables] == ["people", "orders"]
    said = yaml.safe_load("".join(re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)))
    assert bf.Tables.from_plain(said["tables"]) == workspace._records["shop"].tables.declared  # type: ignore[union-attr]
    assert codec.domain(said["domain"]) == workspace["shop"].schema
    workspace.close()


def test_ci_runs_what_contributors_run() -> None:
    lines = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("make")]
    assert lines == ["make lint", "make test", "make audit MINUTES=10"]
