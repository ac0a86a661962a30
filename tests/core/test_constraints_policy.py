"""Policies that say what is known: projection, words, storage, files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core import graphs
from blowfishdb.core.constraints import Constraints, Count, Marginal, Range
from blowfishdb.core.constraints.known_cells import known_on_boxes, refined
from blowfishdb.core.constraints.under_policy import check_consistent, keeps_component_totals, refine
from blowfishdb.core.errors import InvalidInput, NotProven, SizeMismatch, TooLarge
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.guarantee import Guarantee, guarantee, invariants
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.words import difference, sentences
from blowfishdb.language.policy_file import policy_document, read_policy, write_policy
from tests.core import oracle
from tests.core.known_counts import most_change
from tests.seeds import seeds

DOMAIN = bf.Domain(
    age=bf.Integer(0, 119),
    region=bf.Category(["n", "s", "w"]),
    level=bf.Category(["low", "mid", "high"], ordered=True, missing="value"),
    paid=bf.Real(0, 10, "0.5"),
)
KNOWN = Constraints(
    counts=[(bf.col("age").between(18, 64) & (bf.col("region") == "n"), 512), bf.col("paid") <= 2.5],
    marginals=[
        "level",
        Marginal(("age", "region"), (bf.Bins.width(120, 10), None)),
        Marginal(("level",), (bf.Bins.labels([0, 1, 0, 2]),), (5, 6, 7)),
    ],
    ranges=[({"age": (20, 29), "level": ("low", "mid")}, 7)],
    reading="edge",
)
REGION = Constraints(marginals=["region"])


# --- projection by brute force: the domain is enumerated, the question is about coarser cells --------

SMALL = bf.Domain(a=bf.Integer(0, 2), b=bf.Integer(0, 1))


@seeds(60)
def test_questions_about_other_cells_than_the_known_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, table = oracle.boxes_graph(rng, (3, 2))
    choices = [
        Constraints(marginals=["b"]),
        Constraints(marginals=[("a", "b")]),
        Constraints(counts=[bf.col("a") >= 1]),
        Constraints(counts=[(bf.col("a") == 0) & (bf.col("b") == 0), (bf.col("a") == 2)]),
        Constraints(ranges=[{"a": (0, 1)}, {"a": (1, 2)}]),
        Constraints(counts=[bf.col("a") >= 1, bf.col("b") == 1]),
    ]
    constraints = choices[seed % len(choices)]
    asked = {"a": oracle.random_bins(rng, 3)} if seed % 2 else {"b": bf.Bins.width(2, 1)}
    policy = Policy(SMALL, graph, constraints)
    found = refine(policy, asked)
    cells = next(iter(asked.values())).count
    workload = oracle.line_workload(rng, cells) if seed % 3 else bf.workloads.Histogram(cells)

    places = list(itertools.product(range(3), range(2)))
    everything = known_on_boxes(constraints, SMALL, {"a": bf.Bins.width(3, 1), "b": bf.Bins.width(2, 1)})
    counts = np.array(
        [
            [int(label == row) for label in everything.labels[item]]
            for item, rows in enumerate(everything.rows)
            for row in range(rows)
        ]
    )
    ((name, bins),) = asked.items()
    column = [int(bins.assign([place["ab".index(name)]])[0]) for place in places]
    matrix = oracle.dense(workload)[:, column]
    assert most_change(matrix, table, counts, 3) <= found.sensitivity(workload)


def test_a_coarser_question_than_what_is_known() -> None:
    """Ages are known by ten, and the question is about sexes: each class may swap its two sexes."""
    domain = bf.Domain(age=bf.Integer(0, 99), sex=bf.Category(["f", "m"]))
    known = Constraints(marginals=[Marginal(("age",), (bf.Bins.width(100, 10),))])
    policy = Policy.differential_privacy(domain).knowing(known)
    found = refine(policy, {"sex": bf.Bins.width(2, 1)})
    assert (found.histogram, found.factor) == (20, 10)
    alone = refine(policy, {"age": bf.Bins.width(100, 10)})
    assert (alone.histogram, alone.factor) == (0, 0)  # the known table itself


def test_one_published_table_of_a_large_domain() -> None:
    domain = bf.Domain(region=bf.Integer(1, 50), salary=bf.Integer(0, 10**6), age=bf.Integer(0, 120))
    policy = Policy.differential_privacy(domain).knowing(Constraints(marginals=["region"]))
    bins = {"salary": domain["salary"].bins(count=20)}
    found = refine(policy, bins)
    assert found.histogram == 2 * 50 and found.factor == 50  # [B14] Theorem 8.4
    line = Policy.by_column(domain, {"salary": graphs.Threshold(10**6 + 1, 50_001)}).knowing(REGION_50)
    cumulative = refine(line, bins)
    assert cumulative.sensitivity(bf.workloads.Cumulative(20)) == 1 + 49 * 19
    assert cumulative.factor == 1 + 49 * 19  # one move along an edge, the others as far as the line is long


REGION_50 = Constraints(marginals=["region"])


def test_boxes_are_refined_no_further_than_needed() -> None:
    known = Constraints(ranges=[{"age": (20, 29)}])
    boxes = refined(known, DOMAIN, {"age": bf.Bins.width(120, 60)})
    assert boxes["age"] == bf.Bins.edges(120, [0, 20, 30, 60])
    wide = bf.Domain(a=bf.Integer(0, 10**6), b=bf.Integer(0, 10**6))
    both = {"a": bf.Bins.width(10**6 + 1, 1)}
    with pytest.raises(TooLarge):
        refine(Policy.differential_privacy(wide).knowing(Constraints(marginals=["b"])), both)


def test_the_graph_alone_is_no_answer_where_something_is_known() -> None:
    """Whatever plans on the projected graph refuses, and does not ignore what is known."""
    policy = Policy.differential_privacy(SMALL).knowing(Constraints(marginals=["b"]))
    with pytest.raises(NotProven, match="tie records together"):
        policy.project({"a": bf.Bins.width(3, 1)})
    assert policy.knowing(None).project({"a": bf.Bins.width(3, 1)}) == graphs.Full(3)


def test_any_mechanism_may_use_its_share() -> None:
    """Corollary 7, for prefix sums on a line: the exact loss between neighbours is at most factor · ε."""
    domain = bf.Domain(a=bf.Integer(0, 6))
    policy = Policy(domain, graphs.Threshold(7, 1), Constraints(ranges=[{"a": (0, 2)}]))
    found = refine(policy, {"a": bf.Bins.width(7, 1)})
    table, counts = oracle.adjacency(policy.graph), np.array([[1, 1, 1, 0, 0, 0, 0]])
    prefixes = oracle.dense(bf.workloads.Cumulative(7))  # Lap(1/ε) on each is ε-private along every edge
    assert most_change(prefixes, table, counts, 2) == found.factor == 5


def test_the_example_of_the_page_about_known_counts() -> None:
    page = (Path(__file__).parents[2] / "docs" / "constraints.md").read_text(encoding="utf-8")
    names: dict[str, Policy] = {}
    exec(page.split("```python\n")[1].split("```")[0], {}, names)  # the documentation is ours
    policy = names["policy"]
    salaries = {"salary": policy.domain["salary"].bins(count=20)}
    assert refine(policy, salaries).histogram == 100 and "2 · 50 = 100" in page
    assert refine(policy, {"region": bf.Bins.width(50, 1)}).histogram == 0
    section = page.split("```yaml\n")[1].split("```")[0]
    assert read_policy(f"blowfishdb: policy/1\n{section}", policy.domain).constraints == policy.constraints
    both = policy.knowing(Constraints(marginals=["region", Marginal(("age",), (bf.Bins.width(121, 10),))]))
    with pytest.raises(NotProven) as refused:
        _ = refine(both, salaries).histogram
    assert refused.value.message.split(", and no proof")[0] in " ".join(page.split())
    few = bf.Domain(smokes=bf.Integer(0, 1), drives=bf.Integer(0, 1), age=bf.Integer(0, 9))
    small = Policy.differential_privacy(few).knowing(Constraints(marginals=["smokes", "drives"]))
    assert refine(small, {"age": bf.Bins.width(10, 1)}).histogram == 8


def test_overlapping_tables_are_refused_for_a_question() -> None:
    domain = bf.Domain(a=bf.Integer(0, 9), b=bf.Integer(0, 9), c=bf.Integer(0, 9))
    policy = Policy.differential_privacy(domain).knowing(Constraints(marginals=["a", "b"]))
    with pytest.raises(NotProven, match="overlap"):
        _ = refine(policy, {"c": bf.Bins.width(10, 1)}).histogram


def test_groups_that_are_kept_apart_bound_no_mechanism() -> None:
    domain = bf.Domain(a=bf.Integer(0, 3), b=bf.Integer(0, 1))
    graph = graphs.Product(graphs.Partitioned([0, 0, 1, 1]), graphs.Full(2))
    known = Constraints(counts=[(bf.col("b") == 0)])
    found = refine(Policy(domain, graph, known), {"a": bf.Bins.width(4, 1)})
    with pytest.raises(NotProven, match="groups"):
        _ = found.factor
    assert found.histogram == 4


def test_dropped_rows_and_hidden_presence_are_outside_of_every_known_count() -> None:
    """A row whose 'a' is not declared still has a 'b': it counts in the known table and not in the
    question.
    """
    domain = bf.Domain(a=bf.Integer(0, 3, outside="drop"), b=bf.Integer(0, 1))
    policy = Policy.differential_privacy(domain).knowing(Constraints(marginals=["b"]))
    assert refine(policy, {"a": bf.Bins.width(4, 1)}).histogram == 4
    assert refine(policy, {"a": bf.Bins.width(4, 4)}).histogram == 2  # how many rows have a declared 'a'
    assert refine(policy, {"b": bf.Bins.width(2, 1)}).histogram == 0
    hidden = Policy(domain, policy.graph.hide_presence(), policy.constraints)
    assert refine(hidden, {"a": bf.Bins.width(4, 4)}).histogram == 2
    assert refine(hidden, {"a": bf.Bins.width(4, 4)}).factor == 2
    other = Policy.differential_privacy(domain).knowing(Constraints(counts=[bf.col("a") >= 2]))
    assert (
        refine(other, {"b": bf.Bins.width(2, 1)}).histogram == 4
    )  # rows outside of 'a' count in the question
    assert refine(other, {"a": bf.Bins.width(4, 1)}).histogram == 4


@pytest.mark.parametrize("seed", range(20))
def test_rows_outside_by_brute_force(seed: int) -> None:
    """Records of a × b where 'a' may be outside (its last value here), written out."""
    rng = np.random.default_rng(seed)
    domain = bf.Domain(a=bf.Integer(0, 1, outside="drop"), b=bf.Integer(0, 1))
    known = [
        Constraints(marginals=["b"]),
        Constraints(counts=[bf.col("a") == 0]),
        Constraints(marginals=["a"]),
        Constraints(counts=[(bf.col("a") == 0) & (bf.col("b") == 1)]),
    ][seed % 4]
    graph, table = oracle.boxes_graph(rng, (2, 2))
    column = ["a", "b"][seed // 4 % 2]
    workload = bf.workloads.Histogram(2) if seed % 3 else bf.workloads.Cumulative(2)
    found = refine(Policy(domain, graph, known), {column: bf.Bins.width(2, 1)}).sensitivity(workload)

    records = [(0, 0), (0, 1), (1, 0), (1, 1), (-1, 0), (-1, 1)]
    wider = np.ones((6, 6), dtype=bool)
    wider[:4, :4] = table
    np.fill_diagonal(wider, False)
    conditions = {
        0: [lambda a, b, v=v: b == v for v in (0, 1)],
        1: [lambda a, b: a == 0],
        2: [lambda a, b, v=v: a == v for v in (0, 1)],
        3: [lambda a, b: a == 0 and b == 1],
    }[seed % 4]
    counts = np.array([[int(holds(*record)) for record in records] for holds in conditions])
    dense = oracle.dense(workload)
    places = [record["ab".index(column)] for record in records]
    matrix = np.stack([dense[:, at] if at >= 0 else 0 * dense[:, 0] for at in places], axis=1)
    assert most_change(matrix, wider, counts, 3) <= found


# --- what stays exact ---------------------------------------------------------------------------------


def test_component_totals_are_exact_only_where_nothing_ties_them() -> None:
    domain = bf.Domain(a=bf.Integer(0, 3))
    graph = graphs.Partitioned([0, 0, 1, 1])
    tied = Policy(domain, graph, Constraints(counts=[bf.col("a").isin([0, 2])]))
    assert not keeps_component_totals(tied) and invariants(tied) == ["how many rows there are"]
    untied = Policy(domain, graph, Constraints(counts=[bf.col("a") <= 1]))
    assert keeps_component_totals(untied) and len(invariants(untied)) == 2
    edge = tied.knowing(Constraints(counts=[bf.col("a").isin([0, 2])], reading="edge"))
    assert keeps_component_totals(edge) and len(invariants(edge)) == 2
    assert "groups" not in guarantee(tied, bf.Epsilon("1")).exposure
    assert "how many rows are in each of the 2 groups of 'a'" in difference(tied, untied).newly_exact


def test_contradicting_answers_are_refused() -> None:
    check_consistent(Constraints(counts=[(bf.col("age") < 18, 5), (bf.col("age") < 30, 9)]), DOMAIN)
    twice = Constraints(counts=[(bf.col("age") < 18, 5), (bf.col("age") <= 17, 6)])
    with pytest.raises(InvalidInput, match="contradict"):
        check_consistent(twice, DOMAIN)


# --- policies -----------------------------------------------------------------------------------------


def test_a_policy_checks_what_it_is_told() -> None:
    graph = graphs.Full(DOMAIN.size)
    with pytest.raises(InvalidInput):
        Policy(DOMAIN, graph, Constraints(marginals=["income"]))
    with pytest.raises(SizeMismatch, match="divide"):
        Policy(DOMAIN, graph, Constraints(marginals=[Marginal(("age",), (bf.Bins.width(7, 1),))]))
    with pytest.raises(SizeMismatch, match="rows"):
        Policy(DOMAIN, graph, Constraints(marginals=[Marginal(("region",), (), (1, 2))]))
    assert Policy(DOMAIN, graph, Constraints()).constraints is None
    policy = Policy.by_column(DOMAIN, {}).knowing(REGION)
    assert policy.with_column("age", graphs.Threshold(120, 5)).constraints == REGION


def test_what_is_known_is_said_in_words() -> None:
    policy = Policy.differential_privacy(DOMAIN).knowing(REGION)
    said = sentences(policy)
    assert "Known to everyone: how many rows there are for each value of 'region' (3 counts)." in said
    assert "up to 4 records are hidden together" in said[-1]  # three regions, and rows without one
    several = sentences(policy.knowing(Constraints(marginals=["age", "level"])))
    assert "refused" in several[-1]
    ages = Constraints(marginals=["age"])
    untouched = Policy.by_column(DOMAIN, {"age": graphs.Explicit(120, ())}).knowing(ages)
    assert "cost what they cost" in sentences(untouched)[-1]
    numbered = sentences(policy.knowing(Constraints(counts=[(bf.col("age") >= 65, 1_200)])))
    assert "Known to everyone: how many rows have age >= 65, namely 1,200." in numbered


def test_changing_what_is_known_is_a_change() -> None:
    before = Policy.differential_privacy(DOMAIN)
    after = before.knowing(REGION)
    change = difference(before, after)
    assert change.tightens and change.loosens and not change.same
    assert any("What everyone knows already was: nothing" in sentence for sentence in change.sentences)
    assert difference(after, before.knowing(Constraints(marginals=["region"]))).same


def test_the_guarantee_speaks_of_what_is_known() -> None:
    promised = guarantee(Policy.differential_privacy(DOMAIN).knowing(REGION), bf.Epsilon("1"))
    assert any("'region'" in text and "tie together" in text for text in promised.paragraphs)
    assert Guarantee.from_plain(json.loads(json.dumps(promised.to_plain()))) == promised
    assert guarantee(Policy.differential_privacy(DOMAIN), bf.Epsilon("1")).known == ""


# --- storage ------------------------------------------------------------------------------------------


def test_known_counts_survive_as_plain_data() -> None:
    policy = Policy.differential_privacy(DOMAIN).knowing(KNOWN)
    stored = json.loads(codec.canonical(codec.plain(policy)))
    again = codec.policy(stored)
    assert again.constraints == KNOWN
    assert codec.digest(codec.plain(again)) == codec.digest(codec.plain(policy))
    without = codec.plain(Policy.differential_privacy(DOMAIN))
    assert set(without) == {"domain", "graph"} and codec.digest(without) != codec.digest(stored)
    cells = Constraints(counts=[({1, 2}, 3)])
    assert codec.constraints(codec.plain(cells)) == cells


@pytest.mark.parametrize("wrong", [{"counts": [{}]}, {"ranges": [{"sides": [1]}]}, {"marginals": [3]}, [], 5])
def test_broken_plain_data_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        codec.constraints(wrong)  # type: ignore[arg-type]


def test_files_hold_what_is_known() -> None:
    policy = Policy.by_column(DOMAIN, {"age": graphs.Threshold(120, 5)}).knowing(KNOWN)
    text = write_policy(policy, dataset="survey")
    again = read_policy(text, DOMAIN)
    assert again.constraints is not None
    boxes = refined(KNOWN, DOMAIN, {})
    one, other = (known_on_boxes(c, DOMAIN, boxes) for c in (KNOWN, again.constraints))
    assert (
        (one.labels == other.labels).all() and one.answers == other.answers and one.reading is other.reading
    )
    assert "# Known to everyone" in text
    document = policy_document(policy, dataset="survey")
    assert read_policy(json.dumps(document), DOMAIN).constraints == again.constraints
    assert policy_document(again, dataset="survey") == document
    whole = Policy.differential_privacy(DOMAIN).knowing(REGION)
    assert read_policy(write_policy(whole, dataset="s"), DOMAIN).constraints == REGION


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("counts: [{where: income > 3}]", "known"),
        ("counts: [{count: 3}]", "where"),
        ("counts: [{where: age > 3, count: many}]", "whole number"),
        ("tables: [{columns: [age], groups: {region: 2}}]", "not a column of this table"),
        ("tables: [{columns: [region], counts: [1, 2]}]", "3 rows"),
        ("ranges: [{within: {age: [30, 20]}}]", "known"),
        ("ranges: [{within: {level: [low, missing]}}]", "missing"),
        ("neighbours: far", "literal"),
        ("sums: []", "not known here"),
    ],
)
def test_mistakes_in_a_file_name_their_place(section: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read_policy(f"blowfishdb: policy/1\nknown:\n  {section}\n", DOMAIN)


def test_the_example_of_the_guide_about_known_counts() -> None:
    domain = bf.Domain(
        sex=bf.Category(["f", "m"]),
        district=bf.Category(["a", "b"]),
        age=bf.Integer(0, 99),
        x=bf.Integer(0, 99),
        y=bf.Integer(0, 99),
    )
    from tests.adapters.test_policy_files import GUIDE

    example = GUIDE.split("## What is already known")[1].split("```yaml\n")[1].split("```")[0]
    known = read_policy(f"blowfishdb: policy/1\n{example}", domain).constraints
    assert known == Constraints(
        counts=[Count(bf.col("sex") == "f", 51_200)],
        marginals=["district", Marginal(("age",), (bf.Bins.width(100, 10),))],
        ranges=[Range((("x", 0, 9), ("y", 0, 9)), 12)],
    )
