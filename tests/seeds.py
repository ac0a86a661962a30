"""Tests of hundreds of random cases: each by its seed, dozens in one test; the one that fails is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

_AT_ONCE = 50


def seeds(count: int) -> Callable[[Callable[[int], None]], Callable[[range], None]]:
    """A decorator of a test of one seed: it is run for all below ``count``."""
    blocks = [range(first, min(first + _AT_ONCE, count)) for first in range(0, count, _AT_ONCE)]

    def decorate(test: Callable[[int], None]) -> Callable[[range], None]:
        @pytest.mark.parametrize("block", blocks, ids=lambda block: f"{block[0]}-{block[-1]}")
        def every(block: range) -> None:
            for seed in block:
                try:
                    test(seed)
                except BaseException as failure:
                    failure.add_note(f"seed={seed}")
                    raise

        every.__name__, every.__doc__, every.__module__ = test.__name__, test.__doc__, test.__module__
        return every

    return decorate
