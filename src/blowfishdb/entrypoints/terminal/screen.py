"""Where output goes: colours and frames on a terminal, plain aligned text everywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_PIPED = 400  # columns: long enough that no line of a pipe is broken


def console(*, stderr: bool = False) -> Console:
    """Standard output or standard error; what goes into a pipe is not wrapped."""
    out = Console(highlight=False, stderr=stderr, soft_wrap=False)
    if out.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return out
    return Console(highlight=False, stderr=stderr, width=_PIPED)


@final
@dataclass(frozen=True)
class Framed:
    """Something under a title: in a frame on a terminal, below a line of text in a pipe."""

    title: str
    body: RenderableType
    style: str = "blue"

    def __rich_console__(self, out: Console, options: ConsoleOptions) -> RenderResult:
        if out.is_terminal:
            title = Text(self.title, style="bold")
            yield Panel(self.body, title=title, title_align="left", border_style=self.style, padding=(0, 1))
        else:
            yield Group(Text(self.title), self.body)


def listed(sentences: Iterable[str]) -> RenderableType:
    """Sentences one below the other, each with a dot; they wrap under themselves."""
    table = Table.grid(padding=(0, 1, 0, 0))
    for sentence in sentences:
        table.add_row("•", Text(sentence))
    return table


def grid(*headings: str, right: tuple[int, ...] = (), wrap: tuple[int, ...] = ()) -> Table:
    """A table without lines: aligned text that can be cut, sorted and searched.

    ``right`` are the columns of numbers, ``wrap`` those whose text may run over several lines.
    """
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(
            heading,
            justify="right" if place in right else "left",
            no_wrap=place not in wrap,
            overflow="ellipsis",
        )
    return table
