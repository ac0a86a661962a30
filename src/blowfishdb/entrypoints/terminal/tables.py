"""Trade-offs and comparisons as tables."""

from __future__ import annotations

import itertools

from rich.console import Group, RenderableType
from rich.text import Text

from blowfishdb.comparison import Comparison
from blowfishdb.entrypoints.terminal.figures import amount, decimals, interval, loss, significant
from blowfishdb.entrypoints.terminal.screen import grid
from blowfishdb.tradeoff import Tradeoff

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
