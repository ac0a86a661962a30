"""Every chart is drawn in both themes, says what it shows, and shows what its table says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.adapters.store.values import Budget
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.policy import protection
from blowfishdb.core.questions.readings import Reading
from blowfishdb.messages.answers import Places, compare
from blowfishdb.messages.curator import Preview
from blowfishdb.messages.quotes import Tradeoff, TradeoffPoint
from blowfishdb.show import charts, tables
from blowfishdb.show.charts import DARK, LIGHT, Palette
from blowfishdb.show.charts.frame import picked
from blowfishdb.show.tables import Table
from blowfishdb.show.words import amount, loss
from tests.made_up import bins, hill, made_up

ENDS = (tuple(f"≤ {10_000 * (i + 1) - 1:,}" for i in range(20)),)
AGES = tuple(str(age) for age in range(18, 48))
REGIONS = ("north", "south", "east", "west")
PLANE = made_up((AGES, REGIONS), np.outer(hill(30), [1, 0.5, 0.3, 0]).ravel(), axes=("age", "region"))
HISTOGRAM = made_up(bins(20), hill(20), alpha=150)
BUDGET = Budget("salaries", Epsilon(1), Epsilon("0.5"), Epsilon("0.1"))
PAID = [
    made_up(bins(2 + i), hill(2 + i), epsilon=e, number=i) for i, e in enumerate(("0.118", "0.2", "0.05"))
]
DOMAIN = bf.Domain(salary=bf.Integer(0, 199_999), region=bf.Category(REGIONS))
POLICY = bf.Policy.by_column(DOMAIN, {"salary": bf.graphs.Threshold(200_000, 1_000)})
ONE = Epsilon(1)


def traded(question: str, power: float) -> Tradeoff:
    thetas = (1_000, 5_000, 20_000, 50_000, 199_999)
    points = tuple(
        TradeoffPoint(
            f"within {t}", Epsilon(f"{max(0.1, 0.3 * (t / 199_999) ** power):.4f}"), 50.0 + t, "Ordered", t
        )
        for t in thetas
    )
    return Tradeoff(question, 50.0, Epsilon("0.1"), points)


def previewed(stand_in: bool = False) -> Preview:
    truth = HISTOGRAM.values + 10
    return Preview(Reading(HISTOGRAM.labels, truth, truth, truth, HISTOGRAM.exact), HISTOGRAM, stand_in)


def _steps(column: str) -> Any:
    return protection.curve(POLICY, column, ONE)


def clusters(columns: int) -> Any:
    """Three clusters of so many columns, one of them empty."""
    names, centroids = ("x", "y", "z")[:columns], np.array([[10.0, 20, 30], [50, 60, 70], [90, 5, 1]])
    found = made_up(
        (("cluster 1", "cluster 2", "cluster 3"),),
        [900, 300, 0],
        axes=names,
        kind="clusters",
        question=f"3 clusters of {' and '.join(names)}",
    )
    places = Places(centroids[:, :columns], ((0.0, 99.0),) * columns)
    return replace(found, places=places, low=None, high=None, alpha=None, beta=None)


CLUSTERS = clusters(2)
BACKDROP = charts.Backdrop(np.linspace(0, 99, 5), np.linspace(0, 99, 4), hill(12).reshape(4, 3), number=7)
Drawn = Callable[[], tuple[Any, Table]]
G = bf.graphs
CASES: dict[str, Drawn] = {
    "histogram": lambda: (charts.answer_chart(HISTOGRAM, raw=True), tables.answer_table(HISTOGRAM)),
    "cumulative": lambda: _answer(made_up(ENDS, np.cumsum(hill(20)), kind="cumulative", alpha=900)),
    "thousands": lambda: _answer(made_up(bins(2_100, 40), hill(2_100))),
    "heat map": lambda: _answer(PLANE),
    "quantiles": lambda: _answer(made_up((("50 %", "90 %"),), [40_000, 61_000], kind="quantiles")),
    "mean": lambda: _answer(made_up((("mean",),), [-0.04], kind="mean", alpha=0.01)),
    "top": lambda: _answer(made_up((bins(9)[0][3:6],), [900, 800, 20], kind="top")),
    "nothing above": lambda: _answer(made_up(((),), [], kind="above")),
    "clusters": lambda: _answer(CLUSTERS),
    "clusters over a histogram": lambda: (
        charts.answer_chart(CLUSTERS, under=BACKDROP, width=300),
        tables.answer_table(CLUSTERS),
    ),
    "clusters of one column": lambda: _answer(clusters(1)),
    "clusters of three columns": lambda: _answer(clusters(3)),
    "comparison": lambda: _compared(20),
    "long comparison": lambda: _compared(60),
    "trade-off": lambda: _traded([traded("cumulative", 1.0)]),
    "trade-offs": lambda: _traded([traded("cumulative", 1.0), traded("histogram", 0.5)]),
    "protection": lambda: _protected("salary"),
    "protection of kinds": lambda: _protected("region"),
    "budget": lambda: _spent(BUDGET, PAID),
    "unused budget": lambda: _spent(Budget("salaries", ONE, Epsilon(0), Epsilon(0)), []),
    "preview": lambda: (charts.preview_chart(previewed()), charts.preview_table(previewed())),
    "small graph": lambda: _graph(G.Threshold(30, 4)),
    "ring": lambda: _graph(G.Threshold(8, 1).hide_presence()),
    "matrix": lambda: _graph(G.Threshold(500, 40)),
    "binned matrix": lambda: _graph(G.Threshold(200_000, 10_000)),
    "plane": lambda: _graph(G.Grid((40, 20), 5)),
}


def _answer(answer: Any) -> tuple[Any, Table]:
    return charts.answer_chart(answer), tables.answer_table(answer)


def _compared(count: int) -> tuple[Any, Table]:
    found = compare(made_up(bins(count), hill(count)), made_up(bins(count), 0.8 * hill(count), number=38))
    return charts.comparison_chart(found), tables.comparison_table(found)


def _traded(many: list[Tradeoff]) -> tuple[Any, Table]:
    return charts.tradeoff_chart(many, column="salary"), tables.tradeoff_table(many)


def _protected(column: str) -> tuple[Any, Table]:
    steps = _steps(column)
    return charts.protection_chart(steps, column, ONE), charts.protection_table(steps, column, ONE)


def _spent(budget: Budget, answers: Any) -> tuple[Any, Table]:
    return charts.budget_chart(budget, answers), tables.budget_table(budget, answers)


def _graph(graph: Any) -> tuple[Any, Table]:
    return charts.graph_chart(graph), charts.graph_table(graph)


@pytest.mark.parametrize("name", CASES)
def test_every_chart_is_drawn_and_described(name: str) -> None:
    chart, table = CASES[name]()
    spec = chart.to_dict()
    assert spec["title"]["text"] and len(spec["description"]) > 10
    assert table.caption and all(len(row) == len(table.columns) for row in table.rows)
    picture = charts.svg(charts.themed(chart, dark=True))
    root = ElementTree.fromstring(picture)
    assert int(float(root.attrib["width"])) <= 820 and root.attrib["aria-label"] == spec["description"]
    for text in _texts(root):
        assert "NaN" not in text and not re.search(r"[-−]0(?![.\d])|\d\.\d{7,}|undefined|null", text), text
    assert "NaN" not in picture and DARK.background in picture
    for row in table.rows:
        assert not any(re.search(r"nan|-0$|\d\.\d{10,}|\de-\d", cell) for cell in row)


@pytest.mark.parametrize("name", ["histogram", "preview"])
def test_charts_become_pictures(name: str) -> None:
    assert charts.png(CASES[name]()[0], scale=1).startswith(b"\x89PNG")


def _texts(root: ElementTree.Element) -> Iterator[str]:
    for element in root.iter("{http://www.w3.org/2000/svg}text"):
        yield "".join(element.itertext())


def marks(picture: str, role: str) -> int:
    """How many marks have this role, as screen readers are told."""
    return picture.count(f'aria-roledescription="{role}"')


def test_one_bar_for_each_bin_and_a_whisker_on_each() -> None:
    picture = charts.svg(charts.answer_chart(HISTOGRAM))
    assert marks(picture, "bar") == 20 and marks(picture, "rule mark") == 20
    faint = int((HISTOGRAM.low <= 0).sum())
    assert 0 < faint < 20 and picture.count('stroke-dasharray="3,3"') == faint + 1  # the legend


def test_the_two_panels_of_a_preview_have_the_same_axes() -> None:
    spec = charts.preview_chart(previewed()).to_dict()
    pair = spec["vconcat"][0]["hconcat"]
    domains = [panel["layer"][0]["encoding"]["y"]["scale"]["domain"] for panel in pair]
    assert domains[0] == domains[1] and [panel["width"] for panel in pair] == [284, 284]
    assert "TRUE DATA" in str(spec) and "TRUE DATA" not in str(
        charts.preview_chart(previewed(True)).to_dict()
    )


def test_the_points_of_a_tradeoff_can_be_clicked_and_the_free_gain_has_a_star() -> None:
    spec = charts.tradeoff_chart(traded("cumulative", 1.0)).to_dict()
    assert [param["name"] for param in spec["params"]] == ["picked"]
    rows = (
        [row for data in spec["datasets"].values() for row in data]
        if "datasets" in spec
        else spec["data"]["values"]
    )
    assert [row["policy"] for row in rows if row["star"]] == ["within 50000"]


def test_the_matrix_of_500_values_stays_light() -> None:
    assert len(charts.svg(charts.graph_chart(G.Threshold(500, 40)))) < 400_000
    assert (
        len(charts.svg(charts.graph_chart(G.Explicit(400, np.argwhere(np.triu(_random(400), 1))))))
        < 6_000_000
    )


def _random(size: int) -> Any:
    return np.random.default_rng(3).random((size, size)) < 0.4


def test_edges_are_counted_in_words() -> None:
    assert charts.graph_table(G.Threshold(5, 1)).caption == "4 pairs of values are hidden among 5 values."
    assert charts.graph_table(G.Threshold(5, 1)).rows[1] == ("1", "0, 2")
    assert charts.graph_table(G.Threshold(5, 1).hide_presence()).caption == (
        "4 pairs of values are hidden among 5 values, and so is whether someone is in the data."
    )
    left_out = charts.graph_table(G.Cone(G.Threshold(5, 1), G.Apex.OUTSIDE))
    assert "is counted." in left_out.caption and "not counted" in left_out.rows[0][1]


def test_bins_that_are_not_equal_lie_on_a_line_too() -> None:
    decades = G.Explicit(4, [(0, 1), (1, 2), (2, 3)])
    names = ["18–19", "20–29", "30–39", "40–42"]
    line = charts.graph_chart(decades, names, ordered=True).to_dict()
    assert "sequence(13)" in str(line) and "sequence(13)" not in str(
        charts.graph_chart(decades, names).to_dict()
    )


def test_a_place_that_is_asked_along_one_column_is_drawn_as_a_line() -> None:
    drawn = str(charts.graph_chart(G.Grid((1, 9), 2)).to_dict())
    assert "second column" not in drawn and "sequence(13)" in drawn


@pytest.mark.parametrize("graph", [G.Grid((4, 3), 1), G.Grid((4, 3), 1).project(np.arange(12)[::-1].copy())])
def test_a_policy_over_two_columns_is_drawn_with_their_names(graph: Any) -> None:
    """Also where the graph itself does not know that its values lie on a plane."""
    text = str(charts.graph_chart(graph, columns={"age": 4, "pay": 3}).to_dict())
    assert "'title': 'age'" in text and "'title': 'pay'" in text and "column" not in text
    labels = charts.box_labels([["young", "old"], ["low", "high"]])
    assert charts.graph_table(G.Grid((2, 2), 1), labels).rows[0] == ("young, low", "young, high, old, low")
    assert charts.box_labels([["a"] * 31, ["b"]]) is None


# --- frames ---------------------------------------------------------------------------------------


def test_at_most_seven_labels_and_as_many_as_fit() -> None:
    for count in (1, 2, 7, 8, 20, 333):
        for width in (300, 640):
            shown = picked(bins(count)[0], width)
            assert 1 <= len(shown) <= 7 and 7.2 * sum(len(label) for label in shown) <= max(width, 110)
            apart = picked((*bins(count)[0], "missing"), width)
            assert apart[0] == shown[0] and len(apart) <= 7
            assert apart[-1] == "missing" or len(apart) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (amount(-0.0001, 0), "0"),
        (amount(0.1 + 0.2, 3), "0.300"),
        (amount(1234567.0, 0), "1,234,567"),
        (amount(100.0, 2), "100.00"),
        (loss(0.118279), "0.118"),
        (loss(0.000012345), "0.0000123"),
        (loss(12.0), "12"),
        (loss(0), "0"),
    ],
)
def test_numbers_read_as_people_write_them(text: str, said: str) -> None:
    assert text == said


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_text_has_contrast(palette: Palette) -> None:
    for colour in (palette.text, palette.soft, palette.alarm):
        assert contrast(colour, palette.background) >= 4.5
    for colour in (palette.ink, palette.interval, *palette.kinds):
        assert contrast(colour, palette.background) >= 3
    for colour in palette.kinds:  # numbers on coloured parts are written in the colour of the background
        assert contrast(palette.background, colour) >= 4.5


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
