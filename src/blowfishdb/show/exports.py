"""Exports: an answer as a file that other programs read. Nothing that the answer does not show.

Answers and quotes as notebooks show them: a small piece of HTML without a script, every text escaped.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, final

from blowfishdb.core.errors import InvalidInput
from blowfishdb.messages.answers import Answer
from blowfishdb.show.tables import Table, answer_table, quote_table, receipt_table
from blowfishdb.show.words import charged

if TYPE_CHECKING:
    from blowfishdb.messages.quotes import Quote


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
"""What makes a spreadsheet take a text for a formula."""


@final
@dataclass(frozen=True)
class AnswerFile:
    """A file: its bytes, its media type, and a name for it."""

    body: bytes
    media_type: str
    filename: str


def export(answer: Answer, form: str, *, dark: bool = False) -> AnswerFile:
    """The answer as csv, json, arrow, parquet, svg, png or html."""
    if form not in FORMATS:
        raise InvalidInput(f"There is no export called {form!r}.", fixes=tuple(FORMATS))
    media_type, write = FORMATS[form]
    return AnswerFile(write(answer, dark), media_type, f"{_stem(answer)}.{form}")


def _stem(answer: Answer) -> str:
    """A name that every file system takes."""
    words = "".join(
        letter if letter.isascii() and letter.isalnum() else "-" for letter in answer.receipt.dataset
    )
    return f"{words.strip('-')[:60] or 'answer'}-{answer.number}"


# --- tables ---------------------------------------------------------------------------------------


def _csv(answer: Answer, _: bool) -> bytes:
    """One row for each bin. Numbers are written in full, so that reading them gives the same numbers.

    What the declarations fold into values is said in a column of its own, because a table has no other place.
    """
    columns = answer.columns()
    if answer.notes:
        columns["note" if "note" not in columns else "notes"] = [" ".join(answer.notes)] * len(answer.values)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(safe_text(name) for name in columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow(_cell(value) for value in row)
    return out.getvalue().encode("utf-8-sig")


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return safe_text(value)
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float) and math.isnan(plain):  # too few rows to say
        return ""
    return str(plain).lower() if isinstance(plain, bool) else repr(plain + 0.0)


def safe_text(text: str) -> str:
    """Labels are the curator's words: one that looks like a formula gets an apostrophe in front."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _json(answer: Answer, _: bool) -> bytes:
    return json.dumps(answer.to_plain(), ensure_ascii=False, allow_nan=False).encode()


def _table(answer: Answer) -> Any:
    """The Arrow table, with what is needed to read it in its metadata."""
    facts = {
        "dataset": answer.receipt.dataset,
        "question": answer.receipt.question,
        **_accuracy(answer),
        "epsilon": str(answer.receipt.epsilon),
        "mechanism": answer.receipt.mechanism,
        "policy_version": str(answer.receipt.policy_version),
        "settled": answer.receipt.settled,
        **({"notes": "\n".join(answer.notes)} if answer.notes else {}),
    }
    return answer.to_arrow().replace_schema_metadata({f"blowfishdb.{k}": v for k, v in facts.items()})


def _accuracy(answer: Answer) -> dict[str, str]:
    if answer.alpha is None:
        return {"accuracy": answer.promise}
    facts = {"accuracy": answer.promise, "alpha": repr(answer.alpha), "beta": repr(answer.beta)}
    return {**facts, "simultaneous": str(answer.simultaneous).lower()}


def _arrow(answer: Answer, _: bool) -> bytes:
    import pyarrow as pa

    table, out = _table(answer), io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def _parquet(answer: Answer, _: bool) -> bytes:
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(_table(answer), out)
    return out.getvalue()


# --- pictures -------------------------------------------------------------------------------------


def _svg(answer: Answer, dark: bool) -> bytes:
    from blowfishdb.show.charts import answer_chart, svg, themed

    return svg(themed(answer_chart(answer), dark=dark)).encode()


def _png(answer: Answer, dark: bool) -> bytes:
    from blowfishdb.show.charts import answer_chart, png, themed

    return png(themed(answer_chart(answer), dark=dark))


def _html(answer: Answer, dark: bool) -> bytes:
    """One page that needs nothing else: the picture, the table and the receipt, and no script."""
    from blowfishdb.show.charts import DARK, LIGHT

    palette = DARK if dark else LIGHT
    title = escape(f"{answer.receipt.question} ({answer.receipt.dataset})")
    style = (
        f"body{{margin:24px auto;max-width:720px;padding:0 16px;font:16px/1.5 system-ui,sans-serif;"
        f"color:{palette.text};background:{palette.background}}}"
        "svg{max-width:100%;height:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
        f"th,td{{padding:4px 8px;text-align:left;border-bottom:1px solid {palette.line}}}"
        "caption{text-align:left;padding:8px 0}.table{overflow-x:auto}"
    )
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>'
        f"<body><main><h1>{title}</h1><figure>{_svg(answer, dark).decode()}</figure>"
        f'<div class="table">{table_html(answer_table(answer), captioned=True)}</div>'
        f'<div class="table">{table_html(receipt_table(answer), captioned=True)}</div></main></body></html>'
    )
    return page.encode()


FORMATS: Final[dict[str, tuple[str, Callable[[Answer, bool], bytes]]]] = {
    "csv": ("text/csv; charset=utf-8", _csv),
    "json": ("application/json", _json),
    "arrow": ("application/vnd.apache.arrow.file", _arrow),
    "parquet": ("application/vnd.apache.parquet", _parquet),
    "svg": ("image/svg+xml", _svg),
    "png": ("image/png", _png),
    "html": ("text/html; charset=utf-8", _html),
}
"""Every export by the ending of its file."""


_ROWS: Final = 20
_RIGHT: Final = ' style="text-align:right"'


def answer_html(answer: Answer) -> str:
    """The question, the first values with their noise intervals, and the receipt."""
    receipt, count = answer.receipt, len(answer.values)
    more = [f"The first {_ROWS} of {count:,}; to_pandas() has them all."] if count > _ROWS else []
    made = f"{receipt.mechanism}, policy v{receipt.policy_version}, answer {receipt.charge}"
    notes = (*more, answer.promise, *answer.notes, f"Charged {charged(receipt)}. {made}.")
    title = f"{receipt.question} of {receipt.dataset}"
    return _part(title, answer_table(answer, most=_ROWS), notes)


def quote_html(quote: Quote) -> str:
    """The price, what it promises, and what else could be asked."""
    table = quote_table(quote)
    notes = (*table.notes, "A quote is free and reads no data.")
    return _part(f"Quote: {table.title} of {quote.dataset}", table, notes)


def table_html(table: Table, *, captioned: bool = False) -> str:
    """A table as a piece of HTML, every text escaped."""

    def cell(number: int, text: str, scope: str | None) -> str:
        tag, side = "td" if scope is None else "th", _RIGHT if number in table.numbers else ""
        named = "" if scope is None else f' scope="{scope}"'
        return f"<{tag}{named}{side}>{escape(text)}</{tag}>"

    def line(texts: tuple[str, ...], scopes: dict[int, str]) -> str:
        return f"<tr>{''.join(cell(n, text, scopes.get(n)) for n, text in enumerate(texts))}</tr>"

    caption = f"<caption>{escape(table.caption)}</caption>" if captioned and table.caption else ""
    head = line(table.columns, dict.fromkeys(range(len(table.columns)), "col"))
    head = f"<thead>{head}</thead>" if table.columns else ""
    body = "".join(line(row, {0: "row"}) for row in table.rows)
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>"


def _part(title: str, table: Table, notes: tuple[str, ...]) -> str:
    words = "<br>".join(escape(note) for note in notes)
    return (
        f"<div><p><strong>{escape(title)}</strong></p>{table_html(table)}<p><small>{words}</small></p></div>"
    )
