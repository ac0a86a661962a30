"""How small the error of any unbiased linear strategy can be.

For a workload with Gram matrix M = WᵀW and a policy graph G, every data-independent ε-private release that
adds independent noise to linear measurements and decodes without bias has total squared error at least

    (2/ε²) · (tr √(M^½ L_d M^½))²      for every weighting d ≥ 0, Σ d = 1, of the edges of G,

L_d the weighted Laplacian; uniform d is the SVD bound 2‖W_G‖_*²/|E|. *Why*: let A be a strategy of
sensitivity 1, scaled so that its noise has variance 2. Each edge has ‖A(e_u − e_v)‖₂ ≤ ‖A(e_u − e_v)‖₁ ≤ 1,
so the average of the squares, tr(A L_d Aᵀ), is at most 1; the error is 2‖W A⁺‖_F²; and by Cauchy–Schwarz for
the trace norm ‖W L_d^½‖_* = ‖W A⁺ · A L_d^½‖_* ≤ ‖W A⁺‖_F ‖A L_d^½‖_F.

It replaces an L1 norm by an L2 norm, so ratio 1 is in general out of reach, and it says nothing about biased
or data-dependent mechanisms. The trace is concave in d; we ascend it, and any d reached is a valid bound.

A lower bound on the error of unbiased linear strategies on large grids, without N×N matrices.

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
import math
from functools import reduce

import numpy as np
import scipy
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import InvalidGraph, InvalidWorkload, SizeMismatch, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.graphs.grid_moves import GridMoves, Move, grid_shape
from blowfishdb.core.sensitivity import check_sizes
from blowfishdb.core.workloads import Histogram, Workload

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
    if workload.factors and workload.axes == shape:
        return workload.factors
    if workload.one_per_cell:
        return tuple(Histogram(n) for n in shape)
    return (workload,) if len(shape) == 1 else None


def _root_diagonal(factor: Workload) -> FloatArray:
    """The diagonal of M^½ in the orthonormal DCT-II basis."""
    values, vectors = scipy.linalg.eigh(factor.gram().astype(np.float64) / factor.denominator**2)
    spectrum = scipy.fft.dctn(vectors, axes=(0,), norm="ortho")
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


_MOST_CELLS = 2_000
_TIGHTENED_UP_TO = 256
_RELATIVE_ZERO = 1e-12
_CLOSE_ENOUGH = 1.001


def lower_bound(workload: Workload, graph: PolicyGraph) -> float:
    """The least total squared error at ε = 1 of an unbiased linear strategy, or something below it.

    Up to 256 cells the edge weights are optimised, up to 2,000 they are uniform (the SVD bound); on grids of
    any size there is the bound of :mod:`.grid_bound`, on the θ = 1 line a closed form; beyond, ``TooLarge``.
    Any policy graph will do. A component's total is public, and the
    bound knows: only differences along edges count. Where presence is hidden, ⊥ is a cell that nobody asks
    about, so nothing is public.

    >>> bf.lower_bound(bf.workloads.Cumulative(100), bf.graphs.Threshold(100, 1))
    198.0
    """
    check_sizes(workload, graph)
    if graph.edge_count == 0:
        return 0.0
    closed = _on_the_unit_line(workload, graph)
    if closed is not None and (workload.prefixes or graph.size > _TIGHTENED_UP_TO):
        return closed
    on_grid = grid_bound(workload, graph) if graph.size > _TIGHTENED_UP_TO else None
    if on_grid is not None and graph.size > _MOST_CELLS:
        return on_grid
    _check_cells(graph.size)
    gram = np.zeros((graph.size, graph.size))
    cells = workload.size
    gram[:cells, :cells] = np.asarray(workload.gram(), dtype=np.float64) / workload.denominator**2
    dense = bound(gram, graph.edges(), steps=60 if graph.size <= _TIGHTENED_UP_TO else 1)
    return max(dense, on_grid or 0.0)


def bound(gram: ArrayLike, edges: ArrayLike, *, steps: int = 60) -> float:
    """The tightened lower bound on the total squared error at ε = 1.

    ``gram`` is WᵀW over the cells, ``edges`` lists the pairs of cells between which a record may move. The
    weights d start uniform (the SVD bound) and grow in proportion to each edge's marginal value, the
    classical multiplicative ascent; ``steps=1`` is the SVD bound itself. Dense: O(steps·k³).
    """
    matrix, pairs = _checked(gram, edges)
    if len(pairs) == 0:
        return 0.0
    root = _square_root(matrix)
    weights = np.full(len(pairs), 1.0 / len(pairs))
    best = 0.0
    for _ in range(steps):
        trace, values = _trace_and_edge_values(root, pairs, weights)
        best = max(best, trace)
        # Σ d·value = trace, so the largest value over the trace bounds what other weights can still gain.
        if trace == 0.0 or values.max() <= _CLOSE_ENOUGH * trace:
            break
        weights *= values / trace
        weights /= weights.sum()
    return 2.0 * best**2


# --- closed forms: θ = 1 with uniform edge weights, exact for every k -------------------------------


def ordered_prefix_bound(k: int) -> float:
    """All prefixes, θ = 1: 2(k−1), attained by the ordered mechanism."""
    return 2.0 * (k - 1)


def ordered_ranges_bound(k: int) -> float:
    """All ranges, θ = 1: over the edges M is (k+1)I − 11ᵀ, with eigenvalues k+1 (k−2 times) and 2."""
    if k < 2:
        return 0.0
    return 2.0 * ((k - 2) * math.sqrt(k + 1) + math.sqrt(2)) ** 2 / (k - 1)


def ordered_identity_bound(k: int) -> float:
    """Every cell, θ = 1: over the edges M has eigenvalues 4 sin²(πj/2k), and Σ 2 sin = cot(π/4k) − 1."""
    if k < 2:
        return 0.0
    return 2.0 * (1.0 / math.tan(math.pi / (4 * k)) - 1.0) ** 2 / (k - 1)


def _on_the_unit_line(workload: Workload, graph: PolicyGraph) -> float | None:
    """The closed form for a line on which people move one cell at a time."""
    if graph.line_reach != 1:
        return None
    if workload.prefixes:
        return ordered_prefix_bound(workload.size)
    if workload.every_range:
        return ordered_ranges_bound(workload.size)
    return ordered_identity_bound(workload.size) if workload.one_per_cell else None


# --- linear algebra ---------------------------------------------------------------------------------


def _checked(gram: ArrayLike, edges: ArrayLike) -> tuple[FloatArray, IntArray]:
    matrix = np.asarray(gram, dtype=np.float64)
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise SizeMismatch("A workload's Gram matrix must be square, one row and column per cell.")
    _check_cells(len(matrix))
    if not np.all(np.isfinite(matrix)) or not np.allclose(matrix, matrix.T):
        raise InvalidWorkload("A workload's Gram matrix must be finite and symmetric.")
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= len(matrix)):
        raise InvalidGraph("An edge names a cell that does not exist.")
    return matrix, pairs


def _check_cells(cells: int) -> None:
    if cells > _MOST_CELLS:
        raise TooLarge(f"The bound needs dense algebra on {cells:,} cells.", fixes=("fewer, wider bins",))


def _square_root(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -1e-9 * max(1.0, values[-1]):
        raise InvalidWorkload("A workload's Gram matrix has no negative eigenvalue.")
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def _trace_and_edge_values(
    root: FloatArray, pairs: IntArray, weights: FloatArray
) -> tuple[float, FloatArray]:
    """t = tr √(R L_d R) and, for every edge, 2·∂t/∂d_e = bᵀ R (R L_d R)^(−½) R b with b = e_u − e_v."""
    u, v = pairs[:, 0], pairs[:, 1]
    size = len(root)
    off_diagonal = np.bincount(u * size + v, weights=weights, minlength=size * size).reshape(size, size)
    off_diagonal += off_diagonal.T
    laplacian = np.diag(off_diagonal.sum(axis=1)) - off_diagonal
    values, vectors = np.linalg.eigh(root @ laplacian @ root)
    present = values > _RELATIVE_ZERO * max(values[-1], 0.0)
    singular = np.sqrt(values[present])
    spread = root @ vectors[:, present]
    inverse = (spread / singular) @ spread.T
    diagonal = np.diagonal(inverse)
    return float(singular.sum()), diagonal[u] + diagonal[v] - 2.0 * inverse[u, v]
