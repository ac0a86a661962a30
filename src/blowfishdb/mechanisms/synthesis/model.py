"""Model: the smoothest distribution over rows that agrees with noisy counts as far as these can be trusted.

Counts y_m = Q_m·(table of some columns) + noise of variance σ² are fitted by p(x) ∝ exp Σ_m (Q_mᵀη_m)(x_m),
where η minimises the convex function

    D(η) = n·log Z(η) − yᵀη + ½ Σ_r λ_m·σ_r²·η_r².

Its gradient is n·Q_m·μ_m − y_m + λ·σ²·η: the model's counts come as close to the measured ones as their noise
deserves. A row without noise has no last term, so it is a constraint that holds exactly; one that counts
nobody forbids its cells. Rows are drawn by systematic rounding: every count of a clique is off by less than
one within the rows that share the values of its parent. All of this is post-processing of released numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
import scipy  # its parts when they are needed
from scipy.sparse import csr_array

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.mechanisms.synthesis.junction_tree import Group, JunctionTree

ONE_WAY = 2.5e-4
OTHERWISE = 5e-3
"""How far noise is shrunk: λ for tables of one column, and for those of several (chosen on one data set)."""
_STEPS = 300, 3_000
_WORK = 3_000_000
"""Steps of a fit that is not cut short, at least and at most, and steps times cells of the tree between them:
where noise is small and cells are empty, 300 are far too few, and a small tree has time for more."""
_GOLDEN = (math.sqrt(5) - 1) / 2


@final
@dataclass(frozen=True, eq=False)
class Counted:
    """Counts of some columns: ``rows`` of whole numbers over the cells of their table, and what came out."""

    columns: Group
    rows: csr_array
    values: FloatArray
    variance: float
    """Of the noise on each row; zero if there is none."""
    places: IntArray | None = None
    """Where ``rows`` are over a coarser table: the cell of it that each cell of the columns lies in."""
    breadth: int = 0
    """How many columns that coarser table has."""

    def __post_init__(self) -> None:
        if self.rows.shape[0] != self.values.size:
            raise SizeMismatch("Every row that was counted has one value.")
        if list(self.columns) != sorted(set(self.columns)):
            raise SizeMismatch("The columns of a table are in order, and each is there once.")

    @property
    def shrinkage(self) -> float:
        """λ·σ²."""
        return (ONE_WAY if (self.breadth or len(self.columns)) == 1 else OTHERWISE) * self.variance

    @cached_property
    def forbidden(self) -> IntArray:
        """Cells that certainly hold nobody: those of exact rows that count nobody."""
        empty = np.flatnonzero(self.values <= 0) if not self.variance else np.zeros(0, dtype=np.int64)
        chosen = csr_array(self.rows[empty])
        cells = np.unique(chosen.indices[chosen.data > 0]) if (chosen.data >= 0).all() else empty[:0]
        inside = cells if self.places is None else np.flatnonzero(np.isin(self.places, cells))
        return np.asarray(inside, dtype=np.int64)

    def units(self, total: int) -> FloatArray:
        """Steps of weights that matter alike: D curves by about the count and λ·σ² along each of them."""
        curving = np.maximum(self.values, math.sqrt(self.variance) + 1) + self.shrinkage
        return np.sqrt(max(1, total) / curving)

    def spread(self, table: FloatArray) -> FloatArray:
        """Numbers for the cells that ``rows`` are over, for every cell of the columns."""
        return table if self.places is None else table[self.places]

    def summed(self, share: FloatArray) -> FloatArray:
        """The way back: shares of the cells of the columns, in the cells that ``rows`` are over."""
        if self.places is None:
            return share
        summed = np.bincount(self.places, weights=share, minlength=self.rows.shape[1])
        return np.asarray(summed, dtype=np.float64)


@final
@dataclass(frozen=True, eq=False)
class Model:
    """A distribution over rows of ``sizes`` values: one weight for each row of ``counted``."""

    sizes: tuple[int, ...]
    total: int
    counted: tuple[Counted, ...]
    weights: tuple[FloatArray, ...]
    given: FloatArray | None = None
    """The shares of the values of the last column, where these are known: every table is then one with it,
    and the model is of the other columns given it."""

    @classmethod
    def uniform(cls, sizes: Sequence[int], total: int, given: FloatArray | None = None) -> Model:
        """Nothing was counted yet."""
        return cls(tuple(sizes), total, (), (), given)

    @cached_property
    def tree(self) -> JunctionTree:
        """The cliques of the columns that were counted together."""
        return JunctionTree.over(self.sizes, [each.columns for each in self.counted])

    def tree_over(self, groups: Sequence[Group]) -> JunctionTree:
        """The tree that tables of these columns would need."""
        return JunctionTree.over(self.sizes, groups)

    def fitted(
        self, counted: Sequence[Counted], *, steps: int | None = None, tree: JunctionTree | None = None
    ) -> Model:
        """The model of these counts; weights of counts that are in this model are where it starts.

        ``steps``: at most so many, where it is fitted again later.
        """
        grown = tree or JunctionTree.over(self.sizes, [each.columns for each in counted])
        known = {id(each): weight for each, weight in zip(self.counted, self.weights, strict=True)}
        start = [known.get(id(each), np.zeros(each.values.size)) for each in counted]
        if not counted or not self.total:
            return replace(self, counted=tuple(counted), weights=tuple(start))
        fit = _Fit(grown, self.total, tuple(counted), self.given)
        units = np.concatenate([each.units(self.total) for each in counted])

        def objective(scaled: FloatArray) -> tuple[float, FloatArray]:
            value, slope = fit.objective(units * scaled)
            return value, units * slope

        found = scipy.optimize.minimize(
            objective,
            np.concatenate(start) / units,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps or _enough(grown.cells), "maxcor": 12, "ftol": 1e-12, "gtol": 1e-9},
        )
        model = replace(self, counted=tuple(counted), weights=tuple(fit.split(units * found.x)))
        object.__setattr__(model, "tree", grown)
        return model

    @cached_property
    def beliefs(self) -> list[FloatArray]:
        """The share of rows in every cell of every clique."""
        fit = _Fit(self.tree, self.total, self.counted, self.given)
        return self.tree.calibrate(fit.potentials(self.weights), self.given)[1]

    def marginal(self, group: Group) -> FloatArray:
        """The share of rows in every cell of some columns that are in one clique."""
        at = self.tree.home(group)
        return self.tree.onto(self.beliefs[at], at, group)

    def relates(self, first: int, second: int) -> bool:
        """Whether two columns are in one clique."""
        return self.tree.together(first, second)

    def between(self, first: int, second: int) -> Group:
        """Columns given which two others are independent."""
        return self.tree.separating(first, second)

    def drawn(self, rows: int, stream: np.random.Generator) -> IntArray:
        """So many rows (a column for each of ``sizes``), in random order."""
        table = np.zeros((rows, len(self.sizes)), dtype=np.int64)
        self.fill(table, (), stream)
        stream.shuffle(table, axis=0)
        return table

    def fill(self, table: IntArray, known: Group, stream: np.random.Generator) -> None:
        """Values of all columns but those that are ``known``, which are none or the last one."""
        tree = self.tree
        for at, belief in enumerate(self.beliefs):
            separator = tree.separators[at] or known
            rest = tuple(column for column in tree.cliques[at] if column not in separator)
            _draw(table, belief, tree.cliques[at], separator, rest, self.sizes, stream)

    def plain_weights(self) -> Model:
        """The same with weights as they are stored, to six places, so that rows can be drawn again."""
        return replace(self, weights=tuple(np.round(weight, 6) for weight in self.weights))


def _enough(cells: int) -> int:
    """Steps of a fit over a tree with so many cells."""
    least, most = _STEPS
    return max(least, min(most, _WORK // cells))


@final
@dataclass(frozen=True, eq=False)
class _Fit:
    """D(η) and its gradient, over one tree."""

    tree: JunctionTree
    total: int
    counted: tuple[Counted, ...]
    given: FloatArray | None

    @cached_property
    def _homes(self) -> dict[Group, int]:
        """The clique that tables of the same columns are at home in."""
        return {each.columns: self.tree.home(each.columns) for each in self.counted}

    @cached_property
    def _ends(self) -> IntArray:
        return np.cumsum([each.values.size for each in self.counted])

    @cached_property
    def _transposed(self) -> list[csr_array]:
        return [csr_array(each.rows.T) for each in self.counted]

    @cached_property
    def _forbidden(self) -> list[FloatArray | None]:
        tables: list[FloatArray | None] = []
        for each in self.counted:
            table = None
            if each.forbidden.size and self.total:  # of nobody, all cells would be forbidden
                table = np.zeros(math.prod(self.tree.shape(each.columns)))
                table[each.forbidden] = -np.inf
            tables.append(table)
        return tables

    def split(self, weights: FloatArray) -> list[FloatArray]:
        return np.split(weights, self._ends[:-1])

    def potentials(self, weights: Sequence[FloatArray]) -> list[FloatArray]:
        """Σ_m Q_mᵀη_m, in the table of the clique that each is at home in."""
        factors: dict[Group, FloatArray] = {}
        parts = zip(self.counted, self._transposed, self._forbidden, weights, strict=True)
        for each, back, never, own in parts:
            factor = each.spread(np.asarray(back @ own))
            if never is not None:
                factor = factor + never
            factors[each.columns] = factors[each.columns] + factor if each.columns in factors else factor
        tables = self.tree.zeros()
        for columns, factor in factors.items():
            home = self._homes[columns]
            tables[home] += self.tree.spread(factor.reshape(self.tree.shape(columns)), columns, home)
        return tables

    def objective(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """D(η)/n and its gradient."""
        parts = self.split(weights)
        log_z, beliefs = self.tree.calibrate(self.potentials(parts), self.given)
        shares = {
            columns: self.tree.onto(beliefs[home], home, columns).ravel()
            for columns, home in self._homes.items()
        }
        value, slopes = self.total * log_z, []
        for each, own in zip(self.counted, parts, strict=True):
            shrunk = each.shrinkage * own
            value += float(own @ (0.5 * shrunk - each.values))
            counts = self.total * (each.rows @ each.summed(shares[each.columns]))
            slopes.append(counts - each.values + shrunk)
        return value / self.total, np.concatenate(slopes) / self.total


def _draw(
    table: IntArray,
    belief: FloatArray,
    clique: Group,
    separator: Group,
    rest: Group,
    sizes: tuple[int, ...],
    stream: np.random.Generator,
) -> None:
    """Values of ``rest`` for rows whose values of ``separator`` are drawn already."""
    if not rest or not len(table):
        return
    order = [clique.index(column) for column in (*separator, *rest)]
    groups = math.prod(sizes[column] for column in separator)
    flat = np.maximum(belief.transpose(order).reshape(groups, -1), 0.0)
    totals = flat.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, flat / np.where(totals > 0, totals, 1.0), 1 / flat.shape[1])
    reach = np.cumsum(shares, axis=1)
    reach /= reach[:, -1:]
    place = np.zeros(len(table), dtype=np.int64)
    if separator:
        shape = tuple(sizes[column] for column in separator)
        place = np.ravel_multi_index(tuple(table[:, column] for column in separator), shape)
    shuffled = np.lexsort((stream.random(len(table)), place))
    held = np.bincount(place, minlength=groups)
    first = np.repeat(np.cumsum(held) - held, held)
    offset = np.repeat((stream.random() + _GOLDEN * np.arange(groups)) % 1.0, held)  # even across groups too
    at = (np.arange(len(table)) - first + offset) / np.repeat(held, held)  # evenly spread within each group
    own = place[shuffled]
    steps = (reach + np.arange(groups)[:, None]).ravel()  # each from its number to the next
    cell = np.searchsorted(steps, at + own, side="right") - own * flat.shape[1]
    values = np.unravel_index(np.clip(cell, 0, flat.shape[1] - 1), tuple(sizes[column] for column in rest))
    for column, value in zip(rest, values, strict=True):
        table[shuffled, column] = value
