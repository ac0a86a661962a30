"""Answers as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blowfishdb.core.errors import InvalidInput, SourceError

if TYPE_CHECKING:
    from blowfishdb.answers import Answer


def write(answer: Answer, path: Path, form: str | None = None) -> None:
    """Write an answer; its format is what the name of the file ends in, unless it is given."""
    content = _FORMATS[form or check_format(path)](answer)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise SourceError(
            f"'{path}' cannot be written ({error.strerror}); the answer is stored and can be exported.",
            fixes=(f"blowfishdb export {answer.number} --format csv -o PATH",),
        ) from None


def check_format(path: Path) -> str:
    """The format that a file name stands for; known before anything is paid for."""
    form = path.suffix.removeprefix(".").lower()
    if form not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise InvalidInput(f"'{path}' does not say in which format to write: {known}.", fixes=("-o answer.csv",))
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder '{path.parent}'.")
    return form


def _csv(answer: Answer) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    sink = pa.BufferOutputStream()
    csv.write_csv(answer.to_arrow(), sink)
    return bytes(sink.getvalue())


def _parquet(answer: Answer) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    sink = pa.BufferOutputStream()
    parquet.write_table(answer.to_arrow(), sink)
    return bytes(sink.getvalue())


def _arrow(answer: Answer) -> bytes:
    import pyarrow as pa

    table, sink = answer.to_arrow(), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _json(answer: Answer) -> bytes:
    return (json.dumps(answer.to_plain(), indent=2, ensure_ascii=False) + "\n").encode()


def _picture(form: str) -> Callable[[Answer], bytes]:
    def draw(answer: Answer) -> bytes:
        import vl_convert

        chart = answer.plot().to_dict()
        if form == "png":
            return bytes(vl_convert.vegalite_to_png(chart, scale=2))
        convert = vl_convert.vegalite_to_svg if form == "svg" else vl_convert.vegalite_to_html
        return str(convert(chart) if form == "svg" else convert(chart, bundle=True)).encode()

    return draw


_FORMATS: Final[dict[str, Callable[[Answer], bytes]]] = {
    "csv": _csv,
    "parquet": _parquet,
    "arrow": _arrow,
    "json": _json,
    "html": _picture("html"),
    "svg": _picture("svg"),
    "png": _picture("png"),
}
