"""How sure an attacker can become: against breadth-first search, and in the words people read."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from blowfishdb.core import graphs
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.bins import Bins, single_cells
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, InvalidValue, NotFinite
from blowfishdb.core.policy.guarantee import Guarantee, guarantee, invariants
from blowfishdb.core.policy.policy import Policy, own_graph, parts_of
from blowfishdb.core.policy.protection import certainty, certainty_at, curve, percent, probe
from tests.core import oracle
from tests.seeds import seeds

ONE = Epsilon(1)
SALARIES = Domain(salary=Integer(0, 199_999))
WITHIN_1000 = Policy.by_column(SALARIES, {"salary": graphs.Threshold(200_000, 1_000)})


# --- certainty ----------------------------------------------------------------------------------


def test_certainty_is_the_posterior_of_even_odds() -> None:
    assert certainty(0) == 0.5
    assert certainty(math.log(3)) == pytest.approx(3 / 4)
    assert certainty(math.inf) == 1 and certainty(800) == 1
    assert [percent(certainty(loss)) for loss in (1, 2, 3, 5)] == ["73 %", "88 %", "95 %", "99.3 %"]


def test_only_what_is_certain_is_called_certain() -> None:
    assert percent(certainty(20)) == "over 99.9 %" and percent(1.0) == "100 %"
    assert percent(certainty(0.01)) == "50.2 %" and percent(0.5) == "50 %"


@pytest.mark.parametrize("loss", [-1.0, math.nan])
def test_a_loss_is_a_number_from_zero(loss: float) -> None:
    with pytest.raises(NotFinite):
        certainty(loss)


# --- probes -------------------------------------------------------------------------------------


def test_two_salaries() -> None:
    found = probe(WITHIN_1000, "salary", "40,000", 40_900, ONE)
    assert (found.distance, found.certainty) == (1, pytest.approx(0.7311, abs=1e-4))
    assert found.sentence == "40,000 or 40,900? At most 73 % sure (was 50 %)."
    far = probe(WITHIN_1000, "salary", 0, "199999", ONE)
    assert far.distance == 200 and far.sentence == "0 or 199,999? Practically certain (was 50 %)."
    assert probe(WITHIN_1000, "salary", 7, "7", ONE).certainty == 0.5


def test_values_that_are_never_hidden() -> None:
    domain = Domain(party=Category(["x", "y"]))
    found = probe(Policy.by_column(domain, {"party": graphs.Explicit(2, ())}), "party", "x", "y", ONE)
    assert found.distance is None and found.certainty == 1
    assert found.sentence == "x or y? Not hidden: an attacker may become certain (was 50 %)."


def test_values_as_people_type_them() -> None:
    domain = Domain(
        born=Date("1984-01-01", "1984-12-31"),
        member=Boolean(missing="value"),
        weight=Real(0, 20_000, "0.5"),
        level=Category([1, 2, 3]),
    )
    policy = Policy.differential_privacy(domain)
    for column, u, v, words in (
        ("born", "1984-02-01", "1984-02-03", "1984-02-01 or 1984-02-03?"),
        ("member", "yes", "missing", "True or missing?"),
        ("weight", "1,000.5", "12,000.5", "1000.5 or 12,000.5?"),
        ("level", "1", 3, "1 or 3?"),
    ):
        assert probe(policy, column, u, v, ONE).sentence.startswith(words)
    for column, wrong in (("born", "soon"), ("member", "perhaps"), ("weight", "a lot"), ("level", "9")):
        with pytest.raises(InvalidValue):
            probe(policy, column, wrong, wrong, ONE)


@pytest.mark.parametrize("seed", range(40))
def test_the_distance_in_a_column_is_the_distance_in_the_projection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = oracle.random_shape(rng)
    domain = Domain.of({f"c{axis}": Integer(0, n - 1) for axis, n in enumerate(shape)})
    graph, table = oracle.boxes_graph(rng, shape)
    if seed % 3 == 0:
        graph, table = oracle.with_presence((graph, table))
    policy = Policy(domain, graph)
    for axis, name in enumerate(domain):
        cells = np.unravel_index(np.arange(domain.size), shape)[axis]
        labels = np.append(cells, shape[axis]) if graph.absent else cells
        projected = oracle.brute_force_projection(table, labels)
        assert (oracle.adjacency(own_graph(policy, name)) == projected).all()


def test_parts_that_span_columns() -> None:
    domain = Domain(sex=Category(["f", "m"]), x=Integer(0, 9), y=Integer(0, 4), age=Integer(0, 7))
    graph = graphs.Product(graphs.Full(2), graphs.Grid((10, 5), 3), graphs.Threshold(8, 2))
    policy = Policy(domain, graph.hide_presence())
    assert [part.columns for part in parts_of(policy).parts] == [("sex",), ("x", "y"), ("age",)]
    for name in domain:
        own = own_graph(policy, name)
        by_definition = policy.project({name: single_cells(domain[name].size)})
        assert own.edges().tolist() == by_definition.edges().tolist()


# --- curves -------------------------------------------------------------------------------------


def distances(table: np.ndarray) -> np.ndarray:
    """Floyd and Warshall."""
    apart = np.where(table, 1.0, math.inf)
    np.fill_diagonal(apart, 0)
    for via in range(len(apart)):
        apart = np.minimum(apart, apart[:, [via]] + apart[via])
    return apart


@seeds(120)
def test_a_curve_is_the_worst_case_of_every_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 12))
    graph, table = oracle.line_graph(rng, size)
    missing, presence = bool(seed % 3 == 0), bool(seed % 5 == 0)
    attribute = Integer(0, 3 * size - 1, 3, missing="value" if missing else "clamp")
    domain = Domain(value=attribute)
    policy = Policy.by_column(domain, {"value": graph}, hide_presence=presence)
    apart = distances(table)
    if missing or presence:
        apart = np.minimum(apart, 2)
    budget = Epsilon("0.2")
    steps = curve(policy, "value", budget)
    if isinstance(graph, graphs.Partitioned):
        pairs = {apart[u, v] for u, v in itertools.combinations(range(size), 2)}
        assert {step.certainty for step in steps} == {certainty_at(d, budget) for d in pairs}
        return
    for gap in range(1, size):
        worst = max(apart[u, u + gap] for u in range(size - gap))
        (step,) = (s for s in steps if s.low is not None and s.low < 3 * gap <= s.high)  # type: ignore[operator]
        assert step.certainty == certainty_at(worst, budget)
        assert step.distance == (None if math.isinf(worst) else worst)


def test_a_long_curve_keeps_the_largest_certainty_of_what_it_merges() -> None:
    reach = np.minimum(np.arange(30_000) + 3 + np.arange(30_000) // 10_000, 29_999)
    budget = Epsilon("0.001")
    for graph in (graphs.Threshold(30_000, 4), graphs.Banded(reach)):
        domain = Domain(value=Integer(0, 29_999))
        policy = Policy.by_column(domain, {"value": graph})
        steps = curve(policy, "value", budget)
        assert 40 < len(steps) <= 61 and steps[-1].certainty >= 0.999
        assert all(a.high == b.low for a, b in itertools.pairwise(steps))
        for gap in (1, 17, 4_000, 11_111):
            worst = max(graph.distance(u, u + gap) for u in (0, 5_000, 9_999, 10_001, 29_999 - gap))
            step = next(s for s in steps if s.low < gap <= s.high)  # type: ignore[operator]
            assert certainty_at(worst, budget) <= step.certainty <= certainty_at(worst + 130, budget)


def test_the_curve_of_the_salaries() -> None:
    steps = curve(WITHIN_1000, "salary", ONE)
    assert [step.apart for step in steps[:2]] == ["up to 1,000", "up to 2,000"]
    assert [percent(step.certainty) for step in steps[:5]] == ["73 %", "88 %", "95 %", "98 %", "99.3 %"]
    assert len(steps) == 7 and steps[-1].certainty >= 0.999 > steps[-2].certainty


def test_curves_without_an_order() -> None:
    domain = Domain(d=Category(["a", "b", "c", "e"]), one=Category(["only"]))

    def of(graph: graphs.PolicyGraph, column: str = "d") -> list[tuple[str, int | None]]:
        policy = Policy.by_column(domain, {"d": graph})
        return [(step.apart, step.distance) for step in curve(policy, column, ONE)]

    assert of(graphs.Partitioned([0, 1, 0, 1])) == [("in the same group", 1), ("in different groups", None)]
    assert of(graphs.Full(4)) == [("any two values", 1)]
    assert of(graphs.Explicit(4, ())) == [("any two values", None)]
    assert of(graphs.Explicit(4, [(0, 1), (1, 2)])) == [
        ("joined by the policy", 1),
        ("2 steps apart", 2),
        ("not joined by any chain of pairs", None),
    ]
    assert of(graphs.Full(4), "one") == []


def test_large_columns_are_never_written_out() -> None:
    size = 200_000
    labels = np.arange(size) % 7
    path = np.column_stack((np.arange(size - 1), np.arange(1, size)))
    for graph in (graphs.Full(size), graphs.Partitioned(labels), graphs.Explicit(size, path)):
        policy = Policy.by_column(SALARIES, {"salary": graph})
        assert curve(policy, "salary", ONE) and guarantee(policy, ONE).paragraphs
        assert probe(policy, "salary", 3, 10, ONE).certainty >= 0.73


# --- guarantees ---------------------------------------------------------------------------------


def test_the_golden_words() -> None:
    assert guarantee(WITHIN_1000, ONE).paragraphs == (
        "Suppose an attacker knows everything about everyone else and thinks two values of 'salary' within "
        "1,000 of each other are equally likely for one person. After every answer this budget allows, they "
        "can be at most 73 % sure (was 50 %). At 2,000 apart: 88 %; at 3,000: 95 %. Larger differences are "
        "effectively not hidden.",
        "Not hidden: that the person is in the data, or how many rows there are. Assumes one row per person.",
    )


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("0.1", "Beyond 45,000 apart it is more than 99 %, which is effectively not hidden."),
        ("0.01", "However far apart: at most 88 % sure."),
        ("9", "practically certain (was 50 %). At 2,000 apart: over 99.9 %. Larger differences"),
    ],
)
def test_limits_follow_the_budget(budget: str, words: str) -> None:
    assert words in guarantee(WITHIN_1000, Epsilon(budget)).paragraphs[0]


def several(*, joint: bool = True, hide_presence: bool = False) -> Policy:
    domain = Domain(
        salary=Integer(0, 199_999, missing="value"),
        age=Integer(0, 120),
        district=Category(["a", "b", "c"]),
        party=Category(["x", "y"]),
        level=Category(["low", "mid", "high", "top"], ordered=True),
    )
    rules: dict[str, graphs.PolicyGraph] = {
        "salary": graphs.Threshold(200_000, 1_000),
        "district": graphs.Partitioned([0, 0, 1]),
        "party": graphs.Explicit(2, ()),
        "level": graphs.Explicit(4, [(0, 1), (1, 2)]),
    }
    return Policy.by_column(domain, rules, joint=joint, hide_presence=hide_presence)


def test_columns_of_which_the_same_is_promised_share_a_sentence() -> None:
    domain = Domain(age=Integer(0, 120), salary=Integer(0, 9), sex=Category(["f", "m"]), city=Integer(0, 9))
    policy = Policy.by_column(domain, {"salary": graphs.Threshold(10, 1)})
    age, salary, together, _ = guarantee(policy, ONE).paragraphs
    assert "any two values of 'age' are equally likely" in age
    assert age.endswith("73 % sure (was 50 %). The same holds for 'sex', 'city'.")
    assert "two values of 'salary' within 1 of each other" in salary and "several columns" in together


def test_every_kind_of_column() -> None:
    salary, age, district, party, level, together, rest = guarantee(several(), ONE).paragraphs
    assert salary.endswith("Farther apart: at most 88 % sure, because either could also be missing.")
    assert "thinks any two values of 'age' are" in age and age.endswith("73 % sure (was 50 %).")
    assert "two values of 'district' in the same group (a, b; c)" in district
    assert district.endswith("In which group it is, is not hidden.")
    assert party == (
        "Nothing about 'party' is hidden: an attacker may become certain which value a person has."
    )
    assert "that are a listed pair (low and mid; mid and high)" in level
    assert level.endswith(
        "At two steps apart: 88 %. Values that no chain of such pairs joins are not hidden from each other."
    )
    assert "are hidden just as well (at most 73 % sure)" in together
    assert "groups" not in rest  # a category drops undeclared values, so a row can leave its group unseen


def test_groups_are_exact_only_where_no_row_can_leave_them_unseen() -> None:
    halves = graphs.Partitioned([0] * 5 + [1] * 5)
    for outside, exact in (("clamp", True), ("drop", False)):
        policy = Policy.by_column(Domain(a=Integer(0, 9, outside=outside)), {"a": halves})
        assert ("how many rows are in each of the 2 groups of 'a'" in invariants(policy)) is exact


def test_columns_add_up_one_by_one() -> None:
    words = guarantee(several(joint=False), ONE).together
    assert words.endswith("in each by no more than this: in 2: 88 %; in 3: 95 %; in 4: 98 %.")
    words = guarantee(several(joint=False), Epsilon("3")).together
    assert words.endswith("this: in 2: 99.8 %; in 3 or more: over 99.9 %.")


def test_hidden_presence_bounds_everything_by_two_edges() -> None:
    promised = guarantee(several(joint=False, hide_presence=True), ONE)
    assert promised.together.endswith("in 2 or more: 88 %.")
    assert promised.clauses[2].beyond == (
        "In different groups: at most 88 % sure, because the person may also not be in the data."
    )
    assert promised.clauses[3].limits[0].distance == 2
    assert "Whether someone is in the data is hidden as well" in promised.presence
    assert promised.not_hidden == () and promised.paragraphs[-1] == "Assumes one row per person."


def test_whole_records_areas_and_dates() -> None:
    assert (
        "thinks any two records are equally likely"
        in guarantee(Policy.differential_privacy(several().domain), ONE).paragraphs[0]
    )
    domain = Domain(x=Integer(0, 99), y=Integer(0, 49), born=Date("1950-01-01", "1999-12-31"))
    graph = graphs.Product(graphs.Grid((100, 50), 3), graphs.Threshold(domain["born"].size, 7))
    area, born, *_ = guarantee(Policy(domain, graph), ONE).clauses
    assert "two places ('x', 'y') within 3 of each other" in area.promise
    assert area.beyond.startswith("At 6 apart: 88 %; at 9: 95 %.")
    assert "within 7 days of each other" in born.promise and "At 14 days apart: 88 %" in born.beyond


def test_only_missing_values_are_hidden() -> None:
    domain = Domain(party=Category(["x", "y", "z"], missing="value"))
    (clause,) = guarantee(Policy.by_column(domain, {"party": graphs.Explicit(3, ())}), ONE).clauses
    assert "thinks a missing value of 'party' and any other are equally likely" in clause.promise
    assert clause.beyond == "Any other two values: at most 88 % sure, because either could also be missing."


def test_a_graph_over_combinations_says_which_totals_it_gives_away() -> None:
    domain = Domain(a=Integer(0, 1), b=Integer(0, 1))
    promised = guarantee(Policy(domain, graphs.Explicit(4, [(0, 3), (1, 2)])), ONE)
    assert "two combinations of 'a', 'b' that the policy joins" in promised.clauses[0].promise
    assert "how many rows are in each of the 2 groups of 'a', 'b' that nothing joins" in promised.exposure


@pytest.mark.parametrize("hide_presence", [True, False])
def test_a_guarantee_can_be_stored(hide_presence: bool) -> None:
    promised = guarantee(several(hide_presence=hide_presence), Epsilon("0.118"), rows_per_person=3)
    assert Guarantee.from_plain(promised.to_plain()) == promised
    assert promised.paragraphs[-1].endswith("Assumes at most 3 rows per person; they are hidden together.")


def test_a_person_has_rows() -> None:
    with pytest.raises(InvalidInput):
        guarantee(WITHIN_1000, ONE, rows_per_person=0)


def test_invariants_of_large_irregular_groups() -> None:
    policy = Policy.by_column(SALARIES, {"salary": graphs.Partitioned(np.arange(200_000) % 7)})
    assert "how many rows are in each of the 7 groups of 'salary'" in invariants(policy)
    both = Domain(salary=Integer(0, 199_999, missing="value"), sex=Category(["f", "m"]))
    one = Policy.by_column(both, {"salary": graphs.Threshold(200_000, 1_000)})
    assert one.project({"sex": Bins.width(2, 1)}) == graphs.Full(2)
