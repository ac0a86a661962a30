"""Sentences as forms: what a policy says goes into an address and comes out the same."""

from __future__ import annotations

import pytest

from blowfishdb.core.domain.attributes import Category, Integer
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.graphs import Explicit, Full, Grid, PolicyGraph, Product
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.columns import column_graph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.entrypoints.server.web.ask_draft import Draft
from blowfishdb.entrypoints.server.web.place_form import PlaceForm, PlaceMap
from blowfishdb.entrypoints.server.web.policy_form import PolicyForm, TemplateForm, bounds
from blowfishdb.entrypoints.server.web.tradeoff import split, usual
from blowfishdb.language.short import parse_question

DOMAIN = Domain(salary=Integer(0, 99_999), age=Integer(18, 97), region=Category(("north", "south", "east")))


def _policy(joint: bool = True, hide_presence: bool = False, **columns: PolicyGraph) -> Policy:
    return Policy.by_column(DOMAIN, columns, joint=joint, hide_presence=hide_presence)


POLICIES = (
    Policy.differential_privacy(DOMAIN),
    _policy(salary=column_graph(DOMAIN["salary"], hide_within=1_000)),
    _policy(joint=False, age=column_graph(DOMAIN["age"], groups_of=10)),
    _policy(hide_presence=True, region=column_graph(DOMAIN["region"], groups=[["north", "south"], ["east"]])),
    _policy(region=column_graph(DOMAIN["region"], between=[("north", "east")])),
    _policy(age=column_graph(DOMAIN["age"], groups=[["18..29", "97"], ["30..96"]])),
    _policy(region=column_graph(DOMAIN["region"], nothing=True)),
    _policy(
        age=Explicit(80, [(u, v) for u in range(80) for v in range(u) if (u + v) % 3])
    ),  # too long to type
)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.graph.describe())
def test_a_policy_survives_its_address(policy: Policy) -> None:
    form = PolicyForm.of(policy)
    again, wrong = PolicyForm.of(policy).changed(form.query()).policy(policy)
    assert again is not None and not wrong
    assert codec.plain(again.graph) == codec.plain(policy.graph)


def test_an_area_over_three_columns_is_kept_until_columns_are_said_one_by_one() -> None:
    cube = Domain(x=Integer(0, 9), y=Integer(0, 9), z=Integer(0, 9))
    area = Policy(cube, Grid((10, 10, 10), 5))
    form = PolicyForm.of(area)
    assert form.whole and form.changed(form.query()).policy(area) == (area, {})
    said = {"records": "together", "hide.x": "within", "within.x": "10"}
    policy, _ = form.changed(said).policy(area)
    assert policy is not None and policy.separable


def test_two_columns_are_a_place_until_somebody_says_otherwise() -> None:
    place = Policy(DOMAIN, Product(Grid((100_000, 80), 5), Full(3)))
    form = PolicyForm.of(place)
    assert not form.whole and form.place.columns == ("salary", "age") and form.place.within == "5"
    again, wrong = form.changed(form.query()).policy(place)
    assert again is not None and codec.plain(again.graph) == codec.plain(place.graph) and not wrong
    alone, _ = form.changed({"records": "together", "hide.salary": "everything"}).policy(place)
    assert alone is not None and alone.separable
    policy, wrong = form.changed(form.query() | {"place-within": "far"}).policy(place)
    assert policy is None and list(wrong) == ["salary"] and wrong["salary"].fixes


def test_a_map_counts_the_places_that_are_hidden_from_the_middle_one() -> None:
    small = Domain(x=Integer(0, 8), y=Integer(0, 4))
    for radius in (1, 2, 3, 20):
        drawn = PlaceMap.of(PlaceForm((("x", "y"),), ("x", "y"), str(radius)), small)
        graph = Grid((9, 5), radius)
        middle = drawn.middle[0] * 5 + drawn.middle[1]
        near = [other for other in range(45) if other != middle and graph.has_edge(middle, other)]
        assert drawn.hidden == 1 + len(near)


def test_groups_of_numbers_say_where_they_begin_and_end() -> None:
    def said(attribute: Integer, width: int) -> str:
        return bounds(attribute, column_graph(attribute, groups_of=width))

    assert said(Integer(0, 99_999), 25_000) == (
        "4 groups: 0 to 24,999; 25,000 to 49,999; 50,000 to 74,999; 75,000 to 99,999. "
        "They begin at 0, the lowest value."
    )
    assert said(Integer(18, 97), 30) == (
        "3 groups: 18 to 47; 48 to 77; 78 to 97. "
        "They begin at 18, the lowest value, and the last one is shorter."
    )
    assert bounds(DOMAIN["age"], Full(80)) == ""


def test_groups_of_a_short_list_begin_with_all_values_together() -> None:
    form = PolicyForm.of(POLICIES[0]).changed({"records": "together", "hide.region": "groups"})
    policy, wrong = form.policy(POLICIES[0])
    assert policy is not None and not wrong
    assert form.columns[2].values == ("north", "south", "east") and not form.columns[1].values
    odd = Domain(kind=Category(("a; b", "c")), age=Integer(0, 1))
    assert PolicyForm.of(Policy.differential_privacy(odd)).columns[0].values == ()


def test_all_that_is_wrong_is_told_by_column() -> None:
    said = {"records": "together", "hide.salary": "within", "hide.region": "pairs", "pairs.region": "north"}
    form = PolicyForm.of(POLICIES[0]).changed(said)
    policy, wrong = form.policy(POLICIES[0])
    assert policy is None and list(wrong) == ["salary", "region"]
    assert all(error.fixes for error in wrong.values())


def test_a_choice_that_nobody_offered_hides_everything() -> None:
    said = {
        "records": "together",
        "hide.salary": "no such thing",
        "hide.region": "within",
        "within.region": "1",
    }
    policy, wrong = PolicyForm.of(POLICIES[1]).changed(said).policy(POLICIES[1])
    assert not wrong and policy is not None and isinstance(policy.graph, Full)


def test_thousands_are_not_taken_apart() -> None:
    assert split("1,000, 10,000; 7\neverything") == ["1,000", "10,000", "7", "everything"]
    said = {
        "records": "together",
        "hide.salary": "groups",
        "groups.salary": "0..9,999, 20,000..99,999\n10000..19999",
    }
    policy, wrong = PolicyForm.of(POLICIES[0]).changed(said).policy(POLICIES[0])
    assert policy is not None and not wrong


def test_usual_distances_follow_the_declaration() -> None:
    assert usual(DOMAIN["age"]) == "1, 2, 5, 10, 20, 50, everything"
    assert usual(DOMAIN["region"]) == "everything"


def test_a_question_to_begin_with() -> None:
    form = TemplateForm.of(DOMAIN, {})
    assert (form.column, form.ask, form.bins) == ("salary", "cumulative", "20")
    assert TemplateForm.of(DOMAIN, {"column": "region"}).ask == "histogram"
    assert TemplateForm.of(DOMAIN, {"column": "nothing", "second": "nothing"}).column == "salary"
    assert TemplateForm.of(DOMAIN, {**form.query(), "bins": ""}).bins == ""
    assert TemplateForm.of(DOMAIN, form.query()) == form


def test_a_column_is_cut_at_round_values_as_on_the_page_for_questions() -> None:
    form = TemplateForm.of(DOMAIN, {"column": "age", "bins": "10"}).form(DOMAIN)
    assert form.columns[0].edges == (18, *range(20, 98, 10))
    for column, bins in (("age", "10"), ("age", "80"), ("salary", "30"), ("region", "2")):
        here = TemplateForm.of(DOMAIN, {"ask": "histogram", "column": column, "bins": bins})
        there = Draft.read({"shape": "histogram", "column": column, "cut": "round", "size": bins}, DOMAIN)
        assert here.form(DOMAIN) == parse_question(there.question(DOMAIN), DOMAIN)


@pytest.mark.parametrize(
    "said", [{"bins": "many"}, {"bins": "0"}, {"bins": "20,000"}, {"ask": "nonsense"}, {"ask": "own"}]
)
def test_what_cannot_be_asked_is_an_error_with_something_to_try(said: dict[str, str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        TemplateForm.of(DOMAIN, {"ask": "cumulative", "bins": "20", **said}).form(DOMAIN)
    assert refused.value.fixes
