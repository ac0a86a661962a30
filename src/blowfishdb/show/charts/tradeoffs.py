"""Trade-offs: what protection costs, one line for every question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from blowfishdb.core.questions.promise import significant
from blowfishdb.show.charts.frame import WIDTH, finished, inline, number_axis, picked
from blowfishdb.show.words import decimals, headline, loss, rounded

if TYPE_CHECKING:
    from blowfishdb.messages.quotes import Tradeoff


_HEIGHT = 180
_ROOM = 56  # pixels before the last label
_EVERYTHING = "everything"
_STAR = (
    "M0,-1L0.23,-0.31L0.95,-0.31L0.36,0.12L0.59,0.81L0,0.38L-0.59,0.81L-0.36,0.12L-0.95,-0.31L-0.23,-0.31Z"
)
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [1, 3], [4, 1], [10, 2, 2, 2]]


def tradeoff_chart(
    tradeoffs: Tradeoff | Sequence[Tradeoff], *, column: str = "", width: int = WIDTH, point: str = ""
) -> Any:
    """Cost above, error below, against the hidden distance; a click on a point selects it as ``picked``.

    ``point`` is the policy that is selected already: a ring and a line mark it.
    """
    import altair as alt

    many = _many(tradeoffs)
    rows = _rows(many, point)
    ordered = all(row["theta"] for row in rows)
    names = list(dict.fromkeys(row["policy"] for row in rows))
    chosen = alt.selection_point(name="picked", fields=["policy"], on="click", empty=False)
    base = alt.Chart(inline(rows))
    fixed = loss(many[0].fixed_epsilon)
    asked = many[0].asked_alpha
    cost = "cost ε" if asked is None else f"cost ε for ±{significant(asked, 6)}"
    questions = list(dict.fromkeys(t.question for t in many))
    x = _x(rows, names, ordered, width)
    panels = [
        _panel(base, x(None), "epsilon", cost, questions, width).add_params(chosen),
        _panel(base, x(_x_title(ordered, column)), "alpha", f"± at ε\u00a0=\u00a0{fixed}", questions, width),
    ]
    chart = alt.vconcat(*panels, spacing=16)
    title = many[0].question if len(many) == 1 else "What protection costs"
    star = " The star marks protection that costs nothing more." if any(row["star"] for row in rows) else ""
    sentences = " ".join(
        headline(t.sentence) if len(many) == 1 else f"{headline(t.question)}: {t.sentence}" for t in many
    )
    return finished(chart, title, f"{sentences}{star}", width=width)


def _many(tradeoffs: Tradeoff | Sequence[Tradeoff]) -> list[Tradeoff]:
    return list(tradeoffs) if isinstance(tradeoffs, Sequence) else [tradeoffs]


def _rows(many: Sequence[Tradeoff], point: str) -> list[dict[str, Any]]:
    return [
        {
            "question": t.question,
            "policy": p.policy,
            "theta": p.theta,
            "epsilon": rounded(float(p.epsilon), 9),
            "alpha": rounded(p.alpha, decimals(p.alpha)),
            "mechanism": p.mechanism,
            "chosen": p.policy == point,
            "star": t.free_gain is not None and number == t.free_gain[1],
        }
        for t in many
        for number, p in enumerate(t.points)
    ]


def _x_title(ordered: bool, column: str) -> str:
    values = f"values of {column}" if column else "values"
    return f"{values} hidden within this distance" if ordered else "policy"


def _x(rows: list[dict[str, Any]], names: list[str], ordered: bool, width: int) -> Any:
    """A log axis where every policy is a distance, otherwise the policies by name."""
    import altair as alt

    def axis(title: str | None) -> Any:
        if ordered:
            thetas = sorted({float(row["theta"]) for row in rows})
            shown = [*(each for each in _spread(thetas[:-1]) if _apart(each, thetas, width)), thetas[-1]]
            scale = alt.Scale(type="log", nice=False, padding=16)
            ticks = alt.Axis(
                values=shown, format=",.6~g", grid=False, labelOverlap="greedy", **_last_label(rows)
            )
            return alt.X("theta:Q", scale=scale, title=title, axis=ticks)
        ticks = alt.Axis(values=picked(names, width), labelAngle=0, grid=False, labelLimit=160)
        scale = alt.Scale(type="point", padding=0.5)
        return alt.X("policy:N", sort=None, title=title, scale=scale, axis=ticks)

    return axis


def _last_label(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The extent of a column as a distance is no number that anybody typed."""
    everything = {float(row["theta"]) for row in rows if row["policy"] == _EVERYTHING}
    if not everything:
        return {}
    return {"labelExpr": f"datum.value == {max(everything):.17g} ? 'all' : datum.label"}


def _apart(theta: float, thetas: list[float], width: int) -> bool:
    """Whether its label has room before the last one, on a log axis."""
    return math.log(thetas[-1] / theta) / math.log(thetas[-1] / thetas[0]) * width >= _ROOM


def _spread(thetas: list[float]) -> list[float]:
    stride = max(1, -(-len(thetas) // 6))
    return thetas[::stride]


def _panel(base: Any, x: Any, field: str, title: str, questions: list[str], width: int) -> Any:
    import altair as alt

    y = alt.Y(f"{field}:Q", axis=number_axis(title, ticks=4), scale=alt.Scale(zero=True))
    same: dict[str, Any] = {"x": x, "y": y}
    dash: dict[str, Any] = {}
    if len(questions) > 1:
        legend = alt.Legend(orient="bottom", columns=1)
        same["color"] = alt.Color(
            "question:N", sort=None, title=None, legend=legend, scale=alt.Scale(domain=questions)
        )
        dash["strokeDash"] = alt.StrokeDash(
            "question:N",
            sort=None,
            title=None,
            legend=legend,
            scale=alt.Scale(domain=questions, range=_DASHES[: len(questions)]),
        )
    tooltip = [
        alt.Tooltip("policy:N", title="hidden"),
        alt.Tooltip("epsilon:Q", title="cost ε", format=".3~g"),
        alt.Tooltip("alpha:Q", title="±", format=",.3~g"),
        alt.Tooltip("mechanism:N"),
    ]
    alone = len(questions) == 1
    line = (base.mark_line(style="answer-line") if alone else base.mark_line(strokeWidth=2)).encode(
        **same, **dash
    )
    point = base.mark_point(filled=True, opacity=1, cursor="pointer")
    dots = (
        point if not alone else base.mark_point(style="answer", filled=True, opacity=1, cursor="pointer")
    ).encode(**same, tooltip=tooltip, size=alt.condition("picked", alt.value(220), alt.value(90)))
    stars = (
        base.transform_filter("datum.star")
        .mark_point(style="alarm", shape=_STAR, filled=True, opacity=1, size=420, yOffset=-20)
        .encode(x=x, y=y)
    )
    starred = field == "epsilon" and any(row["star"] for row in base.data.values)
    marked = _chosen(base, x, y) if any(row["chosen"] for row in base.data.values) else []
    layers = [*marked, line, dots, *([stars] if starred else [])]  # vega warns about a layer without data
    return alt.layer(*layers).properties(width=width, height=_HEIGHT)


def _chosen(base: Any, x: Any, y: Any) -> list[Any]:
    """A line through both panels and a ring around the point that was chosen."""
    chosen = base.transform_filter("datum.chosen")
    return [
        chosen.mark_rule(style="interval", strokeDash=[4, 3]).encode(x=x),
        chosen.mark_point(style="interval", size=420, strokeWidth=3, opacity=1).encode(x=x, y=y),
    ]
