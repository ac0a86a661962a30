"""Audits of mechanisms find the faults that are planted, and none where there is none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb import noise
from blowfishdb.core.errors import NotFound
from blowfishdb.mechanisms.auditing import audit_black_box, audit_certificates, chosen, least_loss
from tests.entrypoints.commands import Shell
from tests.mechanisms.test_check import Forgetful


class TooLittle:
    """Noise that is narrower than it is asked to be."""

    def __init__(self, part: int) -> None:
        self._noise, self._part = noise.seeded(3), part

    def discrete_laplace(self, scale, size=None):
        return self._noise.discrete_laplace(scale / self._part, size)


def laplace(scale, shift, seed, runs=4_000):
    return shift + noise.seeded(seed).discrete_laplace(scale, runs).reshape(-1, 1).astype(float)


@pytest.mark.parametrize("scale", [1, 3])
def test_what_is_found_is_never_more_than_there_is(scale):
    found = least_loss(laplace(scale, 0, 1), laplace(scale, 1, 2))
    assert 0.3 / scale < found <= 1 / scale


def test_a_third_of_the_noise_is_found_and_no_difference_is_none():
    assert (
        least_loss(laplace(bf.Epsilon(1).fraction / 3, 0, 1), laplace(bf.Epsilon(1).fraction / 3, 1, 2)) > 1
    )
    assert least_loss(laplace(1, 0, 1), laplace(1, 0, 2)) < 0.1


def audited(source):
    ticks = itertools.count()  # a clock that is always late: the least number of releases
    tree = bf.mechanisms.AdaptiveTree()
    return audit_black_box("adaptive-tree", tree, noise=source, clock=lambda: next(ticks), seconds=0)


def test_a_mechanism_with_too_little_noise_is_found_from_outside():
    right, wrong = audited(noise.seeded(4)), audited(TooLittle(10))
    assert not right.fault and 0 <= right.loss <= 1 and right.problems >= 3 and right.releases >= 600
    assert wrong.loss > 1 and "at least" in wrong.fault


def test_a_forgotten_edge_is_found():
    assert audit_certificates("forgetful", Forgetful()).fault


@pytest.mark.thorough
def test_nothing_is_found_where_all_is_well():
    fine = audit_certificates("ordered", bf.mechanisms.Ordered())
    assert (fine.loss, fine.fault) == (1.0, "") and fine.problems >= 3


def test_names_are_known():
    assert {"laplace", "dawa"} <= set(chosen([]))
    with pytest.raises(NotFound, match="policy-tree"):
        chosen(["laplase"])


def test_the_command_line_says_it(tmp_path):
    shell = Shell(tmp_path / "none.blowfish")
    done = shell("audit", "mechanisms", "ordered-denoised", "--seconds", "0", "--json")
    (only,) = done.json["mechanisms"]
    assert done.code == 0 and only["name"] == "ordered-denoised" and only["exact"] is False
    assert np.isfinite(only["loss"]) and only["fault"] is None
    assert shell("audit", "mechanisms", "nobody").code != 0
    assert shell("audit", "one", "two").code == 2
    assert not (tmp_path / "none.blowfish").exists()
