"""``COPY (…) TO STDOUT``: what it says, and the rows of an answer as lines of text or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from blowfishdb.entrypoints.pgwire import protocol
from blowfishdb.entrypoints.pgwire.errors import NOT_SUPPORTED, Refusal
from blowfishdb.entrypoints.pgwire.results import Table
from blowfishdb.entrypoints.pgwire.statements import Statement, tokens_of


def copied_by(statement: Statement) -> tuple[str, str]:
    """The statement of ``COPY (…) TO STDOUT``, and how its rows are written."""
    tokens = tokens_of(statement.text)
    words = [token.text.upper() for token in tokens]
    if words[1:2] != ["("]:
        raise Refusal("42501", "Rows are never copied; answers are.", hint="Try: COPY (SELECT …) TO STDOUT")
    depth, end = 0, 0
    for at, word in enumerate(words[1:], start=1):
        depth += (word == "(") - (word == ")")
        if depth == 0:
            end = at
            break
    if words[end + 1 : end + 3] != ["TO", "STDOUT"]:
        raise Refusal(
            "42501", "Answers are copied to STDOUT, and nowhere else.", hint="Try: COPY (…) TO STDOUT"
        )
    rest = words[end + 3 :]
    if "BINARY" in rest:
        raise Refusal(NOT_SUPPORTED, "Answers are copied as text or CSV.")
    off = "HEADER" in rest and rest[rest.index("HEADER") + 1 : rest.index("HEADER") + 2] in (
        ["FALSE"],
        ["OFF"],
    )
    header = "header" if "HEADER" in rest and not off else ""
    form = "csv" if "CSV" in rest else "text"
    return statement.text[tokens[1].end + 1 : tokens[end].start], f"{form} {header}".strip()


def copied(table: Table) -> bytes:
    """The rows of a result as messages."""
    _, form, *header = table.tag.split()
    rows: list[Sequence[str | None]] = [
        [
            None if value is None else column.type.text(value)
            for column, value in zip(table.columns, row, strict=True)
        ]
        for row in table.rows
    ]
    if header:
        rows.insert(0, [column.name for column in table.columns])
    written = _csv_line if form == "csv" else _text_line
    lines = b"".join(protocol.copy_data(written(row)) for row in rows)
    begun = protocol.copy_out(len(table.columns))
    return begun + lines + protocol.COPY_DONE + protocol.complete(f"COPY {len(table.rows)}")


def _csv_line(row: Sequence[str | None]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow("" if value is None else value for value in row)
    return line.getvalue().encode()


def _text_line(row: Sequence[str | None]) -> bytes:
    marks = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
    return ("\t".join("\\N" if value is None else value.translate(marks) for value in row) + "\n").encode()
