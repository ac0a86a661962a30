"""Of many random cases in one test, every one is looked at, and the one that fails is named."""

from __future__ import annotations

import pytest

from tests.seeds import seeds


def test_every_seed_has_its_turn() -> None:
    seen: list[int] = []
    every = seeds(120)(seen.append)
    (mark,) = every.pytestmark  # type: ignore[attr-defined]
    for block in mark.args[1]:
        every(block)
    assert seen == list(range(120))


def test_the_one_that_fails_is_named() -> None:
    @seeds(5)
    def case(seed: int) -> None:
        assert seed != 3

    with pytest.raises(AssertionError) as failed:
        case(range(5))
    assert failed.value.__notes__ == ["seed=3"]
