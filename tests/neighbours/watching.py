"""What leaves the trust boundary is written down as it happens: the plan, the counts it saw, its ε."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import QueryFailed
from blowfishdb.core.questions.projection import CellQuery
from blowfishdb.core.secret import Secret
from blowfishdb.mechanisms.plan import DataDependentPlan, Plan

EXACT = 1e9
"""What an exact number counts for beside noisy ones."""


@dataclass(frozen=True)
class Released:
    """One release."""

    plan: Plan | DataDependentPlan
    counts: np.ndarray
    epsilon: Epsilon
    scales: tuple[Fraction, ...]
    """Of the noise that was really drawn."""
    axes: tuple[Axis, ...]
    """What the counts are about."""
    snapshot: int = 0
    """Of the rows; whoever is in them may have other values in the next."""

    @cached_property
    def each(self) -> np.ndarray:
        """By how much one row more in a box changes what is measured, over its noise: a line for each box."""
        plan, nothing = self.plan, np.zeros_like(self.counts)
        if not isinstance(plan, Plan):
            return np.eye(nothing.size) * float(self.epsilon)
        scales = np.array([float(scale) for scale in plan.scales.fractions(self.epsilon)])
        weights = np.divide(1, scales, out=np.full(scales.size, EXACT), where=scales > 0)
        before = np.asarray(plan.measure(nothing), dtype=np.float64)
        decoded = np.asarray(plan.decode(before, nothing), dtype=np.float64)
        lines = []
        for box in range(nothing.size):
            one = nothing.copy()
            one[box] = 1
            change = (np.asarray(plan.measure(one), dtype=np.float64) - before) * weights
            used = np.asarray(plan.decode(before, one), dtype=np.float64) - decoded
            lines.append(np.concatenate((change, used * EXACT)))
        return np.array(lines)


@dataclass
class Drawn:
    """A source of noise that writes down its scales."""

    noise: Any
    scales: list[Fraction] = field(default_factory=list)

    def discrete_laplace(self, scale: Any, size: Any = None) -> Any:
        """As the source has it."""
        each = np.broadcast_to(np.asarray(scale, dtype=object), () if size is None else size)
        self.scales += [Fraction(one) for one in each.ravel()]
        return self.noise.discrete_laplace(scale, size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.noise, name)


@dataclass
class Watch:
    """The releases of one step, and what is to happen in the middle of the next one."""

    released: list[Released] = field(default_factory=list)
    meanwhile: Callable[[], None] | None = None
    lose: int | None = None
    """How many more answers come out before one does not."""
    axes: tuple[Axis, ...] = ()
    snapshot: int = 0

    def taken(self) -> list[Released]:
        """What was released since the last time."""
        found, self.released = self.released, []
        return found


@dataclass
class Noting:
    """A database that notes what is going to be counted."""

    backend: Any
    watch: Watch
    snapshot: int

    def prepare(self, query: CellQuery) -> Any:
        """As the database has it."""
        self.watch.axes, self.watch.snapshot = query.axes, self.snapshot
        return self.backend.prepare(query)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)


@contextmanager
def watching(watch: Watch) -> Iterator[Watch]:
    """Within, every release is written down; nothing about it is changed."""
    originals: list[tuple[type, Callable[..., Any]]] = [
        (Plan, Plan.observe),
        (DataDependentPlan, DataDependentPlan.observe),
    ]

    def noted(original: Callable[..., Any]) -> Callable[..., Any]:
        def observe(self: Any, x: Any, *, epsilon: Any, noise: Any) -> Any:
            if watch.meanwhile is not None:
                happens, watch.meanwhile = watch.meanwhile, None
                happens()
            counts = x.reveal() if isinstance(x, Secret) else np.asarray(x)
            drawn = Drawn(noise)
            found = original(self, x, epsilon=epsilon, noise=drawn)
            told = Released(self, counts, Epsilon(epsilon), tuple(drawn.scales), watch.axes, watch.snapshot)
            watch.released.append(told)
            if watch.lose is not None:
                watch.lose -= 1
                if watch.lose < 0:  # whoever looked at the machine then has seen it
                    raise QueryFailed("The database went away.", fixes=("ask again",))
            return found

        return observe

    for owner, original in originals:
        owner.observe = noted(original)  # type: ignore[attr-defined]
    try:
        yield watch
    finally:
        for owner, original in originals:
            owner.observe = original  # type: ignore[attr-defined]
