"""Auditing mechanisms, for somebody who believes nothing: what each loses, exactly or from outside.

A mechanism with a certificate is asked for it on small problems under every kind of policy; its loss on
every edge is added up in fractions, and ``check_mechanism`` holds what it really draws against it. One that
looks at the data is a black box: neighbouring databases are released many times, an event that tells them
apart is chosen on one half of the releases and counted on the other, and Clopper and Pearson's limits make of
the two counts a loss that it has *at least*. More than was claimed is a proof that something is wrong; less
is not a proof that nothing is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import NoGuarantee, NotFound, NotProven
from blowfishdb.core.graphs import AddRemove, Full, PolicyGraph, Threshold
from blowfishdb.core.noise import Noise
from blowfishdb.core.workloads import Histogram
from blowfishdb.mechanisms import DATA_DEPENDENT, NAMED
from blowfishdb.mechanisms.check import ContractViolation, cases, check_mechanism
from blowfishdb.mechanisms.plan import DataDependentMechanism, Mechanism

Clock = Callable[[], float]

FALSE_ALARM = 1e-6
"""How often, at most, one comparison of two neighbours finds more than there is."""
_COUNTS = (0, 1, 6, 0, 0, 3, 0, 2)
_LEAST, _MOST, _BATCH = 100, 20_000, 50
_QUANTILES = np.linspace(0.02, 0.98, 25)


@final
@dataclass(frozen=True)
class AuditedMechanism:
    """What an audit found about one mechanism at ε = 1."""

    name: str
    exact: bool
    """Whether the loss is exact, over all edges; otherwise it is a lower bound, from releases."""
    loss: float
    problems: int
    """Small problems that it was tried on."""
    releases: int
    fault: str = ""

    def to_plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.name,
            "exact": self.exact,
            "claimed": 1.0,
            "loss": self.loss,
            "problems": self.problems,
            "releases": self.releases,
            "fault": self.fault or None,
        }


def chosen(names: list[str]) -> list[str]:
    """The names that were typed, or all."""
    known = [*NAMED, *DATA_DEPENDENT]
    for name in names:
        if name not in known:
            raise NotFound(f"There is no mechanism '{name}'.", fixes=(f"one of {', '.join(known)}",))
    return names or known


def audit_mechanism(name: str, *, noise: Noise, clock: Clock, seconds: float) -> AuditedMechanism:
    """One of the catalogue, by its name."""
    if name in NAMED:
        return audit_certificates(name, NAMED[name])
    return audit_black_box(name, DATA_DEPENDENT[name], noise=noise, clock=clock, seconds=seconds)


def audit_certificates(name: str, mechanism: Mechanism) -> AuditedMechanism:
    """Exact losses on every edge of every small problem, and whether releases draw what certificates say."""
    worst, tried = 0.0, 0
    for case in cases():
        try:
            certificate = mechanism.plan(case.workload, case.graph).certificate(epsilon=1)
            worst = max(worst, float(certificate.worst_loss(case.graph)))
        except (NotProven, NoGuarantee):
            continue
        tried += 1
    try:
        check_mechanism(mechanism)
    except ContractViolation as broken:
        return AuditedMechanism(name, True, worst, tried, 0, str(broken))
    fault = f"An edge loses {worst:.4g}, and 1 was claimed." if worst > 1 else ""
    return AuditedMechanism(name, True, worst, tried, 0, fault)


def audit_black_box(
    name: str, mechanism: DataDependentMechanism, *, noise: Noise, clock: Clock, seconds: float
) -> AuditedMechanism:
    """The largest loss that releases of neighbouring databases prove, at ε = 1."""
    worlds = list(_worlds(mechanism))
    worst, releases = 0.0, 0
    for plan, (first, second) in worlds:
        until = clock() + seconds / len(worlds)
        here, there = _released(plan, first, second, noise, clock, until)
        releases += len(here) + len(there)
        worst = max(worst, least_loss(here, there))
    fault = f"Releases prove a loss of at least {worst:.4g}, and 1 was claimed." if worst > 1 else ""
    return AuditedMechanism(name, False, worst, len(worlds), releases, fault)


def _worlds(mechanism: DataDependentMechanism) -> Iterator[tuple[Any, tuple[IntArray, IntArray]]]:
    """Plans on eight cells under several policies, each with a pair of neighbours."""
    size = len(_COUNTS)
    for graph in (Full(size), Threshold(size, 1), Threshold(size, 3), AddRemove(size)):
        try:
            plan = mechanism.plan(Histogram(size), graph)
        except NotProven:
            continue
        yield plan, _neighbours(graph)


def _neighbours(graph: PolicyGraph) -> tuple[IntArray, IntArray]:
    """Somebody who is alone in a cell moves to the first place that the policy hides it from."""
    x = np.array(_COUNTS, dtype=np.int64)
    u, v = next((u, v) for u, v in graph.edges().tolist() if u < x.size and x[u] > 0)
    moved = x.copy()
    moved[u] -= 1
    if v < x.size:
        moved[v] += 1
    return x, moved


def _released(
    plan: Any, first: IntArray, second: IntArray, noise: Noise, clock: Clock, until: float
) -> tuple[FloatArray, FloatArray]:
    here: list[FloatArray] = []
    there: list[FloatArray] = []
    while len(here) < _LEAST or (clock() < until and len(here) < _MOST):
        for _ in range(_BATCH):
            here.append(plan.release(first, epsilon=1, noise=noise))
            there.append(plan.release(second, epsilon=1, noise=noise))
    return np.array(here), np.array(there)


def least_loss(here: FloatArray, there: FloatArray) -> float:
    """A loss that two laws have at least, but for one time in a million, from releases of both.

    The event is chosen on the even releases, among thresholds of every answer and of the direction in which
    the means differ (a linear classifier), and counted on the odd ones.
    """
    direction = _direction(here[::2], there[::2])
    scores = [np.column_stack((each, each @ direction)) for each in (here, there)]
    best, event = 0.0, None
    for column in range(scores[0].shape[1]):
        one, other = (each[::2, column] for each in scores)
        for cut in np.unique(np.quantile(np.concatenate((one, other)), _QUANTILES)):
            for above in (True, False):
                often, seldom = (int(_inside(each, cut, above=above).sum()) for each in (one, other))
                swapped = seldom > often
                found = _bound(max(often, seldom), min(often, seldom), one.size)
                if found > best:
                    best, event = found, (column, cut, above, swapped)
    if event is None:
        return 0.0
    column, cut, above, swapped = event
    held = [each[1::2, column] for each in (scores[::-1] if swapped else scores)]
    often, seldom = (int(_inside(each, cut, above=above).sum()) for each in held)
    return max(0.0, _bound(often, seldom, held[0].size))


def _direction(here: FloatArray, there: FloatArray) -> FloatArray:
    spread = here.var(axis=0) + there.var(axis=0)
    return np.asarray((here.mean(axis=0) - there.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _inside(scores: FloatArray, cut: float, *, above: bool) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return scores > cut if above else scores <= cut


def _bound(often: int, seldom: int, runs: int) -> float:
    """ln(p/q) at the lower limit of p and the upper one of q, each half of the level."""
    from scipy.stats import beta

    if often == 0:
        return 0.0
    low = float(beta.ppf(FALSE_ALARM / 2, often, runs - often + 1))
    high = 1.0 if seldom == runs else float(beta.ppf(1 - FALSE_ALARM / 2, seldom + 1, runs - seldom))
    return math.log(low / high) if low > 0 else 0.0
