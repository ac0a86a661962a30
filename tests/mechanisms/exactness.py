"""What every linear plan on a small domain must satisfy, by brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.mechanisms.plan import Certificate, Plan
from blowfishdb.noise import seeded


def check_private(plan: Plan, graph: PolicyGraph, *, epsilon: str = "0.5", tight: bool = True) -> None:
    """The exact loss over all edges is at most ε (equal if ``tight``), and the check can fail."""
    certificate = plan.certificate(epsilon=epsilon)
    losses = {(int(u), int(v)): certificate.loss(int(u), int(v)) for u, v in graph.edges()}
    edge = max(losses, key=lambda pair: losses[pair])
    worst = losses[edge]
    assert worst <= Fraction(epsilon)
    assert not tight or worst == Fraction(epsilon)
    mutant = Certificate(
        certificate.released,
        certificate.mixing,
        [scale * Fraction(9, 10) for scale in certificate.scales],
        certificate.witness,
    )
    assert mutant.loss(*edge) == worst * Fraction(10, 9)
    assert not tight or mutant.loss(*edge) > Fraction(epsilon)


def transfer(plan: Plan) -> np.ndarray:
    """T, one column per noise variable."""
    return plan.spread(np.eye(len(plan.scales))).T


def check_errors(plan: Plan) -> None:
    """Variances, their total and the released answers agree with the matrix T and with the data."""
    t = transfer(plan)
    of_noise = plan.scales.variances(_epsilon(plan))
    np.testing.assert_allclose(plan.variances(of_noise), t**2 @ of_noise, rtol=1e-9, atol=1e-9)
    if plan.workload.count:
        np.testing.assert_allclose(
            plan.total_variance(of_noise), (t**2 @ of_noise).sum(), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(
            plan.squared_error(epsilon=1), plan.squared_errors(epsilon=1).mean(), rtol=1e-9, atol=1e-9
        )
    unit = 2 * plan.scales.floats() ** 2
    np.testing.assert_allclose(plan.unit_error, (t**2 @ unit).sum(), rtol=1e-9, atol=1e-9)
    x = np.random.default_rng(5).integers(0, 50, plan.workload.size)
    np.testing.assert_allclose(plan.decode(plan.measure(x), x), plan.workload.answer(x), atol=1e-8)
    batch = np.random.default_rng(6).normal(size=(3, len(plan.scales)))
    np.testing.assert_allclose(plan.spread(batch), batch @ t.T, atol=1e-8)


def check_observed(plan: Plan) -> None:
    """What an observation shows is A·x + N·η, the certified release, and nothing of the flows inside it."""
    x = np.random.default_rng(8).integers(0, 50, plan.workload.size)
    certificate = plan.certificate(epsilon=1)
    fixed = _Fixed()
    seen = plan.observe(x, epsilon=1, noise=fixed)
    drawn = np.ones(len(plan.scales), dtype=np.int64)
    assert (seen.measured == certificate.released @ x + certificate.mixing @ drawn).all()


class _Fixed:
    """Noise that is always one."""

    def discrete_laplace(self, scale: object, size: int) -> np.ndarray:
        return np.ones(size, dtype=np.int64)


def check_simulated(plan: Plan, *, runs: int = 2_000) -> None:
    """The mean squared error of real releases is within three standard errors of the promise."""
    x = np.random.default_rng(7).integers(0, 50, plan.workload.size)
    noise, truth = seeded(3), plan.workload.answer(x)
    totals = np.array([((plan.release(x, epsilon=1, noise=noise) - truth) ** 2).mean() for _ in range(runs)])
    expected = plan.squared_error(epsilon=1)
    assert abs(totals.mean() - expected) < 3 * totals.std() / np.sqrt(runs)


def check_only_certified(plan: Plan) -> None:
    """Plans of the form A·x + N·η say where to look instead of rows."""
    with pytest.raises(NotProven, match="certificate"):
        plan.rows(epsilon=1)


def _epsilon(plan: Plan):
    from blowfishdb.core.budget import Epsilon

    return Epsilon("0.7")
