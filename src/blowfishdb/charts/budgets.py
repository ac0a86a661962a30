"""Budgets: where the privacy loss went, and how it grew."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from blowfishdb.charts.frame import WIDTH, ChartTable, epsilon_text, finished, number_axis, rounded
from blowfishdb.core.budget import Epsilon

if TYPE_CHECKING:
    from blowfishdb.adapters.ledger import Budget
    from blowfishdb.answers import Answer

_MOST = 6  # questions with a colour of their own
_BAR, _CURVE = 56, 160
_NONE = Epsilon(0)


def budget_chart(budget: Budget, answers: Sequence[Answer], *, width: int = WIDTH) -> Any:
    """A bar with one part for each question, and below it what was spent after every answer."""
    import altair as alt

    chart = alt.vconcat(_bar(budget, answers, width), _growth(budget, answers, width), spacing=24)
    return finished(chart, f"Budget of {budget.dataset}", _words(budget), width=width)


def budget_table(budget: Budget, answers: Sequence[Answer]) -> ChartTable:
    """Every answer that cost something, and what was spent by then."""
    total, rows = _NONE, []
    for answer in _paid(answers):
        total += answer.receipt.epsilon
        receipt = answer.receipt
        costs = epsilon_text(receipt.epsilon), epsilon_text(total)
        rows.append((f"#{answer.number}", receipt.question, receipt.settled[:10], *costs))
    columns = ("answer", "question", "on", "cost ε", "spent so far")
    return ChartTable(_words(budget), columns, tuple(rows))


def _words(budget: Budget) -> str:
    held = f", {epsilon_text(budget.held)} held for questions under way" if budget.held else ""
    return (
        f"{epsilon_text(budget.spent)} of {epsilon_text(budget.total)} spent{held}, "
        f"{epsilon_text(budget.remaining)} left."
    )


def _paid(answers: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer.receipt.epsilon]


def _parts(budget: Budget, answers: Sequence[Answer]) -> list[tuple[str, Epsilon]]:
    """The costliest questions by name, the others together, and what never became an answer."""
    costs: dict[str, Epsilon] = {}
    for answer in _paid(answers):
        costs[answer.receipt.question] = costs.get(answer.receipt.question, _NONE) + answer.receipt.epsilon
    ranked = sorted(costs.items(), key=lambda item: -item[1].nano)
    parts, rest = ranked[:_MOST], ranked[_MOST:]
    if rest:
        parts.append(("other questions", sum((cost for _, cost in rest), _NONE)))
    known = sum((cost for _, cost in ranked), _NONE)
    if budget.spent > known:
        parts.append(("charged without an answer", budget.spent - known))
    if budget.held:
        parts.append(("held for questions under way", budget.held))
    return parts


def _bar(budget: Budget, answers: Sequence[Answer], width: int) -> Any:
    """Parts have letters, so that nobody has to tell colours apart; numbers are those of answers."""
    import altair as alt

    rows, start = [], _NONE
    for letter, (name, cost) in zip(ascii_uppercase, _parts(budget, answers), strict=False):
        end = start + cost
        wide = float(cost) / max(float(budget.total), 1e-9) > 0.03
        rows.append(
            {
                "part": f"{letter}  {name}: {epsilon_text(cost)}",
                "letter": letter if wide else "",
                "start": float(start),
                "end": float(end),
                "middle": (float(start) + float(end)) / 2,
            }
        )
        start = end
    base = alt.Chart(alt.InlineData(values=rows))
    axis = number_axis("privacy loss ε", ticks=5)
    scale = alt.Scale(domain=[0, float(budget.total)], nice=False)
    x = alt.X("start:Q", scale=scale, axis=axis)
    colour = alt.Color("part:N", sort=None, title=None, legend=alt.Legend(columns=1, symbolType="square"))
    bars = base.mark_bar(style="heat", height=28).encode(x=x, x2="end:Q", color=colour, tooltip="part:N")
    letters = base.mark_text(style="on-colour").encode(x=alt.X("middle:Q"), text="letter:N")
    left = alt.Chart(alt.InlineData(values=[{"from": float(start), "to": float(budget.total)}]))
    free = left.mark_bar(style="left", height=28).encode(x=alt.X("from:Q", scale=scale, axis=axis), x2="to:Q")
    layers = [free, bars, letters] if rows else [free]
    return alt.layer(*layers).properties(width=width, height=_BAR)


def _growth(budget: Budget, answers: Sequence[Answer], width: int) -> Any:
    """Answers are counted, not dated, so that a busy day and a quiet year read alike."""
    import altair as alt

    total = 0.0
    rows: list[dict[str, Any]] = [{"count": 0, "spent": 0.0, "words": "before the first answer"}]
    for count, answer in enumerate(_paid(answers), start=1):
        total += float(answer.receipt.epsilon)
        rows.append({"count": count, "spent": rounded(total, 9), "words": answer.receipt.question})
    base = alt.Chart(alt.InlineData(values=rows))
    whole = list(range(0, len(rows), -(-len(rows) // 7)))
    counts = alt.Axis(title="answers that cost something", format="d", values=whole, grid=False)
    x = alt.X("count:Q", axis=counts, scale=alt.Scale(nice=False, domain=[0, max(1, len(rows) - 1)]))
    y = alt.Y(
        "spent:Q", axis=number_axis("spent ε", ticks=4), scale=alt.Scale(domain=[0, float(budget.total)])
    )
    line = base.mark_line(style="answer-line", interpolate="step-after").encode(x=x, y=y)
    dots = base.mark_point(style="answer", filled=True, size=40).encode(
        x=x, y=y, tooltip=["words:N", alt.Tooltip("spent:Q", format=".3~g")]
    )
    most = alt.Chart(alt.InlineData(values=[{"total": float(budget.total)}]))
    limit = most.mark_rule(style="alarm", strokeDash=[6, 4]).encode(y="total:Q")
    return alt.layer(limit, line, dots).properties(width=width, height=_CURVE)
