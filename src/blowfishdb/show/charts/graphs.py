"""Policy graphs: arcs or a ring for a few values, a matrix for many, a neighbourhood for two columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from blowfishdb.core.arrays import BoolArray
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.graphs.general import Apex, Cone
from blowfishdb.show.charts.frame import WIDTH, finished, inline, label_axis
from blowfishdb.show.tables import Table

if TYPE_CHECKING:
    from blowfishdb.core.graphs import PolicyGraph

MOST_NODES = 30
MOST_ROWS = 500
_BINNED = 250
_MOST_ALONG = 31
_MOST_RUNS = 20_000
_SIDES: tuple[tuple[int, Literal["left", "center", "right"], int], ...] = (
    (1, "left", 10),
    (-1, "right", -10),
    (0, "center", 0),
)
"""Where the name of a value on a ring goes."""


def graph_chart(
    graph: PolicyGraph,
    labels: Sequence[str] | None = None,
    *,
    columns: Mapping[str, int] | None = None,
    ordered: bool = False,
    width: int = WIDTH,
) -> Any:
    """What the policy hides: two values that are joined cannot be told apart.

    ``columns`` names the columns that the values are made of, each with its number of bins; ``ordered`` are
    those of one column whose order means something, also where the graph itself does not tell.
    """
    inside = graph.counted
    plane, side = _plane(inside, columns or {}), min(width, 440)
    if plane is not None:
        drawn, note = _neighbourhood(inside, plane, side)
    elif graph.size <= MOST_NODES:
        drawn, note = _nodes(graph, _names(graph, labels), width, ordered=ordered), ""
    else:
        drawn, note = _matrix(inside, side)
    return finished(drawn, "Policy graph", f"{edge_words(graph)} {note}".strip(), width=width)


def box_labels(labels: Sequence[Sequence[str]]) -> list[str] | None:
    """The names of boxes, row-major, from those of the bins of each column; None if they are too many."""
    if len(labels) > 1 and math.prod(map(len, labels)) > MOST_NODES:
        return None
    return [", ".join(each) for each in itertools.product(*labels)]


def graph_table(graph: PolicyGraph, labels: Sequence[str] | None = None) -> Table:
    """Every value with those it is hidden from, or the numbers where there are too many."""
    if graph.size <= MOST_NODES:
        names = _names(graph, labels)
        joined = _adjacency(graph)
        rows = tuple(
            (name, ", ".join(names[v] for v in np.flatnonzero(joined[u])) or "none")
            for u, name in enumerate(names)
        )
        return Table("", ("value", "hidden from"), rows, (edge_words(graph),))
    facts = (
        ("values", f"{graph.counted.size:,}"),
        ("hidden pairs", f"{graph.edge_count:,}"),
        ("rule", graph.describe()),
    )
    return Table("", ("what", "how much"), facts, (edge_words(graph),))


def edge_words(graph: PolicyGraph) -> str:
    """The number of edges in words."""
    values, pairs = graph.counted.size, graph.counted.edge_count
    verb = "is" if pairs == 1 else "are"
    counted = (
        f"{pairs:,} pair{'' if pairs == 1 else 's'} of values {verb} hidden" if pairs else "Nothing is hidden"
    )
    presence = f", and so is whether someone is {_belonging(graph)}" if graph.absent else ""
    return f"{counted} among {values:,} value{'' if values == 1 else 's'}{presence}."


def _names(graph: PolicyGraph, labels: Sequence[str] | None) -> list[str]:
    values = graph.counted.size
    names = (
        list(labels) if labels is not None and len(labels) == values else [f"{i:,}" for i in range(values)]
    )
    return [*names, f"not {_belonging(graph)}"] if graph.absent else names


def _belonging(graph: PolicyGraph) -> str:
    """What ⊥ is not: unless presence is hidden, it is a row that the question or a declaration leaves out."""
    present = isinstance(graph, Cone) and graph.apex is Apex.PRESENCE
    return "in the data" if present else "counted"


def _adjacency(graph: PolicyGraph) -> BoolArray:
    every = np.arange(graph.size)
    joined = np.asarray(graph.adjacent(every[:, None], every[None, :]), dtype=np.bool_)
    return joined & ~np.eye(graph.size, dtype=np.bool_)


# --- a few values -----------------------------------------------------------------------------------


def _nodes(graph: PolicyGraph, names: list[str], width: int, *, ordered: bool) -> Any:
    """Ordered values lie on a line with arcs above; others, and ⊥, on a ring."""
    import altair as alt

    along = ordered or graph.reach is not None or 1 in graph.axes
    line = along and not graph.absent and graph.size > 2
    spots = _on_line(graph.size) if line else _on_ring(graph.size)
    ends = [(spots[u], spots[v]) for u, v in graph.edges(MOST_NODES**2).tolist()]
    nodes = [
        {"name": name, "x": x, "y": y, "side": math.copysign(1, x) if not line and abs(x) > 0.02 else 0}
        for name, (x, y) in zip(names, spots, strict=True)
    ]
    lone = 1.25 if not line else None
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[-lone * 1.4, lone * 1.4] if lone else [-0.03, 1.03]))
    top = max((abs(u[0] - v[0]) / 2 for u, v in ends), default=0.1)
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-lone, lone] if lone else [-0.25 * top, 1.05 * top]))
    edges = (_arcs(ends) if line else _chords(ends)).mark_line(style="edge")
    dots = alt.Chart(inline(nodes))
    layers = [
        edges.encode(x=x, y=y, detail=alt.Detail("edge:N"), order=alt.Order("order:Q")),
        dots.mark_point(style="answer", filled=True, size=90, opacity=1).encode(
            x=x, y=y, tooltip=alt.Tooltip("name:N")
        ),
    ]
    if line:
        shown = set(label_axis(names, width).values)
        below = alt.Chart(inline([n for n in nodes if n["name"] in shown]))
        layers.append(
            below.mark_text(style="words", baseline="top", dy=12).encode(x=x, y=y, text=alt.Text("name:N"))
        )
        return alt.layer(*layers).properties(width=width, height=160)
    layers += [
        dots.transform_filter(f"datum.side == {side}")
        .mark_text(style="words", align=align, dx=dx, dy=0 if side else -14, limit=120)
        .encode(x=x, y=y, text=alt.Text("name:N"))
        for side, align, dx in _SIDES
    ]
    side_length = min(width, 420)
    return alt.layer(*layers).properties(width=min(width, int(side_length * 1.4)), height=side_length)


def _on_line(count: int) -> list[tuple[float, float]]:
    return [(i / max(count - 1, 1), 0.0) for i in range(count)]


def _on_ring(count: int) -> list[tuple[float, float]]:
    turns = [2 * math.pi * i / count for i in range(count)]
    return [(round(math.sin(t), 4) + 0.0, round(math.cos(t), 4) + 0.0) for t in turns]


Spot = tuple[float, float]


def _chords(ends: Sequence[tuple[Spot, Spot]]) -> Any:
    """The two ends of each line."""
    import altair as alt

    rows = [
        {"edge": edge, "order": order, "x": x, "y": y}
        for edge, both in enumerate(ends)
        for order, (x, y) in enumerate(both)
    ]
    return alt.Chart(inline(rows))


def _arcs(ends: Sequence[tuple[Spot, Spot]]) -> Any:
    """Half an ellipse between two points of the line, as high as half the way it spans.

    Whoever draws works out the points of each: they are many, and two numbers say the same.
    """
    import altair as alt

    rows = [{"edge": edge, "u": round(u[0], 4), "v": round(v[0], 4)} for edge, (u, v) in enumerate(ends)]
    return (
        alt.Chart(inline(rows))
        .transform_calculate(order="sequence(13)")
        .transform_flatten(["order"])
        .transform_calculate(
            x="(datum.u + datum.v - (datum.v - datum.u) * cos(PI * datum.order / 12)) / 2",
            y="abs(datum.v - datum.u) * sin(PI * datum.order / 12) / 2",
        )
    )


# --- many values ------------------------------------------------------------------------------------


def _matrix(graph: PolicyGraph, side: int) -> tuple[Any, str]:
    """A square for every hidden pair. Runs of neighbours are one rectangle, so that 500 values stay light."""
    import altair as alt

    small, each = graph, 1
    if graph.size > MOST_ROWS or _run_count(graph) > _MOST_RUNS:
        each = -(-graph.size // (_BINNED if graph.size > MOST_ROWS else 120))
        small = graph.project(Bins.width(graph.size, each))
    joined: Any = _adjacency(small)
    if each > 1:  # two values of one bin are joined wherever the neighbourhood is wider than the bin
        joined |= np.eye(small.size, dtype=np.bool_) & joined.any(axis=1)[:, None]
    size = small.size * each  # rectangles overlap a little, so that no line shows between them
    rows = [
        {"row": u * each, "row2": min((u + 1.2) * each, size), "from": start * each, "to": stop * each}
        for u in range(small.size)
        for start, stop in _runs(joined[u])
    ]
    ticks = alt.Axis(title="value", format=",d", tickCount=5, grid=True)
    squares = (
        alt.Chart(inline(rows))
        .mark_rect(style="answer", strokeWidth=0)
        .encode(
            x=alt.X("from:Q", scale=alt.Scale(domain=[0, size], nice=False), axis=ticks),
            x2=alt.X2("to:Q"),
            y=alt.Y("row:Q", scale=alt.Scale(domain=[0, size], nice=False), axis=ticks),
            y2=alt.Y2("row2:Q"),
        )
    )
    note = (
        "Each square is a hidden pair."
        if each == 1
        else f"Each square stands for {each:,} × {each:,} values."
    )
    return squares.properties(width=side, height=side), note


def _run_count(graph: PolicyGraph) -> int:
    joined = _adjacency(graph)
    return int((np.diff(joined.astype(np.int8), axis=1, prepend=0) == 1).sum())


def _runs(row: Any) -> Iterator[tuple[int, int]]:
    ends = np.flatnonzero(np.diff(row.astype(np.int8), prepend=0, append=0))
    yield from zip(ends[::2].tolist(), ends[1::2].tolist(), strict=True)


# --- two columns ------------------------------------------------------------------------------------


def _plane(graph: PolicyGraph, columns: Mapping[str, int]) -> dict[str, int] | None:
    """The two columns that the graph is over, with their sizes; None if there are more, or fewer."""
    if len(columns) == 2 and math.prod(columns.values()) == graph.size:
        return dict(columns)
    if len(graph.axes) == 2 and min(graph.axes) > 1:
        return dict(zip(("first column", "second column"), graph.axes, strict=True))
    return None


def _neighbourhood(graph: PolicyGraph, plane: dict[str, int], side: int) -> tuple[Any, str]:
    """The box in the middle, and every box that it is hidden from; the first column to the right."""
    import altair as alt

    shape = tuple(plane.values())
    widths = tuple(-(-length // _MOST_ALONG) for length in shape)
    small = graph
    if max(widths) > 1:
        factors = (Bins.width(length, width) for length, width in zip(shape, widths, strict=True))
        small = graph.project(Bins.product(*factors))
    rows, columns = (-(-length // width) for length, width in zip(shape, widths, strict=True))
    centre = (rows // 2) * columns + columns // 2
    every = np.arange(rows * columns)
    joined = np.asarray(small.adjacent(every, centre), dtype=np.bool_)
    cells = [
        {
            "x": i,
            "y": j,
            "state": "here"
            if (here := i * columns + j) == centre
            else "hidden"
            if joined[here]
            else "told apart",
        }
        for i in range(rows)
        for j in range(columns)
    ]
    size = max(8, min(28, side // max(rows, columns)))
    base = alt.Chart(inline(cells))
    tick = alt.Axis(labels=False, ticks=False, domain=False, grid=False)
    across, up = plane
    x = alt.X("x:O", title=across, axis=tick)
    y = alt.Y("y:O", title=up, axis=tick, sort="descending")
    area = 0.45 * size * size
    layers = [
        base.transform_filter(f"datum.state == '{state}'")
        .mark_point(style=style, shape=shape_, filled=True, size=area * factor, opacity=1)
        .encode(x=x, y=y)
        for state, style, shape_, factor in (
            ("told apart", "quiet", "circle", 0.25),
            ("hidden", "answer", "square", 1.0),
            ("here", "alarm", "diamond", 1.6),
        )
    ]
    note = "The diamond is one record; squares are those that it cannot be told apart from."
    chart = alt.layer(*layers).properties(width=alt.Step(size), height=alt.Step(size))
    return chart, note
