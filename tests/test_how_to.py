"""The short guides do what they say, typed into this process: commands, and Python with what it returns."""

from __future__ import annotations

import csv
import doctest
import re
import shlex
from pathlib import Path

import pytest

from tests.entrypoints.commands import Shell
from tests.postgres import Server
from tests.test_tutorials import fits, steps

DOCS = Path(__file__).parent.parent / "docs"
PAGES = (
    "five-minutes",
    "how-to/backup-and-audit",
    "how-to/choosing-a-distance",
    "how-to/policies-as-code",
    "how-to/postgresql",
    "how-to/your-csv",
    "what-blowfish-gives-up",
)
ADDRESS = "127.0.0.1:5432/postgres"


def rows() -> list[tuple[int, int, str, str]]:
    """5,000 made-up people."""
    regions = ("north", "east", "south", "west")
    return [
        (18 + i * 37 % 70, 20_000 + i * 7919 % 90_000 + i * 31 % 7000, regions[i * 13 % 4], "fm"[i * 7 % 2])
        for i in range(5_000)
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with (tmp_path / "people.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("age", "salary", "region", "sex"))
        writer.writerows(rows())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BLOWFISHDB_SOURCE_PASSWORD", "pw")
    return tmp_path


def blocks(page: str) -> list[tuple[str, str]]:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def run(page: str, folder: Path) -> None:
    """Every command and every line of Python of a page, in the order in which they stand."""
    workspace = folder / "workspace.blowfish"
    for number, (name, block) in enumerate(blocks(page)):
        if name == "console":
            for command, said in steps(block):
                program, *arguments = shlex.split(command)
                assert program == "blowfishdb"
                user = "curator"
                if arguments[0] == "--user":
                    user, arguments = arguments[1], arguments[2:]
                done = Shell(workspace, user)(*arguments)
                assert done.code == 0, f"$ {command}\n{done.err}"
                assert fits(said, done.out), f"$ {command}\n{done.out}"
        elif name == "pycon":
            example = doctest.DocTestParser().get_doctest(block, {}, f"{page} {number}", None, 0)
            assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


@pytest.mark.parametrize("page", [page for page in PAGES if page != "how-to/postgresql"])
def test_a_page_does_what_it_says(page: str, folder: Path) -> None:
    run(page, folder)


def test_a_table_in_postgresql(folder: Path, postgres: Server) -> None:
    schema = postgres.new_schema()
    with postgres.connect() as connection:
        connection.execute(f'CREATE TABLE "{schema}".people (age int, salary int, region text, sex text)')
        with connection.cursor() as cursor:
            cursor.executemany(f'INSERT INTO "{schema}".people VALUES (%s, %s, %s, %s)', rows()[:500])
    page = DOCS / "how-to" / "postgresql.md"
    assert "clinic.people" in page.read_text(encoding="utf-8")
    text = dict(blocks("how-to/postgresql"))["pycon"]
    text = text.replace(ADDRESS, f"127.0.0.1:{postgres.port}/postgres").replace(
        "clinic.people", f"{schema}.people"
    )
    example = doctest.DocTestParser().get_doctest(text, {}, "postgresql", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_every_page_that_can_be_run_is_run() -> None:
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.glob("how-to/*.md")}
    with_blocks = {page for page in pages if {name for name, _ in blocks(page)} & {"pycon", "console"}}
    others = {"how-to/bi-tools"}  # has a test of its own
    assert with_blocks - others <= set(PAGES)
