"""Bins by default begin at round values, whatever the first declared one is."""

from __future__ import annotations

import pytest

import blowfishdb as bf
from blowfishdb.core.questions.round_bins import round_bins
from blowfishdb.language.short import column_text


@pytest.mark.parametrize(
    ("attribute", "most", "cut"),
    [
        (bf.Integer(0, 199_999), 20, "c(bins=20)"),
        (bf.Integer(18, 97), 10, "c(edges=[18, 20, 30, 40, 50, 60, 70, 80, 90])"),
        (bf.Integer(0, 9_999), 8, "c(width=2000)"),
        (bf.Real(0, 1, "0.01"), 20, "c(width=0.1)"),
        (bf.Real("0.05", "0.95", "0.05"), 5, "c(edges=[0.05, 0.2, 0.4, 0.6, 0.8])"),
        (bf.Date("2022-11-20", "2024-02-10", "day"), 3, "c(edges=[2022-11-20, 2023-01-01, 2024-01-01])"),
        (bf.Date("2024-01-01", "2024-12-31", "week"), 20, "c(bins=20)"),
        (bf.Integer(1, 99, 7), 10, "c(bins=10)"),  # no round value begins a cell
        (bf.Integer(0, 9), 20, "c"),
        (bf.Category(("a", "b")), 20, "c"),
    ],
)
def test_bins_are_round(attribute: bf.Integer, most: int, cut: str) -> None:
    form = round_bins("c", attribute, most)
    assert column_text(form) == cut
    assert not form.cut or form.axis(bf.Domain(c=attribute)).bins.count <= most
