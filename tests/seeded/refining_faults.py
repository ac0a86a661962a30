"""Faults in making a release more accurate for the difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.seeded.planting import Fault


def _never_refined(original: Any) -> Any:
    return lambda connection, numbers: set()


def _of_earlier_rows(original: Any) -> Any:
    return lambda self, dataset, snapshot, axes: original(self, dataset, max(1, snapshot - 1), axes)


def _with_new_noise(original: Any) -> Any:
    return lambda self, x, earlier, *, epsilon, noise: self.observe(x, epsilon=epsilon, noise=noise)


def _alone(original: Any) -> Any:
    def kernel(charge: Any, *more: Any) -> Any:
        detail = {name: fact for name, fact in charge.detail.items() if name != "whole"}
        return original(replace(charge, detail=detail), *more)

    return kernel


FAULTS = (
    Fault(
        "refined again",
        "a release whose refinement was lost is refined once more",
        "check_refinable/refined",
        _never_refined,
        "sharper lost",
    ),
    Fault(
        "refined other rows",
        "a release about earlier rows is refined with the rows of now",
        "StoredReleases.refinable",
        _of_earlier_rows,
        "sharper refreshed",
    ),
    Fault(
        "refined anew",
        "for the difference a new release is made, with noise that does not know of the first",
        "Plan.refine",
        _with_new_noise,
        "sharper",
    ),
    Fault(
        "past of the difference",
        "the past counts of a refined release what it added, and forgets the one that it replaced",
        "history/_kernel",
        _alone,
        "sharper in time",
    ),
)
