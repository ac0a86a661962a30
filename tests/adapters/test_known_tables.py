"""Published tables of counts, pasted or from a file."""

from __future__ import annotations

import pytest

import blowfishdb as bf
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.language.known import read_table

DOMAIN = bf.Domain(
    region=bf.Category(["north", "south"]),
    age=bf.Integer(0, 29),
    level=bf.Category(["low", "high"], ordered=True, missing="value"),
)


def test_values_in_any_order_and_what_is_not_listed_counts_nothing() -> None:
    table = read_table('level,region,count\nhigh,south,"1,200"\n,north,3\nmissing,south,4\n', DOMAIN)
    assert table.columns == ("level", "region") and table.bins == (None, None)
    assert table.answers == (0, 0, 0, 1_200, 3, 4)


def test_ranges_of_values_are_the_rows_of_the_table() -> None:
    table = read_table("age,COUNT\n10..29,5\n0..9,7\n", DOMAIN)
    assert table.bins[0] is not None and table.bins[0].count == 2
    assert table.answers is not None
    assert table.answers[int(table.bins[0].assign([3])[0])] == 7
    assert table.answers[int(table.bins[0].assign([12])[0])] == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "first|begins"),
        ("region\nnorth\n", "called count"),
        ("region,number\nnorth,1\n", "called count"),
        ("region,count\nnorth,1\nnorth,2\n", "Line 3: this combination is listed twice"),
        ("region,count\nnorth,-1\n", "Line 2: a count is a whole number"),
        ("region,count\nnorth\n", "Line 2 has 1 entries instead of 2"),
        ("place,count\nnorth,1\n", "place"),
        ("region,count\neast,1\n", "east"),
        ("age,count\n0..9,1\n", "without a group"),
    ],
)
def test_what_is_no_table(text: str, words: str) -> None:
    with pytest.raises(BlowfishError, match=words):
        read_table(text, DOMAIN)


def test_a_table_about_other_columns_than_were_named() -> None:
    with pytest.raises(InvalidInput, match="not about age"):
        read_table("region,count\nnorth,1\n", DOMAIN, columns=["age"])
