"""The budget page: what may be lost in total, where it went, who may spend how much, what that promises."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response

from blowfishdb.adapters.accounts import Role
from blowfishdb.charts import budget_chart, budget_table
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BlowfishError, InvalidEpsilon
from blowfishdb.core.guarantee import guarantee
from blowfishdb.core.protection import at_most, certainty_at
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.entrypoints.api.bodies import Allowance, Total
from blowfishdb.entrypoints.api.budgets import grant as grant_to
from blowfishdb.entrypoints.api.budgets import set_budget
from blowfishdb.entrypoints.web.figures import figure
from blowfishdb.entrypoints.web.forms import Sent, text, ticked
from blowfishdb.entrypoints.web.frame import dataset_address, redirect, render, told
from blowfishdb.entrypoints.web.gates import PageBookReader, PageCurator

router: Final = APIRouter(include_in_schema=False)


@router.get("/datasets/{dataset}/budget")
def budget_page(request: Request, dataset: str, caller: PageBookReader, total: str = "") -> Response:
    """Total, spent and held; ``total`` asks what another total would promise, and changes nothing."""
    try:
        tried = Epsilon(total.strip()) if total.strip() else None
    except InvalidEpsilon as error:
        return _page(request, caller, dataset, typed=total, problem=told(request, error))
    return _page(request, caller, dataset, tried=tried, typed=total)


@router.post("/datasets/{dataset}/budget")
def set_total(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Promise another total. More than before weakens the promise, so it is shown first and confirmed."""
    typed = text(form, "total")
    try:
        total = Epsilon(typed)
        if total > caller.gateway.budget(dataset).total and not ticked(form, "weaken"):
            return _page(request, caller, dataset, tried=total, typed=typed, asking=True)
        set_budget(dataset, Total(total=typed), caller)
    except BlowfishError as error:
        return _page(request, caller, dataset, typed=typed, problem=told(request, error))
    return redirect(dataset_address(dataset, "/budget"), flash=f"The total budget is now ε {total}.")


@router.post("/datasets/{dataset}/budget/grant")
def grant(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Let someone spend part of the total."""
    user, typed = text(form, "user"), text(form, "epsilon")
    try:
        grant_to(dataset, user, Allowance(epsilon=typed), caller)
    except BlowfishError as error:
        return _page(request, caller, dataset, granting=(user, typed), refused=told(request, error))
    return redirect(
        dataset_address(dataset, "/budget"), flash=f"{user} may spend up to ε {Epsilon(typed)} in all."
    )


@router.post("/datasets/{dataset}/budget/withdraw")
def withdraw(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Take an earlier promise back, on record."""
    version = text(form, "version")
    try:
        caller.gateway.withdraw(dataset, int(version) if version.isdecimal() else 0)
    except BlowfishError as error:
        return _page(request, caller, dataset, problem=told(request, error))
    said = f"The promise of version {version} is withdrawn. The audit log says so."
    return redirect(dataset_address(dataset, "/budget"), flash=said)


def _page(
    request: Request,
    caller: Caller,
    dataset: str,
    *,
    tried: Epsilon | None = None,
    typed: str = "",
    asking: bool = False,
    problem: dict[str, Any] | None = None,
    granting: tuple[str, str] = ("", ""),
    refused: dict[str, Any] | None = None,
) -> Response:
    gateway = caller.gateway
    facts, budget, answers = gateway.facts(dataset), gateway.budget(dataset), gateway.answers(dataset)
    grants = gateway.grants(dataset)
    chart = figure(
        lambda width: budget_chart(budget, answers, width=width), budget_table(budget, answers), id="budget"
    )
    shown = tried or budget.total
    granted = sum((given.granted for given in grants if given.granted is not None), Epsilon(0))
    listed = {given.user for given in grants}
    return render(
        request,
        "curator/budget.html",
        caller=caller,
        dataset=dataset,
        status=(problem or refused or {"status": 200})["status"],
        budget=budget,
        chart=chart if answers or budget.spent else None,
        tried=tried if tried is not None and tried != budget.total else None,
        typed=typed,
        asking=asking,
        problem=problem,
        granting=granting,
        refused=refused,
        grants=grants,
        granted=granted,
        limited=any(given.granted is not None for given in grants),
        ungranted=budget.total - granted,
        people=[
            account.name
            for account in caller.server.accounts.list()
            if account.active and account.role is not Role.AUDITOR and account.name not in listed
        ],
        sure_now=at_most(certainty_at(1, budget.total)),
        sure_then=at_most(certainty_at(1, shown)),
        kept=gateway.kept(dataset),
        promise=guarantee(facts.policy, shown, rows_per_person=facts.rows_per_person),
    )
