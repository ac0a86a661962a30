"""Answers with made-up numbers, for what only reads answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfishdb.core.budget import Epsilon
from blowfishdb.messages.answers import Answer, Receipt


def made_up(
    labels: tuple[tuple[str, ...], ...],
    values: Any,
    *,
    axes: tuple[str, ...] = ("salary",),
    kind: str = "histogram",
    alpha: float = 50.0,
    beta: float = 0.05,
    simultaneous: bool = True,
    exact: bool = False,
    number: int = 41,
    dataset: str = "salaries",
    epsilon: str = "0.118",
    question: str | None = None,
) -> Answer:
    """An answer as the service makes it: tidy values, intervals of ±alpha that do not go below zero."""
    raw = np.asarray(values, dtype=np.float64)
    margin = 0.0 if exact else alpha
    receipt = Receipt(
        charge=str(number),
        dataset=dataset,
        question=question or f"{kind} of {' and '.join(axes)} ({len(raw)} bins)",
        user="analyst",
        epsilon=Epsilon(epsilon),
        mechanism="Laplace on the questions",
        policy="values within 1,000 of each other",
        policy_version=2,
        snapshot=1,
        settled="2026-01-02T03:04:05+00:00",
        sql="SELECT 1",
        cost=Epsilon(epsilon),
    )
    return Answer(
        labels=labels,
        axes=axes,
        kind=kind,
        values=np.clip(raw, 0, None),
        raw=raw,
        low=np.clip(raw - margin, 0, None),
        high=np.clip(raw + margin, 0, None),
        exact=np.full(raw.shape, exact),
        alpha=margin,
        beta=beta,
        simultaneous=simultaneous,
        receipt=receipt,
    )


def bins(count: int, width: int = 10_000) -> tuple[tuple[str, ...], ...]:
    """Labels of bins along one axis."""
    return (tuple(f"{i * width:,}–{(i + 1) * width - 1:,}" for i in range(count)),)


def hill(count: int, top: float = 3_000) -> Any:
    """Counts that rise and fall, with an empty end."""
    place = np.linspace(-2.5, 2.5, count)
    return np.rint(top * np.exp(-(place**2)) - 8)
