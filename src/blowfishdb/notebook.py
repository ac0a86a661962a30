"""Answers and quotes as notebooks show them: a small piece of HTML without a script, every text escaped."""

from __future__ import annotations

import itertools
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from blowfishdb.answers import Answer, Places
    from blowfishdb.messages import Quote

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
        f"{receipt.question} of {receipt.dataset}", _table(headings, rows, len(answer.labels)), notes
    )


def _clusters(answer: Answer, places: Places) -> tuple[list[str], list[list[str]]]:
    """Where each cluster is, and how many rows are nearest to it."""
    from blowfishdb.charts.clusters import positions

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
    return _part(f"Quote: {quote.question} of {quote.dataset}", _table([], facts, 2), notes)


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


def _table(headings: list[str], rows: list[list[str]], texts: int) -> str:
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
