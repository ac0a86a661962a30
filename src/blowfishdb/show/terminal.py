"""Quotes, answers, receipts and tables in a terminal; plain text when the output is not a terminal.

Where output goes: colours and frames on a terminal, plain aligned text everywhere else.

Quotes, receipts and budgets: what things cost, and what is left.

Answers as pictures made of letters: bars with whiskers, curves, heat maps, interval lines.

Trade-offs and comparisons as tables.
"""

from __future__ import annotations

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
from blowfishdb.core.questions.promise import significant
from blowfishdb.messages.answers import Answer, Comparison, Receipt
from blowfishdb.messages.quotes import Quote, TogetherQuote, Tradeoff
from blowfishdb.show import tables
from blowfishdb.show.words import charged, loss, people

_PIPED = 400  # columns: long enough that no line of a pipe is broken


def console(*, stderr: bool = False) -> Console:
    """Standard output or standard error; what goes into a pipe is not wrapped."""
    out = Console(highlight=False, stderr=stderr, soft_wrap=False)
    if out.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return out
    return Console(highlight=False, stderr=stderr, width=_PIPED)


@final
@dataclass(frozen=True)
class Frame:
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
    for number, heading in enumerate(headings):
        table.add_column(
            heading,
            justify="right" if number in right else "left",
            no_wrap=number not in wrap,
            overflow="ellipsis",
        )
    return table


def printed(table: tables.Table, *, drawn: Sequence[Text] = (), at: int = 0, right: int = 0) -> Table:
    """A table as a terminal shows it; ``drawn`` is a column of pictures before column ``at``.

    So many columns as ``right`` says stand next to the picture, as numbers do.
    """
    numbers = {*table.numbers, *range(right)}
    shifted = tuple(number + (bool(drawn) and number >= at) for number in numbers)
    headings = (*table.columns[:at], *([""] if drawn else []), *table.columns[at:])
    made = grid(*headings, right=shifted, wrap=() if numbers else (len(headings) - 1,))
    for number, row in enumerate(table.rows):
        made.add_row(*row[:at], *drawn[number : number + 1], *row[at:])
    return made


_METER = 20


def quote_panel(quote: Quote) -> RenderableType:
    """The price of an answer, before it is paid."""
    table = tables.quote_table(quote)
    wide = max(len(name) for name, _ in table.rows)
    facts = [
        Text.assemble((f"{name:<{wide}}  ", "dim"), (words, "bold" if name == "price" else ""))
        for name, words in table.rows
    ]
    promise, *notes, made = map(Text, table.notes)
    made.stylize("dim")
    return Frame(f"QUOTE, free: {table.title}", Group(promise, *facts, *notes, made))


def receipt_line(receipt: Receipt) -> RenderableType:
    """What was paid, for what, and under which policy."""
    made = f"{receipt.mechanism} · policy v{receipt.policy_version}"
    return Text.assemble(("Receipt ", "bold"), f"#{receipt.charge} · charged {charged(receipt)} · {made}")


def receipt_table(answer: Answer) -> RenderableType:
    """Everything that is on record about an answer."""
    return printed(tables.receipt_table(answer, named=True))


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
            yield clusters(answer, width)
        elif answer.measures:
            table = tables.answer_table(answer)
            fits = _taken(table) <= width or len(answer.measures) == 1
            yield from map(printed, [table] if fits else tables.one_by_one(answer))
        elif answer.kind in ("sum", "mean", "quantiles"):
            yield intervals(answer, width)
        elif len(answer.labels) == 2 and min(map(len, answer.labels)) > 1 and not answer.listed:
            yield heat_map(answer, width, shaded=out.is_terminal)
        else:
            most = _MOST_ROWS if out.is_terminal else None
            curved = answer.kind == "cumulative" and not answer.arranged
            if curved and out.is_terminal and answer.values.size > 2:
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
    table = tables.answer_table(answer, most=most)
    names = len(table.columns) - len(table.numbers)
    lows, highs = _ends(answer)
    longest = max(1.0, float(highs.max(initial=1.0)))
    room = _room(table, width)
    drawn = [
        Text(
            whisker(low / longest, value / longest, high / longest, room),
            style="dim blue" if answer.band is not None and low <= 0 and not exact else "blue",
        )
        for low, value, high, exact in zip(
            lows[:most].tolist(),
            answer.values[:most].tolist(),
            highs[:most].tolist(),
            answer.exact[:most],
            strict=True,
        )
    ]
    return printed(table, drawn=drawn, at=names, right=names)


def _room(table: tables.Table, width: int) -> int:
    """How long a bar may be beside everything else in its line."""
    return max(_NARROWEST_BAR, min(_WIDEST_BAR, width - _taken(table) - 2))


def _taken(table: tables.Table) -> int:
    """How wide all columns are."""
    texts = zip(table.columns, *table.rows, strict=True)
    return sum(max(map(len, column)) + 2 for column in texts)


def _ends(answer: Answer) -> tuple[FloatArray, FloatArray]:
    """Where the whiskers end: at the values themselves if no error is promised."""
    return (answer.values, answer.values) if answer.band is None else answer.band


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


def clusters(answer: Answer, width: int) -> Table:
    """One cluster a line: where it is, and a bar as long as it is large."""
    table, most = tables.answer_table(answer), max(1.0, float(answer.values.max(initial=1.0)))
    room, shares = _room(table, width), (answer.values / most).tolist()
    drawn = [Text(whisker(share, share, share, room), style="blue") for share in shares]
    return printed(table, drawn=drawn, at=len(table.columns) - 1)


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
        max(len(label), *(len(people(value)) for value in values[:, number])) + 2
        for number, label in enumerate(columns)
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
    table, (lows, highs) = tables.answer_table(answer), _ends(answer)
    lowest, highest = float(lows.min()), float(highs.max())
    room = _room(table, width)
    scale = (room - 1) / ((highest - lowest) or 1.0)
    ends = zip(lows.tolist(), answer.values.tolist(), highs.tolist(), strict=True)
    drawn = [
        Text(_line([round((end - lowest) * scale) for end in each], room), style="blue") for each in ends
    ]
    return printed(table, drawn=drawn, at=1, right=1)


def _line(ends: Sequence[int], width: int) -> str:
    low, middle, high = ends
    line = [" "] * width
    line[low : high + 1] = ["─"] * (high - low + 1)
    line[low], line[high], line[middle] = "├", "┤", "•"
    return "".join(line)


_BAR = 12


def tradeoff_table(tradeoff: Tradeoff) -> RenderableType:
    """One policy a line, from weak to strong, with its price as a bar."""
    table, most = tables.tradeoff_table(tradeoff), max(float(p.epsilon) for p in tradeoff.points) or 1.0
    bars = [max(1, round(_BAR * float(p.epsilon) / most)) if p.epsilon else 0 for p in tradeoff.points]
    drawn = [Text("█" * length, style="blue") for length in bars]
    asked = "" if tradeoff.asked_alpha is None else f" within ±{significant(tradeoff.asked_alpha, 6)}"
    return Group(
        Text(f"{tradeoff.question}{asked}", style="bold"),
        printed(table, drawn=drawn, at=table.numbers[0]),
        *(Text(note) for note in table.notes),
    )


def together_table(quote: TogetherQuote) -> RenderableType:
    """One question a line, alone and beside the others, and what all of them cost."""
    table = tables.together_table(quote)
    sentence, *promises = table.notes
    said = (Text(promise, style="dim") for promise in promises)
    return Group(printed(table), Text(sentence, style="bold"), *said)


def comparison_table(comparison: Comparison) -> RenderableType:
    """Both answers, their difference and its noise interval, and where the noise does not explain it."""
    table = tables.comparison_table(comparison)
    sentence, promise = table.notes
    return Group(printed(table, right=1), Text(sentence, style="bold"), Text(promise, style="dim"))
