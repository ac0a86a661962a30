"""A lower bound on the error of unbiased linear strategies on large grids, without N×N matrices.

For every choice of edge weights d in the simplex the total squared error at ε = 1 is at least
2·(tr √(M^½ L_d M^½))², with M = WᵀW and L_d the weighted Laplacian (THEORY §4). Take the edges of the
*reflected* moves by δ: a step that leaves the grid is folded back at the border, which only makes it
shorter, so it is still an edge of the policy (or none). Their Laplacian is (2/N)(I − S_δ), and S_δ is
diagonal in the DCT-II basis with eigenvalue Π_i cos(π p_i δ_i / k_i). Since the nuclear norm of L^½M^½ is at
least its trace in any orthonormal basis,

    error ≥ (4/N)·(Σ_p Π_i h_i(p_i) · √(Σ_δ α_δ (1 − Π_i cos(π p_i δ_i/k_i))))²

with h_i the diagonal of M_i^½ in that basis and any α in the simplex. A uniformly random jump along an
axis, possible where the policy reaches across it, replaces its cosine by [p_i = 0].
"""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
from scipy.fft import dctn
from scipy.linalg import eigh

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.grid_moves import GridMoves, Move, grid_shape
from blowfishdb.core.workloads import Histogram, Workload
from blowfishdb.core.workloads import Product as ProductWorkload

_ROUNDS = 60
_WORK = 4 * 10**7  # cells × displacements × rounds


def grid_bound(workload: Workload, graph: PolicyGraph) -> float | None:
    """A lower bound on the total squared error at ε = 1 (continuous noise); None if the form does not apply.

    *Applies* to products of one workload per axis under the policies of :class:`GridMoves`. *Theorem*:
    THEORY §11; it is an L2 relaxation, so a ratio of 1 is in general not attainable. Measured at 0.79–1.00
    of the dense bound. Any weights α give a valid bound; more rounds of the ascent only tighten it.
    """
    shape = grid_shape(workload, graph)
    moves = GridMoves.of(graph, shape)
    factors = _factors(workload, shape)
    if moves is None or factors is None:
        return None
    if not moves.extremes:
        return 0.0
    first = {axis: factors.index(factor) for axis, factor in enumerate(factors)}  # equal axes: one root
    roots = {axis: _root_diagonal(factors[axis]) for axis in set(first.values())}
    weights = reduce(np.multiply.outer, [roots[at] for at in first.values()]).ravel()
    changes = np.stack([_change(move, shape) for move in _chosen(moves)])
    return float(4 / graph.size * _maximum(weights, changes) ** 2)


def _factors(workload: Workload, shape: tuple[int, ...]) -> tuple[Workload, ...] | None:
    if isinstance(workload, ProductWorkload) and workload.shape == shape:
        return workload.factors
    if isinstance(workload, Histogram):
        return tuple(Histogram(n) for n in shape)
    return (workload,) if len(shape) == 1 else None


def _root_diagonal(factor: Workload) -> FloatArray:
    """The diagonal of M^½ in the orthonormal DCT-II basis."""
    values, vectors = eigh(factor.gram().astype(np.float64) / factor.denominator**2)
    spectrum = dctn(vectors, axes=(0,), norm="ortho")
    return np.asarray(spectrum**2 @ np.sqrt(np.maximum(values, 0.0)))


def _chosen(moves: GridMoves) -> list[Move]:
    """A few displacements suffice: each axis stays, or moves by one, half, most or all of its reach."""
    chosen: dict[Move, None] = {}
    spread = moves.extremes[:: max(1, len(moves.extremes) // 8)]
    for extreme in (*spread, moves.extremes[-1]):
        steps = (sorted({0, min(1, reach), (reach + 1) // 2, reach - reach // 4, reach}) for reach in extreme)
        chosen.update(dict.fromkeys(move for move in itertools.product(*steps) if any(move)))
    return list(chosen)


def _change(move: Move, shape: tuple[int, ...]) -> FloatArray:
    """1 − Π cos(π p δ/k) for every frequency."""
    cosines = [_cosine(step, cells) for step, cells in zip(move, shape, strict=True)]
    return np.asarray(1.0 - reduce(np.multiply.outer, cosines).ravel())


def _cosine(step: int, cells: int) -> FloatArray:
    if step and step == cells - 1:  # across the whole axis: a uniformly random jump is allowed
        return np.asarray(np.eye(1, cells)[0])
    return np.asarray(np.cos(np.pi * np.arange(cells) * step / cells))


def _maximum(weights: FloatArray, changes: FloatArray) -> float:
    """max over α of Σ_p h_p √(Σ_δ α_δ c_δp), concave: the multiplicative update never decreases it."""
    rounds = int(np.clip(_WORK // changes.size, 4, _ROUNDS))
    alpha = np.full(len(changes), 1 / len(changes))
    best = 0.0
    for _ in range(rounds):
        roots = np.sqrt(np.maximum(alpha @ changes, 0.0))
        value = float(weights @ roots)
        best = max(best, value)
        slopes = changes @ np.divide(weights, roots, out=np.zeros_like(roots), where=roots > 0)
        alpha = alpha * slopes / value if value > 0 else alpha
        alpha /= alpha.sum()
    return best
