"""SynthesisPlan: which tables are measured, with how much noise, and in what order; no row is read for it.

Three ways, by a public rule of policy, ε and the public number of rows:

- *one by one*: tables of single columns only, where n·ε is too small to tell pairs from noise;
- *in rounds*, under a joint product: tables of single columns, then one pair at a time, chosen privately
where
  the model is furthest off, measured, and fitted;
- *all pairs*, where columns move one at a time: every pair of columns costs each class of moves only those
that
  it touches, so all are measured, and which of them make the model is chosen from what came out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final, final

from blowfishdb.core.budget import NANO, AnyEpsilon, Epsilon, positive
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import InvalidEpsilon, InvalidWorkload, TooLarge
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.synthesis import listed
from blowfishdb.mechanisms.reuse.stored import Rows
from blowfishdb.mechanisms.synthesis.junction_tree import Group
from blowfishdb.mechanisms.synthesis.moves import Moves, classes, separate
from blowfishdb.mechanisms.synthesis.tables import Layout, cell_rows, not_kept, prefix_rows, tells

MOST_COLUMNS: Final = 24
MOST_CELLS: Final = 20_000
"""Of one table, so that the model has room for whichever is chosen first."""
ENOUGH: Final = 5_000
"""Below so many rows times ε, pairs drown in their noise under a joint product."""
NAMES: Final = {
    "one by one": "Synthetic table of single columns",
    "in rounds": "Synthetic table in rounds",
    "all pairs": "Synthetic table of all pairs",
}
_SHARES: Final = {"one by one": Fraction(1), "in rounds": Fraction(1, 2), "all pairs": Fraction(1, 10)}
MOST_KEPT: Final = 200_000
"""Rows that are kept, and stored with the table."""
MOST_GIVEN: Final = 4_000_000
"""Cells of the model where there is one for every row."""
ENOUGH_GIVEN: Final = 1_000
"""The same where columns are kept: only tables with a drawn column are measured."""
_PER_ROUND: Final = 1_800
_PER_ROUND_GIVEN: Final = 900
_SHARE_GIVEN: Final = Fraction(1, 10)
"""Of ε that goes to single columns where others are kept: few, and each with few numbers."""
_FEWEST_ROUNDS: Final = 4
_CHOOSING: Final = Fraction(12, 100)
_CHOOSING_GIVEN: Final = Fraction(1, 4)


@final
@dataclass(frozen=True, eq=False)
class Planned:
    """A table that is going to be measured: its rows, and what every unit that a move changes loses."""

    columns: Group
    rows: Rows
    rate: Fraction
    """Billionths of ε; zero where nothing moves."""

    @property
    def scale(self) -> Fraction:
        """Of the noise on each number; zero if there is none."""
        return Fraction(NANO) / self.rate if self.rate else Fraction(0)


@final
@dataclass(frozen=True, eq=False)
class SynthesisPlan:
    """How a synthetic table of ``layout`` is made of ``total`` rows at ``epsilon`` per row."""

    layout: Layout
    every: tuple[Moves, ...]
    """The classes of moves, under everything that is promised."""
    total: int
    epsilon: Epsilon
    target: int | None = None
    """A column whose pairs matter twice as much."""
    kept: Group = ()
    """Columns whose rows stay as they are."""

    @classmethod
    def under(
        cls,
        policies: Sequence[Policy],
        axes: tuple[Axis, ...],
        *,
        rows: int,
        epsilon: AnyEpsilon,
        target: str | None = None,
        keep: Sequence[str] = (),
    ) -> SynthesisPlan:
        """The plan for columns under every policy that is promised; rows of ``keep`` stay as they are."""
        if not axes or len({axis.column for axis in axes}) < len(axes):
            raise InvalidWorkload("A synthetic table has one or more different columns.")
        if len(axes) > MOST_COLUMNS:
            raise TooLarge(
                f"A synthetic table has at most {MOST_COLUMNS} columns, and {len(axes)} were asked for.",
                fixes=("name fewer columns",),
            )
        names = [axis.column for axis in axes]
        if target is not None and target not in names:
            raise InvalidWorkload(f"'{target}' is not one of the columns.", fixes=tuple(names))
        layout = Layout(axes)
        largest = sorted(layout.bins)[-2:]
        if math.prod(largest) > MOST_CELLS:
            raise TooLarge(
                "Two of these columns together have too many bins for one table.",
                fixes=("fewer bins: columns=[('age', {'bins': 20})]", "name groups of values"),
            )
        at = None if target is None else names.index(target)
        plan = cls(layout, classes(policies, axes), rows, positive(epsilon), at)
        if keep:
            plan = replace(plan, kept=plan._kept(keep))
        plan._check_divisible()
        return plan

    def _kept(self, keep: Sequence[str]) -> Group:
        """The columns that are kept, if no promise hides any of them and others are left to draw."""
        names = [axis.column for axis in self.layout.axes]
        for name in keep:
            if name not in names:
                raise InvalidWorkload(f"'{name}' is not one of the columns.", fixes=tuple(names))
            if self.hides(names.index(name)):
                raise not_kept(self.layout.axes[names.index(name)])
        kept = tuple(at for at, name in enumerate(names) if name in keep)
        drawn = [at for at in range(len(names)) if at not in kept]
        if not drawn:
            raise InvalidWorkload(
                "All of these columns would be kept, and none drawn: that is no synthetic table.",
                fixes=("name a hidden column too", "keep fewer columns"),
            )
        if not self.total:
            raise InvalidWorkload("There are no rows to keep.", fixes=("draw all columns",))
        room = self.total * sum(self.layout.sizes[at] for at in drawn)
        if self.total > MOST_KEPT or room > MOST_GIVEN:
            raise TooLarge(
                f"{self.total:,} rows are too many to draw the other columns given each of them.",
                fixes=("draw all columns", "fewer bins of the columns that are drawn"),
            )
        return kept

    def hides(self, column: int) -> bool:
        """Whether a hidden move changes a value of a column, inside a bin too, or leaves a row out."""
        return any(tells(each.policy, self.layout.axes[column]) for each in self.every)

    def _check_divisible(self) -> None:
        """Refuse an ε of which some table would get nothing: it would be measured without noise."""
        alone = all(planned.rate > 0 for planned in self.one_ways if any(self.costs(planned.columns)))
        pairs = self.pair_rate > 0 or self.way != "all pairs" or not self.candidates
        if not (alone and pairs):
            raise InvalidEpsilon(
                "So small an ε cannot be divided among the tables.", fixes=("fewer columns", "a larger ε")
            )

    # --- what is public about it --------------------------------------------------------------------

    @cached_property
    def hidden(self) -> frozenset[int]:
        """Columns that some hidden move changes."""
        columns = range(len(self.layout.axes))
        return frozenset(at for at in columns if any(each.cells((at,)) for each in self.every))

    @property
    def free(self) -> bool:
        """Whether no hidden move changes anything: then all is exact, and costs nothing."""
        return not self.hidden

    @cached_property
    def way(self) -> str:
        """Which of the three."""
        if len(self.layout.axes) == 1:
            return "one by one"
        if self.free or separate(self.every):
            return "all pairs"
        enough = ENOUGH_GIVEN if self.kept else ENOUGH
        return "in rounds" if self.total * float(self.epsilon) >= enough else "one by one"

    @property
    def name(self) -> str:
        """The mechanism, in words."""
        return NAMES[self.way]

    @property
    def rounds(self) -> int:
        """About how many pairs are chosen."""
        if self.way != "in rounds":
            return 0
        most = min(2 * len(self.layout.axes), len(self.candidates))
        each = _PER_ROUND_GIVEN if self.kept else _PER_ROUND
        return int(min(_FEWEST_ROUNDS + self.total * float(self.epsilon) / each, most))

    @property
    def alone_share(self) -> Fraction:
        """How much of ε goes to single columns, where pairs are chosen."""
        return _SHARE_GIVEN if self.kept else _SHARES[self.way]

    @property
    def choosing_share(self) -> Fraction:
        """How much of a round goes to the choice: more where tables are small and many are nearly as good."""
        return _CHOOSING_GIVEN if self.kept else _CHOOSING

    @property
    def spent(self) -> Epsilon:
        """What it loses for each row."""
        return Epsilon(0) if self.free else self.epsilon

    def costs(self, columns: Group) -> tuple[int, ...]:
        """How much a move of each class changes the cells of a table."""
        return tuple(each.cells(columns) for each in self.every)

    @cached_property
    def candidates(self) -> tuple[Group, ...]:
        """Pairs of columns that some hidden move changes."""
        return tuple(pair for pair in self.layout.pairs() if any(self.costs(pair)))

    @cached_property
    def public_pairs(self) -> tuple[Group, ...]:
        """Pairs of columns that no hidden move changes, and that kept rows do not tell anyway."""
        return tuple(
            pair
            for pair in self.layout.pairs()
            if not any(self.costs(pair)) and not set(pair) <= set(self.kept)
        )

    @cached_property
    def pair_rate(self) -> Fraction:
        """What every pair loses for each unit, where all of them are measured."""
        if self.way != "all pairs" or not self.candidates:
            return Fraction(0)
        share = (1 - _SHARES[self.way]) * self.epsilon.nano
        touched = [sum(self.costs(pair)[at] for pair in self.candidates) for at in range(len(self.every))]
        return Fraction(math.floor(share / max(touched)))

    @cached_property
    def one_ways(self) -> tuple[Planned, ...]:
        """The table of every column, with b ∝ √(S/k): as close as S units of loss allow for k numbers."""
        columns = [at for at in range(len(self.layout.axes)) if at not in self.kept]
        measured = [self._form(column) for column in columns]
        if self.way == "in rounds":
            share = math.floor(self.alone_share * self.epsilon.nano)
            room: list[Fraction] = [Fraction(share)] * len(self.every)
        else:
            pairs = [
                sum(self.costs(pair)[at] for pair in self.candidates) if self.pair_rate else 0
                for at in range(len(self.every))
            ]
            room = [self.epsilon.nano - self.pair_rate * count for count in pairs]
        weights = [rows.count for rows, _ in measured]
        rates = allotted([costs for _, costs in measured], weights, room)
        return tuple(
            Planned((column,), rows, rate)
            for column, (rows, _), rate in zip(columns, measured, rates, strict=True)
        )

    def _form(self, column: int) -> tuple[Rows, tuple[int, ...]]:
        """Cells, or counts up to each bin where one move changes no more than one of them."""
        count = self.layout.bins[column]
        costs = self.costs((column,))
        line = count > 1 and not self.layout.axes[column].attribute.may_drop
        if line and any(costs):
            crossed = tuple(each.prefixes(column) for each in self.every)
            if max(crossed) == 1:
                return prefix_rows(count), crossed
        return cell_rows(count), costs

    def explain(self) -> str:
        """What it does and why it is private, in a few sentences."""
        return f"{self._kept_words}{self._measured_words}"

    @property
    def _kept_words(self) -> str:
        if not self.kept:
            return ""
        names = [self.layout.axes[column].column for column in self.kept]
        return (
            f"Rows of {listed(names)} stay as they are: no promise hides them. These are rows of real "
            "people, and the other columns are drawn given them. "
        )

    @property
    def _measured_words(self) -> str:
        columns = len(self.one_ways)
        if self.free:
            return "No pair of values that the policy hides is told apart, so every table is exact."
        if self.way == "one by one":
            if len(self.layout.axes) == 1:
                return "The table of the column with noise."
            return (
                f"The table of every column with noise. {self.total:,} rows at ε {self.epsilon} cannot tell "
                "pairs of columns from noise, so columns are drawn independently of each other."
            )
        if self.way == "all pairs":
            return (
                f"The tables of {columns} columns and of {len(self.candidates)} pairs with noise: one column "
                "moves at a time, so each class of moves pays for the tables that it touches."
            )
        return (
            f"The tables of {columns} columns with noise, then about {self.rounds} rounds: the pair on which "
            "the model is furthest off is chosen privately, measured, and fitted. Together that loses the "
            "stated ε."
        )


def allotted(
    costs: Sequence[tuple[int, ...]], weights: Sequence[int], room: Sequence[Fraction | int]
) -> list[Fraction]:
    """What each table loses for each unit of its cost, so that no class loses more than its ``room``.

    Within a class ∝ √(cost·weight); a table in several takes the least. What is left goes to the first table
    that can take it.
    """
    rates = [Fraction(0)] * len(costs)
    for table, own in enumerate(costs):
        offers = []
        for at, cost in enumerate(own):
            if cost:
                total = sum(math.sqrt(c[at] * w) for c, w in zip(costs, weights, strict=True))
                share = math.sqrt(cost * weights[table]) / total
                offers.append(Fraction(math.floor(float(room[at]) * share * (1 - 1e-12)), cost))
        rates[table] = min(offers, default=Fraction(0))
    for table, own in enumerate(costs):
        slack = [
            (room[at] - sum(c[at] * r for c, r in zip(costs, rates, strict=True))) / Fraction(cost)
            for at, cost in enumerate(own)
            if cost
        ]
        if slack:
            rates[table] += min(slack)
    return rates
