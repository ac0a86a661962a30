"""An attack: how sure the attacker is after each answer, under what the promise allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from blowfishdb.core.policy.protection import percent
from blowfishdb.show.charts.frame import WIDTH, finished, inline, number_axis
from blowfishdb.show.charts.legends import LEVEL, LIMIT, LINE, with_legend
from blowfishdb.show.tables import Table
from blowfishdb.show.words import rounded

if TYPE_CHECKING:
    from blowfishdb.messages.attack import Attack


def attack_chart(attack: Attack, *, width: int = WIDTH) -> Any:
    """Steps from a coin toss on; the dashed line is the most that the promise allows."""
    import altair as alt

    rows = [
        {"answers": n, "sure": rounded(100 * sure, 2), "most": rounded(100 * most, 2)}
        for n, (sure, most) in enumerate(zip(attack.sure, attack.most, strict=True))
    ]
    base = alt.Chart(inline(rows))
    x = alt.X("answers:O", title="answers used", axis=alt.Axis(labelAngle=0, grid=False))
    y = alt.Y("sure:Q", axis=number_axis("sure of the truth, %"), scale=alt.Scale(domain=[0, 100]))
    told = [
        alt.Tooltip("answers:O", title="answers"),
        alt.Tooltip("sure:Q", title="sure of the truth, %"),
        alt.Tooltip("most:Q", title="at most, %"),
    ]
    bound = base.mark_line(style="alarm", strokeDash=[6, 3], strokeWidth=2).encode(x=x, y=alt.Y("most:Q"))
    line = base.mark_line(style="answer-line").encode(x=x, y=y)
    dots = base.mark_point(style="answer", filled=True, size=50).encode(x=x, y=y, tooltip=told)
    coin = alt.Chart(inline([{"half": 50}])).mark_rule(style="zero").encode(y=alt.Y("half:Q"))
    most = [(LIMIT, "at most, by the promise")] if attack.noisy else []
    entries = [(LINE, "the attacker"), *most, (LEVEL, "a coin toss")]
    layers = [coin, *([bound] if attack.noisy else []), line, dots]
    drawn = alt.layer(*layers).properties(width=width, height=240)
    return finished(with_legend(drawn, entries, width=width), "The attack", attack.sentence, width=width)


def attack_table(attack: Attack) -> Table:
    """The same, answer by answer."""
    rows = tuple(
        (str(n), f"{100 * sure:.1f} %", percent(most))
        for n, (sure, most) in enumerate(zip(attack.sure, attack.most, strict=True))
    )
    return Table("", ("answers used", "sure of the truth", "at most"), rows, (attack.sentence,), (0, 1, 2))
