"""What a workspace says of itself, as the text that is kept beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np

import blowfishdb as bf
from blowfishdb.messages.answers import Answer
from blowfishdb.workspace.embedded import Workspace
from tests.earlier.asked import Asked

_NUMBERS = ("values", "raw", "low", "high", "exact")
_AS_THEY_ARE = ("number", "axes", "kind", "alpha", "beta", "simultaneous", "interval", "notes")


def facts_of(workspace: Workspace, asked: Iterable[Asked]) -> dict[str, Any]:
    """Books, answers, and what the same questions cost if they are asked again."""
    again = [{**each.to_plain(), **price_of(workspace, each)} for each in asked]
    return {
        "head": str(workspace.head()),
        "events": [event.kind for event in workspace.events()],
        "datasets": {name: dataset_facts(workspace, name) for name in workspace.datasets()},
        "answers": [answer_facts(answer) for answer in workspace.answers()],
        "again": again,
    }


def dataset_facts(workspace: Workspace, dataset: str) -> dict[str, Any]:
    """Its declaration, what is promised, and who may spend what."""
    facts, budget = workspace.facts(dataset), workspace.budget(dataset)
    return {
        "columns": {name: [each.size, each.missing, each.outside] for name, each in facts.domain.columns},
        "policy_version": facts.policy_version,
        "hidden_pairs": facts.policy.graph.edge_count,
        "knows": facts.policy.constraints is not None,
        "snapshot": facts.snapshot,
        "kind": facts.kind,
        "rows_per_person": facts.rows_per_person,
        "public": list(facts.public),
        "budget": [str(part) for part in (budget.total, budget.spent, budget.held, budget.carried)],
        "grants": [[each.user, _text(each.granted), str(each.spent)] for each in workspace.grants(dataset)],
        "kept": [[each.version, str(each.total), str(each.remaining)] for each in workspace.kept(dataset)],
        "draft_pairs": workspace.draft(dataset).graph.edge_count,
    }


def answer_facts(answer: Answer) -> dict[str, Any]:
    """Every number and every word of a stored answer."""
    places = answer.places
    return {
        **{name: _plain(getattr(answer, name)) for name in (*_AS_THEY_ARE, *_NUMBERS, "labels", "form")},
        "centroids": None if places is None else places.centroids.tolist(),
        "limits": None if places is None else _plain(places.limits),
        "receipt": {
            field.name: _plain(getattr(answer.receipt, field.name)) for field in fields(answer.receipt)
        },
    }


def price_of(workspace: Workspace, asked: Asked) -> dict[str, Any]:
    """What it costs now; if it is stored, under which number."""
    asking = asked.of(workspace)
    quote = asking.quote()
    number = asking.ask(max_cost=0, key=asked.key).number if quote.owned else None
    return {"price": str(quote.epsilon), "stored": number}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, bf.Epsilon) else value


def _text(value: object) -> str | None:
    return None if value is None else str(value)
