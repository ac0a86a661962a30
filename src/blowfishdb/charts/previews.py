"""Previews, for the curator only: the true answer beside a noisy one, on the same axes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from blowfishdb.charts.answers import promise, value_title
from blowfishdb.charts.frame import (
    FILLED,
    WIDTH,
    ChartTable,
    digits,
    finished,
    headline,
    label_axis,
    number_axis,
    number_text,
    rounded,
)
from blowfishdb.charts.heat import heat_map
from blowfishdb.core.arrays import FloatArray

if TYPE_CHECKING:
    from blowfishdb.preview import Preview

_HEIGHT, _STRIP = 220, 80
_MOST = 1_000
_MOST_LISTED = 20


def preview_chart(preview: Preview, *, width: int = WIDTH) -> Any:
    """Two panels on identical axes, and a strip with what the noise changed; marked as true data."""
    import altair as alt

    noisy, mark = preview.noisy, _mark(preview)
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
    else:
        drawn = _panels(preview, width)
    return finished(drawn, f"{noisy.receipt.question}: {mark}", promise(noisy), width=width)


def preview_table(preview: Preview) -> ChartTable:
    """True and noisy values and their difference, bin by bin."""
    noisy = preview.noisy
    places = digits(noisy.grain)
    caption = f"{headline(_mark(preview))}. {headline(noisy.receipt.question)}. {promise(noisy)}"
    if preview.truth.labels != noisy.labels:  # a ranking: noise changes which bins are listed
        pairs = itertools.zip_longest(preview.truth.labels[0], noisy.labels[0], fillvalue="")
        listed = tuple((str(place), true, drawn) for place, (true, drawn) in enumerate(pairs, start=1))
        return ChartTable(caption, ("place", "true", "noisy"), listed)
    names = (" · ".join(parts) for parts in itertools.product(*noisy.labels))
    numbers = zip(preview.truth.values, noisy.values, noisy.values - preview.truth.values, strict=True)
    rows = tuple(
        (name, *(number_text(float(value), places) for value in values))
        for name, values in zip(names, numbers, strict=True)
    )
    return ChartTable(caption, (" · ".join(noisy.axes), "true", "noisy", "noisy − true"), rows)


def _mark(preview: Preview) -> str:
    return "made-up data" if preview.stand_in else "true data"


def _exact(preview: Preview) -> str:
    return "Without noise" if preview.stand_in else "True answer"


def _panels(preview: Preview, width: int) -> Any:
    import altair as alt

    noisy = preview.noisy
    stride = -(-len(noisy.values) // _MOST)
    names = tuple(" · ".join(parts) for parts in itertools.product(*noisy.labels))[::stride]
    places = digits(noisy.grain if noisy.kind != "quantiles" else 1.0)

    def column(values: FloatArray) -> list[float]:
        return [rounded(value, places) for value in values[::stride]]

    ends = noisy.band or (noisy.values, noisy.values)
    truth, drawn, low, high = (column(v) for v in (preview.truth.values, noisy.values, *ends))
    rows = [
        {"bin": n, "true": t, "noisy": v, "low": lo, "high": hi, "residual": rounded(v - t, places)}
        for n, t, v, lo, hi in zip(names, truth, drawn, low, high, strict=True)
    ]
    top, bottom = max([*truth, *high, 0.0]), min([*truth, *low, 0.0])
    top += 0.15 * (top - bottom)  # where the mark stands, so that no bar lies under it
    base = alt.Chart(alt.InlineData(values=rows))
    side_by_side = width >= 480
    each = (width - 72) // 2 if side_by_side else width
    axis = " · ".join(noisy.axes)
    x = alt.X("bin:N", sort=None, title=axis, axis=label_axis(names, each, most=4))
    domain = alt.Scale(domain=[bottom, top if top > bottom else bottom + 1], nice=True)

    def panel(field: str, title: str, words: str) -> Any:
        y = alt.Y(f"{field}:Q", scale=domain, axis=number_axis(title))
        layers: list[Any] = [
            base.mark_bar(style="answer", fillOpacity=FILLED).encode(
                x=x, y=y, tooltip=["bin:N", f"{field}:Q"]
            )
        ]
        if field == "noisy" and noisy.band is not None:
            layers.append(base.mark_rule(style="interval").encode(x=x, y=alt.Y("low:Q"), y2="high:Q"))
        elif field == "true":
            layers.append(_watermark(_mark(preview)))
        named = alt.TitleParams(text=words, fontSize=13)
        return alt.layer(*layers).properties(width=each, height=_HEIGHT, title=named)

    panels = (
        panel("true", value_title(noisy).replace(" (noisy)", ""), _exact(preview)),
        panel("noisy", value_title(noisy), "Noisy, one draw"),
    )
    pair = alt.hconcat(*panels, spacing=16) if side_by_side else alt.vconcat(*panels, spacing=16)
    strip = (
        base.mark_bar(style="answer", fillOpacity=FILLED)
        .encode(
            x=alt.X("bin:N", sort=None, title=axis, axis=label_axis(names, width)),
            y=alt.Y("residual:Q", axis=number_axis("noisy − true", ticks=3)),
            tooltip=["bin:N", "residual:Q"],
        )
        .properties(width=width, height=_STRIP)
    )
    return alt.vconcat(pair, strip, spacing=16)


def _watermark(words: str) -> Any:
    import altair as alt

    data = alt.InlineData(values=[{"words": words.upper()}])
    return (
        alt.Chart(data)
        .mark_text(style="watermark", align="left", baseline="top")
        .encode(text="words:N", x=alt.value(8), y=alt.value(4))
    )


def _listed(preview: Preview, width: int) -> Any:
    """A ranking: which bins are listed with and without noise, one below the other."""
    import altair as alt

    rows = [
        {"place": place, "list": name, "bin": label}
        for name, labels in ((_mark(preview), preview.truth.labels[0]), ("noisy", preview.noisy.labels[0]))
        for place, label in enumerate(labels[:_MOST_LISTED], start=1)
    ]
    base = alt.Chart(alt.InlineData(values=rows))
    y = alt.Y("place:O", title="place", axis=alt.Axis(grid=False))
    x = alt.X("list:N", sort=None, title=None, axis=alt.Axis(labelAngle=0, orient="top", grid=False))
    words = base.mark_text(style="words").encode(x=x, y=y, text="bin:N")
    longest = max(len(preview.truth.labels[0]), len(preview.noisy.labels[0]), 1)
    height = 28 * min(longest, _MOST_LISTED)
    return words.properties(width=width, height=height)
