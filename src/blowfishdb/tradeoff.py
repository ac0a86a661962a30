"""Trade-off: what a question costs, and how far off it is, under one policy after another. Reads no data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, NoGuarantee
from blowfishdb.core.policy import Policy
from blowfishdb.messages import Progress, Request, Terms, plain_epsilon
from blowfishdb.planning import Planner

_SAME = 1e-3  # prices within this share of each other read as the same number


@final
@dataclass(frozen=True)
class TradeoffPoint:
    """One policy: the price of the accuracy that was asked for, and the error at a fixed price."""

    policy: str
    epsilon: Epsilon
    alpha: float
    mechanism: str
    theta: float | None = None

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "policy": self.policy,
            "theta": self.theta,
            **plain_epsilon("epsilon", self.epsilon),
            "alpha": self.alpha,
            "mechanism": self.mechanism,
        }


@final
@dataclass(frozen=True)
class Tradeoff:
    """A question under several policies, in the order in which they were given."""

    question: str
    asked_alpha: float | None
    fixed_epsilon: Epsilon
    """The price at which the errors are compared."""
    points: tuple[TradeoffPoint, ...]

    @property
    def free_gain(self) -> tuple[int, int] | None:
        """The last of the policies that cost no more than the first: protection for nothing.

        Given from the weakest policy to the strongest, these are the positions of the first policy and of the
        strongest one at the same price; None if the first step already costs more.
        """
        first, last = float(self.points[0].epsilon), 0
        for place, point in enumerate(self.points):
            if float(point.epsilon) > first * (1 + _SAME):
                break
            last = place
        return (0, last) if last else None

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {
            "question": self.question,
            "asked_alpha": self.asked_alpha,
            **plain_epsilon("fixed_epsilon", self.fixed_epsilon),
            "points": [point.to_plain() for point in self.points],
            "free_gain": self.free_gain,
            "sentence": self.sentence,
        }

    @property
    def sentence(self) -> str:
        """What stands out, in words."""
        if self.free_gain is None:
            return "Every step towards more protection costs something here."
        weakest, strongest = (self.points[place].policy for place in self.free_gain)
        return f"{weakest} → {strongest} costs nothing more for this question."

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Tradeoff:
        """A trade-off from its plain form."""
        points = tuple(
            TradeoffPoint(p["policy"], Epsilon(p["epsilon"]), p["alpha"], p["mechanism"], p["theta"])
            for p in said["points"]
        )
        return cls(said["question"], said["asked_alpha"], Epsilon(said["fixed_epsilon"]), points)


def tradeoff(
    planner: Planner,
    request: Request,
    policies: Mapping[str, Policy],
    *,
    rows_per_person: int = 1,
    at_epsilon: Epsilon | None = None,
    thetas: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> Tradeoff:
    """Price ``request`` under every one of ``policies``, by name.

    The errors are those at ``at_epsilon``; by default at the price under the first policy, or at the ε of the
    request itself.
    """
    if not policies:
        raise InvalidInput("A trade-off needs at least one policy.", fixes=("thresholds=[1000, 10000]",))
    fixed = at_epsilon or request.terms.epsilon
    points: list[TradeoffPoint] = []
    for done, (name, policy) in enumerate(policies.items()):
        if progress is not None:
            progress(done, len(policies))
        priced = planner.plan(request, policy, rows_per_person)
        fixed = fixed or priced.cost or Epsilon(1)
        alpha = _error_at(planner, request, policy, rows_per_person, fixed)
        theta = None if thetas is None else thetas.get(name)
        points.append(TradeoffPoint(name, priced.cost, alpha, priced.choice.plan.name, theta))
    if progress is not None:
        progress(len(policies), len(policies))
    assert fixed is not None
    asked = request.terms.accuracy
    return Tradeoff(request.question.describe(), asked and asked.alpha, fixed, tuple(points))


def _error_at(planner: Planner, request: Request, policy: Policy, rows: int, epsilon: Epsilon) -> float:
    """The α of the answer when ``epsilon`` is spent on it, at the confidence that was asked for."""
    spending = replace(request, terms=Terms(mechanism=request.terms.mechanism).spending(epsilon))
    planned = planner.plan(spending, policy, rows)
    asked = request.terms.accuracy
    if planned.promise is None:
        raise NoGuarantee(
            "A trade-off compares errors that are promised, and this mechanism promises none.",
            fixes=("leave out the mechanism", "preview() shows one draw of it"),
        )
    if asked is None or not planned.choice.epsilon:
        return planned.promise.alpha
    kind, axes = request.counts.kind, planned.problem.axes
    needed = kind.requirement(asked, axes)
    margin = planned.choice.plan.alpha_for(
        epsilon=planned.choice.epsilon, beta=needed.beta, simultaneous=needed.simultaneous
    )
    return kind.promised(margin, axes)
