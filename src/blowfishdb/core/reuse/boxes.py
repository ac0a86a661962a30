"""Any rows over any boxes: weighted least squares with exact rows eliminated (REUSE §1, General).

Boxes that no row and no question tells apart are merged first. Up to 2,000 boxes the normal equations are
solved densely, whatever is left open. Beyond, only if the rows leave nothing open: the equations

    | NᵀΣ⁻¹N  Eᵀ | |x|   | NᵀΣ⁻¹y |        N noisy rows, E exact rows
    |    E    0  | |·| = |   e    |

are then regular, and sparse. Either way W − T·A is computed at the end, so a numerically wrong rank can only
make a question count as not determined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import block_array, csc_array, csr_array, vstack
from scipy.sparse.linalg import splu

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.reuse.estimator import Estimator, Noise, per_release

MOST_DENSE = 2_000
MOST_SPARSE = 10**5
TOLERANCE = 1e-6
_RANK = 1e-11
_CHUNK = 4 * 10**6

Adjoint = Callable[[FloatArray], FloatArray]


@final
@dataclass(frozen=True, eq=False)
class BoxEstimator(Estimator):
    """Any questions from any rows. ``adjoint`` turns rows of W into rows of T, ``forward`` y into x̂."""

    rows: csr_array
    noise: Noise
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


def box_estimator(rows: csr_array, noise: Noise, questions: csr_array) -> BoxEstimator | None:
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


def _dense(rows: csr_array, noise: Noise) -> tuple[Adjoint, Adjoint]:
    """x̂ = X·y with X_N = (P·G·P)⁺P·NᵀΣ⁻¹, X_E = (I − X_N·N)·E⁺; P projects onto what E leaves open."""
    noisy = noise.noisy
    measured, exact = rows[noisy].toarray(), rows[~noisy].toarray()
    free = np.eye(rows.shape[1])
    known = np.linalg.pinv(exact, rcond=1e-10) if exact.size else np.zeros((rows.shape[1], exact.shape[0]))
    if exact.size:
        free -= known @ exact
    weighted = free @ (measured / noise.variances[noisy][:, None]).T
    values, vectors = eigh(weighted @ measured @ free)
    kept = values > _RANK * values.max(initial=0.0)
    solution = np.zeros((rows.shape[1], rows.shape[0]))
    from_noisy = (vectors[:, kept] / values[kept]) @ (vectors[:, kept].T @ weighted)
    solution[:, noisy] = from_noisy
    solution[:, ~noisy] = known - from_noisy @ (measured @ known)
    return (lambda asked: asked @ solution), (lambda batch: batch @ solution.T)


def _sparse(rows: csr_array, noise: Noise) -> tuple[Adjoint, Adjoint] | None:
    """The same by a sparse factorisation; None where the equations are singular."""
    boxes, noisy = rows.shape[1], np.flatnonzero(noise.noisy)
    exact = np.flatnonzero(~noise.noisy)
    exact = exact[_distinct_columns(csr_array(rows[exact].T))] if exact.size else exact
    measured, public = rows[noisy], rows[exact]
    weighted = csr_array(measured / noise.variances[noisy][:, None]).T
    normal: Any = weighted @ measured
    system = csc_array(block_array([[normal, public.T], [public, None]]) if exact.size else normal)
    try:
        factor = splu(system)
    except RuntimeError:  # exactly singular
        return None

    def adjoint(asked: FloatArray) -> FloatArray:
        right = np.zeros((system.shape[0], asked.shape[0]))
        right[:boxes] = asked.T
        solved = factor.solve(right)
        weights = np.zeros((asked.shape[0], rows.shape[0]))
        weights[:, noisy] = np.asarray(weighted.T @ solved[:boxes]).T
        weights[:, exact] = solved[boxes:].T
        return weights

    def forward(batch: FloatArray) -> FloatArray:
        right = np.concatenate((np.asarray(weighted @ batch[:, noisy].T), batch[:, exact].T))
        return np.asarray(factor.solve(np.ascontiguousarray(right))[:boxes].T)

    return adjoint, forward
