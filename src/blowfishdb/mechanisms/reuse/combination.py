"""Combination: whether questions follow from stored releases, and how (REUSE §1).

Everything here but ``values`` is a function of what was measured, never of what came out: a decision that
looked at noisy values would make quotes depend on them, and intervals too short.

Partition: the boxes that tell apart everything that was measured or is asked (REUSE §1, Combining).

Per column, the union of cuts or the common refinement of labels. A column that some side does not mention is
summed over, and that sum must include the rows which the column's declaration *drops*: they are in no bin of
the column, but a release on other columns counted them. Such columns get one more box, *outside*.

Any rows over any boxes: weighted least squares with exact rows eliminated (REUSE §1, General).

Boxes that no row and no question tells apart are merged first. Up to 2,000 boxes the normal equations are
solved densely, whatever is left open. Beyond, only if the rows leave nothing open: the equations

    | NᵀΣ⁻¹N  Rᵀ | |x|   | NᵀΣ⁻¹y |        N noisy rows of few boxes, R all others,
    |    R   −D  | |·| = |   r    |        D the variances of those, 0 for exact ones

are then regular, and sparse: a row of many boxes (a sum of values) would fill NᵀΣ⁻¹N, and R holds it as it
is. Either way W − T·A is computed at the end, so a numerically wrong rank can only make a question count as
not determined.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy
from scipy.sparse import block_array, csc_array, csr_array, diags_array, vstack

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.domain.bins import LIMIT, Bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.linear.estimators import ReleaseEstimator, RowNoise, per_release
from blowfishdb.mechanisms.reuse.line import LineEstimator
from blowfishdb.mechanisms.reuse.stored import Intervals, Rows, Sparse, StoredRelease, rows_of

MOST_BOXES = 10**6
"""Beyond this many common boxes, releases on other columns are left aside."""
MOST_APART = 10**5
"""Of two scales that are further apart, the larger one adds nothing that floating point could tell."""


@final
@dataclass(frozen=True, eq=False)
class Partition:
    """Common boxes, row-major; ``outside[i]`` says whether column i has a last box for dropped rows."""

    axes: tuple[Axis, ...]
    outside: tuple[bool, ...]

    @classmethod
    def common(cls, sides: Sequence[tuple[Axis, ...]]) -> Partition | None:
        """The coarsest partition that refines every side; None if it is too fine to write down.

        Earlier sides decide the order of boxes, so one more side at the end only splits them.
        """
        found: dict[str, Axis] = {}
        for axis in (axis for side in sides for axis in side):
            known = found.get(axis.column)
            if known is not None and known.attribute != axis.attribute:
                raise SizeMismatch(f"'{axis.column}' was declared differently when it was measured.")
            bins = axis.bins if known is None else refined(known.bins, axis.bins)
            if bins is None:
                return None
            found[axis.column] = Axis(axis.column, axis.attribute, bins)
        axes = tuple(found.values())
        mentioned = [frozenset(axis.column for axis in side) for side in sides]
        outside = tuple(a.attribute.may_drop and any(a.column not in m for m in mentioned) for a in axes)
        partition = cls(axes, outside)
        return partition if partition.count <= MOST_BOXES else None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of boxes along each column."""
        return tuple(a.bins.count + extra for a, extra in zip(self.axes, self.outside, strict=True))

    @property
    def count(self) -> int:
        """The number of boxes."""
        return math.prod(self.shape)

    @property
    def line(self) -> bool:
        """Whether the boxes lie on one line."""
        return len(self.axes) <= 1

    def places(self, axes: Iterable[Axis]) -> IntArray:
        """For every common box, the box of ``axes`` that holds it, or −1 if none does."""
        place, inside = np.zeros(self.shape, dtype=np.int64), np.ones(self.shape, dtype=np.bool_)
        columns = [axis.column for axis in self.axes]
        for axis in axes:
            at = columns.index(axis.column)
            fine = self.axes[at].bins
            along = axis.bins.assign(fine.first(np.arange(fine.count)))
            along = np.append(along, -1) if self.outside[at] else along
            along = along.reshape([-1 if i == at else 1 for i in range(len(columns))])
            place, inside = place * axis.bins.count + along, inside & (along >= 0)
        return np.where(inside, place, -1).ravel()

    def intervals(self, rows: Rows, axes: tuple[Axis, ...] | None) -> Intervals | None:
        """``rows`` over ``axes``, or over common boxes, as intervals of these; None if they are not."""
        if not (self.line and isinstance(rows, Intervals)):
            return None
        if axes is None:
            return rows
        places = self.places(axes)
        order = np.where(places < 0, rows.size, places)
        if (np.diff(order) < 0).any():
            return None
        starts = np.searchsorted(order, rows.starts, side="left")
        stops = np.maximum(np.searchsorted(order, rows.stops, side="left"), starts)
        return Intervals(self.count, starts, stops)

    def matrix(self, rows: Rows, axes: tuple[Axis, ...] | None) -> csr_array | None:
        """``rows`` over ``axes`` written out over common boxes; None if that takes too much room."""
        if axes is None:
            return rows.sparse()
        places = self.places(axes)
        inside = np.flatnonzero(places >= 0)
        where = csr_array(
            (np.ones(inside.size, dtype=np.int64), (places[inside], inside)), shape=(rows.size, self.count)
        )
        entries = np.bincount(places[inside], minlength=rows.size)
        if isinstance(rows, Intervals):
            cumulative = np.concatenate(([0], np.cumsum(entries)))
            written = int((cumulative[rows.stops] - cumulative[rows.starts]).sum())
            narrow = int((rows.stops - rows.starts).sum())
        else:
            narrow, written = rows.columns.size, int(entries[rows.columns].sum())
        return None if max(written, narrow) > LIMIT else csr_array(rows.sparse() @ where)


def refined(first: Bins, second: Bins) -> Bins | None:
    """The coarsest bins that refine both, in the order of the first; None if there are too many."""
    if first == second:
        return first
    if max(first.count, second.count) > MOST_BOXES:
        return None
    if first.contiguous and second.contiguous:
        starts = [bins.first(np.arange(bins.count)) for bins in (first, second)]
        return Bins.edges(first.size, np.union1d(*starts))
    if first.size > LIMIT:
        return None
    pairs = first.assignment() * second.count + second.assignment()
    return Bins.labels(np.unique(pairs, return_inverse=True)[1])


MOST_DENSE = 2_000
MOST_SPARSE = 10**5
TOLERANCE = 1e-6
_RANK = 1e-11
_CHUNK = 4 * 10**6

Adjoint = Callable[[FloatArray], FloatArray]


@final
@dataclass(frozen=True, eq=False)
class BoxEstimator(ReleaseEstimator):
    """Any questions from any rows. ``adjoint`` turns rows of W into rows of T, ``forward`` y into x̂."""

    rows: csr_array
    noise: RowNoise
    questions: csr_array
    adjoint: Adjoint = field(repr=False)
    forward: Adjoint = field(repr=False)

    @property
    def count(self) -> int:
        return int(self.questions.shape[0])

    @cached_property
    def _summary(self) -> tuple[FloatArray, FloatArray]:
        """The residual of every question, and the variance that each release contributes."""
        residuals, parts = np.zeros(self.count), np.zeros((self.noise.releases, self.count))
        step = max(1, _CHUNK // max(self.rows.shape))
        for begin in range(0, self.count, step):
            some = slice(begin, min(begin + step, self.count))
            asked = self.questions[some].toarray()
            weights = self.adjoint(asked)
            residuals[some] = np.abs(asked - weights @ self.rows).max(axis=1, initial=0.0)
            parts[:, some] = per_release(weights, self.noise)
        return residuals, parts

    @property
    def residuals(self) -> FloatArray:
        return self._summary[0]

    @cached_property
    def determined(self) -> BoolArray:
        largest = abs(self.questions).max(axis=1).toarray().ravel()
        return np.asarray(self.residuals <= TOLERANCE * np.where(largest > 0, largest, 1.0))

    @cached_property
    def parts(self) -> FloatArray:
        return np.where(self.determined, self._summary[1], np.inf)

    @cached_property
    def variances(self) -> FloatArray:
        return np.where(self.determined, self._summary[1].sum(axis=0), np.inf)

    def weights(self, questions: IntArray) -> FloatArray:
        return np.where(self.noise.noisy, self.adjoint(self.questions[questions].toarray()), 0.0)

    def apply(self, measured: FloatArray) -> FloatArray:
        batch = np.atleast_2d(measured)
        answers = (self.questions @ self.forward(batch).T).T
        return np.asarray(answers.reshape(*measured.shape[:-1], self.count))


def box_estimator(rows: csr_array, noise: RowNoise, questions: csr_array) -> BoxEstimator | None:
    """The estimator on merged boxes; None if there are too many, or too many are left open."""
    kept = _distinct_columns(csr_array(vstack((rows, questions))))
    rows, questions = csr_array(rows[:, kept].astype(np.float64)), csr_array(questions[:, kept])
    if kept.size <= MOST_DENSE:
        return BoxEstimator(rows, noise, questions, *_dense(rows, noise))
    if kept.size > MOST_SPARSE:
        return None
    found = _sparse(rows, noise)
    return None if found is None else BoxEstimator(rows, noise, questions, *found)


def _distinct_columns(matrix: csr_array) -> IntArray:
    """One column of each kind: equal columns are found by two random checks, and then compared."""
    stream = np.random.Generator(np.random.Philox(key=[0, matrix.shape[0]]))
    checks = stream.integers(1, 2**20, size=(2, matrix.shape[0])).astype(np.float64) @ matrix
    _, first, kind = np.unique(checks, axis=1, return_index=True, return_inverse=True)
    different = csr_array(matrix[:, first[kind.ravel()]] - matrix)
    if different.count_nonzero():
        return np.arange(matrix.shape[1], dtype=np.int64)
    return np.sort(first).astype(np.int64)


def _dense(rows: csr_array, noise: RowNoise) -> tuple[Adjoint, Adjoint]:
    """x̂ = X·y with X_N = (P·G·P)⁺P·NᵀΣ⁻¹, X_E = (I − X_N·N)·E⁺; P projects onto what E leaves open."""
    noisy = noise.noisy
    measured, exact = rows[noisy].toarray(), rows[~noisy].toarray()
    free = np.eye(rows.shape[1])
    known = np.linalg.pinv(exact, rcond=1e-10) if exact.size else np.zeros((rows.shape[1], exact.shape[0]))
    if exact.size:
        free -= known @ exact
    weighted = free @ (measured / noise.variances[noisy][:, None]).T
    values, vectors = scipy.linalg.eigh(weighted @ measured @ free)
    kept = values > _RANK * values.max(initial=0.0)
    solution = np.zeros((rows.shape[1], rows.shape[0]))
    from_noisy = (vectors[:, kept] / values[kept]) @ (vectors[:, kept].T @ weighted)
    solution[:, noisy] = from_noisy
    solution[:, ~noisy] = known - from_noisy @ (measured @ known)
    return (lambda asked: asked @ solution), (lambda batch: batch @ solution.T)


def _sparse(rows: csr_array, noise: RowNoise) -> tuple[Adjoint, Adjoint] | None:
    """The same by a sparse factorisation; None where the equations are singular, or take too much room.

    Every noisy row is divided by its deviation first, so that D is 1 for all of them.
    """
    boxes, deviations = rows.shape[1], np.sqrt(np.where(noise.noisy, noise.variances, 1.0))
    exact = np.flatnonzero(~noise.noisy)
    exact = exact[_distinct_columns(csr_array(rows[exact].T))] if exact.size else exact
    split = _short_and_long(rows, np.flatnonzero(noise.noisy), exact)
    if exact.size + np.count_nonzero(noise.noisy) < boxes or split is None:
        return None
    short, kept = split
    scaled = csr_array(rows / deviations[:, None])
    few, many = scaled[short], scaled[kept]
    normal: Any = csr_array(few.T) @ few
    noisy_ones = diags_array(np.where(noise.noisy[kept], -1.0, 0.0))
    system = csc_array(block_array([[normal, many.T], [many, noisy_ones]]) if kept.size else normal)
    try:
        factor = scipy.sparse.linalg.splu(system)
    except RuntimeError:  # exactly singular
        return None

    def adjoint(asked: FloatArray) -> FloatArray:
        right = np.zeros((system.shape[0], asked.shape[0]))
        right[:boxes] = asked.T
        solved = factor.solve(right)
        weights = np.zeros((asked.shape[0], rows.shape[0]))
        weights[:, short] = np.asarray(few @ solved[:boxes]).T
        weights[:, kept] = solved[boxes:].T
        return weights / deviations

    def forward(batch: FloatArray) -> FloatArray:
        measured = (batch / deviations).T
        right = np.concatenate((np.asarray(csr_array(few.T) @ measured[short]), measured[kept]))
        return np.asarray(factor.solve(np.ascontiguousarray(right))[:boxes].T)

    return adjoint, forward


def _short_and_long(rows: csr_array, noisy: IntArray, exact: IntArray) -> tuple[IntArray, IntArray] | None:
    """Noisy rows to be multiplied out, and those to be kept beside the exact ones: what takes least room.

    Multiplied out, a row of n boxes has n² entries; kept, n, and one for each other row that is kept. None
    if even that is too much.
    """
    entries = np.diff(rows.indptr).astype(np.float64)
    noisy = noisy[np.argsort(-entries[noisy], kind="stable")]
    longest = np.concatenate(([0.0], np.cumsum(entries[noisy])))
    squares = np.concatenate(([0.0], np.cumsum(entries[noisy] ** 2)))
    kept = np.arange(noisy.size + 1) + exact.size
    room = squares[-1] - squares + longest + entries[exact].sum() + kept.astype(np.float64) ** 2
    best = int(room.argmin())
    return None if room[best] > LIMIT else (noisy[best:], np.concatenate((noisy[:best], exact)))


@final
@dataclass(frozen=True, eq=False)
class Combination:
    """The best linear unbiased answers to ``questions`` from ``releases``."""

    releases: tuple[StoredRelease, ...]
    partition: Partition
    questions: Rows
    axes: tuple[Axis, ...]
    estimator: ReleaseEstimator
    complete: bool
    """Whether every release that was offered is used; if not, the question had a say in which are."""

    @property
    def count(self) -> int:
        """How many questions there are."""
        return self.estimator.count

    @property
    def determined(self) -> BoolArray:
        """Which questions follow by arithmetic."""
        return self.estimator.determined

    @property
    def variances(self) -> FloatArray:
        """The variance of every answer, exact for the discrete noise; infinite where not determined."""
        return self.estimator.variances

    @cached_property
    def exact(self) -> BoolArray:
        """Which answers carry no noise at all."""
        noise = self.estimator.noise.variances
        return np.asarray(self.variances <= 1e-12 * noise[noise > 0].min(initial=1.0))

    @cached_property
    def noisy_releases(self) -> tuple[int, ...]:
        """The releases whose noise the answers can contain."""
        return tuple(i for i, release in enumerate(self.releases) if not release.exact.all())

    @cached_property
    def fingerprint(self) -> str:
        """A name for the question and for all that was measured, without any value."""
        text = hashlib.sha256("|".join(release.fingerprint for release in self.releases).encode())
        places = self.partition.places(self.axes)
        asked = self.questions
        arrays = (
            (asked.starts, asked.stops)
            if isinstance(asked, Intervals)
            else (asked.columns, asked.entries, asked.pointers, np.array([asked.denominator]))
        )
        for array in (places, *arrays):
            text.update(array.tobytes())
        return text.hexdigest()

    def values(self) -> FloatArray:
        """The answers; NaN where one is not determined. The only use of what came out.

        Rows are counted in whole numbers, so what carries no noise is a whole number of the parts of its row.
        """
        measured = np.concatenate([release.values for release in self.releases]).astype(np.float64)
        parts = self.questions.denominator if isinstance(self.questions, Sparse) else 1
        found = self.estimator.apply(measured)
        found = np.where(self.exact, np.rint(found * parts) / parts, found)
        return np.where(self.determined, found, np.nan)


def combine(
    releases: Sequence[StoredRelease], axes: Sequence[Axis], workload: Workload | csr_array | Rows
) -> Combination | None:
    """``workload`` over the boxes of ``axes`` from ``releases`` of one snapshot; None if too large.

    Where the common boxes of all releases are too many, only those on the question's own columns are used.
    Releases with far more noise than the best are used only where they are needed (``MOST_APART``).
    """
    columns, questions = {axis.column for axis in axes}, rows_of(workload)
    own = [release for release in releases if release.columns <= columns]
    for used in (list(releases), own):
        comparable = _comparable(used)
        for some in (comparable, used) if len(comparable) < len(used) else (used,):
            combination = _combined(tuple(some), tuple(axes), questions) if some else None
            if combination is not None and (len(some) == len(used) or combination.determined.all()):
                return replace(combination, complete=len(some) == len(releases))
    return None


def _comparable(releases: Sequence[StoredRelease]) -> list[StoredRelease]:
    """Releases whose least noise is not too far above the least of all, and exact ones."""
    least = [release.scales[release.scales > 0].min(initial=np.inf) for release in releases]
    most = MOST_APART * min(least, default=np.inf)
    return [
        release for release, scale in zip(releases, least, strict=True) if scale <= most or np.isinf(scale)
    ]


def _combined(
    releases: tuple[StoredRelease, ...], axes: tuple[Axis, ...], questions: Rows
) -> Combination | None:
    partition = Partition.common([*(release.axes for release in releases), axes])
    if partition is None:
        return None
    estimator = estimate(partition, releases, questions, axes)
    return None if estimator is None else Combination(releases, partition, questions, axes, estimator, True)


def estimate(
    partition: Partition,
    releases: Sequence[StoredRelease],
    questions: Rows,
    axes: tuple[Axis, ...] | None = None,
) -> ReleaseEstimator | None:
    """The estimator that suits: the graph on cut points where all is intervals, least squares otherwise.

    Without ``axes`` the questions are about the common boxes themselves.
    """
    boxes = partition.count if axes is None else math.prod(axis.bins.count for axis in axes)
    if questions.size != boxes:
        raise SizeMismatch(f"The questions speak of {questions.size:,} boxes, the axes of {boxes:,}.")
    sides = [*((release.rows, release.axes) for release in releases), (questions, axes)]
    lines = [found for rows, on in sides if (found := partition.intervals(rows, on)) is not None]
    if len(lines) == len(sides):
        *measured, wanted = lines
        starts = np.concatenate([line.starts for line in measured])
        stops = np.concatenate([line.stops for line in measured])
        return LineEstimator(Intervals(partition.count, starts, stops), noise_of(releases), wanted)
    matrices = [matrix for rows, on in sides if (matrix := partition.matrix(rows, on)) is not None]
    if len(matrices) < len(sides):
        return None
    denominator = questions.denominator if isinstance(questions, Sparse) else 1
    asked = csr_array(matrices[-1] / denominator)
    return box_estimator(csr_array(vstack(matrices[:-1])), noise_of(releases), asked)


def noise_of(releases: Sequence[StoredRelease]) -> RowNoise:
    """The noise of all rows, releases one after another.

    Where scales are too far apart for floating point, the least count as larger than they are: the weights
    are then those for more noise than there is, and no variance is understated.
    """
    variances = np.concatenate([release.variances for release in releases])
    floor = variances.max(initial=0.0) / (2 * MOST_APART) ** 2
    return RowNoise(
        np.where(variances > 0, np.maximum(variances, floor), 0.0),
        np.concatenate([release.scales for release in releases]),
        np.repeat(np.arange(len(releases)), [release.rows.count for release in releases]),
        len(releases),
    )
