"""Budgets: what a dataset may lose, and who may spend how much of it."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter

from blowfishdb.adapters.ledger import Grant
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import NotFound
from blowfishdb.entrypoints.api.access import BookReader, Curator, SignedIn
from blowfishdb.entrypoints.api.bodies import Allowance, Total
from blowfishdb.entrypoints.api.shapes import BudgetShown, GrantList, GrantShown
from blowfishdb.gateway import Gateway
from blowfishdb.messages import budget_summary, plain_epsilon

router: Final = APIRouter(tags=["Budgets"])


@router.get("/datasets/{dataset}/budget", summary="The budget of a dataset")
def budget(dataset: str, caller: SignedIn) -> BudgetShown:
    """Total, spent, held for questions under way, and what the caller can still spend."""
    return BudgetShown(**shown(caller.gateway, dataset))


@router.put("/datasets/{dataset}/budget", summary="Set the budget")
def set_budget(dataset: str, body: Total, caller: Curator) -> BudgetShown:
    """Promise that the dataset loses at most this much, all answers together."""
    caller.gateway.facts(dataset)
    caller.gateway.set_budget(dataset, Epsilon(body.total))
    return BudgetShown(**shown(caller.gateway, dataset))


@router.get("/datasets/{dataset}/grants", summary="Who may spend what")
def grants(dataset: str, caller: BookReader) -> GrantList:
    """Everyone who has a grant or ever asked."""
    caller.gateway.facts(dataset)
    return _grants(caller.gateway, dataset)


@router.put("/datasets/{dataset}/grants/{user}", summary="Let someone spend part of it")
def grant(dataset: str, user: str, body: Allowance, caller: Curator) -> GrantList:
    """A user may spend up to this much in all. Once there are grants, only those who have one can spend."""
    account = caller.server.accounts.find(user)
    if account is None or not account.active:
        raise NotFound("There is no such user.", fixes=("look at the list of users",))
    caller.gateway.facts(dataset)
    caller.gateway.grant(dataset, account.name, Epsilon(body.epsilon))
    return _grants(caller.gateway, dataset)


def shown(gateway: Gateway, dataset: str) -> dict[str, Any]:
    """A budget as JSON has it, for the user of the gateway."""
    return budget_summary(gateway.budget(dataset), gateway.left(dataset))


def _grants(gateway: Gateway, dataset: str) -> GrantList:
    return GrantList(dataset=dataset, grants=[_grant(given) for given in gateway.grants(dataset)])


def _grant(given: Grant) -> GrantShown:
    granted = given.granted
    return GrantShown(
        user=given.user,
        granted=None if granted is None else str(granted),
        nano_granted=None if granted is None else granted.nano,
        **plain_epsilon("spent", given.spent),
        **plain_epsilon("held", given.held),
    )
