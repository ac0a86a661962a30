"""Questions that are settled on together, in a workspace: what they are charged, and what they lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import blowfishdb as bf
from blowfishdb.core.errors import BudgetExhausted
from blowfishdb.workspace.embedded import Workspace

Opened = Callable[[bf.Domain, bf.Policy, str], Workspace]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """A workspace over a few rows, under a policy and with a budget."""

    def open_with(domain: bf.Domain, policy: bf.Policy, budget: str) -> Workspace:
        place = tmp_path / "rows.duckdb"
        with duckdb.connect(str(place)) as rows:
            rows.execute("CREATE TABLE t AS SELECT i % 7 AS a, i % 3 AS b, i % 5 AS c FROM range(60) t(i)")
        ws = bf.open(tmp_path / "work.blowfish")
        ws.add_dataset("t", place, domain=domain, table="t")
        ws.set_budget("t", bf.Epsilon(budget))
        ws["t"].publish(policy)
        return ws

    return open_with


def test_a_row_that_one_column_drops_still_counts_in_another(opened: Opened) -> None:
    domain = bf.Domain(a=bf.Integer(0, 4, outside="drop"), b=bf.Integer(0, 2, outside="drop"))
    policy = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(5, 1)})
    with opened(domain, policy, "10") as ws:
        a, b = ws["t"]["a"].cumulative(), ws["t"]["b"].histogram()
        ws.batch(*(question.spend("0.5").using("laplace") for question in (a, b))).ask()
        assert ws.budget("t").spent == bf.Epsilon(1)
        assert ws["t"].past(policy).epsilon == bf.Epsilon(1)


def test_a_column_that_only_a_condition_names_drops_rows_too(opened: Opened) -> None:
    domain = bf.Domain(
        a=bf.Integer(0, 4, outside="drop"), b=bf.Integer(0, 2, outside="drop"), c=bf.Integer(0, 4)
    )
    policy = bf.Policy.by_column(domain, {"a": bf.graphs.Explicit(5, ()), "c": bf.graphs.Explicit(5, ())})
    with opened(domain, policy, "10") as ws:
        some = ws["t"].where(bf.col("a") >= 2)["c"].histogram()  # neither a nor c moves, but rows are dropped
        b = ws["t"]["b"].histogram()
        ws.batch(*(question.spend("1").using("laplace") for question in (some, b))).ask()
        assert ws.budget("t").spent == bf.Epsilon(2)


def test_nothing_is_cheaper_in_a_batch_than_it_can_be(opened: Opened) -> None:
    """Without a single edge, a dropped row still comes and goes: refused alone, refused in a batch."""
    domain = bf.Domain(a=bf.Integer(0, 4, outside="drop"), b=bf.Integer(0, 2, outside="drop"))
    policy = bf.Policy.by_column(domain, {name: bf.graphs.Explicit(domain[name].size, ()) for name in "ab"})
    with opened(domain, policy, "1") as ws:
        question = ws["t"]["a"].histogram().spend("50")
        with pytest.raises(BudgetExhausted):
            question.ask()
        with pytest.raises(BudgetExhausted):
            ws.batch(question).ask()
        assert not ws.budget("t").spent


def test_rows_that_may_change_in_between_share_no_cost(opened: Opened) -> None:
    """Someone may be at one end of a line in the first answer and at the other end in the second."""
    domain = bf.Domain(a=bf.Integer(0, 6))
    policy = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(7, 1)})
    with opened(domain, policy, "10") as ws:
        ws.add_dataset("now", ws["t"].source.location, domain=domain, table="t", kind="live", same_rows=True)
        ws["now"].publish(policy)
        for name, lost in (("t", "0.5"), ("now", "1")):
            ends = ([(0, 0), (0, 1)], [(0, 4), (0, 5)])
            questions = [ws[name]["a"].ranges(bounds).spend("0.5").using("laplace") for bounds in ends]
            ws.batch(*questions).ask()
            assert ws.budget(name).spent == bf.Epsilon(lost) == ws[name].past(policy).epsilon
