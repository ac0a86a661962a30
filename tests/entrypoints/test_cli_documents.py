"""The command line as it is documented: every command and every flag, and none that does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from blowfishdb.entrypoints.cli import app
from tests.entrypoints.commands import Shell

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
PROGRAM: Any = typer.main.get_command(app)
FLAG = re.compile(r"(?<![\w`-])`?(--?[a-z][a-z-]*)")


def commands(group: Any = PROGRAM, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands())


def flags(command: Any) -> set[str]:
    options = [each for each in command.params if each.param_type_name == "option"]
    return {flag for option in options for flag in (*option.opts, *option.secondary_opts)}


def sections() -> dict[tuple[str, ...], str]:
    """The text below the heading of each command, by the lower-case words of the heading."""
    found: dict[tuple[str, ...], str] = {}
    for part in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]:
        heading, _, text = part.partition("\n")
        words = heading.strip("`").split()[1:]
        path = tuple(word for word in words if word.islower() and word.replace("-", "").isalpha())
        found[path] = text.partition("\n## ")[0]
    return found


SECTIONS = sections()


def test_every_command_has_its_section_and_no_other_has() -> None:
    assert set(SECTIONS) == set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_flag_is_documented_and_no_other_is_named(path: tuple[str, ...]) -> None:
    own = flags(COMMANDS[path]) - {"--help"}
    named = set(FLAG.findall(SECTIONS[path]))
    assert own <= named
    assert named <= own


def test_the_flags_of_the_program_are_documented() -> None:
    front = PAGE.partition("Every command takes")[0]
    assert flags(PROGRAM) | {"--help", "-h"} <= set(FLAG.findall(front))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_takes_json_and_has_an_example(path: tuple[str, ...]) -> None:
    assert "--json" in flags(COMMANDS[path])
    assert f"blowfishdb {' '.join(path)}" in re.sub(r"-w \S+ |--workspace \S+ ", "", COMMANDS[path].epilog)
    assert COMMANDS[path].help


def test_examples_use_flags_that_exist() -> None:
    for path, command in COMMANDS.items():
        for line in re.findall(r"blowfishdb .*", command.epilog):
            assert set(FLAG.findall(line)) <= flags(command) | flags(PROGRAM), path
    for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL):
        for line in block.strip().splitlines():
            words = line.partition("#")[0].split()
            path = tuple(words[1:3]) if tuple(words[1:3]) in COMMANDS else tuple(words[1:2])
            assert set(FLAG.findall(line.partition("#")[0])) <= flags(COMMANDS[path])


def test_help_lists_the_commands_by_who_uses_them(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "none")
    shown = shell("--help").out
    for heading in ("Curator", "Analyst", "Auditor", "System", "Examples"):
        assert heading in shown
    assert shell("-h").out == shown
    for path in COMMANDS:
        done = shell(*path, "--help")
        assert done.code == 0 and "Example" in done.out
    assert not list(tmp_path.iterdir())
    assert shell("--version").out.strip().count(".") == 2
