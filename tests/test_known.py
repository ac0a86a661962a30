"""What everyone knows, through the service: prices, noise, free answers, refusals, the averaging attack."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.constraints import Constraints, Marginal
from blowfishdb.core.constraints.known_cells import known_on_boxes
from blowfishdb.core.errors import InvalidInput, NotProven, PolicyConflict
from blowfishdb.core.policy.policy import Policy
from blowfishdb.mechanisms import Best
from blowfishdb.mechanisms.losses import measured_rows
from blowfishdb.mechanisms.plan import Plan
from blowfishdb.noise import secure, seeded
from blowfishdb.service.planning import Planner
from blowfishdb.service.tasks import CountTask
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace
from tests.core import oracle
from tests.core.known_counts import neighbours

DOMAIN = bf.Domain(a=bf.Integer(0, 2), b=bf.Integer(0, 1))
ROWS = [(i % 3, i % 2) for i in range(7)] + [(2, 0), (0, 1)]
TRUE_A = tuple(sum(a == value for a, _ in ROWS) for value in range(3))
TRUE_B = tuple(sum(b == value for _, b in ROWS) for value in range(2))


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Dataset]:
    path = tmp_path / "small.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE small (a INTEGER, b INTEGER)")
        connection.executemany("INSERT INTO small VALUES (?, ?)", ROWS)
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("small", path, domain=DOMAIN, table="small")
        dataset.budget.set(1_000)
        yield dataset


def planned(asking: Asking, policy: Policy, rows_per_person: int = 1) -> CountTask:
    return Planner(Best()).plan(asking.request(), policy, rows_per_person)


def everything_known(constraints: Constraints) -> np.ndarray:
    """Each known count over the records of the domain."""
    cells = {"a": bf.Bins.width(3, 1), "b": bf.Bins.width(2, 1)}
    known = known_on_boxes(constraints, DOMAIN, cells)
    return np.array(
        [
            [int(label == row) for label in known.labels[item]]
            for item, rows in enumerate(known.rows)
            for row in range(rows)
        ]
    )


def records_in_cells(plan: CountTask) -> np.ndarray:
    """For every cell of a question, which records it counts."""
    places = list(itertools.product(range(3), range(2)))
    bins = {axis.column: axis.bins for axis in plan.problem.cells.axes}
    keys = [[int(bins[c].assign([place["ab".index(c)]])[0]) for c in "ab" if c in bins] for place in places]
    shape = plan.problem.cells.shape
    cell = [int(np.ravel_multi_index(tuple(key), shape)) for key in keys]
    return np.array([[int(at == number) for at in cell] for number in range(plan.problem.cells.count)])


KNOWN = [
    Constraints(marginals=["b"]),
    Constraints(counts=[bf.col("a") >= 1]),
    Constraints(counts=[(bf.col("a") == 0) & (bf.col("b") == 0), bf.col("a") == 2]),
    Constraints(ranges=[{"a": (0, 1)}, {"a": (1, 2)}]),
    Constraints(counts=[bf.col("a") >= 1], reading="edge"),
    Constraints(marginals=["b"], reading="edge"),
]


@pytest.mark.parametrize("seed", range(48))
def test_the_noise_covers_every_pair_of_neighbours(small: Dataset, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, table = oracle.boxes_graph(rng, (3, 2))
    constraints = KNOWN[seed % len(KNOWN)]
    policy = Policy(DOMAIN, graph, constraints)
    asked = [
        small["a"].histogram(),
        small["a"].cumulative(),
        small["b"].histogram(),
        small.question("histogram(a, b)"),
        small.where(bf.col("b") == 1)["a"].histogram(),
    ][seed % 5]
    pairs = [*neighbours(table, everything_known(constraints), 3, constraints.reading.value)]
    checked = 0
    for asking in (asked.accurate_to(5), asked.spend("0.7"), *named(asked)):
        try:
            plan = planned(asking, policy)
            assert isinstance(plan.choice.plan, Plan)
            rows, scales = measured_rows(plan.choice.plan, plan.choice.epsilon)
        except NotProven:
            continue
        checked += 1
        matrix = rows.toarray() @ records_in_cells(plan)
        for first, second in pairs:
            shift = np.bincount(second, minlength=6) - np.bincount(first, minlength=6)
            change = np.abs(matrix @ shift).tolist()
            assert not any(each for each, scale in zip(change, scales, strict=True) if not scale)
            lost = sum(Fraction(int(c)) / scale for c, scale in zip(change, scales, strict=True) if scale)
            assert lost <= plan.cost.fraction
    assert checked or len(constraints.ranges) == 2 or not pairs


def named(asked: Asking) -> list[Asking]:
    return [
        asked.spend("0.7").using(name) for name in ("laplace", "laplace-cells", "hierarchical", "ordered")
    ]


# --- prices -----------------------------------------------------------------------------------------


def test_one_public_table_costs_its_number_of_rows(small: Dataset) -> None:
    full = Policy.differential_privacy(DOMAIN)
    plain = planned(small["a"].histogram().accurate_to(20), full)
    known = planned(small["a"].histogram().accurate_to(20), full.knowing(Constraints(marginals=["b"])))
    assert float(known.cost) == pytest.approx(2 * float(plain.cost), rel=1e-6)  # two classes, two each
    curve = small["a"].cumulative().accurate_to(20).using("hierarchical")
    tied = planned(curve, full.knowing(Constraints(marginals=["b"])))
    assert tied.choice.factor == 2 and tied.cost == 2 * planned(curve, full).cost
    assert "costs 2 times" in tied.choice.explain() and "2 times" in tied.known


def test_what_no_hidden_difference_changes_costs_nothing_more(small: Dataset) -> None:
    policy = Policy.by_column(DOMAIN, {"b": bf.graphs.Explicit(2, ())})
    asking = small["a"].histogram().accurate_to(20)
    assert planned(asking, policy.knowing(Constraints(marginals=["b"]))).cost == planned(asking, policy).cost


def test_rows_per_person_multiply(small: Dataset) -> None:
    policy = Policy.differential_privacy(DOMAIN).knowing(Constraints(marginals=["b"]))
    asking = small["a"].cumulative().accurate_to(20).using("hierarchical")
    assert planned(asking, policy, 3).cost == 3 * planned(asking, policy).cost
    spending = planned(small["a"].cumulative().spend("0.6").using("dawa"), policy, 3)
    assert spending.choice.factor == 2 and spending.choice.epsilon == Epsilon("0.1")
    assert spending.cost == Epsilon("0.6")


def test_receipt_quote_and_explanation_say_why(small: Dataset) -> None:
    small.publish(Policy.differential_privacy(DOMAIN).knowing(Constraints(marginals=["b"])))
    asking = small["a"].cumulative().accurate_to(20).using("hierarchical")
    assert "costs 2 times the ε" in asking.quote().explanation
    assert "1 known table" in asking.quote().policy
    assert "Known        Known counts tie records together" in str(small.explain(asking))
    receipt = asking.ask().receipt
    assert "up to 2 steps" in receipt.known and receipt.policy.endswith("1 known table")
    near = Policy.by_column(DOMAIN, {"a": bf.graphs.Threshold(3, 1)}).knowing(Constraints(marginals=["b"]))
    small.publish(near, confirm=True, withdraw=True)
    direct = small["a"].histogram().accurate_to(20).using("laplace").ask().receipt
    assert "force to follow" in direct.known and "at most 4 in total" in direct.known
    assert small.gateway.answers()[-1].receipt.known == direct.known


# --- free answers ---------------------------------------------------------------------------------


def test_what_known_answers_determine_is_free_and_reads_no_data(
    small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Constraints(marginals=[Marginal(("b",), (), TRUE_B)])
    small.publish(Policy.differential_privacy(DOMAIN).knowing(known))
    monkeypatch.setattr(Prepared, "count", lambda *_: pytest.fail("the data was read"))
    for asking, expected in (
        (small["b"].histogram().accurate_to(1), TRUE_B),
        (small["b"].cumulative().spend(1), np.cumsum(TRUE_B)),
        (small.where(bf.col("b") == 1).count().accurate_to(1), TRUE_B[1:]),
        (small.count().accurate_to(1), [len(ROWS)]),
    ):
        assert not asking.quote().epsilon and asking.quote().mechanism == "From what is known"
        answer = asking.ask()
        assert answer.values.tolist() == list(expected) and answer.exact.all()
        assert answer.receipt.mechanism == "From what is known" and not answer.receipt.sql
    assert not small.budget.status.spent
    assert small.past(Policy.differential_privacy(DOMAIN)).epsilon == Epsilon(0)
    assert not small.gateway.verify()


def test_known_counts_without_answers_are_read_exactly_and_free(small: Dataset) -> None:
    small.publish(Policy.differential_privacy(DOMAIN).knowing(Constraints(marginals=["b"])))
    answer = small["b"].histogram().accurate_to(1).ask()
    assert answer.values.tolist() == list(TRUE_B) and not answer.receipt.epsilon and answer.receipt.sql
    # That is exact by now, so a policy that hides it, without anything known, has lost it already.
    assert small.past(Policy.differential_privacy(DOMAIN)).epsilon is None


def test_noisy_cells_are_made_to_agree_with_known_answers(small: Dataset) -> None:
    known = Constraints(marginals=[Marginal(("b",), (), TRUE_B)])
    small.publish(Policy.differential_privacy(DOMAIN).knowing(known))
    answer = small.question("histogram(a, b)").spend(100).ask()
    assert answer.values.reshape(3, 2).sum(axis=0) == pytest.approx(TRUE_B)
    assert answer.low is not None and answer.high is not None
    assert (answer.low <= answer.values).all() and (answer.values <= answer.high).all()
    assert (answer.raw == np.rint(answer.raw)).all()  # as it left the mechanism


# --- refusals -------------------------------------------------------------------------------------


def test_overlapping_tables_are_refused_for_nothing(small: Dataset, tmp_path: Path) -> None:
    wide = bf.Domain(a=bf.Integer(0, 29), b=bf.Integer(0, 29))
    both = Policy.differential_privacy(wide).knowing(Constraints(marginals=["a", "b"]))
    gateway, path = small.gateway, tmp_path / "wide.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE wide AS SELECT (i % 30)::INT a, (i // 30)::INT b FROM range(900) t(i)"
        )
    dataset = gateway.add_dataset("wide", path, domain=wide, table="wide")
    dataset.publish(both)
    for asking in (dataset["a"].cumulative().accurate_to(5), dataset.question("histogram(a, b)").spend(1)):
        for act in (asking.quote, asking.ask):
            with pytest.raises(NotProven, match="overlap") as refused:
                act()
            assert any("do not overlap" in fix for fix in refused.value.fixes)
    assert not dataset.budget.status.spent and not gateway.answers("wide")


def test_totals_of_groups_are_not_given_away_where_known_counts_reach_across(small: Dataset) -> None:
    pairs = Policy.by_column(DOMAIN, {"a": bf.graphs.Partitioned([0, 0, 1]), "b": bf.graphs.Explicit(2, ())})
    tied = pairs.knowing(Constraints(counts=[bf.col("a") >= 1]))
    exact = planned(small["b"].histogram().spend(1), pairs).choice
    assert exact.plan.free
    noisy = planned(small["b"].histogram().spend(1), tied).choice
    assert not noisy.plan.exact.any() and noisy.plan.name.startswith("Laplace")
    with pytest.raises(NotProven, match="keeps apart"):
        planned(small["b"].histogram().spend(1).using("hierarchical"), tied)
    edge = pairs.knowing(Constraints(counts=[bf.col("a") >= 1], reading="edge"))
    assert planned(small["b"].histogram().spend(1), edge).choice.plan.free


def test_contradictions_cannot_be_published(small: Dataset) -> None:
    known = Constraints(marginals=[Marginal(("a",), (), TRUE_A), Marginal(("b",), (), (1, 1))])
    with pytest.raises(InvalidInput, match="contradict"):
        small.publish(Policy.differential_privacy(DOMAIN).knowing(known))


def test_an_earlier_promise_is_kept_beside_known_counts(small: Dataset) -> None:
    small["a"].histogram().accurate_to(20).ask()
    small.publish(Policy.differential_privacy(DOMAIN).knowing(Constraints(marginals=["b"])), confirm=True)
    assert [kept.version for kept in small.kept] == [1]
    with pytest.raises(PolicyConflict, match="version 1"):
        small["b"].histogram().accurate_to(1).ask()  # exact and free now, but not under the earlier promise
    before = small.kept[0].remaining
    answer = small["a"].cumulative().accurate_to(20).using("hierarchical").ask()
    lost = before - small.kept[0].remaining
    assert 2 * lost == answer.receipt.epsilon  # single records lose half of what pairs of them do


# --- averaging --------------------------------------------------------------------------------------


def averaged(release: np.ndarray, sums: np.ndarray) -> float:
    """c₁ from every noisy count and the public sums c₁+c₂, c₂+c₃, …; then the mean."""
    signs = (-1.0) ** np.arange(release.size)
    offsets = np.concatenate(([0.0], np.cumsum(sums * signs[:-1])))
    return float(np.mean(offsets + signs * release))


def test_averaging_known_sums_fails_against_the_services_release(small: Dataset, tmp_path: Path) -> None:
    cells, runs = 32, 300
    domain = bf.Domain(r=bf.Integer(0, cells - 1))
    counts = np.arange(cells, dtype=np.int64) * 3 % 17
    sums = counts[:-1] + counts[1:]
    known = Constraints(ranges=[({"r": (i, i + 1)}, int(total)) for i, total in enumerate(sums)])
    full = Policy.differential_privacy(domain)
    path = tmp_path / "line.duckdb"
    with duckdb.connect(str(path)) as connection:
        rows = np.repeat(np.arange(cells), counts).tolist()
        connection.execute("CREATE TABLE line AS SELECT unnest(?::INT[]) AS r", [rows])
    line = small.gateway.add_dataset("line", path, domain=domain, table="line")
    hits = []
    for policy in (full, full.knowing(known)):
        plan = planned(line["r"].histogram().spend(1).using("laplace"), policy)
        assert plan.cost == Epsilon(1) and isinstance(plan.choice.plan, Plan)
        seen = [
            plan.choice.plan.observe(counts, epsilon=plan.choice.epsilon, noise=secure()).answers
            for _ in range(runs)
        ]
        hits.append(np.mean([round(averaged(np.asarray(each), sums)) == counts[0] for each in seen]))
    assert hits[0] > 0.45 and hits[1] < 0.2  # exact counts: about 68 % of runs, and about 7 %
    line.publish(full.knowing(known))
    answer = line["r"].histogram().spend(1).ask()
    assert answer.receipt.epsilon == Epsilon(1) and not answer.exact.any()
    assert answer.receipt.policy.endswith("31 known counts")


def test_known_counts_do_not_change_which_bins_are_picked(small: Dataset) -> None:
    known = Constraints(counts=[(bf.col("a") >= 1, TRUE_A[1] + TRUE_A[2])])
    small.publish(Policy.whole_record(DOMAIN).knowing(known))
    workspace = small.gateway
    assert isinstance(workspace, Workspace)
    for seed in range(12):
        workspace._service = replace(workspace._service, noise=seeded(seed))
        answer = small["a"].above(2).spend(f"0.{seed + 11}").using("laplace").ask()
        assert answer.labels[0] == tuple(str(value) for value in range(3) if answer.raw[value] > 2)
        assert answer.values.size == len(answer.labels[0])
