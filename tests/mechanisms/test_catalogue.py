"""Every mechanism of the catalogue keeps the contract: private on every edge, unbiased, honest on error."""

from __future__ import annotations

import pytest

import blowfishdb as bf
from blowfishdb.mechanisms import CATALOGUE, Mechanism


@pytest.mark.parametrize("mechanism", CATALOGUE, ids=lambda m: repr(m)[:60])
def test_it_keeps_the_contract(mechanism: Mechanism) -> None:
    checked = bf.check_mechanism(mechanism)
    assert checked.planned and not checked.without_certificate


def test_the_catalogue_has_one_of_each() -> None:
    assert len({repr(mechanism) for mechanism in CATALOGUE}) == len(CATALOGUE)
