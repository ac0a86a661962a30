"""Two answers: both in one panel, their difference in another below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from blowfishdb.show.charts.frame import NUMBER, WIDTH, finished, inline, label_axis, number_axis
from blowfishdb.show.charts.legends import DIAMOND, WHISKER, Entry, with_legend
from blowfishdb.show.tables import answer_names, bin_names, value_title
from blowfishdb.show.words import decimals, rounded

if TYPE_CHECKING:
    from blowfishdb.messages.answers import Comparison

_MOST_DODGED = 30  # more bins than this are drawn as lines
_OVERLAY, _DIFFERENCE = 220, 140
_SHORT = 24  # letters that fit beside the difference


def comparison_chart(comparison: Comparison, *, width: int = WIDTH) -> Any:
    """The overlay and the difference; filled diamonds are differences that the noise does not explain."""
    import altair as alt

    axis = " · ".join(comparison.first.axes)
    labels = bin_names(comparison.first)
    dodged = len(labels) <= _MOST_DODGED
    overlay = _overlay(comparison, labels, width, dodged=dodged)
    rows = _difference_rows(comparison, labels)
    base = alt.Chart(inline(rows))
    x = alt.X("bin:N", sort=None, title=axis, axis=label_axis(labels, width), scale=_scale(dodged))
    zero = alt.Chart(inline([{"zero": 0}])).mark_rule(style="zero").encode(y=alt.Y("zero:Q"))
    first, second = answer_names(comparison)
    minus = f"{first} − {second}" if len(first) + len(second) <= _SHORT else "difference"
    y = alt.Y("low:Q", axis=number_axis(minus, ticks=4), scale=alt.Scale(padding=8))
    noise = base.mark_rule(style="interval") if dodged else base.mark_area(style="band", interpolate="step")
    whiskers = noise.encode(x=x, y=y, y2=alt.Y2("high:Q"))
    form = f",.{decimals(comparison.grain)}f"
    ends = [
        alt.Tooltip("low:Q", title="noise interval from", format=form),
        alt.Tooltip("high:Q", title="to", format=form),
    ]
    known = comparison.band is not None
    tooltip = [
        alt.Tooltip("bin:N", title=axis),
        alt.Tooltip("difference:Q", title=minus, format=form),
        *(ends if known else []),
    ]
    shown = alt.Y("difference:Q", axis=number_axis(minus, ticks=4))
    within = (
        base.transform_filter("!datum.differs")
        .mark_point(style="quiet", shape="circle", size=36 if dodged else 12)
        .encode(x=x, y=shown, tooltip=tooltip)
    )
    beyond = (
        base.transform_filter("datum.differs")
        .mark_point(style="alarm", shape="diamond", filled=True, opacity=1, size=90)
        .encode(x=x, y=alt.Y("difference:Q"), tooltip=tooltip)
    )
    beyond_noise = int(comparison.differs.sum())
    # a layer without a single row makes Vega warn about its scale
    points = [*([within] if beyond_noise < len(rows) else []), *([beyond] if beyond_noise else [])]
    lower = alt.layer(zero, *([whiskers] if known else []), *points).properties(
        width=width, height=_DIFFERENCE
    )
    chart = alt.vconcat(overlay, lower, spacing=24).resolve_scale(x="independent")
    chart = with_legend(chart, _meanings(comparison, known), width=width)
    return finished(
        chart,
        f"{first} and {second}: {comparison.first.receipt.question.partition(' where ')[0]}",
        f"{comparison.sentence} {comparison.promise} Below: {first} minus {second}.",
        width=width,
    )


def _meanings(comparison: Comparison, known: bool) -> list[Entry]:
    """What the marks of the difference are."""
    differing = bool(comparison.differs.any())
    return [
        *([(WHISKER, "noise interval of the difference")] if known else []),
        *([(DIAMOND, "more than the noise allows")] if differing else []),
    ]


def _scale(dodged: bool) -> Any:
    import altair as alt

    return alt.Scale(type="band", padding=0.2) if dodged else alt.Scale(type="point", padding=0.5)


def _overlay(comparison: Comparison, labels: tuple[str, ...], width: int, *, dodged: bool) -> Any:
    """Told apart by shape or dash as well as by colour."""
    import altair as alt

    names = answer_names(comparison)
    base = alt.Chart(inline(_overlay_rows(comparison, labels, names)))
    x = alt.X("bin:N", sort=None, title=None, axis=label_axis(labels, width), scale=_scale(dodged))
    y = alt.Y("value:Q", axis=number_axis(value_title(comparison.first)))
    legend, domain = alt.Legend(orient="top"), list(names)
    colour = alt.Color("answer:N", sort=None, title=None, legend=legend, scale=alt.Scale(domain=domain))
    if not dodged:
        dash = alt.StrokeDash(
            "answer:N", sort=None, title=None, legend=legend, scale=alt.Scale(domain=domain)
        )
        lines = base.mark_line(interpolate="step", strokeWidth=2).encode(
            x=x, y=y, color=colour, strokeDash=dash
        )
        return lines.properties(width=width, height=_OVERLAY)
    offset = alt.XOffset("answer:N", sort=None)
    shape = alt.Shape(
        "answer:N",
        sort=None,
        title=None,
        legend=legend,
        scale=alt.Scale(domain=domain, range=["circle", "square"]),
    )
    whiskers = base.mark_rule(strokeWidth=1.5).encode(
        x=x, xOffset=offset, y=alt.Y("low:Q"), y2=alt.Y2("high:Q"), color=colour
    )
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=x,
        xOffset=offset,
        y=y,
        color=colour,
        shape=shape,
        tooltip=[alt.Tooltip("answer:N"), alt.Tooltip("bin:N"), alt.Tooltip("value:Q", format=NUMBER)],
    )
    both = comparison.first.band is not None and comparison.second.band is not None
    return alt.layer(*([whiskers] if both else []), dots).properties(width=width, height=_OVERLAY)


def _overlay_rows(
    comparison: Comparison, labels: tuple[str, ...], names: tuple[str, str]
) -> list[dict[str, Any]]:
    places = decimals(comparison.grain)
    return [
        {"bin": label, "answer": name, "value": rounded(value, places), **_interval(ends, places)}
        for name, answer in zip(names, (comparison.first, comparison.second), strict=True)
        for label, value, *ends in zip(labels, answer.values, *(answer.band or ()), strict=True)
    ]


def _interval(ends: Sequence[float], places: int) -> dict[str, float]:
    """The ends of a noise interval, if there is one."""
    return {name: rounded(end, places) for name, end in zip(("low", "high"), ends, strict=False)}


def _difference_rows(comparison: Comparison, labels: tuple[str, ...]) -> list[dict[str, Any]]:
    places, band = decimals(comparison.grain), comparison.band or ()
    return [
        {
            "bin": label,
            "difference": rounded(difference, places),
            **_interval(ends, places),
            "differs": bool(differs),
        }
        for label, difference, differs, *ends in zip(
            labels, comparison.difference, comparison.differs, *band, strict=True
        )
    ]
