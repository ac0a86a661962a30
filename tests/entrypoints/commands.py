"""Running the command line in this process, on a small workspace of its own."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from typer.testing import CliRunner

from blowfishdb.entrypoints.cli import app

ROWS = 3_000
DOMAIN = """
age: {kind: integer, lo: 18, hi: 89, step: 1}
salary: {kind: integer, lo: 0, hi: 99999, step: 1000}
region: {kind: category, values: [north, south, east, west], ordered: false}
joined: {kind: date, lo: 2023-01-01, hi: 2023-12-31, unit: day}
"""


@final
@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def problem(self) -> Any:
        return json.loads(self.err)


@final
@dataclass(frozen=True)
class Shell:
    """Someone at a workspace."""

    workspace: Path | str
    user: str = "ana"

    def __call__(self, *arguments: str, typed: str | None = None, **environment: str) -> Done:
        names = {"BLOWFISHDB_WORKSPACE": str(self.workspace), "BLOWFISHDB_USER": self.user, **environment}
        runner = CliRunner(env={"COLUMNS": "100", "BLOWFISHDB_TOKEN": "", **names})
        result = runner.invoke(app, list(arguments), input=typed)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    def must(self, *arguments: str, typed: str | None = None) -> Done:
        done = self(*arguments, typed=typed)
        assert done.code == 0, done.err
        return done


def write_people(file: Path, rows: int = ROWS) -> Path:
    """The same made-up people every time."""
    dice = random.Random(7)
    lines = ["id,age,salary,region,joined"]
    for number in range(rows):
        salary = min(99_999, int(dice.lognormvariate(10.5, 0.4)))
        joined = f"2023-{dice.randint(1, 12):02d}-{dice.randint(1, 28):02d}"
        region = dice.choice(["north", "south", "east", "west"])
        lines.append(f"{number},{dice.randint(18, 89)},{salary},{region},{joined}")
    file.write_text("\n".join(lines) + "\n")
    return file


def people(folder: Path) -> Shell:
    """A workspace with one dataset and plenty of budget."""
    columns = folder / "columns.yaml"
    columns.write_text(DOMAIN)
    shell = Shell(folder / "people.blowfish")
    source = str(write_people(folder / "people.csv"))
    shell.must("import", source, "--name", "people", "--domain", str(columns))
    shell.must("budget", "set", "people", "--epsilon", "100")
    return shell
