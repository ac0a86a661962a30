"""Faults in the books, in promises that are kept, in reading rows, and in what answers say of their error."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from blowfishdb.adapters.sql import values
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import QueryFailed
from tests.seeded.planting import Fault


def _nothing(_: Any) -> Any:
    return lambda *given, **named: None


def _zero_losses(original: Any) -> Any:
    return lambda self, dataset, ready: dict.fromkeys(original(self, dataset, ready), Epsilon(0))


def _only_settled(original: Any) -> Any:
    return lambda self: self.value == "settled"


class _WithoutLost:
    """A ledger that forgets charges without an answer."""

    def __init__(self, ledger: Any) -> None:
        self.ledger = ledger

    def charges(self, dataset: str) -> Any:
        return [charge for charge in self.ledger.charges(dataset) if charge.state.value == "settled"]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ledger, name)


def _lost_forgotten(original: Any) -> Any:
    def history(ledger: Any, *given: Any, **named: Any) -> Any:
        newest = max((charge.id for charge in ledger.charges(given[0])), default=0)
        return replace(original(_WithoutLost(ledger), *given, **named), last_charge=newest)

    return history


def _boundless(original: Any) -> Any:
    return lambda self: Epsilon(10**6)


def _carried_forgotten(original: Any) -> Any:
    return lambda self: original(replace(self, carried=Epsilon(0)))


def _given_back(original: Any) -> Any:
    return lambda connection, dataset, charge, *, spent: original(connection, dataset, charge, spent=False)


def _always_withdrawn(original: Any) -> Any:
    def publish(self: Any, name: str, policy: Any, by: str, *, confirm: bool, withdraw: bool) -> Any:
        return original(self, name, policy, by, confirm=confirm, withdraw=True)

    return publish


def _by_kind_alone(original: Any) -> Any:
    def identities(request: Any, dataset: Any, problem: Any) -> Iterator[str]:
        said = f"{dataset.name}|{dataset.policy_version}|{request.form.kind}|{request.terms}"
        yield hashlib.sha256(said.encode()).hexdigest()

    return identities


def _always(original: Any) -> Any:
    return lambda *given: True


def _less_noise(original: Any) -> Any:
    return lambda self, noise, epsilon: original(self, noise, epsilon * 2)


def _tells_by_failing(original: Any) -> Any:
    def count(self: Any, prepared: Any, *given: Any) -> Any:
        if int(prepared.count().reveal().max(initial=0)) > 1:
            raise QueryFailed("The database gave up.", fixes=("ask again",))
        return original(self, prepared, *given)

    return count


def _looks_at_values(original: Any) -> Any:
    def meets(self: Any, accuracy: Any) -> bool:
        return bool(original(self, accuracy) and np.nansum(self.combination.values()) > 2)

    return meets


def _one_row_more(original: Any) -> Any:
    def limit(self: Any, relation: Any, types: Any, engine: Any) -> Any:
        return original(replace(self, rows=self.rows + 1), relation, types, engine)

    return limit


def _clamped(original: Any) -> Any:
    return lambda attribute: (values.whole(0), values.whole(attribute.value_count - 1))


def _each_for_all(original: Any) -> Any:
    def failure(scales: Any, bound: int, epsilon: Any, **named: Any) -> float:
        return original(scales, bound, epsilon, **{**named, "simultaneous": False})

    return failure


def _one_tail(original: Any) -> Any:
    return lambda *given, **named: original(*given, **{**named, "one_sided": True})


def _top_by_each(original: Any) -> Any:
    return lambda self, accuracy, axes: replace(accuracy, simultaneous=False)


def _half_the_sum(original: Any) -> Any:
    def read(self: Any, release: Any, axes: Any) -> Any:
        found = original(self, release, axes)
        if found.low is None:
            return found
        return replace(found, low=found.values - 0.1, high=found.values + 0.1)

    return read


def _narrow(original: Any) -> Any:
    def counts(release: Any, labels: Any) -> Any:
        margins = None if release.margins is None else release.margins / 3
        found = original(release, labels)
        if margins is None:
            return found
        return replace(found, low=found.values - margins, high=found.values + margins)

    return counts


def _smaller_certificate(original: Any) -> Any:
    return lambda self, epsilon: [scale * Fraction(1, 2) for scale in original(self, epsilon)]


FAULTS = (
    Fault(
        "kept for nothing",
        "an answer costs nothing under a promise that is kept",
        "Service._losses",
        _zero_losses,
        "looser",
    ),
    Fault(
        "not held",
        "what an answer costs under a kept promise is not written down",
        "hold_losses",
        _nothing,
        "looser",
    ),
    Fault(
        "given back", "what a kept promise lost is given back in the end", "end_losses", _given_back, "looser"
    ),
    Fault(
        "never kept",
        "a policy that is loosened binds no longer",
        "Publishing.publish",
        _always_withdrawn,
        "looser",
    ),
    Fault("lost is free", "a charge that was lost is not spent", "State.spent", _only_settled, "lost"),
    Fault(
        "lost is past", "a charge that was lost did not happen", "history", _lost_forgotten, "farther lost"
    ),
    Fault(
        "boundless",
        "what was lost before a policy leaves its budget whole",
        "Budget.remaining",
        _carried_forgotten,
        "farther and on",
    ),
    Fault(
        "boundless promise",
        "a kept promise has always room",
        "PolicyBalance.remaining",
        _boundless,
        "looser for long",
    ),
    Fault(
        "identity", "questions of one kind are one question", "identities", _by_kind_alone, "stored otherwise"
    ),
    Fault("meets anything", "a free answer is always accurate enough", "Offer.meets", _always, "stored"),
    Fault(
        "looks at values",
        "whether an answer is free depends on stored numbers",
        "Offer.meets",
        _looks_at_values,
        "stored",
    ),
    Fault("less noise", "half the noise is drawn", "UnitScales.draw", _less_noise, "alone"),
    Fault(
        "tells by failing",
        "a full box makes the database fail",
        "CountTask.count",
        _tells_by_failing,
        "alone",
    ),
    Fault(
        "one row more", "one row more of a person counts than was said", "Unit.limit", _one_row_more, "people"
    ),
    Fault(
        "clamped",
        "values outside are counted where they should be dropped",
        "encode/_ends",
        _clamped,
        "reading",
    ),
    Fault(
        "each for all",
        "an error that each answer keeps is promised for all at once",
        "failure",
        _each_for_all,
        "believed",
    ),
    Fault("one tail", "only errors to one side count", "failure", _one_tail, "believed"),
    Fault(
        "top by each",
        "top bins are picked as if each count were alone",
        "Top.requirement",
        _top_by_each,
        "believed top",
    ),
    Fault("narrow", "intervals are a third as wide", "picked/counted_reading", _narrow, "believed"),
    Fault("narrow sums", "intervals of sums are too narrow", "Sum.read", _half_the_sum, "believed sums"),
)
