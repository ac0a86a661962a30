"""Synthetic rows as files, marked wherever they go."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, Final

from blowfishdb.core.errors import InvalidInput
from blowfishdb.messages.synthetic_table import SyntheticTable
from blowfishdb.show.exports import AnswerFile, safe_text

FORMS: Final = ("csv", "parquet", "arrow")
_MEDIA: Final = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
}


def file_of(table: SyntheticTable, form: str) -> AnswerFile:
    """The rows as csv, parquet or arrow, under a name that says that they are synthetic."""
    if form not in FORMS:
        raise InvalidInput(f"Synthetic rows are not written as {form!r}.", fixes=FORMS)
    rows, out = table.to_arrow(), io.BytesIO()
    if form == "csv":
        body = _csv(rows)
    elif form == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(rows, out)
        body = out.getvalue()
    else:
        import pyarrow as pa

        with pa.ipc.new_file(out, rows.schema) as writer:
            writer.write_table(rows)
        body = out.getvalue()
    return AnswerFile(body, _MEDIA[form], f"{_stem(table)}.{form}")


def _csv(rows: Any) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(safe_text(name) for name in rows.column_names)
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        writer.writerow(_cell(value) for value in row)
    return out.getvalue().encode("utf-8")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return safe_text(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _stem(table: SyntheticTable) -> str:
    dataset = "".join(c if c.isascii() and c.isalnum() else "-" for c in table.receipt.dataset).strip("-")
    return f"{dataset[:60] or 'rows'}-synthetic-{table.number}"


def write(table: SyntheticTable, path: Any) -> list[Path]:
    """Write the rows where ``path`` says, by its ending; marks of a csv file are in a second one."""
    place = Path(path)
    form = place.suffix.lstrip(".").lower()
    file = file_of(table, form)
    place.write_bytes(file.body)
    if form != "csv":
        return [place]
    beside = place.with_name(f"{place.name}.synthetic.json")
    beside.write_text(json.dumps(table.marks(), ensure_ascii=False, indent=2), encoding="utf-8")
    return [place, beside]
