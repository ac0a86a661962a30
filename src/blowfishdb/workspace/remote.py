"""The Python client: `bf.connect(url, token=…)`, the interface of `bf.open` over a server.

Questions are put together here and priced and answered there; only private answers travel. A question that
is asked carries a key of its own, so that trying again after a lost connection can never be charged twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final
from urllib.parse import quote as escaped

import httpx

from blowfishdb.adapters.copies.values import Holdings, SourceFacts, SourceRows
from blowfishdb.adapters.store.values import Audited, Budget, Event, Grant, Head
from blowfishdb.core import errors
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.statements import Guarantee, PolicyDifference
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.policies import DatasetInfo, EarlierPolicy, Face, PastLoss
from blowfishdb.messages.questions import Request
from blowfishdb.messages.quotes import Candidate, Explanation, Quote, TogetherQuote, Tradeoff
from blowfishdb.workspace.datasets import Datasets
from blowfishdb.workspace.gateway import Gateway
from blowfishdb.workspace.wire import Wire

if TYPE_CHECKING:
    from blowfishdb.messages.curator import KeptColumns, KnownCheck, Preview, SyntheticComparison
    from blowfishdb.messages.synthesis import SynthesisQuote
    from blowfishdb.messages.synthetic_table import SyntheticTable


@final
class Remote(Datasets):
    """A workspace behind a server."""

    def __init__(self, url: str, token: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self._wire = Wire(url, token, transport)
        try:
            self.user: str = self._wire.get("/me")["user"]
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Remote workspace at {self._wire.host} as '{self.user}'>"

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    # --- datasets -------------------------------------------------------------------------------

    def datasets(self) -> list[str]:
        """The names of all datasets."""
        return [listed["name"] for listed in self._wire.get("/datasets")["datasets"]]

    def facts(self, name: str) -> DatasetInfo:
        """The columns and the policy of a dataset."""
        return DatasetInfo.from_plain(self._wire.get(_at(name)))

    def declare(self, name: str, source: object, domain: Domain, rows: SourceRows) -> None:
        """Declare a dataset; ``source`` is a path on the server or a database address."""
        if not isinstance(source, str | Path):
            raise errors.InvalidInput(
                "A server reads rows where it is, so it cannot take a table from this process.",
                fixes=("a path on the server", "the address of a database"),
            )
        where = {"name": name, "source": str(source), "domain": codec.plain(domain)}
        declared = {key: value for key, value in rows.to_plain().items() if value is not None}
        self._wire.send("POST", "/datasets", where | declared)

    def redeclare(self, name: str, domain: Domain) -> None:
        """Declare other columns or limits, while nothing has been asked; everything is hidden again."""
        dropped = set(self.facts(name).domain.names) - set(domain.names)
        if dropped:
            raise errors.InvalidInput(
                f"A server keeps the columns that it knows: {', '.join(sorted(dropped))}.",
                fixes=("leave the others as they are",),
            )
        self._wire.send("PATCH", _at(name, "schema"), {"columns": codec.plain(domain)})

    def _refresh(self, name: str, source: object | None, rows: SourceRows) -> None:
        """Declare that the rows have changed."""
        if source is not None:
            raise errors.InvalidInput("A server reads rows where it is.", fixes=("refresh()",))
        dialect = {} if rows.dialect is None else {"dialect": rows.dialect.to_plain()}
        self._wire.send("POST", _at(name, "refresh"), {**dialect, "same_rows": rows.same_rows})

    def source(self, name: str) -> SourceFacts:
        """Where the rows of a dataset come from; for the curator."""
        return SourceFacts.from_plain(self._wire.get(_at(name, "source")))

    def copies(self) -> Holdings:
        """Where all rows come from, and how much room their copies take; for the curator."""
        return Holdings.from_plain(self._wire.get("/copies"))

    def introduce(self, name: str, face: Face) -> None:
        """Say what a dataset is called on pages, what it is about, whose it is, and whom to write to."""
        self._wire.send("PATCH", _at(name), face.to_plain())

    def stand(self, name: str, *, opened: bool) -> None:
        """Open a dataset to questions again, or close it; answers that were given stay."""
        self._wire.send("PATCH", _at(name), {"opened": opened})

    def delete(self, name: str) -> str:
        """End a dataset and erase the copy of its rows; says what is left of it, and where."""
        return str(self._wire.send("DELETE", _at(name), {})["words"])

    # --- policies -------------------------------------------------------------------------------

    def draft(self, name: str) -> Policy:
        """The policy that the curator is working on; the published one if there is none."""
        shown = self._wire.get(_at(name, "policy"))
        policy = shown["draft"] or shown
        known = codec.constraints(policy["known"] or {})
        return Policy(self.facts(name).domain, codec.graph(policy["graph"]), known)

    def save_draft(self, name: str, policy: Policy) -> PolicyDifference:
        """Keep a policy to go on with later; says what publishing it would change. Nothing follows it yet."""
        return PolicyDifference.from_plain(self._wire.send("PUT", _at(name, "policy"), _policy_body(policy)))

    def propose(self, name: str, policy: Policy) -> PolicyDifference:
        """What would change, in words."""
        from blowfishdb.core.policy.words import difference, stays_promised  # not for those who only ask

        facts = self.facts(name)
        if policy.domain != facts.policy.domain:
            raise errors.PolicyConflict(
                f"This policy is about other columns than '{name}' declares.",
                fixes=("build it from dataset.schema",),
            )
        change = difference(facts.policy, policy)
        if not self.budget(name).used:
            return change
        return replace(change, kept=stays_promised(facts.policy_version, change))

    def past(self, name: str, policy: Policy) -> PastLoss:
        """What answers so far lost between values that ``policy`` hides."""
        return PastLoss.from_plain(self._wire.send("POST", _at(name, "policy/past"), _policy_body(policy)))

    def publish(self, name: str, policy: Policy, *, confirm: bool = False, withdraw: bool = False) -> None:
        """Make ``policy`` the one that new answers follow."""
        self.save_draft(name, policy)
        wanted = {"confirm": confirm, "withdraw": withdraw}
        self._wire.send("POST", _at(name, "policy/publish"), wanted)

    def kept(self, name: str) -> list[EarlierPolicy]:
        """Earlier policies that are still promised, oldest first."""
        return [
            EarlierPolicy.from_plain(earlier)
            for earlier in self._wire.get(_at(name, "policy/promises"))["promises"]
        ]

    def withdraw(self, name: str, version: int) -> None:
        """Take an earlier promise back, on record for everyone."""
        self._wire.send("POST", _at(name, "policy/withdraw"), {"version": version})

    def check_known(self, name: str) -> KnownCheck:
        """Which counts that the draft takes to be known are not true of the data; for the curator."""
        from blowfishdb.messages.curator import KnownCheck  # not for those who only ask

        return KnownCheck.from_plain(self._wire.send("POST", _at(name, "policy/check"), {}))

    def guarantee(self, name: str) -> Guarantee:
        """What is promised to the people in the data, in words."""
        return Guarantee.from_plain(self._wire.get(_at(name, "guarantee")))

    def _tradeoff(
        self, request: Request, candidates: Sequence[Candidate], at_epsilon: Epsilon | None
    ) -> Tradeoff:
        """What a question costs under each policy; reads no data."""
        body = _body(request) | {"policies": {each.name: _policy_body(each.policy) for each in candidates}}
        if at_epsilon is not None:
            body["at_epsilon"] = str(at_epsilon)
        thetas = {each.name: each.theta for each in candidates if each.theta is not None}
        if thetas:
            body["thetas"] = thetas
        return Tradeoff.from_plain(self._wire.job(_at(request.dataset, "tradeoff"), body, request.progress))

    def preview(self, request: Request, *, policy: Policy | None = None, stand_in: bool = False) -> Preview:
        """The true answer beside a noisy one, for the curator."""
        from blowfishdb.messages.curator import Preview  # not for those who only ask

        body = _body(request) | {"stand_in": stand_in}
        if policy is not None:
            body["policy"] = _policy_body(policy)
        return Preview.from_plain(self._wire.send("POST", _at(request.dataset, "preview"), body))

    # --- budgets --------------------------------------------------------------------------------

    def budget(self, name: str) -> Budget:
        """Total, spent and held."""
        return Budget.from_plain(self._wire.get(_at(name, "budget")))

    def left(self, name: str) -> Epsilon:
        """What this user can still spend."""
        return Epsilon(self._wire.get(_at(name, "budget"))["left"])

    def set_budget(self, name: str, total: Epsilon) -> None:
        """Declare the total."""
        self._wire.send("PUT", _at(name, "budget"), {"total": str(total)})

    def grant(self, name: str, user: str, epsilon: Epsilon) -> None:
        """Let a user spend part of the total."""
        self._wire.send("PUT", _at(name, "grants", user), {"epsilon": str(epsilon)})

    def grants(self, name: str) -> list[Grant]:
        """Who may spend what, and has."""
        grants = self._wire.get(_at(name, "grants"))["grants"]
        return [Grant.from_plain({"dataset": name, **grant}) for grant in grants]

    # --- questions and answers ------------------------------------------------------------------

    def quote(self, request: Request, *, more: bool = True) -> Quote:
        """What the answer costs; free. Without ``more``, the price alone."""
        place = _at(request.dataset, "quotes") + ("" if more else "?more=false")
        return Quote.from_plain(self._wire.look(place, _body(request)))

    def quote_synthesis(self, request: Request) -> SynthesisQuote:
        """What a synthetic table costs, and what would be measured for it; free."""
        from blowfishdb.messages.synthesis import SynthesisQuote  # not for those who only ask

        return SynthesisQuote.from_plain(
            self._wire.look(_at(request.dataset, "synthetic/quotes"), _body(request))
        )

    def keep_rows(self, name: str, columns: Sequence[str], *, confirm: bool = False) -> KeptColumns:
        """What it means that synthetic tables keep rows of these columns; on record once it is confirmed."""
        from blowfishdb.messages.curator import KeptColumns  # not for those who only ask

        body = {"columns": list(columns), "confirm": confirm}
        return KeptColumns.from_plain(self._wire.send("POST", _at(name, "kept-rows"), body))

    def compare_synthetic(self, name: str, number: int) -> SyntheticComparison:
        """True counts beside those of a synthetic table, for the curator; that they looked is on record."""
        from blowfishdb.messages.curator import SyntheticComparison  # not for those who only ask

        place = _at(name, f"synthetic/{number:d}/comparison")
        return SyntheticComparison.from_plain(self._wire.send("POST", place, {}))

    def synthetic(self, number: int) -> SyntheticTable:
        """The synthetic table that is stored under a number; rows are drawn here."""
        from blowfishdb.messages.synthetic_table import SyntheticTable  # it draws rows, and loads numpy

        return SyntheticTable.from_plain(self._wire.get(f"/synthetic/{number:d}"))

    def explain(self, request: Request) -> Explanation:
        """How the question would be answered; free."""
        return Explanation.from_plain(self._wire.look(_at(request.dataset, "explain"), _body(request)))

    def _ask(self, request: Request) -> Answer:
        """The answer, charged once."""
        body = _body(request) | _limit(request.max_cost)
        key = None if request.key is None else request.key.text
        answer = Answer.from_plain(
            self._wire.once(_at(request.dataset, "answers"), body, request.cancel, key)
        )
        if request.progress is not None:  # of what happens in between a server says nothing
            request.progress(1, 1)
        return answer

    def made_up(self, name: str, *, rows: int, seed: int) -> Gateway:
        """A workspace of its own, here, in which a dataset has made-up rows."""
        from blowfishdb.workspace.embedded import Workspace

        return Workspace.about_nobody(self.facts(name), self.budget(name).total, rows=rows, seed=seed)

    def quote_all(self, requests: Sequence[Request]) -> TogetherQuote:
        """What questions cost that are settled on together; free."""
        return TogetherQuote.from_plain(self._wire.look("/plans", {"questions": _each(requests)}))

    def ask_all(self, requests: Sequence[Request], *, max_cost: Epsilon | None = None) -> list[Answer]:
        """The answers to questions that were settled on together, before any of them is answered."""
        body = {"questions": _each(requests), **_limit(max_cost)}
        keys = {request.key.text for request in requests if request.key is not None}
        sent = self._wire.once("/batches", body, None, *keys)
        return [Answer.from_plain(answer) for answer in sent["answers"]]

    def answers(
        self,
        dataset: str | None = None,
        *,
        limit: int | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> list[Answer]:
        """Every stored answer, oldest first; with ``limit``, the last ones before number ``before``.

        With ``after``, the first ones behind that number instead.
        """
        query: dict[str, Any] = {"full": True} | ({} if dataset is None else {"dataset": dataset})
        return [Answer.from_plain(body) for body in self._pages("/answers", query, limit, before, after)]

    def _pages(
        self, path: str, query: Mapping[str, Any], limit: int | None, before: int | None, after: int | None
    ) -> list[Any]:
        """A list that the server gives a page at a time, oldest first."""
        newest = after is None and not (limit is None and before is None)
        left, cursor = limit, (before if newest else after) or 0
        listed: list[Any] = []
        while left is None or left > 0:
            part = {"after": cursor, "limit": min(200, left or 200), "newest": newest}
            page = self._wire.get(path, {**query, **part})
            listed += page[path.lstrip("/")]
            left = None if limit is None else limit - len(listed)
            cursor = page["next"]
            if cursor is None:
                break
        return listed[::-1] if newest else listed

    def answer(self, number: int) -> Answer:
        """The stored answer with that number."""
        return Answer.from_plain(self._wire.get(f"/answers/{number:d}"))

    def events(
        self,
        dataset: str | None = None,
        *,
        kinds: Collection[str] = (),
        limit: int | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> list[Event]:
        """Everything that happened, in order, as the hash chain has it; or some kinds.

        With ``limit``, the last ones before number ``before``, or the first ones behind ``after``.
        """
        query = {"kind": list(kinds)} | ({} if dataset is None else {"dataset": dataset})
        pages = self._pages("/events", query, limit, before, after)
        return [Event.from_plain(event) for event in pages]

    def audit(self, *, since: Head | str | None = None, witness: str | Path | None = None) -> Audited:
        """What is wrong with the books, and what was looked at.

        They must extend the head ``since``, and every head of the file ``witness`` beside this process.
        """
        from blowfishdb.adapters.store.witness import Witness  # not for those who only ask

        seen = [] if witness is None else Witness(witness).heads()
        heads = [*seen[-1:], *(() if since is None else (since,))]  # the newest covers those before it
        query: dict[str, Any] = {"after": 2**53}  # no events: those are asked for by themselves
        audited = Audited.from_plain(
            self._wire.get("/audit", query | {"since": [str(head) for head in heads]})
        )
        return audited if witness is None else replace(audited, witnessed=len(seen))

    def head(self) -> Head:
        """Where the books end."""
        return Head.of(self._wire.get("/head")["head"])


def connect(url: str, *, token: str) -> Remote:
    """The workspace behind the server at ``url``; ``token`` is made there, once for each person."""
    return Remote(url, token)


def _at(dataset: str, *rest: str) -> str:
    """The address of something about a dataset, whatever its name contains."""
    parts = [escaped(dataset, safe=""), *(rest[:1]), *(escaped(part, safe="") for part in rest[1:])]
    return f"/datasets/{'/'.join(parts)}"


def _policy_body(policy: Policy) -> dict[str, Any]:
    """A policy about columns that the server knows already; nothing known is said too."""
    return {"graph": codec.plain(policy.graph), "known": codec.plain_known(policy) or {}}


def _each(requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Questions with the datasets that they are about."""
    return [{"dataset": request.dataset, **_body(request)} for request in requests]


def _body(request: Request) -> dict[str, Any]:
    return {"question": request.form.to_plain(), **request.terms.to_plain()}


def _limit(max_cost: Epsilon | None) -> dict[str, str]:
    return {} if max_cost is None else {"max_cost": str(max_cost)}
