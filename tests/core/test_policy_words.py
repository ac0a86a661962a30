"""Policies in sentences, and differences between policies against brute force."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blowfishdb.core import graphs
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidBins, InvalidGraph, InvalidInput, InvalidThreshold, TooLarge
from blowfishdb.core.graphs.inclusion import includes
from blowfishdb.core.policy.columns import Hides, column_graph, current
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.words import difference, sentence, sentences
from tests.core import oracle
from tests.seeds import seeds

SALARIES = Domain(salary=Integer(0, 199_999))


def hiding(distance: int, *, hide_presence: bool = False) -> Policy:
    graph = graphs.Threshold(200_000, distance)
    return Policy.by_column(SALARIES, {"salary": graph}, hide_presence=hide_presence)


# --- sentences ----------------------------------------------------------------------------------


def test_the_sentence_of_the_salaries() -> None:
    assert sentence(hiding(1_000), "salary") == (
        "Hide which of two values of 'salary' someone has when they are within 1,000 of each other."
    )


@pytest.mark.parametrize(
    ("attribute", "graph", "words"),
    [
        (Integer(0, 9), graphs.Full(10), "Hide which value of 'c' someone has."),
        (Integer(0, 99, 10), graphs.Threshold(10, 2), "they are within 20 of each other."),
        (Real(0, 1, "0.1"), graphs.Threshold(11, 2), "they are within 0.2 of each other."),
        (
            Date("2024-01-01", "2024-12-31", "week"),
            graphs.Threshold(53, 1),
            "are within 1 week of each other.",
        ),
        (
            Category(["a", "b"], ordered=True),
            graphs.Threshold(2, 1),
            "they are within 1 place of each other.",
        ),
        (Category(["a", "b", "c"]), graphs.Partitioned([0, 1, 0]), "they are in the same group (a, c; b)."),
        (Integer(0, 99), graphs.Partitioned(Bins.width(100, 10)), "they are in the same group of 10."),
        (Integer(0, 99), graphs.Partitioned(np.arange(100) % 9), "are in the same one of 9 groups."),
        (Category(["a", "b", "c"]), graphs.Explicit(3, [(0, 2)]), "they are a listed pair (a and c)."),
        (Integer(0, 99), graphs.Banded(np.minimum(np.arange(100) + 1, 99)), "are one of 99 listed pairs."),
        (
            Integer(0, 20_000),
            graphs.Banded(np.minimum(np.arange(20_001) + 1, 20_000)),
            "they are one of 20,000 listed pairs.",
        ),
        (Category(["a", "b"]), graphs.Explicit(2, ()), "Hide nothing about 'c'."),
        (
            Category(["a"], missing="value"),
            graphs.Explicit(1, ()),
            "Hide only whether someone's 'c' is missing, ",
        ),
        (
            Integer(0, 9, missing="public"),
            graphs.Threshold(10, 2),
            "of each other. Whether it is missing is not hidden.",
        ),
        (
            Integer(0, 9, missing="public"),
            graphs.Full(10),
            "Hide which value of 'c' someone has. Whether it is missing is not hidden.",
        ),
        (
            Integer(0, 9, missing="value"),
            graphs.Threshold(10, 2),
            "of each other. Hide also whether it is missing.",
        ),
    ],
)
def test_a_sentence_for_every_kind_of_column(
    attribute: Attribute, graph: graphs.PolicyGraph, words: str
) -> None:
    said = sentence(Policy.by_column(Domain(c=attribute), {"c": graph}), "c")
    assert words in said and said.startswith("Hide ") and said.endswith(".")


def test_several_columns() -> None:
    domain = Domain(x=Integer(0, 9), y=Integer(0, 4), sex=Category(["f", "m"]))
    assert sentences(Policy.differential_privacy(domain)) == ("Hide everything in a person's record.",)
    area = Policy(
        domain, graphs.Product(graphs.Grid((10, 5), 3), graphs.Full(2), joint=False).hide_presence()
    )
    place, sex, one_by_one, presence = sentences(area)
    assert place == (
        "Hide which of two places ('x', 'y') someone has when they are within 3 of each other, the distances "
        "in all these columns added up."
    )
    assert sentence(area, "y") == place and sex == "Hide which value of 'sex' someone has."
    assert "one by one" in one_by_one and "whether someone is in the data" in presence


# --- from words to graphs and back --------------------------------------------------------------


def test_words_become_graphs() -> None:
    salary = SALARIES["salary"]
    assert column_graph(salary, hide_within="1,000") == graphs.Threshold(200_000, 1_000)
    assert column_graph(salary, everything=True) == graphs.Full(200_000)
    assert column_graph(salary, nothing=True) == graphs.Explicit(200_000, ())
    assert column_graph(salary, groups_of=10_000) == graphs.Partitioned(Bins.width(200_000, 10_000))
    halves = column_graph(salary, groups={"low": ["0..99999"], "high": ["100,000 .. 199,999"]})
    assert halves.components().count == 2 and halves.has_edge(0, 99_999) and not halves.has_edge(0, 100_000)
    days = Date("2024-01-01", "2024-12-31")
    assert column_graph(days, hide_within="2 weeks") == graphs.Threshold(366, 14)
    hours = Date("2024-01-01", "2024-01-02", "hour")
    assert column_graph(hours, hide_within="90 minutes") == graphs.Threshold(48, 2)  # rounded up
    level = Category(["low", "mid", "high"], ordered=True)
    assert column_graph(level, between=[("low", "mid")]).edges().tolist() == [[0, 1]]
    assert column_graph(Real(0, 1, "0.1"), hide_within="0.15") == graphs.Threshold(11, 2)


def test_what_cannot_be_a_graph() -> None:
    level = Category(["low", "mid", "high"], ordered=True, missing="value")
    for error, words in (
        (InvalidGraph, {}),
        (InvalidGraph, {"everything": True, "nothing": True}),
        (InvalidThreshold, {"hide_within": 0}),
        (InvalidThreshold, {"hide_within": "far"}),
        (InvalidBins, {"groups": [["low", "mid"]]}),
        (InvalidBins, {"groups": [["low", "mid"], ["mid", "high"]]}),
        (InvalidBins, {"groups": [["low", "mid", "high"], []]}),
        (InvalidBins, {"groups": {"all": "low"}}),
        (InvalidBins, {"groups": [["low", "mid", "high", "missing"]]}),
        (InvalidBins, {"groups": [["low", "mid", "high", "banana"]]}),
        (InvalidGraph, {"between": [("low", "low")]}),
        (InvalidGraph, {"between": [("low", "missing")]}),
        (InvalidGraph, {"between": ["low"]}),
    ):
        with pytest.raises(error):
            column_graph(level, **words)  # type: ignore[arg-type]
    with pytest.raises(InvalidBins, match="wrong way round"):
        column_graph(Integer(0, 9), groups=[["9..0"]])
    with pytest.raises(InvalidThreshold, match="no distance"):
        column_graph(Category(["a", "b"]), hide_within=1)
    with pytest.raises(TooLarge):
        column_graph(Integer(0, 10**9), groups=[["0..9"]])


ATTRIBUTES: tuple[Attribute, ...] = (
    Integer(-3, 20, 4),
    Real("-0.5", "0.5", "0.2"),
    Category(["no", "a..b", " ", "1", "ä: b", "#"], ordered=True),
    Category([7, -1, 30, 4, 5], missing="value"),
    Integer(0, 6, missing="public"),
    Date("2024-02-26", "2024-03-02"),
    Date("2024-01-01T00:00", "2024-01-01T05:00", "hour"),
    Boolean(),
)


@seeds(70)
def test_an_editor_gets_back_what_it_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    attribute = ATTRIBUTES[seed % len(ATTRIBUTES)]
    graph, table = oracle.line_graph(rng, attribute.value_count)
    rule = current(Policy.by_column(Domain(c=attribute), {"c": graph}), "c")
    assert (oracle.adjacency(rule.graph(attribute)) == table).all()
    assert rule.missing == (attribute.missing == "value")


def test_too_many_pairs_are_not_listed() -> None:
    graph = graphs.Banded(np.minimum(np.arange(20_000) + 3, 19_999))
    rule = current(Policy.by_column(Domain(c=Integer(0, 19_999)), {"c": graph}), "c")
    assert rule.hides is Hides.PAIRS and rule.said is None and rule.entries == 59_994
    with pytest.raises(InvalidGraph, match="too much to list"):
        rule.graph(Integer(0, 19_999))


# --- inclusion ----------------------------------------------------------------------------------


def random_graph(rng: np.random.Generator, shape: tuple[int, ...]) -> oracle.Case:
    """Everything that a policy can be made of, missing cells, areas and hidden presence included."""
    kind = rng.integers(0, 4)
    if kind == 0:
        area, _ = oracle.l1_grid(rng, shape[:2])
        rest = [oracle.line_graph(rng, n)[0] for n in shape[2:]]
        graph = graphs.Product(area, *rest, joint=bool(rng.random() < 0.5)) if rest else area
        case = graph, oracle.adjacency(graph)
    elif kind == 1:
        factors = [
            graphs.Cone(oracle.line_graph(rng, n - 1)[0], graphs.Apex.MISSING)
            if n > 1 and rng.random() < 0.4
            else oracle.apart_graph(rng, n)[0]
            if n > 1 and rng.random() < 0.3
            else oracle.line_graph(rng, n)[0]
            for n in shape
        ]
        graph = graphs.Product(*factors, joint=bool(rng.random() < 0.5))
        case = graph, oracle.adjacency(graph)
    else:
        case = oracle.boxes_graph(rng, shape)
    return oracle.with_presence(case) if rng.random() < 0.2 else case


def widened(table: np.ndarray, size: int) -> np.ndarray:
    wide = np.zeros((size, size), dtype=bool)
    wide[: len(table), : len(table)] = table
    return wide


def test_inclusion_is_inclusion_of_edges() -> None:
    answers = []
    for seed in range(1_200):
        rng = np.random.default_rng(seed)
        shape = oracle.random_shape(rng)
        (outer, wide), (inner, narrow) = random_graph(rng, shape), random_graph(rng, shape)
        size = max(len(wide), len(narrow))
        truth = bool((widened(narrow, size) <= widened(wide, size)).all())
        assert includes(outer, inner) is truth, (seed, outer, inner)
        answers.append(truth)
    assert 0.2 < np.mean(answers) < 0.8


@seeds(80)
def test_differences_between_random_policies(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = oracle.random_shape(rng)
    domain = Domain.of({f"c{axis}": Integer(0, n - 1) for axis, n in enumerate(shape)})
    (old, before), (new, after) = random_graph(rng, shape), random_graph(rng, shape)
    found = difference(Policy(domain, old), Policy(domain, new))
    size = max(len(before), len(after))
    before, after = widened(before, size), widened(after, size)
    assert found.tightens is bool((after & ~before).any())
    assert found.loosens is bool((before & ~after).any())
    assert found.same is bool((before == after).all())
    assert ("Both policies hide exactly the same." in found.sentences) is found.same


def test_closed_forms_at_any_size() -> None:
    many = 10**12
    wide, narrow = graphs.Threshold(many, 10**6), graphs.Threshold(many, 10**5)
    assert includes(wide, narrow) and not includes(narrow, wide)
    full = graphs.Full(many * 7)
    assert includes(full, graphs.Product(wide, graphs.Full(7)))
    assert includes(graphs.Product(wide, graphs.Full(7)), full) is False
    area = graphs.Grid((10**6, 10**6), 10**5)
    assert includes(area, graphs.Product(graphs.Threshold(10**6, 50_000), graphs.Threshold(10**6, 50_000)))
    assert includes(graphs.Product(graphs.Threshold(10**6, 99_999), graphs.Full(10**6)), area) is False
    assert includes(graphs.Explicit(200_000, [(0, 1)]), graphs.Threshold(200_000, 1_000)) is False


def test_what_cannot_be_told_is_not_told() -> None:
    domain = Domain(a=Integer(0, 299), b=Integer(0, 299))
    lines = Policy.by_column(domain, {name: graphs.Threshold(300, 20) for name in domain})
    halves = Policy(domain, graphs.Partitioned(np.arange(90_000) % 2))
    found = difference(halves, lines)
    assert (found.tightens, found.loosens, found.same) == (None, True, False)
    assert "Whether this hides more could not be computed for policies of this size." in found.sentences
    assert includes(graphs.Partitioned(np.arange(90_000) % 2), lines.graph) is None


# --- differences in words -----------------------------------------------------------------------


def test_tightening_and_loosening() -> None:
    tighter = difference(hiding(1_000), hiding(10_000))
    assert (tighter.tightens, tighter.loosens, tighter.same) == (True, False, False)
    assert tighter.sentences == (
        "'salary' was: Hide which of two values of 'salary' someone has when they are within 1,000 of each "
        "other. Now: Hide which of two values of 'salary' someone has when they are within 10,000 of each "
        "other.",
        "This hides more: some values that could be told apart must now stay hidden.",
    )
    looser = difference(hiding(10_000), hiding(1_000))
    assert (looser.tightens, looser.loosens) == (False, True) and looser.columns[0].changed
    same = difference(hiding(5), hiding(5))
    assert same.same and same.sentences == ("Both policies hide exactly the same.",)
    json.dumps(looser.to_plain())


def test_answers_that_become_exact() -> None:
    tens = Policy.by_column(SALARIES, {"salary": graphs.Partitioned(Bins.width(200_000, 10_000))})
    ones = Policy.by_column(SALARIES, {"salary": graphs.Partitioned(Bins.width(200_000, 1_000))})
    found = difference(hiding(1_000), tens)
    assert found.newly_exact == ("how many rows are in each of the 20 groups of 'salary'",)
    assert found.tightens and found.loosens
    coarser = difference(ones, tens)  # a group of 10,000 is ten groups of 1,000, whose counts were exact
    assert coarser.newly_exact == () and coarser.no_longer_exact and coarser.tightens and not coarser.loosens
    shown = difference(hiding(1_000, hide_presence=True), hiding(1_000))
    assert shown.newly_exact == ("how many rows there are",) and shown.loosens and not shown.tightens
    assert not any(change.changed for change in shown.columns)


def test_columns_one_by_one_hide_less() -> None:
    domain = Domain(a=Integer(0, 9), b=Integer(0, 9))
    together = Policy.by_column(domain, {})
    apart = Policy.by_column(domain, {}, joint=False)
    found = difference(Policy.differential_privacy(domain), apart)
    assert found.loosens and not found.tightens and "one by one" in found.sentences[0]
    assert difference(Policy.differential_privacy(domain), together).same


def test_policies_about_other_columns_are_not_compared() -> None:
    with pytest.raises(InvalidInput, match="different columns"):
        difference(hiding(1), Policy.differential_privacy(Domain(age=Integer(0, 199_999))))
