"""Previews, for the curator only: the true answer beside a noisy one, on the same axes.

Protection: how sure an attacker can become, against how far two values are apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfishdb.core.policy.protection import Step, percent
from blowfishdb.show.charts.answers import (
    MOST_KINDS,
    bar_layers,
    faded,
    in_steps,
    line_layers,
    marks,
    sorts,
    stepped,
)
from blowfishdb.show.charts.frame import FILLED, WIDTH, finished, inline, label_axis, number_axis
from blowfishdb.show.charts.heat import heat_map
from blowfishdb.show.charts.legends import with_legend
from blowfishdb.show.tables import UNITS, Table, bin_names, priced_promise, value_places, value_title
from blowfishdb.show.words import amount, decimals, rounded

if TYPE_CHECKING:
    from blowfishdb.core.budget import Epsilon
    from blowfishdb.messages.curator import Preview


_HEIGHT, _STRIP = 220, 80
_MOST = 1_000
_MOST_LISTED = 20
_NAMES = 120  # pixels beside horizontal bars


def preview_chart(preview: Preview, *, width: int = WIDTH) -> Any:
    """Two panels on identical axes, and a strip with what the noise changed; marked as true data."""
    import altair as alt

    noisy, mark, more = preview.noisy, _mark(preview), ""
    if preview.truth.labels != noisy.labels:
        drawn = _listed(preview, width)
    elif len(noisy.labels) == 2 and len(noisy.values) > 1:
        most = float(max(preview.truth.values.max(initial=1), noisy.values.max(initial=1)))
        maps = [
            heat_map(
                noisy.axes, noisy.labels, values, low, width=width, most=most, title="people"
            ).properties(title=alt.TitleParams(text=name, fontSize=13))
            for name, values, low in (
                (f"{_exact(preview)} ({mark})", preview.truth.values, np.ones_like(preview.truth.values)),
                ("Noisy, one draw", noisy.values, noisy.low),
            )
        ]
        drawn = alt.vconcat(*maps, spacing=16)
    elif sorts(noisy):
        drawn, more = _kinds_panels(preview, width)
    else:
        drawn, more = _panels(preview, width)
    return finished(drawn, f"{noisy.receipt.question}: {mark}", priced_promise(noisy) + more, width=width)


def preview_table(preview: Preview) -> Table:
    """True and noisy values and their difference, bin by bin."""
    noisy, truth = preview.noisy, preview.truth
    title, notes = f"{_mark(preview)}: {noisy.receipt.question}", (priced_promise(noisy),)
    if truth.labels != noisy.labels:  # a ranking: noise changes which bins are listed
        pairs = itertools.zip_longest(truth.labels[0], noisy.labels[0], fillvalue="")
        listed = tuple((str(number), *pair) for number, pair in enumerate(pairs, start=1))
        return Table(title, ("place", _plain(preview), "noisy"), listed, notes)
    values = (truth.values, noisy.values, noisy.values - truth.values)
    places = value_places(noisy.kind, noisy.grain, *values)
    cells = ([amount(value, places) for value in column.tolist()] for column in values)
    rows = tuple(zip(bin_names(noisy), *cells, strict=True))
    columns = (" · ".join(noisy.axes), _plain(preview), "noisy", _difference(preview))
    return Table(title, columns, rows, notes, (1, 2, 3))


def _mark(preview: Preview) -> str:
    return "made-up data" if preview.stand_in else "true data"


def _plain(preview: Preview) -> str:
    return "made up" if preview.stand_in else "true"


def _difference(preview: Preview) -> str:
    return f"noisy − {_plain(preview)}"


def _exact(preview: Preview) -> str:
    return "Without noise" if preview.stand_in else "True answer"


def _panels(preview: Preview, width: int) -> tuple[Any, str]:
    """Bars, or a line in steps, as the answer itself is drawn; and what is too thin to be seen."""
    import altair as alt

    noisy = preview.noisy
    stride = -(-len(noisy.values) // _MOST)
    names = bin_names(noisy)[::stride]
    places = decimals(noisy.grain if noisy.kind != "quantiles" else 1.0)
    in_line, ends = stepped(noisy), noisy.band or (noisy.values, noisy.values)
    columns = {"true": preview.truth.values, "noisy": noisy.values, "low": ends[0], "high": ends[1]}
    told = {name: [rounded(value, places) for value in column[::stride]] for name, column in columns.items()}
    rows: list[dict[str, Any]] = [
        {"bin": name, **dict(zip(told, numbers, strict=True))}
        for name, *numbers in zip(names, *told.values(), strict=True)
    ]
    if not in_line and noisy.band is not None:
        rows = [{**row, "faint": noisy.kind not in UNITS and row["low"] <= 0} for row in rows]
    top, bottom = max([*told["true"], *told["high"], 0.0]), min([*told["true"], *told["low"], 0.0])
    top += 0.15 * (top - bottom)  # where the mark stands, so that no bar lies under it
    base = alt.Chart(inline(rows))
    side_by_side = width >= 480
    each = (width - 72) // 2 if side_by_side else width
    axis, room = " · ".join(noisy.axes), each / max(len(names), 1)
    scale = in_steps() if in_line else alt.Undefined
    x = alt.X("bin:N", sort=None, title=axis, axis=label_axis(names, each, most=4), scale=scale)
    domain = alt.Scale(domain=[bottom, top if top > bottom else bottom + 1], nice=True)

    def panel(field: str, title: str, words: str) -> Any:
        y = alt.Y(f"{field}:Q", scale=domain, axis=number_axis(title))
        tooltip = [alt.Tooltip("bin:N", title=axis), alt.Tooltip(f"{field}:Q")]
        promised = field == "noisy" and noisy.band is not None
        if in_line:
            hover = base.mark_rule(opacity=0, aria=False, strokeWidth=max(1.0, room))
            layers = [*line_layers(base, x, y, band=promised), hover.encode(x=x, tooltip=tooltip)]
        elif promised:
            layers = bar_layers(base, x, y, tooltip=tooltip, room=room, band=True)
        else:
            bars = base.mark_bar(style="answer", fillOpacity=FILLED)
            layers = [bars.encode(x=x, y=y, tooltip=tooltip)]
        if field == "true":
            layers.append(_watermark(_mark(preview)))
        named = alt.TitleParams(text=words, fontSize=13)
        return alt.layer(*layers).properties(width=each, height=_HEIGHT, title=named)

    panels = (
        panel("true", value_title(noisy).replace(" (noisy)", ""), _exact(preview)),
        panel("noisy", value_title(noisy), "Noisy, one draw"),
    )
    pair = alt.hconcat(*panels, spacing=16) if side_by_side else alt.vconcat(*panels, spacing=16)
    strip = (
        base.transform_calculate(residual=f"round((datum.noisy - datum.true) * 1e{places}) / 1e{places}")
        .mark_bar(style="answer", fillOpacity=FILLED)
        .encode(
            x=alt.X("bin:N", sort=None, title=axis, axis=label_axis(names, width)),
            y=alt.Y("residual:Q", axis=number_axis(_difference(preview), ticks=3)),
            tooltip=[alt.Tooltip("bin:N", title=axis), alt.Tooltip("residual:Q", title=_difference(preview))],
        )
        .properties(width=width, height=_STRIP)
    )
    entries, more = marks(noisy, noisy.band, _HEIGHT)
    return alt.vconcat(pair, with_legend(strip, entries, width=width), spacing=16), more


def _kinds_panels(preview: Preview, width: int) -> tuple[Any, str]:
    """Kinds without an order lie, the largest first, every one with its name; and what is left out."""
    import altair as alt

    noisy, places = preview.noisy, decimals(preview.noisy.grain)
    ends = noisy.band or (noisy.values, noisy.values)
    numbers = (preview.truth.values, noisy.values, *ends, noisy.values - preview.truth.values)
    cells = [[rounded(value, places) for value in column] for column in numbers]
    names = ("bin", "true", "noisy", "low", "high", "residual")
    rows = [dict(zip(names, row, strict=True)) for row in zip(bin_names(noisy), *cells, strict=True)]
    rows = [{**row, "faint": noisy.band is not None and row["low"] <= 0} for row in rows]
    rows.sort(key=lambda row: -row["noisy"])
    cut = f" The {MOST_KINDS} largest of {len(rows)} are drawn." if len(rows) > MOST_KINDS else ""
    rows = rows[:MOST_KINDS]
    top = max([0.0, *(max(row["true"], row["high"]) for row in rows)])
    bottom = min([0.0, *(row["low"] for row in rows)])
    domain = alt.Scale(domain=[bottom, top or 1.0], nice=True)
    base, height = alt.Chart(inline(rows)), 22 * max(len(rows), 2)
    side_by_side = width >= 480
    each = (width - _NAMES) // 3 if side_by_side else width - _NAMES

    def panel(field: str, title: str, words: str, *, named: bool) -> Any:
        axis = alt.Axis(grid=False, labelLimit=_NAMES, labelOverlap=False) if named else None
        y = alt.Y("bin:N", sort=[row["bin"] for row in rows], title=None, axis=axis)
        scale = alt.Undefined if field == "residual" else domain
        x = alt.X(f"{field}:Q", scale=scale, axis=number_axis(title, ticks=3))
        bars = base.mark_bar(style="answer", height=alt.RelativeBandSize(0.66))
        look = faded() if field == "noisy" else {"fillOpacity": alt.value(FILLED)}
        tooltip = [alt.Tooltip("bin:N"), alt.Tooltip(f"{field}:Q")]
        layers: list[Any] = [bars.encode(y=y, x=x, tooltip=tooltip, **look)]
        if field == "noisy" and noisy.band is not None:
            layers.append(base.mark_rule(style="interval").encode(y=y, x=alt.X("low:Q"), x2=alt.X2("high:Q")))
        titled = alt.TitleParams(text=words, fontSize=13)
        return alt.layer(*layers).properties(width=each, height=height, title=titled)

    panels = (
        panel(
            "true",
            value_title(noisy).replace(" (noisy)", ""),
            f"{_exact(preview)} ({_mark(preview).upper()})",
            named=True,
        ),
        panel("noisy", value_title(noisy), "Noisy, one draw", named=not side_by_side),
        panel("residual", _difference(preview), "Difference", named=not side_by_side),
    )
    together = alt.hconcat if side_by_side else alt.vconcat
    entries, more = marks(noisy, noisy.band, each)
    return with_legend(together(*panels, spacing=16), entries, width=width), cut + more


def _watermark(words: str) -> Any:
    import altair as alt

    data = inline([{"words": words.upper()}])
    return (
        alt.Chart(data)
        .mark_text(style="watermark", align="left", baseline="top")
        .encode(text=alt.Text("words:N"), x=alt.value(8), y=alt.value(4))
    )


def _listed(preview: Preview, width: int) -> Any:
    """A ranking: which bins are listed with and without noise, one below the other."""
    import altair as alt

    rows = [
        {"place": rank, "list": name, "bin": label}
        for name, labels in ((_mark(preview), preview.truth.labels[0]), ("noisy", preview.noisy.labels[0]))
        for rank, label in enumerate(labels[:_MOST_LISTED], start=1)
    ]
    base = alt.Chart(inline(rows))
    y = alt.Y("place:O", title="place", axis=alt.Axis(grid=False))
    x = alt.X("list:N", sort=None, title=None, axis=alt.Axis(labelAngle=0, orient="top", grid=False))
    words = base.mark_text(style="words").encode(x=x, y=y, text=alt.Text("bin:N"))
    longest = max(len(preview.truth.labels[0]), len(preview.noisy.labels[0]), 1)
    height = 28 * min(longest, _MOST_LISTED)
    return words.properties(width=width, height=height)


_STEPS_HEIGHT = 220


def protection_chart(steps: Sequence[Step], column: str, budget: Epsilon, *, width: int = WIDTH) -> Any:
    """A step curve where values have distances, otherwise one bar for each kind of pair."""
    along = bool(steps) and all(step.high is not None for step in steps)
    drawn = _curve(steps, column, width) if along else _kinds(steps, width)
    return finished(drawn, f"How well '{column}' is hidden", _words(steps, budget), width=width)


def protection_table(steps: Sequence[Step], column: str, budget: Epsilon) -> Table:
    """Every step of the curve."""
    rows = tuple((step.apart, percent(step.certainty)) for step in steps)
    columns = (f"two values of {column}", "an attacker is at most this sure")
    return Table("", columns, rows, (_words(steps, budget),), (1,))


def _words(steps: Sequence[Step], budget: Epsilon) -> str:
    if not steps:
        return "This column has a single value, so there is nothing to hide."
    first, last = steps[0], steps[-1]
    words = (
        f"After every answer that a budget of ε {budget} allows, someone who thought two values equally "
        f"likely is at most {percent(first.certainty)} sure which of them it is {_when(first)}"
    )
    if len(steps) == 1:
        return words + "."
    farther = _when(last) if last.high is None else f"{last.apart} apart"
    return f"{words}, and {percent(last.certainty)} sure {farther}."


def _when(step: Step) -> str:
    """Of which two values a step speaks."""
    if step.high is not None:
        return f"if they are {step.apart} apart"
    return f"for {step.apart}" if step.apart.endswith("values") else f"if they are {step.apart}"


def _curve(steps: Sequence[Step], column: str, width: int) -> Any:
    import altair as alt

    rows = [{"distance": 0.0, "sure": rounded(steps[0].certainty, 5), "apart": steps[0].apart}]
    rows += [
        {"distance": float(step.high or 0), "sure": rounded(step.certainty, 5), "apart": step.apart}
        for step in steps
    ]
    base = alt.Chart(inline(rows))
    x = alt.X("distance:Q", axis=number_axis(f"distance of two values of {column}", ticks=6))
    scale = alt.Scale(domain=[0.5, 1.0])
    y = alt.Y("sure:Q", scale=scale, axis=number_axis("attacker's certainty, at most", form=".0%"))
    line = base.mark_line(style="answer-line", interpolate="step-before").encode(x=x, y=y)
    tooltip = [alt.Tooltip("apart:N", title="apart"), alt.Tooltip("sure:Q", title="at most", format=".1%")]
    dots = base.mark_point(style="answer", filled=True, size=40).encode(x=x, y=y, tooltip=tooltip)
    return alt.layer(line, dots).properties(width=width, height=_STEPS_HEIGHT)


def _kinds(steps: Sequence[Step], width: int) -> Any:
    import altair as alt

    rows = [
        {
            "apart": step.apart,
            "start": 0.5,
            "sure": rounded(step.certainty, 5),
            "words": percent(step.certainty),
        }
        for step in steps
    ]
    base = alt.Chart(inline(rows))
    y = alt.Y("apart:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, grid=False))
    axis = number_axis("attacker's certainty, at most", form=".0%")
    x = alt.X("sure:Q", scale=alt.Scale(domain=[0.5, 1.0]), axis=axis)
    bars = base.mark_bar(style="answer", height=alt.RelativeBandSize(0.5)).encode(
        x=x, x2=alt.X2("start:Q"), y=y
    )
    words = base.mark_text(style="words", dy=-20, align="right").encode(x=x, y=y, text=alt.Text("words:N"))
    return alt.layer(bars, words).properties(width=width, height=max(64, 56 * len(rows)))
