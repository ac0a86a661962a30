"""What is promised to the people in the data: open to everyone, for it is about them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request

from blowfishdb.core.errors import InvalidInput, UnknownDataset
from blowfishdb.core.protection import curve, probe
from blowfishdb.entrypoints.api.access import Anyone, SignedIn
from blowfishdb.entrypoints.api.bodies import Plain
from blowfishdb.entrypoints.api.reading import read
from blowfishdb.entrypoints.api.server import server_of
from blowfishdb.entrypoints.api.shapes import Protection

router: Final = APIRouter(tags=["Guarantee"])

Value = Annotated[str | None, Query(max_length=255)]


@router.get("/datasets/{dataset}/guarantee", summary="What is promised")
def guarantee(dataset: str, request: Request, caller: Anyone) -> Plain:
    """The guarantee in words and in numbers. Nobody has to sign in to read it."""
    workspace = server_of(request).workspace
    if dataset not in workspace and caller is None:
        raise UnknownDataset("There is no such dataset.")  # which ones there are is for those inside
    return workspace.guarantee(dataset).to_plain()


@router.get("/datasets/{dataset}/protection", summary="How well values are hidden")
def protection(
    dataset: str, caller: SignedIn, column: Value = None, u: Value = None, v: Value = None
) -> Protection:
    """How sure an attacker can become which of two values someone has, after all that the budget allows.

    With ``u`` and ``v``, about those two; and for every distance, the worst case. Reads no data.
    """
    facts = caller.gateway.facts(dataset)
    name = facts.domain.names[0] if column is None else column
    total = caller.gateway.budget(dataset).total
    if (u is None) != (v is None):
        raise InvalidInput("Two values are compared, so name both.", fixes=("u and v", "neither"))
    _ = facts.domain[name]
    found = None if u is None else asdict(read("value", lambda: probe(facts.policy, name, u, v, total)))
    steps = [asdict(step) for step in curve(facts.policy, name, total)]
    return Protection(column=name, budget=str(total), probe=found, curve=steps)
