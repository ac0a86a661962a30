"""Heat maps: counts along two columns, the first to the right and the second upwards."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.show.charts.frame import LETTER, NUMBER, WIDTH, inline, label_axis, picked
from blowfishdb.show.words import rounded

_MOST_ALONG: Final = 60  # cells along one axis; more are averaged
_LOWEST, _TALLEST = 120, 420
_LINE: Final = 15  # pixels that a label needs from the next one below it
_COORDINATES: Final = (
    {"lat", "latitude", "lon", "lng", "long", "longitude"},
    {"x", "y"},
    {"easting", "northing"},
)


def coordinates(axes: tuple[str, ...]) -> bool:
    """Whether two columns are coordinates by their names, so that a unit is as long on both."""
    names = {axis.casefold().removeprefix("geo_") for axis in axes}
    return len(names) == 2 and any(names <= known for known in _COORDINATES)


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

    rows, along, up = _cells(labels, values, low)
    base = alt.Chart(inline(rows))
    top = most if most is not None else float(values.max(initial=1.0))
    tall = _tall(axes, width, len(along), len(up))
    x = alt.X("across:N", sort=None, title=axes[0], axis=_below(along, width))
    y_axis = alt.Axis(values=_beside(up, tall), grid=False, labelLimit=120)
    y = alt.Y("up:N", sort=up[::-1], title=axes[1], axis=y_axis)
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
            alt.Tooltip("across:N", title=axes[0]),
            alt.Tooltip("up:N", title=axes[1]),
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


def _tall(axes: tuple[str, ...], width: int, across: int, up: int) -> int:
    """As tall as its rows need; the cells of a map are squares, as far as there is room."""
    wanted = round(width * up / across) if coordinates(axes) else 24 * up
    return min(width if coordinates(axes) else _TALLEST, max(_LOWEST, wanted))


def _below(labels: list[str], width: int) -> Any:
    """Names of kinds are all there, slanted where they are too long; of bins, as many as fit."""
    import altair as alt

    spread = label_axis(labels, width)
    named = not any(any(letter.isdigit() for letter in label) for label in labels)
    if not named or len(labels) * _LINE > width or len(picked(labels, width)) == len(labels):
        return spread
    limit = 10 * LETTER
    return alt.Axis(values=labels, labelAngle=-40, labelAlign="right", labelLimit=limit, grid=False)


def _beside(labels: list[str], tall: int) -> list[str]:
    """One label for every row that is tall enough for it."""
    stride = max(1, -(-len(labels) * _LINE // tall))
    return labels[::stride]


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
    across, up = list(labels[0][:: strides[0]]), list(labels[1][:: strides[1]])
    rows = [
        {
            "across": across[i],
            "up": up[j],
            "value": rounded(table[i, j], 1),
            "faint": bool(floor[i, j] <= 0),
        }
        for i in range(len(across))
        for j in range(len(up))
    ]
    return rows, across, up
