"""k-means as published in [B14] §6, NOT PRIVATE, and without any noise, NOT PRIVATE: only to compare with.

The published calibration takes Lemma 6.1 for the sums: a move of length θ is said to change them by at most
2θ. A record that crosses from one cluster into another changes two sums by its whole distance from the
origin, so this noise is too small wherever the policy is not the full one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from sklearn.cluster import KMeans

from blowfishdb.core.noise import Noise
from blowfishdb.core.questions.clusters import Centroids, PointSpace
from blowfishdb.mechanisms.kmeans.clustering import nearest

ROUNDS = 10


@dataclass(frozen=True, eq=False)
class Data:
    """Rows of cells, how often each occurs, and the best clusters found without noise."""

    name: str
    space: PointSpace
    cells: np.ndarray
    times: np.ndarray

    @property
    def rows(self) -> int:
        return int(self.times.sum())

    def objective(self, centroids: np.ndarray) -> float:
        points = self.cells.astype(np.float64)
        apart = ((points - centroids[nearest(points, centroids)]) ** 2).sum(axis=1)
        return float((self.times * apart).sum())


def not_private_best(data: Data, clusters: int) -> float:
    """The objective without any noise: the best of ten runs of scikit-learn's k-means."""
    found = KMeans(clusters, n_init=10, random_state=2014).fit(data.cells, sample_weight=data.times)
    return data.objective(found.cluster_centers_)


def not_private_published(
    data: Data, clusters: int, sums_change: int, size_change: int, epsilon: Fraction, noise: Noise, seed: int
) -> np.ndarray:
    """SuLQ k-means with noise for ``sums_change`` = 2θ: ten rounds, half of each for sizes and for sums."""
    *_, last = _rounds(data, clusters, sums_change, size_change, epsilon, noise, seed)
    return last


def _rounds(
    data: Data, clusters: int, sums_change: int, size_change: int, epsilon: Fraction, noise: Noise, seed: int
) -> Iterator[np.ndarray]:
    stream, half = np.random.default_rng(seed), epsilon / ROUNDS / 2
    cells = stream.uniform(0, data.space.last, (clusters, data.space.axes))
    for _ in range(ROUNDS):
        labels = Centroids.nearest_to(data.space, cells).assign(data.cells)
        sizes = np.bincount(labels, data.times, minlength=clusters)
        sums = np.column_stack(
            [np.bincount(labels, data.times * column, minlength=clusters) for column in data.cells.T]
        )
        if size_change:
            sizes = sizes + noise.discrete_laplace(size_change / half, clusters)
        if sums_change:
            sums = sums + noise.discrete_laplace(sums_change / half, sums.shape)
        cells = np.clip(sums / np.maximum(sizes, 1)[:, None], 0, data.space.last)
        yield cells
