"""What a workspace charged, against what its answers tell apart between every two neighbouring rows."""

from __future__ import annotations

import math
from pathlib import Path

import duckdb
import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core.errors import BlowfishError
from blowfishdb.mechanisms.losses import ByRows
from blowfishdb.mechanisms.total_loss import known_rows
from blowfishdb.service.policies import History
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.embedded import Workspace
from tests.neighbouring_rows import most_lost

SIZES = {"a": 3, "b": 2, "c": 3}


def some_domain(rng: np.random.Generator) -> bf.Domain:
    return bf.Domain.of(
        {
            name: bf.Integer(0, size - 1, outside=str(rng.choice(["clamp", "drop"])))
            for name, size in SIZES.items()
        }
    )


def some_policy(rng: np.random.Generator, domain: bf.Domain) -> bf.Policy:
    """Lines, partitions, everything or nothing hidden; jointly or one at a time, presence hidden or not."""
    kinds = {
        name: [
            bf.graphs.Threshold(size, 1),
            bf.graphs.Full(size),
            bf.graphs.Explicit(size, ()),
            bf.graphs.Partitioned(bf.Bins.width(size, 2)),
        ]
        for name, size in SIZES.items()
    }
    graphs = {name: kinds[name][rng.integers(4)] for name in SIZES}
    joint, hidden = bool(rng.integers(2)), bool(rng.integers(2))
    return bf.Policy.by_column(domain, graphs, joint=joint, hide_presence=hidden)


def some_question(rng: np.random.Generator, ws: Workspace) -> Asking:
    rows = ws["t"]
    if rng.integers(2):
        column = str(rng.choice(list(SIZES)))
        rows = rows.where(bf.col(column) >= int(rng.integers(1, SIZES[column])))
    column = str(rng.choice(list(SIZES)))
    kind = rng.integers(4)
    if kind == 0:
        return rows[column].histogram()
    if kind == 1:
        return rows[column].cumulative()
    if kind == 2:
        return rows[column].sum()
    return rows["a", "b"].histogram()


def on_terms(rng: np.random.Generator, question: Asking) -> Asking:
    named = str(rng.choice(["laplace", "laplace-cells", "best"]))
    return question.spend(str(rng.choice(["0.5", "1", "3"]))).using(named)


def releases(history: History) -> list[ByRows]:
    """What is known of the rows of every release that lost something."""
    return [rows for kernel in history.kernels if (rows := known_rows(kernel)) is not None]


def opened(rng: np.random.Generator, place: Path, people: int) -> Workspace:
    rows = place / "rows.duckdb"
    if not rows.exists():
        with duckdb.connect(str(rows)) as connection:
            connection.execute(
                "CREATE TABLE t AS SELECT i AS k, i // 3 AS p, i % 5 AS a, i % 3 AS b, i % 4 AS c "
                "FROM range(40) t(i)"
            )
    ws = bf.open(place / "work.blowfish")
    whose = {"person": "p", "rows_per_person": people, "row_key": "k"} if people > 1 else {}
    ws.add_dataset("t", rows, domain=some_domain(rng), table="t", **whose)  # type: ignore[arg-type]
    ws.set_budget("t", bf.Epsilon(1000))
    return ws


@pytest.mark.parametrize("seed", range(12))
def test_no_history_loses_more_than_it_is_charged(seed: int, tmp_path: Path) -> None:
    """Single questions, baskets and changes of policy: under every promise what was lost is accounted for."""
    rng = np.random.default_rng(seed)
    people = int(rng.integers(1, 4))
    with opened(rng, tmp_path, people) as ws:
        domain = ws.facts("t").domain
        for step in range(3):
            if step != 1:
                new = some_policy(rng, domain)
                told = ws._publishing._history(ws._records["t"])
                true, said = most_lost(releases(told), new), ws["t"].past(new)
                lost = math.inf if said.epsilon is None else said.epsilon.fraction
                assert lost >= true
                if len(releases(told)) == len(told.kernels):
                    assert said.epsilon is None or float(lost) == pytest.approx(float(true), abs=1e-8)
                ws["t"].publish(new, confirm=True, withdraw=True)
                endless = said.epsilon is None  # then the promise is about answers from now on
            questions = [on_terms(rng, some_question(rng, ws)) for _ in range(int(rng.integers(1, 4)))]
            try:
                if rng.integers(2):
                    ws.batch(*questions).ask()
                else:
                    for question in questions:
                        question.ask()
            except BlowfishError:
                continue
            everything = releases(ws._publishing._history(ws._records["t"]))
            lost = most_lost(everything, ws.facts("t").policy)
            assert endless or lost <= ws.budget("t").used.fraction
        assert ws.verify() == []
