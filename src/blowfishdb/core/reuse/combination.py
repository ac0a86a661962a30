"""Combination: whether questions follow from stored releases, and how (REUSE §1).

Everything here but ``values`` is a function of what was measured, never of what came out: a decision that
looked at noisy values would make quotes depend on them, and intervals too short.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array, vstack

from blowfishdb.core.arrays import BoolArray, FloatArray
from blowfishdb.core.axis import Axis
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.core.reuse.boxes import box_estimator
from blowfishdb.core.reuse.estimator import Estimator, Noise
from blowfishdb.core.reuse.line import LineEstimator
from blowfishdb.core.reuse.partition import Partition
from blowfishdb.core.reuse.rows import Intervals, Rows, Sparse, rows_of
from blowfishdb.core.reuse.stored import StoredRelease
from blowfishdb.core.workloads import Workload


@final
@dataclass(frozen=True, eq=False)
class Combination:
    """The best linear unbiased answers to ``questions`` from ``releases``."""

    releases: tuple[StoredRelease, ...]
    partition: Partition
    questions: Rows
    axes: tuple[Axis, ...]
    estimator: Estimator
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
    """
    columns = {axis.column for axis in axes}
    own = [release for release in releases if release.columns <= columns]
    for used in (list(releases), own):
        found = _combined(tuple(used), tuple(axes), rows_of(workload)) if used else None
        if found is not None:
            return replace(found, complete=len(used) == len(releases))
    return None


def _combined(
    releases: tuple[StoredRelease, ...], axes: tuple[Axis, ...], questions: Rows
) -> Combination | None:
    partition = Partition.common([*(release.axes for release in releases), axes])
    if partition is None:
        return None
    estimator = estimate(partition, releases, questions, axes)
    return None if estimator is None else Combination(releases, partition, questions, axes, estimator, True)


def estimate(
    partition: Partition, releases: Sequence[StoredRelease], questions: Rows, axes: tuple[Axis, ...]
) -> Estimator | None:
    """The estimator that suits: the graph on cut points where all is intervals, least squares otherwise."""
    boxes = math.prod(axis.bins.count for axis in axes)
    if questions.size != boxes:
        raise SizeMismatch(f"The questions speak of {questions.size:,} boxes, the axes of {boxes:,}.")
    sides = [*((release.rows, release.axes) for release in releases), (questions, axes)]
    lines = [found for rows, on in sides if (found := partition.intervals(rows, on)) is not None]
    if len(lines) == len(sides):
        return _on_line(partition, lines[:-1], noise_of(releases), lines[-1])
    matrices = [matrix for rows, on in sides if (matrix := partition.matrix(rows, on)) is not None]
    if len(matrices) < len(sides):
        return None
    denominator = questions.denominator if isinstance(questions, Sparse) else 1
    asked = csr_array(matrices[-1] / denominator)
    return box_estimator(csr_array(vstack(matrices[:-1])), noise_of(releases), asked)


def estimator_of(
    partition: Partition, releases: Sequence[StoredRelease], questions: Rows
) -> Estimator | None:
    """The same for questions about the common boxes themselves."""
    lines = [found for r in releases if (found := partition.intervals(r.rows, r.axes)) is not None]
    if len(lines) == len(releases) and isinstance(questions, Intervals):
        return _on_line(partition, lines, noise_of(releases), questions)
    matrices = [matrix for r in releases if (matrix := partition.matrix(r.rows, r.axes)) is not None]
    if len(matrices) < len(releases):
        return None
    return box_estimator(csr_array(vstack(matrices)), noise_of(releases), csr_array(questions.sparse() * 1.0))


def _on_line(
    partition: Partition, lines: Sequence[Intervals], noise: Noise, questions: Intervals
) -> LineEstimator:
    starts, stops = (
        np.concatenate([line.starts for line in lines]),
        np.concatenate([line.stops for line in lines]),
    )
    return LineEstimator(Intervals(partition.count, starts, stops), noise, questions)


def noise_of(releases: Sequence[StoredRelease]) -> Noise:
    """The noise of all rows, releases one after another."""
    return Noise(
        np.concatenate([release.variances for release in releases]),
        np.concatenate([release.scales for release in releases]),
        np.repeat(np.arange(len(releases)), [release.rows.count for release in releases]),
        len(releases),
    )
