"""The tutorials do what they say: every command is run, every output that does not depend on noise compared.

A line of a ``console`` block that begins with ``$`` is typed into one shell for the whole tutorial; a
``pycon`` block is a doctest by itself. ``…`` in an output stands for anything.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from blowfishdb.entrypoints import demo
from blowfishdb.entrypoints.demo import serving
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.entrypoints.server.server import Settings
from blowfishdb.show.terminal import console

TUTORIALS = sorted((Path(__file__).parent.parent / "docs" / "tutorials").glob("*.md"))
ADDRESS = "http://127.0.0.1:8787"
DOCTEST = (
    "import doctest, sys; "
    "sys.exit(doctest.testfile(sys.argv[1], module_relative=False, encoding='utf-8', "
    "optionflags=doctest.ELLIPSIS).failed)"
)


class Shell:
    """One bash, in which a tutorial is typed."""

    def __init__(self, folder: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("BLOWFISHDB_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**kept, "PATH": path, "COLUMNS": "100", "PYTHONWARNINGS": "error", "HOME": str(folder)}
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, command: str) -> str:
        """What a command prints."""
        keyboard, screen = self._process.stdin, self._process.stdout
        assert keyboard is not None and screen is not None
        keyboard.write(f"{{ {command}\n}} </dev/null\necho; echo '--- done ---'\n")
        keyboard.flush()
        lines: list[str] = []
        for line in screen:
            if line == "--- done ---\n":
                return "".join(lines)
            lines.append(line)
        raise AssertionError(f"The shell ended after: {command}\n{''.join(lines)}")

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


def steps(block: str) -> list[tuple[str, str]]:
    """The commands of a block and what each of them is said to print."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    assert not parts[0].strip(), "A block begins with a command."
    found = []
    for part in parts[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = f"{command[:-1]} {more.strip()}"
        found.append((command, output))
    return found


def fits(said: str, printed: str) -> bool:
    """Line by line the same, where ``…`` may be anything."""
    pattern = ".*".join(re.escape(part.strip(" ")) for part in _trimmed(said).split("…"))
    return re.fullmatch(pattern, _trimmed(printed), flags=re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(re.sub(r" +", " ", line).strip() for line in text.strip().splitlines())


@contextmanager
def demonstration(folder: Path, template: Path) -> Iterator[str]:
    """A fresh demonstration in ``folder``/demo behind a server."""
    shutil.copytree(template.parent, folder / "demo")
    place = folder / "demo" / demo.WORKSPACE
    with serving(create_app(place, settings=Settings(demo=True, warm_up=False))) as address:
        yield address


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo.prepare(tmp_path_factory.mktemp("demo"), console())


@pytest.mark.thorough
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_does_what_it_says(tutorial: Path, template: Path, tmp_path: Path) -> None:
    text = tutorial.read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert {name for name, _ in blocks} <= {"console", "pycon", "sh"}
    with demonstration(tmp_path, template) as address:
        shell = Shell(tmp_path)
        try:
            for name, block in blocks:
                if name == "console":
                    for command, said in steps(block):
                        printed = shell.type(command.replace(ADDRESS, address)).replace(address, ADDRESS)
                        assert fits(said, printed), f"$ {command}\n{printed}"
                elif name == "pycon":
                    script = tmp_path / "block.txt"
                    script.write_text(block.replace(ADDRESS, address).replace("…", "..."), encoding="utf-8")
                    printed = shell.type(f'python -c "{DOCTEST}" {script}')
                    assert not printed.strip(), printed
        finally:
            shell.close()


def test_there_is_one_for_each_role() -> None:
    assert {path.stem for path in TUTORIALS} == {"curator", "analyst", "auditor"}


def test_what_does_not_fit_is_noticed() -> None:
    assert fits("a … c\n", "a  b\nb c") and not fits("a … c", "a b") and not fits("a", "a\nb")
    assert steps("$ one \\\n    two\nout\n$ three\n") == [("one  two", "out\n"), ("three", "")]
