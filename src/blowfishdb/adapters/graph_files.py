"""Policy graphs from files: a list of pairs of values that must stay indistinguishable."""

from __future__ import annotations

import csv
from pathlib import Path

from blowfishdb.core.attribute import Attribute
from blowfishdb.core.errors import BlowfishError, InvalidGraph, InvalidValue, SourceMissing
from blowfishdb.core.graphs import Explicit


def read_graph(path: str | Path, attribute: Attribute) -> Explicit:
    """The policy graph whose edges a CSV file lists, two values of ``attribute`` a line.

    A first line that names columns instead of values is passed over; so are empty lines.
    """
    file = Path(path)
    if not file.is_file():
        raise SourceMissing(f"There is no file '{file}' with the edges of a policy graph.")
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            rows = [
                (number, row)
                for number, row in enumerate(csv.reader(lines, skipinitialspace=True), start=1)
                if any(row)
            ]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidGraph(f"'{file}' is not a CSV file in UTF-8.") from error
    if rows and not all(_is_value(cell, attribute) for cell in rows[0][1]):
        rows = rows[1:]
    edges = [_edge(row, number, file, attribute) for number, row in rows]
    return Explicit(attribute.value_count, edges)


def _edge(row: list[str], number: int, file: Path, attribute: Attribute) -> tuple[int, int]:
    if len(row) != 2:
        raise InvalidGraph(f"Line {number} of '{file}' has {len(row)} columns; an edge is a pair of values.")
    try:
        u, v = (_cell(text.strip(), attribute) for text in row)
    except BlowfishError as error:
        raise InvalidGraph(
            f"Line {number} of '{file}' names a value that the column does not have."
        ) from error
    if u == v:
        raise InvalidGraph(f"Line {number} of '{file}' joins a value with itself, which hides nothing.")
    return u, v


def _cell(text: str, attribute: Attribute) -> int:
    """The cell of a value written as text: as it stands, or as the number that it spells."""
    try:
        return attribute.cell(text)
    except InvalidValue:
        if not text.lstrip("-").isdigit():
            raise
        return attribute.cell(int(text))


def _is_value(text: str, attribute: Attribute) -> bool:
    try:
        _cell(text.strip(), attribute)
    except BlowfishError:
        return False
    return True
