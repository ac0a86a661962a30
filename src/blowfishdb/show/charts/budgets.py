"""Budgets: where the privacy loss went, how it grew, and who spent what, day by day."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, Final

from blowfishdb.core.budget import Epsilon
from blowfishdb.show.charts.frame import WIDTH, finished, inline, label_axis, number_axis
from blowfishdb.show.charts.legends import LIMIT, with_legend
from blowfishdb.show.tables import Table, budget_words
from blowfishdb.show.words import loss, rounded

if TYPE_CHECKING:
    from blowfishdb.adapters.store.values import Answered, Budget, Spent
    from blowfishdb.messages.answers import Answer


_MOST = 6  # questions with a colour of their own
_BAR, _CURVE = 56, 160
_LETTER = 16  # pixels of a part that has room for its letter
_NONE = Epsilon(0)
_MOST_SPENDERS: Final = 7


def budget_chart(
    budget: Budget, answers: Sequence[Answer], earlier: Answered | None = None, *, width: int = WIDTH
) -> Any:
    """A bar with one part for each question, and below it what was spent after every answer.

    What answers ``earlier`` than these have cost is one part, where the line begins.
    """
    import altair as alt

    bar, line = _bar(budget, answers, earlier, width), _growth(budget, answers, earlier, width)
    named = with_legend(line, [(LIMIT, f"the total, {budget.total}")], width=width)
    chart = alt.vconcat(bar, named, spacing=24)
    return finished(chart, f"Budget of {budget.dataset}", budget_words(budget), width=width)


def _paid(answers: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if answer.receipt.epsilon]


def _parts(budget: Budget, answers: Sequence[Answer], earlier: Answered | None) -> list[tuple[str, Epsilon]]:
    """The costliest questions by name, the others together, and what never became an answer."""
    costs: dict[str, Epsilon] = {}
    for answer in _paid(answers):
        costs[answer.receipt.question] = costs.get(answer.receipt.question, _NONE) + answer.receipt.epsilon
    ranked = sorted(costs.items(), key=lambda item: -item[1].nano)
    parts, rest = ranked[:_MOST], ranked[_MOST:]
    if rest:
        parts.append(("other questions", sum((cost for _, cost in rest), _NONE)))
    known = sum((cost for _, cost in ranked), _NONE)
    if earlier is not None and earlier.paid:
        parts.append((f"{earlier.paid:,} earlier answer{'' if earlier.paid == 1 else 's'}", earlier.spent))
        known += earlier.spent
    if budget.spent > known:
        parts.append(("charged without an answer", budget.spent - known))
    if budget.held:
        parts.append(("held for questions under way", budget.held))
    return parts


def _bar(budget: Budget, answers: Sequence[Answer], earlier: Answered | None, width: int) -> Any:
    """Parts have letters, so that nobody has to tell colours apart; numbers are those of answers."""
    import altair as alt

    rows, start = [], _NONE
    for letter, (name, cost) in zip(ascii_uppercase, _parts(budget, answers, earlier), strict=False):
        end = start + cost
        wide = width * float(cost) / max(float(budget.total), 1e-9) > _LETTER
        rows.append(
            {
                "part": f"{letter}  {loss(cost)}: {name}",
                "letter": letter if wide else "",
                "start": float(start),
                "end": float(end),
                "middle": (float(start) + float(end)) / 2,
            }
        )
        start = end
    base = alt.Chart(inline(rows))
    axis = number_axis("privacy loss ε", ticks=5)
    scale = alt.Scale(domain=[0, float(budget.total)], nice=False)
    x = alt.X("start:Q", scale=scale, axis=axis)
    legend = alt.Legend(columns=1, symbolType="square", labelLimit=width - 24)
    colour = alt.Color("part:N", sort=None, title=None, legend=legend)
    bars = base.mark_bar(style="heat", height=28).encode(
        x=x, x2=alt.X2("end:Q"), color=colour, tooltip=alt.Tooltip("part:N")
    )
    letters = base.mark_text(style="on-colour").encode(x=alt.X("middle:Q"), text=alt.Text("letter:N"))
    left = alt.Chart(inline([{"from": float(start), "to": float(budget.total)}]))
    free = left.mark_bar(style="left", height=28).encode(
        x=alt.X("from:Q", scale=scale, axis=axis), x2=alt.X2("to:Q")
    )
    layers = [free, bars, letters] if rows else [free]
    return alt.layer(*layers).properties(width=width, height=_BAR)


def _growth(budget: Budget, answers: Sequence[Answer], earlier: Answered | None, width: int) -> Any:
    """Answers are counted, not dated, so that a busy day and a quiet year read alike."""
    import altair as alt

    first, total = (0, 0.0) if earlier is None else (earlier.paid, float(earlier.spent))
    words = "before these answers" if first else "before the first answer"
    rows: list[dict[str, Any]] = [{"count": first, "spent": rounded(total, 9), "words": words}]
    for count, answer in enumerate(_paid(answers), start=first + 1):
        total += float(answer.receipt.epsilon)
        rows.append({"count": count, "spent": rounded(total, 9), "words": answer.receipt.question})
    base = alt.Chart(inline(rows))
    whole = list(range(first, first + len(rows), -(-len(rows) // 7)))
    counts = alt.Axis(title="answers that cost something", format="d", values=whole, grid=False)
    x = alt.X(
        "count:Q", axis=counts, scale=alt.Scale(nice=False, domain=[first, first + max(1, len(rows) - 1)])
    )
    y = alt.Y(
        "spent:Q", axis=number_axis("spent ε", ticks=4), scale=alt.Scale(domain=[0, float(budget.total)])
    )
    line = base.mark_line(style="answer-line", interpolate="step-after").encode(x=x, y=y)
    dots = base.mark_point(style="answer", filled=True, size=40).encode(
        x=x, y=y, tooltip=[alt.Tooltip("words:N"), alt.Tooltip("spent:Q", format=".3~g")]
    )
    most = alt.Chart(inline([{"total": float(budget.total)}]))
    limit = most.mark_rule(style="alarm", strokeDash=[6, 4]).encode(y=alt.Y("total:Q"))
    return alt.layer(limit, line, dots).properties(width=width, height=_CURVE)


def spending_chart(spent: Sequence[Spent], total: Epsilon, *, width: int = WIDTH) -> Any:
    """What each of those who ask has spent by each day, and what may be spent in all."""
    import altair as alt

    rows, names = _spending_rows(spent)
    base = alt.Chart(inline(rows))
    x = alt.X("day:O", title=None, axis=label_axis(sorted({row["day"] for row in rows}), width))
    y = alt.Y("spent:Q", axis=number_axis("spent ε, all together"), stack="zero")
    colour = alt.Color(
        "who:N", sort=None, title=None, scale=alt.Scale(domain=names), legend=alt.Legend(orient="top")
    )
    bars = base.mark_bar().encode(
        x=x,
        y=y,
        color=colour,
        order=alt.Order("rank:Q"),
        tooltip=[
            alt.Tooltip("day:O", title="by"),
            alt.Tooltip("who:N", title="who"),
            alt.Tooltip("spent:Q", title="spent ε", format=",.3~f"),
        ],
    )
    limit = alt.Chart(inline([{"total": float(total)}])).mark_rule(
        style="alarm", strokeDash=[6, 3], strokeWidth=2
    )
    drawn = alt.layer(bars, limit.encode(y=alt.Y("total:Q"))).properties(width=width, height=200)
    legend = [(LIMIT, f"the total, {loss(total)}")]
    words = spending_words(spent, total)
    return finished(with_legend(drawn, legend, width=width), "Who spent what", words, width=width)


def spending_words(spent: Sequence[Spent], total: Epsilon) -> str:
    """Who spent most, and how much there is in all."""
    sums = _sums(spent)
    most = max(sums, key=lambda name: sums[name], default="")
    gone = sum(sums.values(), _NONE)
    who = (
        f", {most} most of it (ε {loss(sums[most])})"
        if len(sums) > 1
        else f", all of it by {most}"
        if sums
        else ""
    )
    return f"ε {loss(gone)} of {loss(total)} is spent{who}."


def spending_table(spent: Sequence[Spent], total: Epsilon) -> Table:
    """The same, day by day."""
    rows = tuple((each.day, each.analyst, loss(each.amount)) for each in spent)
    return Table("", ("day", "who", "spent ε"), rows, (spending_words(spent, total),), (2,))


def _sums(spent: Sequence[Spent]) -> dict[str, Epsilon]:
    sums: dict[str, Epsilon] = {}
    for each in spent:
        sums[each.analyst] = sums.get(each.analyst, _NONE) + each.amount
    return sums


def _spending_rows(spent: Sequence[Spent]) -> tuple[list[dict[str, Any]], list[str]]:
    """For each day what each had spent by then; beyond seven people, the others are one."""
    sums = _sums(spent)
    ranked = sorted(sums, key=lambda name: (-sums[name].nano, name))
    names = ranked[:_MOST_SPENDERS]
    shown = [*names, *(["others"] if len(ranked) > _MOST_SPENDERS else [])]
    so_far, rows = dict.fromkeys(shown, 0.0), []
    for day, parts in itertools.groupby(spent, key=lambda each: each.day):
        for each in parts:
            so_far[each.analyst if each.analyst in names else "others"] += float(each.amount)
        rows += [
            {"day": day, "who": n, "spent": rounded(so_far[n], 9), "rank": r} for r, n in enumerate(shown)
        ]
    return rows, shown
