"""Policies: the published one, the curator's draft, and what publishing it would change."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from blowfishdb.adapters.policy_files import read_policy, write_policy
from blowfishdb.core import codec
from blowfishdb.core.column_policies import column_graph
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.policy import Policy
from blowfishdb.core.policy_words import PolicyDifference, sentences
from blowfishdb.entrypoints.api.access import Caller, Curator, SignedIn
from blowfishdb.entrypoints.api.bodies import ColumnRule, Confirmation, PolicyDraft, Version
from blowfishdb.entrypoints.api.reading import read
from blowfishdb.entrypoints.api.shapes import (
    CheckShown,
    Difference,
    PastShown,
    PolicyShown,
    PolicyText,
    Promises,
    PromiseShown,
)

router: Final = APIRouter(tags=["Policies"])


@router.get("/datasets/{dataset}/policy", summary="The policy of a dataset")
def policy(dataset: str, caller: SignedIn) -> PolicyShown:
    """The published policy, as a graph, in words and as a file; for curators also the draft."""
    return _shown(dataset, caller)


@router.put("/datasets/{dataset}/policy", summary="Save a draft")
def save_draft(dataset: str, body: PolicyDraft, caller: Curator) -> Difference:
    """Keep a policy to go on with later, and say what publishing it would change. Nothing follows it yet."""
    before = caller.gateway.draft(dataset)
    draft = read("policy", lambda: _policy(body, before, dataset))
    change = caller.gateway.propose(dataset, draft)
    caller.gateway.save_draft(dataset, draft)
    return _difference(change)


@router.get("/datasets/{dataset}/policy/diff", summary="What the draft would change")
def difference(dataset: str, caller: Curator) -> Difference:
    """The draft against the published policy, in words."""
    return _difference(caller.gateway.propose(dataset, caller.gateway.draft(dataset)))


@router.post("/datasets/{dataset}/policy/publish", summary="Publish the draft")
def publish(dataset: str, body: Confirmation, caller: Curator) -> PolicyShown:
    """From now on new answers follow it. Once budget is spent this needs ``confirm``.

    What was already answered keeps following the earlier policy; the change is written into the ledger. If it
    hides less, the policy so far stays promised beside it, unless it is withdrawn.
    """
    draft = caller.gateway.draft(dataset)
    caller.gateway.publish(dataset, draft, confirm=body.confirm, withdraw=body.withdraw)
    return _shown(dataset, caller)


@router.post("/datasets/{dataset}/policy/past", summary="What answers so far lost under a policy")
def past(dataset: str, body: PolicyDraft, caller: Curator) -> PastShown:
    """How sure an attacker can be by now between two values that this policy would hide. Nothing changes."""
    draft = caller.gateway.draft(dataset)
    asked = read("policy", lambda: _policy(body, draft, dataset))
    return PastShown(**caller.gateway.past(dataset, asked).to_plain())


@router.post("/datasets/{dataset}/policy/check", summary="Whether the known counts are true of the data")
def check(dataset: str, caller: Curator) -> CheckShown:
    """CURATOR VIEW, TRUE DATA: the counts that the draft declares with an answer, compared with the rows.

    Nothing is charged; that someone looked is written into the ledger.
    """
    return CheckShown(**caller.gateway.check_known(dataset).to_plain())


@router.get("/datasets/{dataset}/policy/promises", summary="Earlier policies that are still promised")
def promises(dataset: str, caller: SignedIn) -> Promises:
    """New answers have to fit under each of them, as well as under the policy of today."""
    kept = caller.gateway.kept(dataset)
    return Promises(promises=[PromiseShown(**promise.to_plain()) for promise in kept])


@router.post("/datasets/{dataset}/policy/withdraw", summary="Withdraw an earlier promise")
def withdraw(dataset: str, body: Version, caller: Curator) -> Promises:
    """From now on answers need not fit under it. It is written into the ledger, for everyone to see."""
    caller.gateway.withdraw(dataset, body.version)
    return promises(dataset, caller)


def _policy(body: PolicyDraft, draft: Policy, dataset: str) -> Policy:
    """The policy that was sent; of the draft so far only what is known stays, if nothing is said of it."""
    domain = draft.domain
    if sum(form is not None for form in (body.graph, body.yaml, body.columns)) != 1:
        raise InvalidInput("Say the policy in exactly one form.", fixes=("graph", "yaml", "columns"))
    if body.yaml is not None:
        if body.known is not None:
            raise InvalidInput("A file says itself what is known.", fixes=("the known section of the file",))
        return read_policy(body.yaml, domain, dataset=dataset)
    known = draft.constraints if body.known is None else codec.constraints(body.known)
    return _hiding(body, domain).knowing(known)


def _hiding(body: PolicyDraft, domain: Domain) -> Policy:
    if body.graph is not None:
        return Policy(domain, codec.graph(body.graph))
    rules = body.columns or {}
    graphs = {name: _column(domain, name, rule) for name, rule in rules.items()}
    return Policy.by_column(domain, graphs, joint=body.joint, hide_presence=body.hide_presence)


def _column(domain: Domain, name: str, rule: ColumnRule) -> PolicyGraph:
    return column_graph(
        domain[name],
        hide_within=rule.hide_within,
        groups=rule.groups,
        groups_of=rule.groups_of,
        between=rule.between,
        everything=rule.everything,
        nothing=rule.nothing,
    )


def _shown(dataset: str, caller: Caller) -> PolicyShown:
    facts = caller.gateway.facts(dataset)
    draft = caller.gateway.draft(dataset) if caller.curator else facts.policy
    published = _text(facts.policy, dataset)
    differs = draft is not facts.policy and codec.plain(draft) != codec.plain(facts.policy)
    return PolicyShown(
        version=facts.policy_version,
        draft=_text(draft, dataset) if differs else None,
        **published.model_dump(),
    )


def _text(policy: Policy, dataset: str) -> PolicyText:
    try:
        file = write_policy(policy, dataset=dataset)
    except BlowfishError:  # an area or a list of pairs that a file has no words for
        file = None
    return PolicyText(
        graph=codec.plain(policy.graph),
        known=codec.plain_known(policy),
        sentences=list(sentences(policy)),
        yaml=file,
    )


def _difference(change: PolicyDifference) -> Difference:
    return Difference(**change.to_plain())
