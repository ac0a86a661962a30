"""Policies: the published one, the curator's draft, and what publishing it would change.

What is promised to the people in the data: open to everyone, for it is about them.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

from fastapi import Query, Request

from blowfishdb.adapters.store.catalogue import WAITING
from blowfishdb.core.errors import BlowfishError, InvalidInput, UnknownDataset
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.columns import column_graph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.protection import at_most, curve, probe
from blowfishdb.core.policy.statements import PolicyDifference
from blowfishdb.core.policy.words import sentences
from blowfishdb.entrypoints.server.access import Anyone, Caller, Curator, SignedIn
from blowfishdb.entrypoints.server.api.requests import Confirmation, Plain, PolicyDraft, Version
from blowfishdb.entrypoints.server.api.responses import (
    CheckShown,
    Difference,
    PastShown,
    PolicyShown,
    PolicyText,
    PromiseList,
    Promises,
    PromiseShown,
    Protection,
    PublicPromise,
)
from blowfishdb.entrypoints.server.problems import read
from blowfishdb.entrypoints.server.routing import PREFIX, Router
from blowfishdb.entrypoints.server.server import server_of
from blowfishdb.language.policy_file import read_policy, write_policy
from blowfishdb.messages.policies import DatasetInfo
from blowfishdb.workspace.embedded import Workspace

router: Final = Router(PREFIX, tags=["Policies"])


@router.get("/datasets/{dataset}/policy", summary="The policy of a dataset")
def policy(dataset: str, caller: SignedIn) -> PolicyShown:
    """The published policy, as a graph, in words and as a file; for curators also the draft."""
    return _shown(dataset, caller)


@router.put("/datasets/{dataset}/policy", summary="Save a draft")
def save_draft(dataset: str, body: PolicyDraft, caller: Curator) -> Difference:
    """Keep a policy to go on with later, and say what publishing it would change. Nothing follows it yet."""
    before = caller.gateway.draft(dataset)
    draft = read("policy", lambda: _policy(body, before, dataset))
    return _difference(caller.gateway.save_draft(dataset, draft))


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
    return _promises(dataset, caller)


@router.post("/datasets/{dataset}/policy/withdraw", summary="Withdraw an earlier promise")
def withdraw(dataset: str, body: Version, caller: Curator) -> Promises:
    """From now on answers need not fit under it. It is written into the ledger, for everyone to see."""
    caller.gateway.withdraw(dataset, body.version)
    return _promises(dataset, caller)


def _promises(dataset: str, caller: Caller) -> Promises:
    return Promises(promises=[PromiseShown(**each.to_plain()) for each in caller.gateway.kept(dataset)])


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
    if body.graph is not None:
        return Policy(domain, codec.graph(body.graph), known)
    rules = body.columns or {}
    graphs = {name: column_graph(domain[name], **dict(rule)) for name, rule in rules.items()}
    policy = Policy.by_column(domain, graphs, joint=body.joint, hide_presence=body.hide_presence)
    return policy.knowing(known)


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
    return PolicyText(
        graph=codec.plain(policy.graph),
        known=codec.plain_known(policy),
        sentences=list(sentences(policy)),
        yaml=file_of(policy, dataset),
    )


def file_of(policy: Policy, dataset: str) -> str | None:
    """The file that says what a policy says; None where a file has no words for it: for some areas."""
    try:
        return write_policy(policy, dataset=dataset)
    except BlowfishError:
        return None


def _difference(change: PolicyDifference) -> Difference:
    return Difference(**change.to_plain())


guarantees: Final = Router(PREFIX, tags=["Guarantee"])

Value = Annotated[str | None, Query(max_length=255)]


@guarantees.get("/datasets/{dataset}/guarantee", summary="What is promised")
def guarantee(dataset: str, request: Request, caller: Anyone) -> Plain:
    """The guarantee in words and in numbers. Nobody has to sign in to read it."""
    workspace = server_of(request).workspace
    if dataset not in workspace and caller is None:
        raise UnknownDataset("There is no such dataset.")  # which ones there are is for those inside
    return workspace.guarantee(dataset).to_plain()


@guarantees.get("/promises", summary="The public promises of this server")
def promises_of_all(request: Request, caller: Anyone) -> PromiseList:
    """Those whose curators let everyone read them. Nobody has to sign in."""
    return PromiseList(promises=public_promises(server_of(request).workspace))


def public_promises(workspace: Workspace) -> list[PublicPromise]:
    """What is promised about every dataset that is listed and was opened, with the day since when."""
    facts = [workspace.facts(name) for name in workspace.datasets()]
    return [_promise(workspace, each) for each in facts if each.face.listed and each.standing != WAITING]


def _promise(workspace: Workspace, facts: DatasetInfo) -> PublicPromise:
    promised = workspace.guarantee(facts.name)
    sure = max((clause.certainty or 0.5 for clause in promised.clauses), default=0.5)
    published = workspace.events(facts.name, kinds=("policy", "budget"), limit=1)
    return PublicPromise(
        dataset=facts.name,
        title=facts.title,
        description=facts.face.description,
        contact=facts.face.contact,
        hidden=list(sentences(facts.policy)),
        sure=at_most(sure),
        since=published[0].at.date().isoformat() if published else None,
    )


@guarantees.get("/datasets/{dataset}/protection", summary="How well values are hidden")
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
    pair = None if u is None else asdict(read("value", lambda: probe(facts.policy, name, u, v, total)))
    steps = [asdict(step) for step in curve(facts.policy, name, total)]
    return Protection(column=name, budget=str(total), probe=pair, curve=steps)
