"""Exports: an answer as a file that other programs read. Nothing that the answer does not show.

Answers and quotes as notebooks show them: a small piece of HTML without a script, every text escaped.
"""

from __future__ import annotations

import csv
import html
import io
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, final

from blowfishdb.core.errors import InvalidInput
from blowfishdb.messages.answers import Answer

if TYPE_CHECKING:
    from blowfishdb.messages.answers import Places
    from blowfishdb.messages.quotes import Quote


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
"""What makes a spreadsheet take a text for a formula."""


@final
@dataclass(frozen=True)
class Exported:
    """A file: its bytes, its media type, and a name for it."""

    body: bytes
    media_type: str
    filename: str


def export(answer: Answer, form: str, *, dark: bool = False) -> Exported:
    """The answer as csv, json, arrow, parquet, svg, png or html."""
    if form not in FORMATS:
        raise InvalidInput(f"There is no export called {form!r}.", fixes=tuple(FORMATS))
    media_type, write = FORMATS[form]
    return Exported(write(answer, dark), media_type, f"{_stem(answer)}.{form}")


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
    writer.writerow(_safe(name) for name in columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow(_cell(value) for value in row)
    return out.getvalue().encode("utf-8-sig")


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return _safe(value)
    plain = value.item() if hasattr(value, "item") else value
    return str(plain).lower() if isinstance(plain, bool) else repr(plain + 0.0)


def _safe(text: str) -> str:
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
    said = {"accuracy": answer.promise, "alpha": repr(answer.alpha), "beta": repr(answer.beta)}
    return {**said, "simultaneous": str(answer.simultaneous).lower()}


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
    from blowfishdb.show.charts import DARK, LIGHT, answer_table

    table, palette = answer_table(answer), DARK if dark else LIGHT
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.columns)
    rows = "".join(f"<tr>{''.join(_html_cells(row, len(answer.labels)))}</tr>" for row in table.rows)
    facts = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in _receipt(answer)
    )
    title = html.escape(f"{answer.receipt.question} ({answer.receipt.dataset})")
    style = (
        f"body{{margin:24px auto;max-width:720px;padding:0 16px;font:16px/1.5 system-ui,sans-serif;"
        f"color:{palette.text};background:{palette.background}}}"
        "svg{max-width:100%;height:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
        f"th,td{{padding:4px 8px;text-align:right;border-bottom:1px solid {palette.line}}}"
        "th[scope=row],th:first-child{text-align:left}caption{text-align:left;padding:8px 0}"
        "dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px}dd{margin:0}"
        ".table{overflow-x:auto}"
    )
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>'
        f"<body><main><h1>{title}</h1><figure>{_svg(answer, dark).decode()}</figure>"
        f'<div class="table"><table><caption>{html.escape(table.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"<h2>Receipt</h2><dl>{facts}</dl></main></body></html>"
    )
    return page.encode()


def _html_cells(row: tuple[str, ...], labels: int) -> list[str]:
    return [
        f'<th scope="row">{html.escape(cell)}</th>' if place < labels else f"<td>{html.escape(cell)}</td>"
        for place, cell in enumerate(row)
    ]


def _receipt(answer: Answer) -> list[tuple[str, str]]:
    receipt = answer.receipt
    return [
        ("Answer", f"#{answer.number}"),
        ("Dataset", receipt.dataset),
        ("Question", receipt.question),
        ("Privacy loss ε", str(receipt.epsilon)),
        ("Mechanism", receipt.mechanism),
        ("Accuracy", answer.promise),
        ("Policy", f"version {receipt.policy_version}: {receipt.policy}"),
        ("Snapshot", str(receipt.snapshot)),
        ("Answered", receipt.settled),
        *(("Note", note) for note in answer.notes),
    ]


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
    headings = [*answer.headings, "value", "noise interval"]
    cells = zip(itertools.product(*answer.labels), answer.values, _intervals(answer), strict=False)
    rows = [[*bins, _number(value), interval] for bins, value, interval in itertools.islice(cells, _ROWS)]
    if answer.places is not None:
        headings, rows = _clusters(answer, answer.places)
    more = [f"The first {_ROWS} of {count:,}; to_pandas() has them all."] if count > _ROWS else []
    paid = f"ε {receipt.cost:.3g}" if receipt.cost else "nothing"
    charged = (
        f"Charged {paid}. {receipt.mechanism}, policy v{receipt.policy_version}, answer {receipt.charge}."
    )
    notes = [*more, answer.promise, *answer.notes, charged]
    return _part(
        f"{receipt.question} of {receipt.dataset}", _html_table(headings, rows, len(answer.labels)), notes
    )


def _clusters(answer: Answer, places: Places) -> tuple[list[str], list[list[str]]]:
    """Where each cluster is, and how many rows are nearest to it."""
    from blowfishdb.show.charts.clusters import positions

    each = zip(answer.labels[0], positions(places), answer.values, strict=True)
    rows = [[label, *where, f"{size:,.0f}"] for label, where, size in itertools.islice(each, _ROWS)]
    return [*answer.headings, *answer.axes, "size"], rows


def quote_html(quote: Quote) -> str:
    """The price, what it promises, and what else could be asked."""
    price = "already answered, costs nothing" if quote.owned else f"costs ε {quote.epsilon:.3g}"
    if not quote.owned and not quote.epsilon:
        price = "free"
    facts = [["price", price], ["left", f"ε {quote.remaining:.3g}"]]
    if not quote.owned and quote.dividend is not None and quote.affordable is not None:
        plain = f"{quote.at_least}ε {quote.plain_epsilon:.3g}, {quote.dividend:.2g} times as much"
        facts += [["affordable", f"{quote.affordable:,} times"], ["plain differential privacy", plain]]
    if quote.binding is not None:
        facts.append(["an earlier promise", quote.binding.words])
    facts += [["cheaper", f"±{a.alpha:g} for ε {a.epsilon:.3g}"] for a in quote.alternatives]
    notes = [
        quote.promise,
        *quote.notes,
        f"{quote.mechanism}. {quote.explanation}",
        "A quote is free and reads no data.",
    ]
    return _part(f"Quote: {quote.question} of {quote.dataset}", _html_table([], facts, 2), notes)


def _intervals(answer: Answer) -> list[str]:
    """What is promised about the first values."""
    exact = answer.exact[:_ROWS]
    if answer.band is None:
        return ["exact" if known else "not promised" for known in exact]
    low, high = answer.band
    ends = zip(low, high, exact, strict=False)
    return ["exact" if known else f"{_number(lo)} … {_number(hi)}" for lo, hi, known in ends]


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}"


def _html_table(headings: list[str], rows: list[list[str]], texts: int) -> str:
    """A table whose first ``texts`` columns are words and whose others are numbers."""

    def line(tag: str, cells: list[str]) -> str:
        sides = ("" if place < texts else _RIGHT for place in range(len(cells)))
        return "".join(
            f"<{tag}{side}>{escape(cell)}</{tag}>" for cell, side in zip(cells, sides, strict=True)
        )

    head = f"<thead><tr>{line('th', headings)}</tr></thead>" if headings else ""
    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


def _part(title: str, table: str, notes: list[str]) -> str:
    said = "<br>".join(escape(note) for note in notes)
    return f"<div><p><strong>{escape(title)}</strong></p>{table}<p><small>{said}</small></p></div>"
