"""A policy graph that nobody had thought of: one class, and every part of the house takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import pytest
from numpy.typing import ArrayLike

import blowfishdb as bf
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.graphs import PolicyGraph
from tests.core.graph_contract import check_graph


@final
@dataclass(frozen=True, eq=False)
class Circle(PolicyGraph):
    """Hours of a day, months of a year: neighbours are hidden, and the last adjoins the first."""

    kind = "circle"

    size: int

    @property
    def edge_count(self) -> int:
        return self.size if self.size > 2 else self.size - 1

    def components(self) -> Bins:
        return Bins.width(self.size, self.size)

    def describe(self) -> str:
        return "neighbours on a circle"

    def adjacent(self, u: ArrayLike, v: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        apart = (np.asarray(u) - np.asarray(v)) % self.size
        return (apart == 1) | (apart == self.size - 1)

    def steps(self, u: int, v: int) -> int:
        return min((u - v) % self.size, (v - u) % self.size)

    def edge_blocks(self) -> Iterator[IntArray]:
        cells = np.arange(self.size, dtype=np.int64)
        pairs = np.sort(np.stack((cells, (cells + 1) % self.size), axis=1), axis=1)
        yield np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)

    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
        return None


@pytest.mark.parametrize("size", [2, 3, 4, 7, 12])
def test_it_passes_the_contract(size: int) -> None:
    apart = (np.arange(size)[:, None] - np.arange(size)) % size
    check_graph(Circle(size), (apart == 1) | (apart == size - 1), np.random.default_rng(size))


def test_a_dataset_is_asked_under_it(tmp_path: Path) -> None:
    (tmp_path / "born.csv").write_text("month\n" + "\n".join(str(1 + i % 12) for i in range(240)) + "\n")
    domain = bf.Domain(month=bf.Integer(1, 12))
    with bf.open(tmp_path / "w.blowfish") as workspace:
        born = workspace.add_dataset("born", tmp_path / "born.csv", domain=domain)
        born.publish(bf.Policy.by_column(domain, {"month": Circle(12)}))
        born.budget.set(10)
        answer = born["month"].histogram().accurate_to(10).ask()
        assert np.abs(answer.values - 20).max() <= 30
        assert "'month'" in " ".join(born.guarantee().paragraphs)
    with bf.open(tmp_path / "w.blowfish") as again:
        assert again["born"].policy.graph.describe() == Circle(12).describe()
        assert again["born"]["month"].histogram().accurate_to(10).quote().owned
