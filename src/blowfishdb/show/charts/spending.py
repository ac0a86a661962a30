"""Who spent what, day by day: for whoever reads the books."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from blowfishdb.core.budget import Epsilon
from blowfishdb.show.charts.frame import WIDTH, finished, inline, label_axis, number_axis
from blowfishdb.show.charts.legends import LIMIT, with_legend
from blowfishdb.show.tables import Table
from blowfishdb.show.words import loss, rounded

if TYPE_CHECKING:
    from blowfishdb.adapters.store.values import Spent

_NONE: Final = Epsilon(0)
_MOST_SPENDERS: Final = 7


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
