"""Choosing: which of many stored releases a question touches.

Decided by what was measured alone, boxes and scales, and never by what came out; and in a time that hardly
depends on how many there are. Boxes are known by their cuts: a release whose cuts are among those asked for
can answer alone, one that has some of them together with others. Of each, a few are taken: those with the
least noise, and those with the least noise for the width of their boxes, so that a coarse release that is a
little noisier than many fine ones is not forgotten. Of a shape, rows over boxes, only the least noisy count.

Up to ``MOST`` releases all are taken that can be combined; beyond, as many, however many there are. Exact
ones come on top, a few for each set of columns: the same ones whatever is asked about these columns, so that
nobody picks what comes along with a release (docs/proofs/reuse.md).
"""

from __future__ import annotations

import json
import math
from bisect import insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from blowfishdb.adapters.store.releases import IndexedRelease
from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.domain.bins import LIMIT, Bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.policy import codec

MOST: Final = 8
"""More releases add little accuracy and cost time."""
MOST_EXACT: Final = 8
"""Of exact releases about the same columns."""
_LOOKED_AT: Final = 64
_WORDS: Final = 4  # of 64 bits, in which cuts are marked

Ranked = tuple[float, int]
"""A scale, and the number of the charge."""


@final
@dataclass(frozen=True, eq=False)
class Grid:
    """The boxes of releases, known by their cuts."""

    axes: tuple[Axis, ...]

    @classmethod
    def from_plain(cls, text: str) -> Grid:
        """From the text that the index keeps."""
        return cls(
            tuple(
                Axis(axis["column"], codec.attribute(axis["attribute"]), codec.partition(axis["bins"]))
                for axis in json.loads(text)
            )
        )

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns that it cuts."""
        return frozenset(axis.column for axis in self.axes)

    @cached_property
    def dropping(self) -> frozenset[str]:
        """Columns in which some rows are in no box."""
        return frozenset(axis.column for axis in self.axes if axis.attribute.may_drop)

    @property
    def boxes(self) -> int:
        """How many there are."""
        return math.prod(axis.bins.count for axis in self.axes)

    @cached_property
    def marks(self) -> NDArray[np.uint64]:
        """A few bits for every cut: boxes that refine others have all of their bits."""
        marks = np.zeros(_WORDS, dtype=np.uint64)
        for axis in self.axes:
            if axis.bins.contiguous:
                _mark(marks, axis.column, cuts(axis.bins))
            else:
                marks[:] = ~np.uint64(0)
        return marks

    @property
    def asked(self) -> NDArray[np.uint64]:
        """The bits that boxes have which refine these; none for labels, which are compared one by one."""
        marks = np.zeros(_WORDS, dtype=np.uint64)
        for axis in self.axes:
            if axis.bins.contiguous:
                _mark(marks, axis.column, cuts(axis.bins))
        return marks

    def refines(self, asked: Grid) -> bool:
        """Whether every box of ``asked`` is a union of these: a single release may then tell all of it."""
        here = {axis.column: axis.bins for axis in self.axes}
        for axis in asked.axes:
            if axis.column not in here:
                if axis.bins.count > 1:
                    return False
            elif not _refines(here[axis.column], axis.bins):
                return False
        return True

    def shares(self, asked: Grid) -> bool:
        """Whether some cut is the same, so that it may help together with others."""
        here = {axis.column: axis.bins for axis in self.axes}
        return any(_shares(here[axis.column], axis.bins) for axis in asked.axes if axis.column in here)


def cuts(bins: Bins) -> IntArray:
    """Where boxes begin, but the first."""
    return bins.first(np.arange(1, bins.count))


def _mark(marks: NDArray[np.uint64], column: str, at: IntArray) -> None:
    salt = np.uint64(int(codec.digest(column)[:15], 16))
    with np.errstate(over="ignore"):
        mixed = (at.astype(np.uint64) + salt) * np.uint64(0x9E3779B97F4A7C15)
    bit = np.unique(mixed >> np.uint64(56))
    np.bitwise_or.at(marks, (bit >> np.uint64(6)).astype(np.int64), np.uint64(1) << (bit & np.uint64(63)))


def _refines(fine: Bins, coarse: Bins) -> bool:
    if fine == coarse:
        return True
    if fine.contiguous and coarse.contiguous:
        return coarse.count <= fine.count and bool(np.isin(cuts(coarse), cuts(fine)).all())
    if fine.size > LIMIT:
        return False
    pairs = fine.assignment() * coarse.count + coarse.assignment()
    return int(np.unique(pairs).size) == fine.count


def _shares(first: Bins, second: Bins) -> bool:
    if first.contiguous and second.contiguous:
        return bool(np.isin(cuts(second), cuts(first)).any())
    return True


@final
@dataclass(eq=False)
class _Boxes:
    """One grid, and the least noisy releases of each shape over it."""

    grid: Grid
    shapes: dict[str, list[Ranked]] = field(default_factory=dict)

    def enter(self, shape: str, ranked: Ranked) -> None:
        best = self.shapes.setdefault(shape, [])
        insort(best, ranked)
        del best[MOST:]

    def drop(self, shape: str, charge: int) -> None:
        """Forget a release that another one replaces."""
        if shape in self.shapes:
            self.shapes[shape] = [ranked for ranked in self.shapes[shape] if ranked[1] != charge]

    def best(self) -> Iterator[Ranked]:
        """The least noisy release of each shape."""
        return (ranked[0] for ranked in self.shapes.values() if ranked)


@final
@dataclass(eq=False)
class _OnColumns:
    """All grids over the same columns, with their marks beside each other."""

    boxes: list[_Boxes] = field(default_factory=list)
    marks: NDArray[np.uint64] = field(default_factory=lambda: np.zeros((16, _WORDS), dtype=np.uint64))
    scales: FloatArray = field(default_factory=lambda: np.full(16, np.inf))

    def add(self, grid: Grid) -> int:
        count = len(self.boxes)
        if count == len(self.marks):
            self.marks = np.concatenate((self.marks, np.zeros_like(self.marks)))
            self.scales = np.concatenate((self.scales, np.full_like(self.scales, np.inf)))
        self.marks[count] = grid.marks
        self.boxes.append(_Boxes(grid))
        return count

    def enter(self, place: int, shape: str, ranked: Ranked) -> None:
        self.boxes[place].enter(shape, ranked)
        self.scales[place] = min(self.scales[place], ranked[0])

    def refining(self, asked: Grid, *, by_width: bool) -> Iterator[_Boxes]:
        """Grids that refine the one asked for, the least noisy first."""
        wanted, count = asked.asked, len(self.boxes)
        places = np.flatnonzero(((self.marks[:count] & wanted) == wanted).all(axis=1))
        rank = self.scales[places]
        if by_width:
            rank = rank * np.sqrt([self.boxes[place].grid.boxes for place in places.tolist()])
        ordered = places[np.argsort(rank, kind="stable")][:_LOOKED_AT]
        return (boxes for place in ordered.tolist() if (boxes := self.boxes[place]).grid.refines(asked))

    def sharing(self, asked: Grid) -> Iterator[_Boxes]:
        """Grids that have a cut in common with the one asked for, the least noisy first."""
        count = len(self.boxes)
        places = np.flatnonzero(((self.marks[:count] & asked.asked) != 0).any(axis=1))
        ordered = places[np.argsort(self.scales[places], kind="stable")][:_LOOKED_AT]
        return (boxes for place in ordered.tolist() if (boxes := self.boxes[place]).grid.shares(asked))


@final
@dataclass(eq=False)
class _Exact:
    """What is known exactly about the same columns: those with most rows, and of each shape the first."""

    shapes: set[str] = field(default_factory=set)
    ranked: list[tuple[int, int, int]] = field(default_factory=list)

    def enter(self, release: IndexedRelease, boxes: int) -> None:
        if release.shape not in self.shapes:
            self.shapes.add(release.shape)
            insort(self.ranked, (-release.exact, boxes, release.charge))
            del self.ranked[MOST_EXACT:]

    def drop(self, shape: str, charge: int) -> None:
        """Forget a release that another one replaces."""
        if any(number == charge for _, _, number in self.ranked):
            self.ranked = [entry for entry in self.ranked if entry[2] != charge]
            self.shapes.discard(shape)

    @property
    def best(self) -> list[int]:
        """The charges."""
        return [charge for *_, charge in self.ranked]


@final
@dataclass(frozen=True)
class Chosen:
    """Releases for a question, in the order of their numbers, and those of them that are there for all."""

    charges: tuple[int, ...]
    public: frozenset[int]


@final
class SnapshotIndex:
    """The releases about the same rows."""

    def __init__(self) -> None:
        self.count = 0
        """How many releases are out."""
        self._places: dict[str, tuple[_OnColumns, int]] = {}
        self._on: dict[tuple[frozenset[str], frozenset[str]], _OnColumns] = {}
        self._exact: dict[tuple[frozenset[str], frozenset[str]], _Exact] = {}
        self._first: list[tuple[int, Grid]] = []
        self._shapes: dict[int, str] = {}
        self._since_copies: set[int] = set()
        self._grids: dict[int, Grid] = {}

    def enter(self, release: IndexedRelease, grid: Grid) -> None:
        """One release more."""
        if not release.noisy + release.exact:
            return
        self.count += 1
        on, place = self._places.get(release.grid, (None, 0))
        if on is None:
            on = self._on.setdefault((grid.columns, grid.dropping), _OnColumns())
            place = on.add(grid)
            self._places[release.grid] = on, place
        grid = on.boxes[place].grid
        if release.replaces is not None:
            self._drop(release.replaces, on.boxes[place])
        if release.noisy:
            on.enter(place, release.shape, (least_scale(release.scales), release.charge))
        if release.exact:
            self._exact.setdefault((grid.columns, grid.dropping), _Exact()).enter(release, grid.boxes)
        self._grids[release.charge] = grid
        self._shapes[release.charge] = release.shape
        if release.about is not None:
            self._since_copies.add(release.charge)
        if self.count <= MOST:
            self._first.append((release.charge, grid))

    def _drop(self, charge: int, boxes: _Boxes) -> None:
        """A release is out of use: one over the same boxes with the same rows and less noise replaces it."""
        shape = self._shapes.pop(charge, "")
        boxes.drop(shape, charge)
        self._grids.pop(charge, None)
        self._first = [entry for entry in self._first if entry[0] != charge]
        exact = self._exact.get((boxes.grid.columns, boxes.grid.dropping))
        if exact is not None:
            exact.drop(shape, charge)

    def over(self, grid: str) -> list[int]:
        """The least noisy releases of each shape over exactly these boxes, of those that can be refined.

        Answers of older versions do not say what they are about, and may be of a file that was changed before
        a copy of it was made, under the same snapshot: their rows need not be those of now.
        """
        on, place = self._places.get(grid, (None, 0))
        if on is None:
            return []
        listed = (charge for ranked in on.boxes[place].shapes.values() for _, charge in ranked)
        return sorted(self._since_copies.intersection(listed))

    @property
    def in_use(self) -> list[int]:
        """Every release that none has replaced, by number."""
        return sorted(self._grids)

    def known(self, grid: str) -> Grid | None:
        """Boxes that some release had before."""
        on, place = self._places.get(grid, (None, 0))
        return None if on is None else on.boxes[place].grid

    def among(self, charges: Iterable[int], asked: Grid) -> list[int]:
        """Of certain releases those that could tell something about the boxes asked for, in order."""
        listed = [(charge, self._grids[charge]) for charge in sorted(charges) if charge in self._grids]
        return _near(listed, asked)

    def choose(self, asked: Grid) -> Chosen:
        """The releases that a question about these boxes is answered from."""
        chosen = _near(self._first, asked) if self.count <= MOST else self._least_noisy(asked)
        grids = [asked, *(self._grids[charge] for charge in chosen)]
        public = frozenset(
            charge
            for (columns, dropping), exact in self._exact.items()
            if any(columns <= grid.columns and dropping == grid.dropping for grid in grids)
            for charge in exact.best
        )
        return Chosen(tuple(sorted({*chosen, *public})), public)

    def _least_noisy(self, asked: Grid) -> list[int]:
        own = [
            on
            for (columns, dropping), on in self._on.items()
            if columns <= asked.columns and dropping == asked.dropping
        ]
        chosen = self._noisy(own, asked)
        if not any(self._grids[charge].refines(asked) for charge in chosen):
            near = [
                on
                for (columns, dropping), on in self._on.items()
                if columns & asked.columns and dropping == asked.dropping
            ]
            chosen = list(dict.fromkeys((*chosen, *self._noisy(near, asked))))[:MOST]
        return chosen

    def _noisy(self, on: Sequence[_OnColumns], asked: Grid) -> list[int]:
        """Half by their noise, half by their noise for the width of their boxes; then what has a cut."""
        by_scale = _least(_taken(each.refining(asked, by_width=False) for each in on))
        by_width = _least(_taken(each.refining(asked, by_width=True) for each in on), by_width=True)
        chosen = dict.fromkeys((*by_scale[: MOST // 2], *by_width[: MOST // 2]))
        others = _least(_taken(each.sharing(asked) for each in on))
        chosen |= dict.fromkeys((*others[: MOST // 2], *by_scale, *others))
        return list(chosen)[:MOST]


def _near(listed: Sequence[tuple[int, Grid]], asked: Grid) -> list[int]:
    """Releases on the question's own columns; without any, those that share a column with it."""
    usable = [(charge, grid) for charge, grid in listed if grid.dropping == asked.dropping]
    own = [charge for charge, grid in usable if grid.columns <= asked.columns]
    return own or [charge for charge, grid in usable if grid.columns & asked.columns]


def _taken(each: Iterable[Iterator[_Boxes]]) -> Iterator[_Boxes]:
    """The first few of each."""
    for listed in each:
        for boxes, _ in zip(listed, range(MOST), strict=False):
            yield boxes


def _least(each: Iterable[_Boxes], *, by_width: bool = False) -> list[int]:
    """The charges of the least noisy release of every shape, the least noisy first."""
    ranked = [
        (scale * math.sqrt(boxes.grid.boxes) if by_width else scale, charge)
        for boxes in each
        for scale, charge in boxes.best()
    ]
    return [charge for _, charge in sorted(ranked)]


def least_scale(scales: str) -> float:
    """The least noise of a row that has any."""
    return min((float(Fraction(scale)) for scale in json.loads(scales) if scale != "0"), default=0.0)
