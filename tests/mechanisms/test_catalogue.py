"""Every mechanism of the catalogue keeps the contract: private on every edge, unbiased, honest on error."""

from __future__ import annotations

import pytest

import blowfishdb as bf
from blowfishdb.mechanisms import CATALOGUE, NAMED

PLANNED = {
    "ordered": {"line, prefixes", "line, signed questions", "line, fractions"},
    "ordered-hierarchical": {
        "full, prefixes",
        "threshold, all ranges",
        "banded, ranges",
        "partition, ranges",
    },
}
QUICK = {"laplace", "ordered", "optimized"}
"""The others are asked by audits; each has tests of its own."""
REFUSED = {"ordered": {"full, prefixes", "hidden presence, prefixes"}}
REFUSING_NOTHING = {"hierarchical", "privelet"}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough) for name in NAMED]
)
def test_it_keeps_the_contract(name: str) -> None:
    checked = bf.check_mechanism(NAMED[name])
    assert checked.planned and not checked.without_certificate
    assert PLANNED.get(name, set()) <= set(checked.planned)
    assert REFUSED.get(name, set()) <= set(checked.refused)
    assert not (name in REFUSING_NOTHING and checked.refused)


def test_the_catalogue_has_one_of_each() -> None:
    assert len({repr(mechanism) for mechanism in CATALOGUE}) == len(CATALOGUE)
