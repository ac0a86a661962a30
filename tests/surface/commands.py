"""What ``--help`` says, of the program and of every command, without frames and colours."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from typing import Any
from unittest.mock import patch

from tests.entrypoints.test_cli_documents import PROGRAM

_WINDOW = {"COLUMNS": "100", "LINES": "40"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(r"^[│╭╰]─? ?|[─╮╯│ ]+$")
_GAP = re.compile(r" {3,}")


def text() -> str:
    """One command after the other, in the order in which the program lists them."""
    with patch.dict(os.environ, _WINDOW):
        return "\n\n".join(map(_help, _paths(PROGRAM))) + "\n"


def _paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, each in getattr(command, "commands", {}).items():
        yield from _paths(each, (*path, name))


def _help(path: tuple[str, ...]) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        PROGRAM.main([*path, "--help"], prog_name="blowfishdb", standalone_mode=False)
    said = [_GAP.sub("  ", _FRAME.sub("", line)) for line in _COLOURS.sub("", out.getvalue()).splitlines()]
    return "\n".join([f"# {' '.join(('blowfishdb', *path))}", *(line for line in said if line)])
