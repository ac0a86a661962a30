"""What people could not read in the charts: order, orientation, thresholds, noise too small to see, names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.questions.readings import Reading
from blowfishdb.messages.answers import compare
from blowfishdb.messages.curator import Preview
from blowfishdb.messages.quotes import Tradeoff, TradeoffPoint
from blowfishdb.show import charts
from blowfishdb.show.charts.heat import coordinates
from blowfishdb.show.tables import answer_names, comparison_table, one_number
from tests.made_up import bins, hill, made_up

KINDS = tuple(f"kind {chr(97 + i)}" for i in range(26))


def texts(chart: Any) -> list[str]:
    """Every text of a picture, in the order in which it is drawn."""
    root = ElementTree.fromstring(charts.svg(chart))
    return [element.text for element in root.iter() if element.tag.endswith("text") and element.text]


def layers(chart: Any) -> list[dict[str, Any]]:
    """The layers of the first panel."""
    spec = chart.to_dict()
    panel = spec["vconcat"][0] if "vconcat" in spec else spec
    return list(panel["layer"])


def test_kinds_lie_sorted_and_every_name_is_there() -> None:
    found = made_up((KINDS,), np.arange(26) * 10.0, axes=("kind",), alpha=5)
    answer = replace(found, loose=("kind",))
    drawn = layers(charts.answer_chart(answer, width=272))
    assert drawn[0]["encoding"]["y"]["sort"] == list(KINDS[::-1]) and "xOffset" not in drawn[0]["encoding"]
    shown = texts(charts.answer_chart(answer))
    assert [text for text in shown if text in KINDS] == list(KINDS[::-1])
    missing = replace(answer, labels=((*KINDS[:-1], "missing"),))
    assert layers(charts.answer_chart(missing))[0]["encoding"]["y"]["sort"][-1] == "missing"


def test_of_many_kinds_the_largest_are_drawn_and_the_others_are_said_to_be_in_the_table() -> None:
    labels = tuple(f"k{i}" for i in range(45))
    answer = replace(made_up((labels,), hill(45), axes=("kind",)), loose=("kind",))
    chart = charts.answer_chart(answer)
    assert len(layers(chart)[0]["encoding"]["y"]["sort"]) == 30
    assert "The 30 largest of 45 are drawn" in chart.to_dict()["description"]


def test_ordered_values_keep_their_order() -> None:
    assert "sort" not in str(layers(charts.answer_chart(made_up(bins(5), hill(5))))[0]["encoding"]["y"])


def test_the_first_column_is_on_x_and_the_second_goes_upwards() -> None:
    plane = made_up((("a", "b", "c"), ("low", "high")), np.arange(6.0), axes=("kind", "level"))
    encoding = layers(charts.answer_chart(plane))[0]["encoding"]
    assert (encoding["x"]["title"], encoding["y"]["title"]) == ("kind", "level")
    assert encoding["y"]["sort"] == ["high", "low"]  # from the top
    assert "every cell is within" in plane.promise and "all cells" in plane.brief
    graph = charts.graph_chart(bf.graphs.Grid((6, 4), 1), columns={"east": 6, "north": 4}).to_dict()
    drawn = graph["layer"][0]["encoding"]
    assert (drawn["x"]["title"], drawn["y"]["title"], drawn["y"]["sort"]) == ("east", "north", "descending")


@pytest.mark.parametrize(
    ("axes", "map_"), [(("lat", "lon"), True), (("x", "y"), True), (("age", "salary"), False)]
)
def test_a_map_has_square_cells(axes: tuple[str, str], map_: bool) -> None:
    plane = made_up((bins(20)[0], bins(10)[0]), np.ones(200) * 99, axes=axes)
    spec = charts.answer_chart(plane, width=600).to_dict()
    panel = spec["vconcat"][0] if "vconcat" in spec else spec
    assert coordinates(axes) is map_ and (panel["height"] == 300) is map_


def test_the_limit_of_a_question_is_a_line_in_the_picture() -> None:
    found = made_up((bins(9)[0][3:6],), [900, 800, 520], kind="above")
    drawn = charts.answer_chart(replace(found, form={"kind": "above", "limit": 500}))
    assert any(each.get("encoding", {}).get("x", {}).get("field") == "limit" for each in layers(drawn))
    assert "the limit, 500" in texts(drawn)


def test_noise_that_cannot_be_seen_is_said() -> None:
    large = made_up(bins(20), np.cumsum(hill(20)) * 50, kind="cumulative", alpha=50)
    assert "±50 is thinner than the line: 0.0" in charts.answer_chart(large).to_dict()["description"]
    assert "people; ±50 is thinner than the line" in texts(charts.answer_chart(large))
    small = made_up(bins(20), np.cumsum(hill(20)), kind="cumulative", alpha=900)
    drawn = charts.answer_chart(small)
    assert "thinner" not in drawn.to_dict()["description"]
    assert "noise interval, 95 % of the time" in texts(drawn)


def test_one_number_is_large_and_has_no_axis() -> None:
    answer = made_up((("rows",),), [46_682], kind="count", axes=(), alpha=500)
    told = one_number(answer)
    assert told is not None and (told.value, told.off, told.unit) == ("46,682", "± 500", "people")
    chart = charts.answer_chart(answer)
    assert "axis" not in str(layers(chart)) and {"46,682", "± 500 people"} <= set(texts(chart))
    total = one_number(made_up((("sum",),), [149_655_770], kind="sum", alpha=2_500_000))
    assert total is not None and total.off == "± 2,500,000"
    cut = one_number(made_up((("rows",),), [10], kind="count", axes=(), alpha=50))
    assert cut is not None and cut.off == "0 … 60,"
    assert one_number(made_up(bins(2), [1, 2])) is None


@pytest.mark.parametrize(
    ("one", "other", "names"),
    [
        (
            "histogram of age where sex == 'male'",
            "histogram of age where sex == 'female'",
            ("male", "female"),
        ),
        ("histogram of age", "histogram of age where age > 30", ("all rows", "age > 30")),
        ("histogram of age", "histogram of age", ("±50", "±20")),
    ],
)
def test_two_answers_are_named_by_what_they_ask(one: str, other: str, names: tuple[str, str]) -> None:
    first = made_up(bins(4), hill(4), question=one, number=86)
    found = compare(first, made_up(bins(4), hill(4) / 2, question=other, number=83, alpha=20))
    assert answer_names(found) == names
    assert comparison_table(found).columns[1:4] == (*names, " − ".join(names))
    assert "#8" not in " ".join(texts(charts.comparison_chart(found)))


@pytest.mark.parametrize("width", [640, 300])
def test_a_curator_sees_kinds_lying_as_well_with_every_name(width: int) -> None:
    kinds = KINDS[:8]
    noisy = replace(made_up((kinds,), np.arange(8) * 10.0, axes=("kind",), alpha=5), loose=("kind",))
    truth = noisy.values + 3
    preview = Preview(Reading(noisy.labels, truth, truth, truth, noisy.exact), noisy, stand_in=False)
    chart = charts.preview_chart(preview, width=width)
    pictured, _legend = chart.to_dict()["vconcat"]
    panels = next(iter(pictured[way] for way in ("hconcat", "vconcat") if way in pictured))
    encodings = [panel["layer"][0]["encoding"] for panel in panels]
    assert all(each["y"]["sort"] == list(kinds[::-1]) for each in encodings)
    assert encodings[0]["x"]["scale"]["domain"] == encodings[1]["x"]["scale"]["domain"]
    shown = texts(chart)
    assert [text for text in shown if text in kinds][:8] == list(kinds[::-1])
    assert any("TRUE DATA" in text for text in shown)


@pytest.mark.parametrize("width", [640, 272])
def test_a_curator_sees_a_curve_as_analysts_do(width: int) -> None:
    noisy = made_up(bins(20), np.cumsum(hill(20)), kind="cumulative", alpha=900)
    truth = noisy.values + 3
    chart = charts.preview_chart(
        Preview(Reading(noisy.labels, truth, truth, truth, noisy.exact), noisy, stand_in=True), width=width
    )
    pair, strip = chart.to_dict()["vconcat"]
    panels = pair["hconcat" if width == 640 else "vconcat"]
    kinds = [[layer["mark"]["type"] for layer in panel["layer"]] for panel in panels]
    assert kinds == [["line", "rule", "text"], ["area", "line", "rule"]]  # the rule tells what is pointed at
    answered = {layer["mark"].get("style"): layer for layer in layers(charts.answer_chart(noisy))}
    for layer in panels[1]["layer"][:2]:
        assert layer["mark"] == answered[layer["mark"]["style"]]["mark"]
    assert strip["vconcat"][0]["mark"]["type"] == "bar"
    assert {"people", "noise interval, 95 % of the time"} <= set(texts(chart))


def test_the_last_distance_of_a_tradeoff_has_room_for_its_label() -> None:
    thetas = (500, 1_000, 5_000, 10_000, 50_000, 99_999)
    points = tuple(
        TradeoffPoint("everything" if t > 50_000 else f"within {t}", Epsilon("0.1"), 50.0, "Laplace", t)
        for t in thetas
    )
    shown = {
        width: layers(charts.tradeoff_chart(Tradeoff("q", 50.0, Epsilon("0.1"), points), width=width))[0][
            "encoding"
        ]["x"]["axis"]["values"]
        for width in (640, 272)
    }
    assert shown == {640: [*thetas], 272: [500, 1_000, 5_000, 10_000, 99_999]}
