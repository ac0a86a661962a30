"""Heat maps: counts along two columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfishdb.charts.frame import NUMBER, WIDTH, label_axis, rounded
from blowfishdb.core.arrays import FloatArray

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
    base = alt.Chart(alt.InlineData(values=rows))
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
