"""A real attacker on made-up people: never surer than the promise allows, and certain without noise."""

from __future__ import annotations

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy.protection import certainty_at
from blowfishdb.service.attack import APART, BUDGET, STEP, TARGETS, attack, people


@pytest.mark.parametrize("apart", APART)
def test_no_attack_passes_what_the_promise_allows(apart: int) -> None:
    random, most = noise.seeded(7), certainty_at(apart // STEP, BUDGET)
    ends = []
    for _ in range(200):
        found = attack(person=3, apart=apart, answers=10, noise=random)
        assert all(max(s, 1 - s) <= m + 1e-6 for s, m in zip(found.sure, found.most, strict=True))
        assert found.most[-1] == pytest.approx(most, abs=1e-6) and abs(found.salary - found.other) == apart
        ends.append(found.sure[-1])
    beliefs = np.array(ends)
    # a Bayesian is as often right as they are sure: what they believe of the truth is more than a half
    assert beliefs.mean() > 0.5
    claimed = np.maximum(beliefs, 1 - beliefs).mean()
    assert abs((beliefs > 0.5).mean() + (beliefs == 0.5).mean() / 2 - claimed) < 0.12


def test_without_noise_everyone_is_caught() -> None:
    for person in range(1, TARGETS + 1):
        found = attack(person=person, apart=STEP, answers=1, noise=None)
        assert found.sure == (0.5, 1.0) and found.guess == found.salary == people()[person - 1]
        assert "caught" in found.sentence


@pytest.mark.parametrize("wrong", [{"person": 0}, {"apart": 3}, {"answers": 11}])
def test_nothing_else_can_be_attacked(wrong: dict[str, int]) -> None:
    asked = {"person": 1, "apart": STEP, "answers": 1} | wrong
    with pytest.raises(InvalidInput):
        attack(**asked, noise=None)
