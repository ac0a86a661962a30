"""Answers: bars with whiskers, steps with a band, heat maps, dots with intervals, rankings.

Heat maps: counts along two columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.show.charts.clusters import Backdrop, cluster_chart
from blowfishdb.show.charts.frame import (
    FILLED,
    HEIGHT,
    NUMBER,
    WIDTH,
    finished,
    inline,
    label_axis,
    number_axis,
)
from blowfishdb.show.tables import (
    UNITS,
    Aggregated,
    aggregated,
    bin_names,
    priced_promise,
    value_title,
)
from blowfishdb.show.words import TOO_FEW, decimals, rounded

if TYPE_CHECKING:
    from blowfishdb.messages.answers import Answer


_MOST_ALONG = 60  # cells along one axis; more are averaged


def heat_map(
    axes: tuple[str, ...],
    labels: tuple[tuple[str, ...], ...],
    values: FloatArray,
    low: FloatArray | None,
    *,
    width: int = WIDTH,
    most: float | None = None,
    title: str = "people (noisy)",
) -> Any:
    """Counts along two axes; what could be zero is faint and dotted. ``most`` fixes the colours' top."""
    import altair as alt

    rows, along, down = _cells(labels, values, low)
    base = alt.Chart(inline(rows))
    top = most if most is not None else float(values.max(initial=1.0))
    x = alt.X("across:N", sort=None, title=axes[1], axis=label_axis(along, width))
    tall = min(420, max(120, 24 * len(down)))
    shown = label_axis(down, int(tall * 2.5)).values
    y_axis = alt.Axis(values=shown, grid=False, labelLimit=120)
    y = alt.Y("down:N", sort=None, title=axes[0], axis=y_axis)
    colour = alt.Color(
        "value:Q",
        title=title,
        scale=alt.Scale(domain=[0, max(top, 1.0)], range="ramp"),
        legend=alt.Legend(format=NUMBER, gradientLength=min(240, width // 2), tickCount=3),
    )
    cells = base.mark_rect(style="heat").encode(
        x=x,
        y=y,
        color=colour,
        opacity=alt.condition("datum.faint", alt.value(0.35), alt.value(1)),
        tooltip=[
            alt.Tooltip("down:N", title=axes[0]),
            alt.Tooltip("across:N", title=axes[1]),
            alt.Tooltip("value:Q", title=title, format=",.0f"),
        ],
    )
    dots = (
        base.transform_filter("datum.faint")
        .mark_point(style="dot", filled=True, size=8, shape="circle")
        .encode(x=x, y=y)
    )
    layers = [cells] if low is None else [cells, dots]
    return alt.layer(*layers).properties(width=width, height=tall)


def _cells(
    labels: tuple[tuple[str, ...], ...], values: FloatArray, low: FloatArray | None
) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """One row for every cell; where there are too many along an axis, neighbours are averaged."""
    shape = len(labels[0]), len(labels[1])
    strides = tuple(-(-length // _MOST_ALONG) for length in shape)
    table, floor = values.reshape(shape), (np.ones_like(values) if low is None else low).reshape(shape)
    for axis, stride in enumerate(strides):
        starts = np.arange(0, table.shape[axis], stride)
        sizes = np.diff([*starts, table.shape[axis]]).reshape((-1, 1) if axis == 0 else (1, -1))
        table = np.add.reduceat(table, starts, axis=axis) / sizes
        floor = np.add.reduceat(floor, starts, axis=axis) / sizes
    down, across = list(labels[0][:: strides[0]]), list(labels[1][:: strides[1]])
    rows = [
        {
            "down": down[i],
            "across": across[j],
            "value": rounded(table[i, j], 1),
            "faint": bool(floor[i, j] <= 0),
        }
        for i in range(len(down))
        for j in range(len(across))
    ]
    return rows, across, down


_MOST_BARS = 120  # more are too thin for whiskers, and are drawn as steps
_MOST_STEPS = 1_000
_MOST_RANKED = 40
_MOST_GROUPS = 120


def answer_chart(
    answer: Answer, *, raw: bool = False, under: Backdrop | None = None, width: int = WIDTH
) -> Any:
    """The answer with its noise intervals, if any; ``raw`` adds the release as it left the mechanism.

    Clusters are drawn over ``under``, a stored histogram of the same columns.
    """
    if answer.places is not None:
        drawn = cluster_chart(answer, answer.places, under=under, width=width)
        return finished(drawn, answer.receipt.question, priced_promise(answer), width=width)
    words = " ".join((priced_promise(answer), *answer.notes))
    if answer.measures:
        drawn, more = _aggregates(answer, width)
        return finished(drawn, answer.receipt.question, f"{words}{more}", width=width)
    series = _series(answer)
    if series.stride > 1:
        words += f" Each place stands for {series.stride:,} neighbouring bins."
    shown = raw and series.stride == 1 and len(answer.raw) == len(series.values)
    if not len(series.values):
        drawn = _nothing(width)
    elif answer.kind in UNITS or len(series.values) == 1:
        drawn = _dots(answer, series, width)
    elif len(answer.labels) == 2 and not answer.listed:
        drawn = heat_map(answer.axes, answer.labels, answer.values, answer.low, width=width)
    elif answer.kind in ("top", "above") and len(series.values) <= _MOST_RANKED:
        drawn = _ranking(answer, series, width)
    elif (answer.kind == "cumulative" and not answer.arranged) or len(series.values) > _MOST_BARS:
        drawn = _steps(answer, series, width, raw=shown)
    else:
        drawn = _bars(answer, series, width, raw=shown)
    return finished(drawn, answer.receipt.question, words, width=width)


def _scale(answer: Answer) -> float:
    return answer.grain if answer.kind != "quantiles" else 1.0


# --- data -----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Series:
    """Places along one line; ``stride`` bins share a place where there are too many to draw."""

    labels: tuple[str, ...]
    values: FloatArray
    band: tuple[FloatArray, FloatArray] | None
    raw: FloatArray | None
    stride: int
    decimals: int

    def rows(self) -> list[dict[str, Any]]:
        """One row for every place, as numbers without noise in their last digits."""
        named: dict[str, FloatArray] = {"value": self.values}
        if self.band is not None:
            named |= dict(zip(("low", "high"), self.band, strict=True))
        if self.raw is not None:
            named["raw"] = self.raw
        rows = [
            {name: rounded(value, self.decimals) for name, value in zip(named, numbers, strict=True)}
            for numbers in zip(*named.values(), strict=True)
        ]
        faint = np.zeros(len(rows), dtype=np.bool_) if self.band is None else self.band[0] <= 0
        places = zip(self.labels, faint, rows, strict=True)
        return [{"bin": label, "faint": bool(pale), **row} for label, pale, row in places]


def _series(answer: Answer) -> Series:
    names, scale = bin_names(answer), _scale(answer)
    raw = answer.raw if len(answer.raw) == len(answer.values) else None
    stride = max(1, -(-len(names) // _MOST_STEPS)) if len(answer.labels) == 1 and not answer.arranged else 1
    if stride == 1:
        return Series(names, answer.values, answer.band, raw, 1, decimals(scale))
    starts = np.arange(0, len(names), stride)
    sizes = np.diff([*starts, len(names)])
    band = answer.band
    if band is not None:
        band = np.minimum.reduceat(band[0], starts), np.maximum.reduceat(band[1], starts)
    means = np.add.reduceat(answer.values, starts) / sizes
    return Series(names[::stride], means, band, None, stride, decimals(scale))


def _tooltip(series: Series, axis: str, value: str) -> list[Any]:
    import altair as alt

    form = f",.{series.decimals}f"
    ends = [
        alt.Tooltip("low:Q", title="noise interval from", format=form),
        alt.Tooltip("high:Q", title="to", format=form),
    ]
    return [
        alt.Tooltip("bin:N", title=axis),
        alt.Tooltip("value:Q", title=value, format=form),
        *(ends if series.band is not None else []),
    ]


# --- forms ----------------------------------------------------------------------------------------


def _bars(answer: Answer, series: Series, width: int, *, raw: bool) -> Any:
    """Bars whose interval includes zero are faint and have a dashed outline."""
    import altair as alt

    base = alt.Chart(inline(series.rows()))
    axis = " · ".join(answer.axes)
    x = alt.X("bin:N", sort=None, title=axis, axis=label_axis(series.labels, width))
    y = alt.Y("value:Q", axis=number_axis(value_title(answer)))
    bars = base.mark_bar(style="answer").encode(
        x=x,
        y=y,
        tooltip=_tooltip(series, axis, value_title(answer)),
        fillOpacity=alt.condition("datum.faint", alt.value(0.1), alt.value(FILLED)),
        strokeDash=alt.condition("datum.faint", alt.value([3, 3]), alt.value([1, 0])),
    )
    whiskers = base.mark_rule(style="interval").encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    ends = [
        base.mark_tick(
            style="interval", thickness=2, size=min(10.0, 0.5 * width / len(series.labels))
        ).encode(x=x, y=alt.Y(f"{end}:Q"))
        for end in ("low", "high")
    ]
    interval = [whiskers, *(ends if len(series.labels) <= 60 else [])]
    layers = [bars, *_promised(series, *interval)]
    return alt.layer(*layers, *_raw_dots(base, x, raw)).properties(width=width, height=HEIGHT)


def _steps(answer: Answer, series: Series, width: int, *, raw: bool) -> Any:
    import altair as alt

    base = alt.Chart(inline(series.rows()))
    axis = " · ".join(answer.axes)
    scale = alt.Scale(type="point", padding=0.5)
    x = alt.X("bin:N", sort=None, title=axis, axis=label_axis(series.labels, width), scale=scale)
    y = alt.Y("value:Q", axis=number_axis(value_title(answer)))
    band = base.mark_area(style="band", interpolate="step").encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    line = base.mark_line(style="answer-line", interpolate="step").encode(x=x, y=y)
    hover = base.mark_rule(opacity=0, aria=False, strokeWidth=max(1.0, width / len(series.labels))).encode(
        x=x, tooltip=_tooltip(series, axis, value_title(answer))
    )
    layers = [*_promised(series, band), line, *_raw_dots(base, x, raw), hover]
    return alt.layer(*layers).properties(width=width, height=HEIGHT)


def _promised(series: Series, *layers: Any) -> tuple[Any, ...]:
    """What shows noise intervals, where there are any."""
    return () if series.band is None else layers


def _raw_dots(base: Any, x: Any, raw: bool) -> list[Any]:
    import altair as alt

    if not raw:
        return []
    return [base.mark_point(style="raw", shape="circle", size=28).encode(x=x, y=alt.Y("raw:Q"))]


def _dots(answer: Answer, series: Series, width: int) -> Any:
    """Values in the units of the column: a dot on its interval."""
    import altair as alt

    base = alt.Chart(inline(series.rows()))
    y = alt.Y("bin:N", sort=None, title=None, axis=alt.Axis(grid=False, labelLimit=180))
    x = alt.X("value:Q", axis=number_axis(value_title(answer)), scale=alt.Scale(zero=False, padding=40))
    line = base.mark_rule(style="interval").encode(y=y, x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    ends = [
        base.mark_tick(style="interval", thickness=2, size=14, orient="vertical").encode(
            y=y, x=alt.X(f"{end}:Q")
        )
        for end in ("low", "high")
    ]
    dot = base.mark_point(style="answer", filled=True, size=90).encode(
        y=y, x=x, tooltip=_tooltip(series, "answer", value_title(answer))
    )
    words = base.mark_text(style="words", dy=-16).encode(
        y=y, x=alt.X("value:Q"), text=alt.Text("value:Q", format=NUMBER)
    )
    height = max(96, 48 * len(series.labels))
    layers = [*_promised(series, line, *ends), dot, words]
    return alt.layer(*layers).properties(width=width, height=height)


def _aggregates(answer: Answer, width: int) -> tuple[Any, str]:
    """For each aggregate the groups one below the other, each a dot on its interval; and what is left out."""
    import altair as alt

    names = [" · ".join(parts) for parts in answer.groups]
    drawn = [_groups(each, names[:_MOST_GROUPS], answer, width) for each in aggregated(answer)]
    more = len(names) - _MOST_GROUPS
    words = f" {more:,} more groups are in the table." if more > 0 else ""
    return (drawn[0] if len(drawn) == 1 else alt.vconcat(*drawn, spacing=24)), words


def _groups(told: Aggregated, names: list[str], answer: Answer, width: int) -> Any:
    import altair as alt

    rows = [
        {
            "bin": name,
            "low": rounded(low, told.digits),
            "high": rounded(high, told.digits),
            **({"words": TOO_FEW} if np.isnan(value) else {"value": rounded(value, told.digits)}),
        }
        for name, value, low, high in zip(names, told.values, told.low, told.high, strict=False)
    ]
    base = alt.Chart(inline(rows))
    axis = None if names == [""] else alt.Axis(grid=False, labelLimit=180)
    y = alt.Y("bin:N", sort=None, title=None, axis=axis)
    scale = alt.Scale(zero=False, padding=40)
    x = alt.X("value:Q", axis=number_axis(told.title), scale=scale)
    form = f",.{told.digits}f"
    tooltip = [
        alt.Tooltip(
            "bin:N", title=" · ".join(answer.axes[:-1] if answer.measured_last else answer.axes) or "answer"
        ),
        alt.Tooltip("value:Q", title=told.title, format=form),
        alt.Tooltip("low:Q", title="noise interval from", format=form),
        alt.Tooltip("high:Q", title="to", format=form),
    ]
    some, none = (base.transform_filter(test) for test in ("isValid(datum.value)", "!isValid(datum.value)"))
    line = some.mark_rule(style="interval").encode(y=y, x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    dot = some.mark_point(style="answer", filled=True, size=70).encode(y=y, x=x, tooltip=tooltip)
    few = none.mark_text(style="words", align="left", dx=4).encode(
        y=y, x=alt.value(0), text=alt.Text("words:N")
    )
    height = max(64, 28 * len(rows))
    return alt.layer(line, dot, few).properties(width=width, height=height)


def _ranking(answer: Answer, series: Series, width: int) -> Any:
    """Horizontal bars, in the order in which they were found."""
    import altair as alt

    base = alt.Chart(inline(series.rows()))
    y = alt.Y("bin:N", sort=None, title=answer.axes[0], axis=alt.Axis(grid=False, labelLimit=180))
    x = alt.X("value:Q", axis=number_axis(value_title(answer)))
    bars = base.mark_bar(style="answer", height=alt.RelativeBandSize(0.6)).encode(
        y=y,
        x=x,
        tooltip=_tooltip(series, answer.axes[0], value_title(answer)),
        fillOpacity=alt.condition("datum.faint", alt.value(0.1), alt.value(FILLED)),
    )
    whiskers = base.mark_rule(style="interval").encode(y=y, x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    height = max(64, 28 * len(series.labels))
    return alt.layer(bars, *_promised(series, whiskers)).properties(width=width, height=height)


def _nothing(width: int) -> Any:
    import altair as alt

    data = inline([{"words": "Nothing is listed."}])
    return (
        alt.Chart(data)
        .mark_text(style="words")
        .encode(text=alt.Text("words:N"))
        .properties(width=width, height=64)
    )
