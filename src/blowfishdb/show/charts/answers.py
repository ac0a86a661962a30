"""Answers: bars with whiskers, steps with a band, heat maps, dots with intervals, rankings, one large number.

Each chart says what its marks mean, and where its noise is too small to be seen, how small it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.questions.promise import significant
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
from blowfishdb.show.charts.heat import heat_map
from blowfishdb.show.charts.legends import (
    BAND,
    BAR,
    CELL,
    FAINT,
    LIMIT,
    LINE,
    RAW,
    WHISKER,
    Entry,
    with_legend,
)
from blowfishdb.show.tables import (
    UNITS,
    Aggregated,
    aggregated,
    bin_names,
    one_number,
    priced_promise,
    value_title,
)
from blowfishdb.show.words import TOO_FEW, decimals, rounded

if TYPE_CHECKING:
    from blowfishdb.messages.answers import Answer


Band = tuple[FloatArray, FloatArray]
"""Both ends of the noise intervals."""
_MOST_BARS = 120  # more are too thin for whiskers, and are drawn as steps
_MOST_STEPS = 1_000
_ROOM = 8.0  # pixels of a bar whose whisker has room for ends
_MOST_RANKED = 40
_MOST_GROUPS = 120
MOST_KINDS = 30
_SEEN = 5.0  # pixels of an interval that show beside a line of two
_MISSING = "missing"
_ACROSS = 420  # pixels of a horizontal axis, roughly, whatever the labels beside it take


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
    if one_number(answer) is not None:
        return finished(_number(answer, width), answer.receipt.question, words, width=width)
    if answer.measures:
        drawn, more = _aggregates(answer, width)
        return finished(drawn, answer.receipt.question, f"{words}{more}", width=width)
    series = _series(answer)
    if series.stride > 1:
        words += f" Each place stands for {series.stride:,} neighbouring bins."
    shown = raw and series.stride == 1 and len(answer.raw) == len(series.values)
    drawn, entries, more = _drawn(answer, series, width, raw=shown)
    drawn = with_legend(drawn, entries, width=width)
    return finished(drawn, answer.receipt.question, f"{words}{more}", width=width)


def _drawn(answer: Answer, series: Series, width: int, *, raw: bool) -> tuple[Any, list[Entry], str]:
    """The picture, what its marks mean, and what else is to be said."""
    count = len(series.values)
    if not count:
        return _nothing(width), [], ""
    if answer.kind in UNITS or count == 1:
        return _dots(answer, series, width), _interval_entry(answer, series.band), ""
    if len(answer.labels) == 2 and not answer.listed:
        drawn = heat_map(answer.axes, answer.labels, answer.values, answer.low, width=width)
        faint = answer.low is not None and bool((answer.low <= 0).any())
        return drawn, [(CELL, "could be zero")] if faint else [], _relative(answer, "a cell")
    ranked = answer.kind in ("top", "above") and count <= _MOST_RANKED
    if ranked or sorts(answer):
        return _ranking(answer, series, width, raw=raw)
    entries, more = marks(answer, series.band, HEIGHT)
    draw = _steps if stepped(answer) else _bars
    return draw(answer, series, width, raw=raw), [*entries, *_raw_entry(raw)], more


def stepped(answer: Answer) -> bool:
    """Whether it is a line in steps: what adds up along a column, and bars that would be too thin."""
    return (answer.kind == "cumulative" and not answer.arranged) or len(answer.values) > _MOST_BARS


def marks(answer: Answer, band: Band | None, pixels: float) -> tuple[list[Entry], str]:
    """What bars, steps and intervals mean, on an axis of so many pixels; and what is too thin to be seen."""
    if answer.kind in UNITS:
        return _interval_entry(answer, band), ""
    seen = _seen(band, pixels)
    if not stepped(answer):
        return _bar_entries(answer, band), "" if seen else _thin(answer, "outline of a bar")
    line = "people" if seen or not answer.alpha else _thin_line(answer)
    return [(LINE, line), *([(BAND, _often(answer))] if seen else [])], "" if seen else _thin(answer, "line")


def sorts(answer: Answer) -> bool:
    """Whether its bars are of kinds without an order: they lie, the longest first, each with its name."""
    return len(answer.labels) == 1 and not answer.arranged and answer.axes[:1] == answer.loose[:1] != ()


# --- what is said about the noise -------------------------------------------------------------------


def _often(answer: Answer) -> str:
    """What an interval is, and how often it holds."""
    return (
        "noise interval"
        if answer.beta is None
        else f"noise interval, {100 * (1 - answer.beta):.4g} % of the time"
    )


def _bar_entries(answer: Answer, band: Band | None) -> list[Entry]:
    if band is None:
        return []
    faint = bool((band[0] <= 0).any())
    return [(BAR, "people"), (WHISKER, _often(answer)), *([(FAINT, "could be zero")] if faint else [])]


def _interval_entry(answer: Answer, band: Band | None) -> list[Entry]:
    return [] if band is None else [(WHISKER, _often(answer))]


def _raw_entry(raw: bool) -> list[Entry]:
    return [(RAW, "raw release")] if raw else []


def _seen(band: Band | None, pixels: float) -> bool:
    """Whether its intervals are long enough to be seen, on an axis of so many pixels."""
    if band is None:
        return True
    low, high = band
    most = float(np.nanmax(high, initial=0.0)) or 1.0
    return bool(np.nanmedian(high - low) / most * pixels >= _SEEN)


def _thin(answer: Answer, than: str) -> str:
    """That the noise cannot be seen, and how small it is."""
    if not answer.alpha:
        return ""
    return f" ±{significant(answer.alpha)} is thinner than the {than}{_share(answer)}."


def _thin_line(answer: Answer) -> str:
    """The same in a legend, for whoever does not read the words above the chart."""
    return f"people; ±{significant(answer.alpha or 0)} is thinner than the line"


def _relative(answer: Answer, of: str) -> str:
    """How large the noise is beside the largest value: the colour of a cell shows no interval."""
    return f" ±{significant(answer.alpha)} on {of}{_share(answer)}." if answer.alpha else ""


def _share(answer: Answer) -> str:
    most = float(np.nanmax(answer.values, initial=0.0))
    return f": {significant(100 * (answer.alpha or 0) / most, 2)} % of the largest value" if most > 0 else ""


def _scale(answer: Answer) -> float:
    return answer.grain if answer.kind != "quantiles" else 1.0


# --- data -----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Series:
    """Places along one line; ``stride`` bins share a place where there are too many to draw."""

    labels: tuple[str, ...]
    values: FloatArray
    band: Band | None
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
    import altair as alt

    base = alt.Chart(inline(series.rows()))
    axis = " · ".join(answer.axes)
    x = alt.X("bin:N", sort=None, title=axis, axis=label_axis(series.labels, width))
    y = alt.Y("value:Q", axis=number_axis(value_title(answer)))
    tooltip = _tooltip(series, axis, value_title(answer))
    room = width / len(series.labels)
    layers = bar_layers(base, x, y, tooltip=tooltip, room=room, band=series.band is not None)
    return alt.layer(*layers, *_raw_dots(base, x, raw)).properties(width=width, height=HEIGHT)


def _steps(answer: Answer, series: Series, width: int, *, raw: bool) -> Any:
    import altair as alt

    base = alt.Chart(inline(series.rows()))
    axis = " · ".join(answer.axes)
    x = alt.X("bin:N", sort=None, title=axis, axis=label_axis(series.labels, width), scale=in_steps())
    y = alt.Y("value:Q", axis=number_axis(value_title(answer)))
    hover = base.mark_rule(opacity=0, aria=False, strokeWidth=max(1.0, width / len(series.labels))).encode(
        x=x, tooltip=_tooltip(series, axis, value_title(answer))
    )
    layers = [*line_layers(base, x, y, band=series.band is not None), *_raw_dots(base, x, raw), hover]
    return alt.layer(*layers).properties(width=width, height=HEIGHT)


def in_steps() -> Any:
    """The scale of a line in steps: bins stand where bars would."""
    import altair as alt

    return alt.Scale(type="point", padding=0.5)


def line_layers(base: Any, x: Any, y: Any, *, band: bool) -> list[Any]:
    """A line in steps, over the band of its noise intervals."""
    import altair as alt

    area = base.mark_area(style="band", interpolate="step").encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    line = base.mark_line(style="answer-line", interpolate="step").encode(x=x, y=y)
    return [area, line] if band else [line]


def faded() -> dict[str, Any]:
    """Bars whose interval includes zero are faint and dashed."""
    import altair as alt

    return {
        "fillOpacity": alt.condition("datum.faint", alt.value(0.1), alt.value(FILLED)),
        "strokeDash": alt.condition("datum.faint", alt.value([3, 3]), alt.value([1, 0])),
    }


def bar_layers(base: Any, x: Any, y: Any, *, tooltip: list[Any], room: float, band: bool) -> list[Any]:
    """Bars of so many pixels, under whiskers."""
    import altair as alt

    bars = base.mark_bar(style="answer").encode(
        x=x,
        y=y,
        tooltip=tooltip,
        **faded(),
    )
    whiskers = base.mark_rule(style="interval").encode(x=x, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"))
    ends = [
        base.mark_tick(style="interval", thickness=2, size=min(10.0, 0.5 * room)).encode(
            x=x, y=alt.Y(f"{end}:Q")
        )
        for end in ("low", "high")
    ]
    interval = [whiskers, *(ends if room >= _ROOM else [])]
    return [bars, *(interval if band else [])]


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
    told = aggregated(answer)
    order = np.arange(len(names))
    if len(answer.groups[0]) == 1 and not answer.arranged and answer.axes[0] in answer.loose:
        order = np.argsort(-np.nan_to_num(told[0].values, nan=-np.inf), kind="stable")
    first = order[:_MOST_GROUPS]
    drawn = [_groups(each, names, first, answer, width) for each in told]
    more = len(names) - _MOST_GROUPS
    words = f" {more:,} more groups are in the table." if more > 0 else ""
    chart = drawn[0] if len(drawn) == 1 else alt.vconcat(*drawn, spacing=24)
    return with_legend(chart, [(WHISKER, _often(answer))], width=width), words


def _groups(told: Aggregated, names: list[str], order: IntArray, answer: Answer, width: int) -> Any:
    import altair as alt

    rows = [
        {
            "bin": names[at],
            "low": rounded(told.low[at], told.digits),
            "high": rounded(told.high[at], told.digits),
            **(
                {"words": TOO_FEW}
                if np.isnan(told.values[at])
                else {"value": rounded(told.values[at], told.digits)}
            ),
        }
        for at in order.tolist()
    ]
    base = alt.Chart(inline(rows))
    axis = None if names == [""] else alt.Axis(grid=False, labelLimit=180, labelOverlap=False)
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


def _ranking(answer: Answer, series: Series, width: int, *, raw: bool) -> tuple[Any, list[Entry], str]:
    """Horizontal bars, each with its name: kinds by their size, others in the order in which they were found.

    The limit that a question names is a line.
    """
    import altair as alt

    rows, more = series.rows(), ""
    if sorts(answer):
        rows.sort(key=lambda row: (row["bin"] == _MISSING, -row["value"]))
        if len(rows) > MOST_KINDS:
            more = f" The {MOST_KINDS} largest of {len(rows)} are drawn; the others are in the table."
            rows = rows[:MOST_KINDS]
    base = alt.Chart(inline(rows))
    axis = alt.Axis(grid=False, labelLimit=min(200, width // 2), labelOverlap=False)
    y = alt.Y("bin:N", sort=[row["bin"] for row in rows], title=answer.axes[0], axis=axis)
    x = alt.X("value:Q", axis=number_axis(value_title(answer)))
    bars = base.mark_bar(style="answer", height=alt.RelativeBandSize(0.66)).encode(
        y=y,
        x=x,
        tooltip=_tooltip(series, answer.axes[0], value_title(answer)),
        **faded(),
    )
    whiskers = base.mark_rule(style="interval").encode(y=y, x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    ends = [
        base.mark_tick(style="interval", thickness=2, size=9, orient="vertical").encode(
            y=y, x=alt.X(f"{end}:Q")
        )
        for end in ("low", "high")
    ]
    circles = base.mark_point(style="raw", shape="circle", size=28).encode(y=y, x=alt.X("raw:Q"))
    layers = [bars, *_promised(series, whiskers, *ends), *([circles] if raw else [])]
    entries = [*_bar_entries(answer, series.band), *_raw_entry(raw)]
    limit = answer.form.get("limit") if answer.kind == "above" else None
    if limit is not None:
        layers.append(
            alt.Chart(inline([{"limit": float(limit)}]))
            .mark_rule(style="alarm", strokeDash=[6, 3], strokeWidth=2)
            .encode(x=alt.X("limit:Q"), tooltip=[alt.Tooltip("limit:Q", title="limit", format=NUMBER)])
        )
        entries.append((LIMIT, f"the limit, {significant(float(limit), 6)}"))
    drawn = alt.layer(*layers).properties(width=width, height=max(64, 26 * len(rows)))
    return (
        drawn,
        entries,
        more if _seen(series.band, min(width, _ACROSS)) else more + _thin(answer, "outline of a bar"),
    )


def _number(answer: Answer, width: int) -> Any:
    """One number, large, with how far off it is; there is no axis to read it from."""
    import altair as alt

    told = one_number(answer)
    assert told is not None
    base = alt.Chart(inline([{"value": told.value, "off": f"{told.off} {told.unit}".strip()}]))
    large = base.mark_text(style="number", align="left", baseline="alphabetic").encode(
        x=alt.value(0), y=alt.value(48), text=alt.Text("value:N")
    )
    small = base.mark_text(style="plus-minus", align="left", baseline="alphabetic").encode(
        x=alt.value(0), y=alt.value(80), text=alt.Text("off:N")
    )
    return alt.layer(large, small).properties(width=width, height=92)


def _nothing(width: int) -> Any:
    import altair as alt

    data = inline([{"words": "Nothing is listed."}])
    return (
        alt.Chart(data)
        .mark_text(style="words")
        .encode(text=alt.Text("words:N"))
        .properties(width=width, height=64)
    )
