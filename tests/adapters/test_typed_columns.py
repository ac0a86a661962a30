"""Columns and rules survive being written as texts, and what cannot be meant is refused in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.core.policy.columns import Hides, current, ungrouped, with_point
from blowfishdb.core.policy.policy import Policy
from blowfishdb.language.columns import FIELDS, read_column, read_rule, written_column, written_rule
from tests.core import oracle

COLUMNS: tuple[Attribute, ...] = (
    Integer(-3, 20, 4, missing="value"),
    Real("-0.5", "0.5", "0.2", outside="drop"),
    Real(0, "1/3", "1/9"),
    Category(["north", "a..b", "1/2", "10,000"], ordered=True, missing="public"),
    Category(["1/2"]),
    Date("2024-02-26", "2024-03-02", missing="clamp"),
    Date("2024-01-01T00:00", "2024-01-01T05:00", "hour"),
    Boolean(missing="drop"),
)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.describe()[:30])
def test_a_column_survives_its_texts(column: Attribute) -> None:
    texts = written_column(column)
    assert all(isinstance(text, str) for text in texts.values())
    assert set(texts) == {"kind", *FIELDS[texts["kind"]], "missing", "outside"}
    assert read_column(texts) == column
    assert read_column({}, column) == column
    assert read_column({"missing": "drop"}, column).missing == "drop"


def test_numbers_are_typed_alike() -> None:
    for kind, step in (("integer", "1"), ("real", "0.5")):
        typed = {"kind": kind, "lo": "0", "hi": "$200,000", "step": step}
        assert read_column(typed) == read_column({"kind": kind, "limits": "0 .. 200_000", "step": step})
    assert read_column({"limits": "a, b"}, Category(["c"], ordered=True)) == Category(
        ["a", "b"], ordered=True
    )


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"kind": "elephant"}, "no column of kind"),
        ({"kind": "integer", "limits": "many"}, "not a lowest and a highest value"),
        ({"kind": "integer", "limits": "few..many"}, "'few' is not a whole number"),
        ({"kind": "real", "limits": "0..1"}, "kind real is not declared like that"),
        ({"kind": "boolean", "limits": "0..1"}, "kind boolean is not declared like that"),
        ({"kind": "date", "limits": "2024-01-01..2024-02-01", "step": "2"}, "kind date is not declared"),
    ],
)
def test_what_is_no_column(typed: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_column(typed)


@pytest.mark.parametrize("seed", range(40))
def test_a_rule_survives_its_text(seed: int) -> None:
    column = (COLUMNS[0], COLUMNS[3], COLUMNS[5], COLUMNS[7])[seed % 4]
    graph, table = oracle.line_graph(np.random.default_rng(seed), column.value_count)
    rule = current(Policy.by_column(Domain(c=column), {"c": graph}), "c")
    again = read_rule("c", rule.hides, written_rule(rule))
    assert (oracle.adjacency(again.graph(column)) == table).all()


def test_a_rule_that_needs_words_has_some() -> None:
    for hides in (Hides.WITHIN, Hides.WIDTH, Hides.GROUPS, Hides.PAIRS):
        with pytest.raises(BlowfishError) as refused:
            read_rule("c", hides, "")
        assert refused.value.fixes
    with pytest.raises(BlowfishError, match="two values on one line"):
        read_rule("c", Hides.PAIRS, "north and south\nnorth")


@pytest.mark.parametrize("kind", ["integer", "real"])
@pytest.mark.parametrize("typed", ["1,5", "20,00", "1,000,00"])
def test_a_comma_that_is_not_between_thousands_is_no_number(kind: str, typed: str) -> None:
    with pytest.raises(InvalidInput, match="number"):
        read_column({"kind": kind, "limits": f"0:{typed}", "step": "1"})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("$ 10,000", "10000"),
        ("10 000", "10000"),
        ("10'000 €", "10000"),
        ("1.234,50", "1234.50"),
        ("£1.5", "1.5"),
        ("1,5", "1,5"),
        ("0,125", "0,125"),
        ("north", "north"),
    ],
)
def test_numbers_are_read_as_people_write_them(typed: str, meant: str) -> None:
    assert ungrouped(typed) == meant


def test_a_form_reads_a_decimal_comma() -> None:
    typed = ("1,5", "20,00", "0,125", "1,500", "north")
    assert [with_point(each) for each in typed] == ["1.5", "20.00", "0.125", "1,500", "north"]
