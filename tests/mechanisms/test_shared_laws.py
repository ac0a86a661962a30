"""Laws of noise that processes share: numbers only, believed where they are whole and of the same plan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from blowfishdb.adapters.laws import LawFolder
from blowfishdb.core import graphs, workloads
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.mechanisms.linear import simulation
from blowfishdb.mechanisms.linear.simulation import VERSION, Simulation, share_laws
from blowfishdb.mechanisms.optimized import Optimized

CLOSE = Accuracy(20.5, 0.05)
"""So close that discrete noise has to be certified."""


def plan(size: int = 12, theta: int = 11):
    return Optimized().plan(workloads.Cumulative(size), graphs.Threshold(size, theta))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[LawFolder]:
    shared = LawFolder(tmp_path, VERSION)
    share_laws(shared)
    yield shared
    share_laws(None)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was simulated, in order."""
    noted: list[str] = []
    bounds, certified = Simulation._simulated_bounds, Simulation._certified
    monkeypatch.setattr(
        Simulation, "_simulated_bounds", lambda self, *said: noted.append("bounds") or bounds(self, *said)
    )
    monkeypatch.setattr(
        Simulation, "_certified", lambda self, *said: noted.append("certificate") or certified(self, *said)
    )
    return noted


def test_what_one_process_has_simulated_the_next_looks_up(folder: LawFolder, simulated: list[str]) -> None:
    price = plan().simulation.epsilon(CLOSE)
    assert simulated.count("bounds") == 1 and "certificate" in simulated
    simulated.clear()
    assert plan().simulation.epsilon(CLOSE) == price
    assert simulated == []


def test_sharing_changes_no_price(tmp_path: Path) -> None:
    accuracies = [Accuracy(alpha, 0.05) for alpha in (3.5, 9, 20.5, 21, 60, 400)]
    alone = [plan().simulation.epsilon(each) for each in accuracies]
    share_laws(LawFolder(tmp_path, VERSION))
    try:
        first, second = ([plan().simulation.epsilon(each) for each in accuracies] for _ in range(2))
    finally:
        share_laws(None)
    assert alone == first == second


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-7],
        lambda text: text.replace("2", "3", 1),
        lambda text: json.dumps({**json.loads(text), "sum": "0" * 64}),
        lambda text: "[]",
        lambda text: "",
    ],
    ids=["cut", "changed", "unsigned", "something else", "empty"],
)
def test_what_is_damaged_is_simulated_again(folder, simulated, tmp_path, damage) -> None:
    price = plan().simulation.epsilon(CLOSE)
    (file,) = tmp_path.glob("*.law")
    file.write_text(damage(file.read_text()))
    simulated.clear()
    assert plan().simulation.epsilon(CLOSE) == price
    assert "bounds" in simulated


def test_the_law_of_another_plan_or_version_is_none(folder, simulated, tmp_path) -> None:
    small, large = plan(), plan(theta=3)
    assert small.simulation.key != large.simulation.key
    price = large.simulation.epsilon(CLOSE)
    share_laws(None)
    alone = plan().simulation.epsilon(CLOSE)
    share_laws(folder)
    (tmp_path / f"{large.simulation.key}.law").rename(tmp_path / f"{small.simulation.key}.law")
    simulated.clear()
    assert plan().simulation.epsilon(CLOSE) == alone != price
    assert "bounds" in simulated
    assert LawFolder(tmp_path, "another").recall(small.simulation.key) == {}


def test_there_are_only_so_many(tmp_path: Path) -> None:
    few = LawFolder(tmp_path, VERSION, most=3)
    for number in range(8):
        few.keep(f"{number:064}", {"bounds": (1.0, 2.0)})
    assert len(list(tmp_path.iterdir())) == 3


def test_a_folder_that_is_gone_costs_time_and_nothing_else(tmp_path: Path) -> None:
    share_laws(LawFolder(tmp_path / "gone", VERSION))
    try:
        assert plan().simulation.epsilon(CLOSE) > plan().simulation.epsilon(Accuracy(25, 0.05))
    finally:
        share_laws(None)


def test_close_accuracies_share_a_certificate(simulated: list[str]) -> None:
    law = plan().simulation
    prices = [law.epsilon(Accuracy(20 + step / 1000, 0.05)) for step in range(50)]
    assert simulated.count("certificate") < 12
    assert prices == sorted(prices, reverse=True)


def test_a_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "_MOST_REMEMBERED", 5)
    law = plan().simulation
    prices = [law.epsilon(Accuracy(5.0 + step, 0.05)) for step in range(10)]
    assert len(law._numbers) <= 5
    assert prices == [plan().simulation.epsilon(Accuracy(5.0 + step, 0.05)) for step in range(10)]
