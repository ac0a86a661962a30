"""Quotes, answers, receipts and tables in a terminal; plain text when the output is not a terminal.

Where output goes: colours and frames on a terminal, plain aligned text everywhere else.

Quotes, receipts and budgets: what things cost, and what is left.

Answers as pictures made of letters: bars with whiskers, curves, heat maps, interval lines.

Trade-offs and comparisons as tables.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.style import Style
from rich.table import Table
from rich.text import Text

from blowfishdb.adapters.store.values import Budget, Grant
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.questions.readings import significant
from blowfishdb.messages.answers import Answer, Comparison, Places, Receipt
from blowfishdb.messages.quotes import Quote, Tradeoff
from blowfishdb.show.charts.clusters import positions
from blowfishdb.show.words import amount, decimals, interval, loss, people

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


_METER = 20


def quote_panel(quote: Quote) -> RenderableType:
    """The price of an answer, before it is paid."""
    lines = [Text(quote.promise)]
    if quote.owned:
        lines.append(Text("Already answered: this answer costs nothing.", style="bold green"))
    elif not quote.epsilon:
        lines.append(Text("Free.", style="bold green"))
    else:
        lines.append(Text.assemble(("ε ", "dim"), (loss(quote.epsilon), "bold"), *_share(quote)))
        if quote.alpha is not None:
            lines.append(Text(_dividend(quote)))
        lines += [
            Text(f"cheaper: ±{significant(other.alpha, 6)} → {loss(other.epsilon)}")
            for other in quote.alternatives
        ]
    lines += [Text(note) for note in quote.notes]
    if quote.binding is not None:
        lines.append(Text(quote.binding.words, style="bold"))
    lines.append(Text(f"{quote.mechanism}. {quote.explanation}", style="dim"))
    return Framed(f"QUOTE, free: {quote.question}", Group(*lines))


def _dividend(quote: Quote) -> str:
    """What the policy saves against the best plan without one; often something, sometimes nothing."""
    times = quote.dividend or 1.0
    if times < 1.05:
        return "plain DP would cost the same: no policy dividend here"
    plain = f"{quote.at_least}{loss(quote.plain_epsilon)}"
    return f"plain DP would cost {plain} → policy dividend {significant(times, 2)}×"


def _share(quote: Quote) -> list[str]:
    left = f" · {loss(quote.remaining)} left"
    if quote.affordable:
        return [left, f" · affordable {quote.affordable:,} time{'s' if quote.affordable != 1 else ''}"]
    return [left, " · more than is left"]


def receipt_line(receipt: Receipt) -> RenderableType:
    """What was paid, for what, and under which policy."""
    made = f"{receipt.mechanism} · policy v{receipt.policy_version}"
    return Text.assemble(("Receipt ", "bold"), f"#{receipt.charge} · charged {_paid(receipt)} · {made}")


def receipt_table(receipt: Receipt) -> RenderableType:
    """Everything that is on record about an answer."""
    table = grid("Receipt", f"#{receipt.charge}", wrap=(1,))
    rows = {
        "dataset": f"{receipt.dataset}, snapshot {receipt.snapshot}",
        "question": receipt.question,
        "asked by": receipt.user or "not shown",
        "cost": f"ε {loss(receipt.epsilon)}" if receipt.epsilon else "nothing",
        "mechanism": receipt.mechanism,
        "policy": f"v{receipt.policy_version}: {receipt.policy}",
        "settled": receipt.settled,
    }
    for name, value in rows.items():
        table.add_row(Text(name, style="dim"), value)
    return table


def _paid(receipt: Receipt) -> str:
    if receipt.cost:
        return f"ε {loss(receipt.cost)}"
    return "nothing: this answer was already paid for" if receipt.epsilon else "nothing: this answer is free"


def budget_line(total: Epsilon, remaining: Epsilon) -> RenderableType:
    """The meter that is always visible."""
    used = float(total - remaining) / float(total) if total else 0.0
    filled = round(used * _METER)
    style = "blue" if used < 0.9 else "red"
    return Text.assemble(
        ("Budget ", "bold"),
        ("▓" * filled + "░" * (_METER - filled), style),
        f"  {loss(total - remaining)} of {loss(total)} spent, {loss(remaining)} left",
    )


def budget_table(budget: Budget, left: Epsilon, grants: list[Grant]) -> RenderableType:
    """The meter, what is held for questions under way, and who may spend what."""
    parts: list[RenderableType] = [budget_line(budget.total, budget.remaining)]
    if budget.held:
        parts.append(Text(f"{loss(budget.held)} of it is held for questions under way.", style="dim"))
    parts.append(Text(f"You can still spend {loss(left)}."))
    if grants:
        table = grid("user", "granted", "spent", "held", right=(1, 2, 3))
        for grant in grants:
            granted = "no limit" if grant.granted is None else loss(grant.granted)
            table.add_row(grant.user, granted, loss(grant.spent), loss(grant.held))
        parts += [Text(), table]
    return Group(*parts)


_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = " ▁▂▃▄▅▆▇█"
_SHADES = "·░▒▓█"
_WIDEST_BAR = 36
_NARROWEST_BAR = 8
_TALL = 8
_MOST_ROWS = 48  # that a terminal shows; a pipe gets all of them
_HEAT = (236, 24, 25, 31, 38, 80)  # from few to many, each readable with white or black on it


@final
@dataclass(frozen=True, eq=False)
class AnswerChart:
    """An answer with its noise intervals, as wide as there is room."""

    answer: Answer

    def __rich_console__(self, out: Console, options: ConsoleOptions) -> RenderResult:
        answer, width = self.answer, options.max_width
        yield Text(answer.receipt.question, style="bold")
        if answer.places is not None:
            yield clusters(answer, answer.places, width)
        elif answer.kind in ("sum", "mean", "quantiles"):
            yield intervals(answer, width)
        elif len(answer.labels) == 2 and min(map(len, answer.labels)) > 1:
            yield heat_map(answer, width, shaded=out.is_terminal)
        else:
            most = _MOST_ROWS if out.is_terminal else None
            if answer.kind == "cumulative" and out.is_terminal and answer.values.size > 2:
                yield from curve(answer.values, answer.labels[0], width)
            yield bars(answer, width, most)
            if most is not None and answer.values.size > most:
                yield Text(f"… {answer.values.size - most:,} more: write them to a file with -o", style="dim")
        yield Text(_note(answer), style="dim")


def answer_chart(answer: Answer) -> AnswerChart:
    """The picture of an answer that suits its kind."""
    return AnswerChart(answer)


def _note(answer: Answer) -> str:
    return "\n".join((f"{answer.promise} Sampling error is not included.", *answer.notes))


# --- bars ---------------------------------------------------------------------------------------


def bars(answer: Answer, width: int, most: int | None) -> Table:
    """One bar a line, with its whisker; bars that may be nothing but noise are faded."""
    names = [" · ".join(parts) for parts in itertools.product(*answer.labels)][:most]
    if answer.form.get("kind") == "count":
        names = ["rows"]
    shown = [people(value) for value in answer.values[:most]]
    lows, highs = _ends(answer)
    spans = _spans(answer, 0)[:most]
    headings = ", ".join(answer.axes), "people", "noise interval"
    texts = zip(headings, (names, shown, spans), strict=True)
    taken = sum(max(map(len, (heading, *column))) + 2 for heading, column in texts)
    room = max(_NARROWEST_BAR, min(_WIDEST_BAR, width - taken - 2))
    longest = max(1.0, float(highs.max(initial=1.0)))
    table = grid(headings[0], "", *headings[1:], right=(0, 2, 3))
    for place, (name, value, span) in enumerate(zip(names, shown, spans, strict=True)):
        low, middle, high = (float(line[place]) for line in (lows, answer.values, highs))
        faded = answer.band is not None and low <= 0 and not answer.exact[place]
        drawn = whisker(low / longest, middle / longest, high / longest, room)
        table.add_row(
            name, Text(drawn, style="dim blue" if faded else "blue"), value, Text(span, style="dim")
        )
    return table


def _ends(answer: Answer) -> tuple[FloatArray, FloatArray]:
    """Where the whiskers end: at the values themselves if no error is promised."""
    return (answer.values, answer.values) if answer.band is None else answer.band


def _spans(answer: Answer, places: int) -> list[str]:
    """The noise intervals in words."""
    if answer.band is None:
        return ["exact" if exact else "not promised" for exact in answer.exact]
    ends = zip(*answer.band, answer.exact, strict=True)
    return ["exact" if exact else interval(low, high, places) for low, high, exact in ends]


def whisker(low: float, middle: float, high: float, width: int) -> str:
    """A bar up to ``low`` and a line from there to ``high``; just a bar where the line would be too short."""
    first, last = round(max(0.0, low) * width), round(max(0.0, high) * width) - 1
    if last - first < 2:
        whole, part = divmod(round(max(0.0, middle) * width * 8), 8)
        return "█" * whole + (_EIGHTHS[part] if part else "")
    centre = min(max(round(middle * width), first + 1), last - 1)
    line = ["─"] * (last - first + 1)
    line[0], line[-1], line[centre - first] = "├", "┤", "•"
    return "█" * first + "".join(line)


def clusters(answer: Answer, places: Places, width: int) -> Table:
    """One cluster a line: where it is, and a bar as long as it is large."""
    where, most = positions(places), max(1.0, float(answer.values.max(initial=1.0)))
    room = max(_NARROWEST_BAR, min(_WIDEST_BAR, width - 14 * (len(answer.axes) + 2)))
    numbers = (*range(1, len(answer.axes) + 1), len(answer.axes) + 2)
    table = grid("", *answer.axes, "", "people", right=numbers)
    for label, at, size in zip(answer.labels[0], where, answer.values, strict=True):
        share = float(size) / most
        table.add_row(label, *at, Text(whisker(share, share, share, room), style="blue"), people(float(size)))
    return table


# --- curves -------------------------------------------------------------------------------------


def curve(values: FloatArray, labels: Sequence[str], width: int) -> Iterator[Text]:
    """A step curve of blocks: as many columns as fit, the highest value of each."""
    most = max(1.0, float(values.max()))
    scale = people(most)
    room = min(width - len(scale) - 3, 64)
    step = max(1, math.ceil(values.size / room))
    columns = [float(values[start : start + step].max()) for start in range(0, values.size, step)]
    each = max(1, room // len(columns))
    heights = [round(value / most * _TALL * 8) for value in columns]
    for row in reversed(range(_TALL)):
        label = {_TALL - 1: scale, 0: "0"}.get(row, "")
        line = "".join(_LEVELS[min(8, max(0, height - 8 * row))] * each for height in heights)
        yield Text.assemble((f"{label:>{len(scale)}} ┤", "dim"), (line, "blue"))
    ends = labels[0], labels[-1]
    gap = max(1, each * len(columns) - sum(map(len, ends)))
    yield Text(f"{'':>{len(scale)}} └{ends[0]}{' ' * gap}{ends[1]}\n", style="dim")


# --- two columns --------------------------------------------------------------------------------


def heat_map(answer: Answer, width: int, *, shaded: bool) -> Table | Text:
    """Counts in a grid, shaded by size; one letter a cell where numbers do not fit."""
    rows, columns = answer.labels
    values = answer.values.reshape(len(rows), len(columns))
    noise = np.zeros(values.shape, dtype=np.bool_)
    if answer.low is not None:
        noise = ((answer.low <= 0) & ~answer.exact).reshape(values.shape)
    widths = [
        max(len(label), *(len(people(value)) for value in values[:, place])) + 2
        for place, label in enumerate(columns)
    ]
    side = max(len(answer.axes[0]) + len(answer.axes[1]) + 3, *(len(row) for row in rows)) + 2
    if side + sum(widths) > width:
        return _letters(answer, values)
    most = max(1.0, float(values.max()))
    table = grid(f"{answer.axes[0]} \\ {answer.axes[1]}", *columns, right=tuple(range(1, len(columns) + 1)))
    for name, line, faint in zip(rows, values, noise, strict=True):
        cells = [
            Text(people(value), style=_heat(value / most, bool(faded)) if shaded else "")
            for value, faded in zip(line, faint, strict=True)
        ]
        table.add_row(name, *cells)
    return table


def _heat(share: float, faded: bool) -> Style:
    level = min(len(_HEAT) - 1, int(share * len(_HEAT)))
    ink = "black" if level >= len(_HEAT) - 3 else "white"
    return Style(color=ink, bgcolor=f"color({_HEAT[level]})", dim=faded)


def _letters(answer: Answer, values: FloatArray) -> Text:
    rows, columns = answer.labels
    most, side = max(1.0, float(values.max())), max(map(len, rows))
    across = f"{answer.axes[1]}: {columns[0]} … {columns[-1]}"
    text = Text(f"{'':>{side}} {across}\n", style="dim")
    for name, line in zip(rows, values, strict=True):
        shades = "".join(_SHADES[min(4, int(value / most * 5))] for value in line)
        text.append(f"{name:>{side}} ", style="dim").append(f"{shades}\n", style="blue")
    text.append(
        f"{'':>{side}} · none … █ up to {people(most)} people; the numbers: export as csv", style="dim"
    )
    return text


# --- numbers ------------------------------------------------------------------------------------


def intervals(answer: Answer, width: int) -> Table:
    """Values on one line each, with their noise interval drawn to scale."""
    places = decimals(answer.grain) if answer.kind != "quantiles" else _places(answer.values)
    (lows, highs), spans = _ends(answer), _spans(answer, places)
    lowest, highest = float(lows.min()), float(highs.max())
    room = max(_NARROWEST_BAR, min(_WIDEST_BAR, width - max(map(len, spans)) - 40))
    of = answer.axes[0]
    heading = of if answer.kind == "quantiles" else f"{answer.kind} of {of}"
    table = grid(
        "share of people" if answer.kind == "quantiles" else "",
        "",
        heading,
        "noise interval",
        right=(0, 2, 3),
    )
    for name, low, value, high, span in zip(answer.labels[0], lows, answer.values, highs, spans, strict=True):
        scale = (room - 1) / ((highest - lowest) or 1.0)
        first, middle, last = (round((float(end) - lowest) * scale) for end in (low, value, high))
        drawn = Text(_line(first, middle, last, room), style="blue")
        table.add_row(name, drawn, amount(float(value), places), Text(span, style="dim"))
    return table


def _places(values: FloatArray) -> int:
    """As few decimal places as tell the values exactly, and three at most."""
    return next((n for n in range(3) if all(round(float(v), n) == float(v) for v in values)), 3)


def _line(low: int, middle: int, high: int, width: int) -> str:
    line = [" "] * width
    line[low : high + 1] = ["─"] * (high - low + 1)
    line[low], line[high], line[middle] = "├", "┤", "•"
    return "".join(line)


_BAR = 12


def tradeoff_table(found: Tradeoff) -> RenderableType:
    """One policy a line, from weak to strong; ★ marks the strongest that costs no more than the first."""
    star = None if found.free_gain is None else found.free_gain[1]
    most = max(float(point.epsilon) for point in found.points) or 1.0
    at = loss(found.fixed_epsilon)
    table = grid("", "hidden", "ε", "", f"± at ε {at}", "mechanism", right=(2, 4), wrap=(5,))
    for place, point in enumerate(found.points):
        bar = Text(
            "█" * max(1, round(_BAR * float(point.epsilon) / most)) if point.epsilon else "", style="blue"
        )
        mark = Text("★" if place == star else "", style="bold yellow")
        table.add_row(mark, point.policy, loss(point.epsilon), bar, significant(point.alpha), point.mechanism)
    asked = "" if found.asked_alpha is None else f" within ±{significant(found.asked_alpha, 6)}"
    return Group(
        Text(f"{found.question}{asked}", style="bold"),
        table,
        Text(f"{'★ ' if star is not None else ''}{found.sentence}"),
    )


def comparison_table(found: Comparison) -> RenderableType:
    """Both answers, their difference and its noise interval; ≠ where the noise does not explain it."""
    first, second = found.first, found.second
    places = decimals(found.grain) if first.kind in ("sum", "mean") else 0
    a, b = f"#{first.number}", f"#{second.number}"
    table = grid(", ".join(first.axes), a, b, f"{a} − {b}", "noise interval", "", right=(0, 1, 2, 3, 4))
    names = (" · ".join(parts) for parts in itertools.product(*first.labels))
    spans = ["not promised"] * len(found.difference)
    if found.band is not None:
        spans = [interval(float(low), float(high), places) for low, high in zip(*found.band, strict=True)]
    for name, one, other, apart, span, real in zip(
        names, first.values, second.values, found.difference, spans, found.differs, strict=True
    ):
        numbers = (amount(float(value), places) for value in (one, other, apart))
        mark = Text("≠" if real else "", style="bold yellow")
        table.add_row(name, *numbers, Text(span, style="dim"), mark)
    return Group(table, Text(found.sentence, style="bold"), Text(found.promise, style="dim"))
