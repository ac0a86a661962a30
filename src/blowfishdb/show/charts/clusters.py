"""Clusters: a circle for each centroid, as large as its cluster, over a private histogram or empty axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.core.questions.kinds import Question
from blowfishdb.show.charts.frame import NUMBER, inline, number_axis
from blowfishdb.show.charts.heat import coordinates
from blowfishdb.show.tables import positions
from blowfishdb.show.words import rounded

if TYPE_CHECKING:
    from blowfishdb.messages.answers import Answer, Places

_TALL = 360
_MOST_ALONG = 60  # boxes along one axis; beyond, they would be too small to see
_AREAS = [320, 1_600]  # square pixels of the smallest and the largest circle; a number fits into each
_ROOMY = 400
PEOPLE = "people (noisy)"


@final
@dataclass(frozen=True, eq=False)
class Backdrop:
    """A stored histogram of two columns: the ends of its bins along each, and noisy counts."""

    across: FloatArray
    up: FloatArray
    counts: FloatArray
    number: int

    @classmethod
    def of(cls, answer: Answer, clusters: Answer, domain: Domain) -> Backdrop | None:
        """A histogram of the same rows as ``clusters``, as boxes; None where it is of something else."""
        axes, form = clusters.axes, answer.form
        if form.get("kind") != "histogram" or answer.axes != axes or len(axes) != 2:
            return None
        same = form.get("where") == clusters.form.get("where")
        if not same or answer.receipt.snapshot != clusters.receipt.snapshot:
            return None
        question = QuestionForm.from_plain(form).question(domain)
        assert isinstance(question, Question)
        ends = {axis.column: _ends(axis.attribute, axis.bins) for axis in question.axes}
        shape = tuple(len(ends[name]) - 1 for name in axes)
        if max(shape) > _MOST_ALONG or shape != tuple(map(len, answer.labels)):
            return None
        return cls(ends[axes[0]], ends[axes[1]], answer.values.reshape(shape), answer.number)

    def rows(self) -> list[dict[str, float]]:
        """One row for every box."""
        return [
            {
                "x": float(self.across[i]),
                "x2": float(self.across[i + 1]),
                "y": float(self.up[j]),
                "y2": float(self.up[j + 1]),
                "people": rounded(float(self.counts[i, j]), 0),
            }
            for i, j in np.ndindex(*self.counts.shape)
        ]


def _ends(attribute: Any, bins: Any) -> FloatArray:
    """Where each bin begins, and where the last one ends."""
    starts = [float(attribute.lower(int(cell))) for cell in bins.first(np.arange(bins.count))]
    return np.array([*starts, float(attribute.upper(attribute.value_count - 1))])


def cluster_chart(answer: Answer, places: Places, *, under: Backdrop | None, width: int) -> Any:
    """The first two columns; one column has the sizes of the clusters as its heights."""
    import altair as alt

    line = len(answer.axes) == 1
    base = alt.Chart(inline(_rows(answer, places)))
    x = alt.X("x:Q", axis=number_axis(answer.axes[0]), scale=_within(places.limits[0]))
    y = alt.Y("people:Q", axis=number_axis(PEOPLE))
    if not line:
        y = alt.Y("y:Q", axis=number_axis(answer.axes[1]), scale=_within(places.limits[1]))
    most = max(1.0, float(answer.values.max(initial=1.0)))
    size = alt.Size(
        "people:Q",
        title=PEOPLE,
        scale=alt.Scale(domain=[0, most], range=_AREAS),
        legend=None if line or width < _ROOMY else alt.Legend(format=NUMBER, values=_round(most)),
    )
    named = zip(_told(answer), answer.axes, strict=True)
    told = [alt.Tooltip("cluster:N"), *(alt.Tooltip(f"{key}:N", title=axis) for key, axis in named)]
    circles = base.mark_point(style="centroid", filled=True, opacity=1, shape="circle").encode(
        x=x, y=y, size=size, tooltip=[*told, alt.Tooltip("people:Q", title=PEOPLE, format=",.0f")]
    )
    names = base.mark_text(style="cluster-name").encode(x=x, y=y, text=alt.Text("number:N"))
    behind = [] if under is None else [_heat(under, x, y)]
    if line:
        behind = [base.mark_rule(style="quiet").encode(x=x, y=alt.Y("y:Q"), y2=alt.Y2("people:Q"))]
    layers = [*behind, circles, names]
    tall = _TALL if line else _height(answer.axes, places, width)
    return alt.layer(*layers).resolve_scale(size="independent").properties(width=width, height=tall)


def _height(axes: tuple[str, ...], places: Places, width: int) -> int:
    """On a map a unit is as long upwards as it is to the right, as far as there is room."""
    (left, right), (bottom, top) = places.limits[:2]
    if not coordinates(axes[:2]) or right <= left:
        return _TALL
    return min(width, max(_TALL // 2, round(width * (top - bottom) / (right - left))))


def _told(answer: Answer) -> list[str]:
    """The keys under which a row of the chart has its positions in words: a name may hold anything."""
    return [f"at{number}" for number in range(len(answer.axes))]


def _rows(answer: Answer, places: Places) -> list[dict[str, Any]]:
    rows = []
    for number, (label, words) in enumerate(zip(answer.labels[0], positions(places), strict=True)):
        where = places.centroids[number]
        rows.append(
            {
                "cluster": label,
                "number": str(number + 1),
                "x": float(where[0]),
                "y": float(where[1]) if len(where) > 1 else 0.0,
                "people": rounded(answer.values[number], 0),
                **dict(zip(_told(answer), words, strict=True)),
            }
        )
    return rows


def _round(most: float) -> list[float]:
    """Two sizes for the legend: the largest, and half of it."""
    return [float(f"{size:.2g}") for size in (most / 2, most)]


def _within(limits: tuple[float, float]) -> Any:
    import altair as alt

    return alt.Scale(domain=list(limits), nice=False, zero=False)


def _heat(under: Backdrop, x: Any, y: Any) -> Any:
    import altair as alt

    most = max(1.0, float(under.counts.max(initial=1.0)))
    colour = alt.Color(
        "people:Q",
        title=f"people in answer #{under.number}",
        scale=alt.Scale(domain=[0, most], range="ramp"),
        legend=alt.Legend(format=NUMBER, gradientLength=200, tickCount=3),
    )
    boxes = alt.Chart(inline(under.rows()))
    return boxes.mark_rect(style="heat").encode(x=x, x2=alt.X2("x2:Q"), y=y, y2=alt.Y2("y2:Q"), color=colour)
