"""The embedded workspace: `bf.open(path)`. Datasets, policies, ledger and answers in one file."""

from __future__ import annotations

import copy
import getpass
import tempfile
import weakref
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, final

from blowfishdb.adapters.backends import TIMEOUT
from blowfishdb.adapters.copies.folder import UPLOAD, copies_of
from blowfishdb.adapters.copies.values import Holdings, SourceFacts, SourceRows
from blowfishdb.adapters.store import backup as backups
from blowfishdb.adapters.store.catalogue import Policies, already_asked
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.pages import Pages
from blowfishdb.adapters.store.values import Audited, Budget, Event, Grant, Head, RequestKey
from blowfishdb.adapters.store.witness import Watch, Witness
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, NotFound
from blowfishdb.core.policy.guarantee import guarantee
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.starting import starting_points
from blowfishdb.core.policy.statements import Guarantee, PolicyDifference
from blowfishdb.mechanisms import Best
from blowfishdb.messages.answers import MADE_UP, Answer
from blowfishdb.messages.curator import KeptColumns, KnownCheck, Preview, SyntheticComparison
from blowfishdb.messages.policies import DatasetInfo, EarlierPolicy, Face, PastLoss, PricedStart, TableFacts
from blowfishdb.messages.questions import Request
from blowfishdb.messages.quotes import Candidate, Explanation, Quote, TogetherQuote, Tradeoff
from blowfishdb.messages.synthesis import SynthesisQuote
from blowfishdb.messages.synthetic_table import SyntheticTable
from blowfishdb.noise import secure
from blowfishdb.service import declaration, records
from blowfishdb.service.curator import check_known, preview
from blowfishdb.service.desk import Desk
from blowfishdb.service.explain import explain, tradeoff
from blowfishdb.service.planning import Planner
from blowfishdb.service.policies import Publishing
from blowfishdb.service.records import DatasetEntry, Records
from blowfishdb.service.reuse import StoredReleases
from blowfishdb.service.service import Service
from blowfishdb.service.sources import RowSources, what_stays
from blowfishdb.service.starting import priced_starts
from blowfishdb.service.stored import read_answer, read_synthetic
from blowfishdb.service.synthesis_view import compared, keepable, keeping
from blowfishdb.workspace import made_up
from blowfishdb.workspace.datasets import Datasets

DEFAULT_BUDGET = Epsilon(1)
USUAL_ERROR: Final = 50.0
ABANDONED = timedelta(minutes=15)
"""Charges that a process left unfinished so long ago are ended when a workspace is opened."""


@final
class Workspace(Datasets):
    """Datasets, their policies, their budget ledger and every answer so far, in one file.

    >>> with bf.open(folder / "new.blowfish", user="ada") as new:
    ...     new.datasets()
    []
    >>> ws["people"].count().spend(1).ask().promise
    'Exact: the policy does not hide this.'
    >>> [answer.receipt.question for answer in ws.answers()], ws.verify()
    (['number of rows'], [])
    """

    def __init__(
        self,
        path: str | Path,
        user: str | None = None,
        *,
        statement_seconds: float = TIMEOUT,
        mark: str = "",
    ) -> None:
        """``mark``: what is said before every question about rows that are not to be taken for real."""
        self.store = Store.open(path)
        self.user = user or getpass.getuser()
        self._ledger = Ledger(self.store)
        self._ledger.recover(ABANDONED)
        self._records = Records(self.store)
        self._rows = RowSources(self._records, copies_of(self.store), statement_seconds)
        self._policies = Policies(self.store)
        self._publishing = Publishing(self._ledger, self._policies, self._records)
        self._service = Service(
            self._askable,
            self._ledger,
            StoredReleases(self._ledger),
            Planner(Best()),
            self._publishing.kept,
            self._rows.backend,
            secure(),
            mark,
        )

    @property
    def place(self) -> str:
        """Where it is: a file, or the address of a database."""
        return self.store.name

    @property
    def file(self) -> Path | None:
        """The file that it is, in full; None for a database elsewhere."""
        return self.store.file

    @classmethod
    def about_nobody(cls, facts: DatasetInfo, total: Epsilon, *, rows: int, seed: int) -> Workspace:
        """A workspace with a dataset of these facts over made-up rows, gone when nobody holds it any more.

        They may lose ``total``, as much as the real ones, so that what runs out there runs out here. What
        everyone knows about the real rows is not true of these, and is left out of the policy.
        """
        folder = tempfile.TemporaryDirectory(prefix="blowfishdb-made-up-")
        workspace = cls(Path(folder.name) / "made-up.blowfish", "nobody", mark=MADE_UP)
        weakref.finalize(workspace, folder.cleanup)
        dataset = workspace.add_dataset(**made_up.declared(facts, rows, seed))
        workspace.set_budget(facts.name, total or Epsilon(1))
        dataset.publish(facts.policy.knowing(None))
        return workspace

    def made_up(self, name: str, *, rows: int, seed: int) -> Workspace:
        """A workspace of its own in which a dataset has made-up rows."""
        return self.about_nobody(self.facts(name), self.budget(name).total, rows=rows, seed=seed)

    def as_user(self, user: str) -> Workspace:
        """The same workspace in the name of somebody else; both share everything that is open."""
        other = copy.copy(self)
        other.user = user
        return other

    def close(self) -> None:
        """Let go of the files."""
        self._rows.close()
        self.store.close()

    def backup(self, path: str | Path) -> backups.Copy:
        """Copy the workspace to a new file, as it is at one moment, while others go on writing."""
        return backups.backup(self.store, path)

    # --- datasets -------------------------------------------------------------------------------

    def datasets(self) -> list[str]:
        """The names of all datasets."""
        return self._records.names()

    def facts(self, name: str) -> DatasetInfo:
        """The columns and the policy of a dataset."""
        record = self._records[name]
        rules = records.rules_of(record)
        return DatasetInfo(
            name,
            record.domain,
            record.policy,
            record.policy_version,
            record.snapshot,
            record.rows_per_person,
            tuple(sorted(rules.public)),
            rules.vary,
            record.declared_kind.value,
            _table_facts(record),
            record.part_of,
            record.keys,
            self._records.standing(name),
            self._records.face(name),
            self._records.may_keep(name),
        )

    def declare(self, name: str, source: object, domain: Domain, rows: SourceRows) -> None:
        """Declare a dataset; see ``add_dataset``."""
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("A dataset needs a name.")
        if isinstance(source, str | Path) and not str(source).startswith(UPLOAD):
            declaration.check_not_own(str(source), self.store.name)
        record = self._rows.declare(name, source, domain, rows, by=self.user, total=DEFAULT_BUDGET)
        if record.shared or rows.public or rows.rows_vary is not None:
            facts = {"public": list(rows.public), "rows_vary": rows.rows_vary}
            self._ledger.note(name, self.user, "source", {**facts, "same_rows_as": list(record.shared)})

    def redeclare(self, name: str, domain: Domain) -> None:
        """Declare other columns or limits, while nothing has been asked; everything is hidden again."""
        record = self._ready(name).whole()
        if self._ledger.charged(name):
            raise already_asked(name)
        self._rows.redeclare(record, domain, by=self.user)

    def _refresh(self, name: str, source: object | None, rows: SourceRows) -> None:
        """Declare that the rows have changed: answers from now on belong to a new snapshot."""
        record, dialect = self._records[name].whole(), rows.dialect
        self._rows.refresh(record, by=self.user, source=source, dialect=dialect, same_rows=rows.same_rows)

    def limit_copies(self, seconds: float) -> None:
        """Refuse files that take longer to copy when they are declared or refreshed; a server does, because
        whoever asks for it waits."""
        self._rows.seconds = seconds

    def source(self, name: str) -> SourceFacts:
        """Where the rows of a dataset come from; for the curator."""
        return self._records[name].source_facts()

    def copies(self) -> Holdings:
        """Where all rows come from, and how much room their copies take; for the curator."""
        sources = tuple(self.source(name) for name in self.datasets())
        return Holdings(sources, self._rows.copies.used(), self._rows.copies.quota)

    def introduce(self, name: str, face: Face) -> None:
        """Say what a dataset is called on pages, what it is about, whose it is, and whom to write to."""
        self._records.put_face(name, face, self.user)

    def stand(self, name: str, *, opened: bool) -> None:
        """Open a dataset to questions again, or close it; answers that were given stay."""
        self._records.stand(name, opened=opened, by=self.user)

    def delete(self, name: str) -> str:
        """End a dataset and erase the copy of its rows; says what is left of it, and where."""
        record = self._records[name].whole()
        self._rows.delete(record, by=self.user)
        return what_stays(record)

    def check_rows(self) -> list[str]:
        """What is not as it should be with datasets and the copies of their rows, for the curator."""
        return list(self._rows.problems())

    def repair(self) -> list[str]:
        """Mend what a crash or an older version left, where that needs no decision; says what was done."""
        return list(self._rows.repair(self.user))

    def _ready(self, name: str) -> DatasetEntry:
        """A dataset that can be asked about; what older versions left out, it gets now: policy and copy."""
        record = self._records[name]
        if self._records.complete(record, self.user):
            record = self._records[name]
        if record.awaits_copy:
            self._rows.adopt(record, by=self.user)
            record = self._records[name]
        return record

    # --- policies -------------------------------------------------------------------------------

    def draft(self, name: str) -> Policy:
        """The policy that the curator is working on; the published one if there is none."""
        return self._records.draft(name)

    def policy_at(self, name: str, version: int) -> Policy | None:
        """The policy as it was published then, also of a dataset that is no more; None if it is not known."""
        return self._records.policy(name, version)

    def starts(self, name: str, *, error: float = USUAL_ERROR) -> list[PricedStart]:
        """Policies to begin with, and what common questions would cost under each; reads no data."""
        record = self._records[name]
        rules = records.rules_of(record)
        points = starting_points(rules.first_policy(record.domain), rules.public)
        return priced_starts(
            self._service.planner,
            name,
            self.user,
            points,
            error=error,
            rows_per_person=record.rows_per_person,
        )

    def receive(self, name: str, blocks: Iterable[bytes], *, most: int) -> str:
        """Keep a file of rows that a curator sends, and say how it is called as a source."""
        self._rows.sweep()
        return self._rows.copies.receive(name, blocks, most=most)

    def sent(self, source: str) -> Path:
        """Where a file is that was sent and not declared yet."""
        return self._rows.copies.sent(source)

    def save_draft(self, name: str, policy: Policy) -> PolicyDifference:
        """Keep a policy to go on with later; says what publishing it would change. Nothing follows it yet."""
        change = self.propose(name, policy)
        self._records.put_draft(name, policy)
        return change

    def propose(self, name: str, policy: Policy) -> PolicyDifference:
        """What would change, in words."""
        return self._publishing.propose(name, policy)

    def past(self, name: str, policy: Policy) -> PastLoss:
        """What answers so far lost between values that ``policy`` hides."""
        return self._publishing.past(name, policy)

    def publish(self, name: str, policy: Policy, *, confirm: bool = False, withdraw: bool = False) -> None:
        """Make ``policy`` the one that new answers follow; explained and on record in the ledger."""
        self._publishing.publish(name, policy, self.user, confirm=confirm, withdraw=withdraw)

    def kept(self, name: str) -> list[EarlierPolicy]:
        """Earlier policies that are still promised."""
        return self._publishing.kept(name)

    def withdraw(self, name: str, version: int) -> None:
        """Take an earlier promise back, on record for everyone."""
        self._policies.withdraw(self._records[name].whole().name, self.user, version)

    def check_known(self, name: str) -> KnownCheck:
        """Which counts that the draft takes to be known are not true of the data; on record."""
        self._ready(name)
        return check_known(self._service, name, self.user, self.draft(name))

    def guarantee(self, name: str) -> Guarantee:
        """What is promised to the people in the data, in words."""
        record = self._records[name]
        total = self._ledger.budget(record.books).total
        promised = guarantee(record.policy, total, rows_per_person=record.rows_per_person)
        return replace(
            promised,
            past=self._publishing.remembered(record.books),
            about=self._about(record, total),
            history=self._publishing.promised(record.books),
            assumed=self._assumed(record),
        )

    def _tradeoff(
        self, request: Request, candidates: Sequence[Candidate], at_epsilon: Epsilon | None
    ) -> Tradeoff:
        """What a question costs under each policy; reads no data."""
        record, resolved = self._records[request.dataset], self._service.resolved(request)
        return tradeoff(
            self._service.planner,
            resolved,
            candidates,
            rows_per_person=record.rows_per_person,
            at_epsilon=at_epsilon,
            beside=partial(self._service.standing_after, record),
        )

    def preview(self, request: Request, *, policy: Policy | None = None, stand_in: bool = False) -> Preview:
        """The true answer beside a noisy one, for the curator."""
        self._ready(request.dataset)
        return preview(self._service, self._service.resolved(request), policy=policy, stand_in=stand_in)

    # --- budgets --------------------------------------------------------------------------------

    def budget(self, name: str) -> Budget:
        """Total, spent and held."""
        return self._ledger.budget(self._books(name))

    def left(self, name: str) -> Epsilon:
        """What this user can still spend."""
        return self._ledger.left(self._books(name), self.user)

    def set_budget(self, name: str, total: Epsilon) -> None:
        """Declare the total."""
        self._ledger.set_budget(self._records[name].whole().name, total, self.user)

    def grant(self, name: str, user: str, epsilon: Epsilon) -> None:
        """Let a user spend part of the total."""
        self._ledger.grant(self._records[name].whole().name, user, epsilon, self.user)

    def grants(self, name: str) -> list[Grant]:
        """Who may spend what, and has."""
        return self._ledger.grants(self._records[name].books)

    # --- questions and answers ------------------------------------------------------------------

    def quote(self, request: Request, *, more: bool = True) -> Quote:
        """What the answer costs; free."""
        self._records.check_open(request.dataset)
        return self._service.quote(request, more=more)

    def quote_synthesis(self, request: Request) -> SynthesisQuote:
        """What a synthetic table costs, and what would be measured for it; free."""
        self._records.check_open(request.dataset)
        return self._service.quote_synthesis(request)

    def keepable(self, name: str) -> tuple[str, ...]:
        """Columns that no promise hides, of which rows could be kept; no row is read for it."""
        return keepable(self._service, name)

    def keep_rows(self, name: str, columns: Sequence[str], *, confirm: bool = False) -> KeptColumns:
        """What it means that synthetic tables keep rows of these columns; on record once it is confirmed."""
        self._ready(name)
        told = keeping(self._service, name, self.user, columns)
        if not confirm:
            return told
        self._records.keep_rows(name, told.columns, self.user)
        return replace(told, confirmed=True)

    def compare_synthetic(self, name: str, number: int) -> SyntheticComparison:
        """True counts beside those of a synthetic table, for the curator; that they looked is on record."""
        table = self.synthetic(number)
        if table.receipt.dataset != name:
            raise NotFound(f"Synthetic table {number} is not one of '{name}'.")
        self._ready(name)
        return compared(self._service, table, self.user)

    def synthetic(self, number: int) -> SyntheticTable:
        """The synthetic table that is stored under a number."""
        stored = self._ledger.stored([number]).get(number)
        table = None if stored is None else read_synthetic(stored)
        if table is None:
            raise NotFound(f"There is no synthetic table number {number}.", fixes=("list the answers",))
        return table

    def explain(self, request: Request) -> Explanation:
        """How the question would be answered; free."""
        self._records.check_open(request.dataset)
        return explain(self._service.plan(request))

    def _ask(self, request: Request) -> Answer:
        """The answer, charged once; what was answered under its key is there for good."""
        if self._service.asked_before(request) is None:
            self._records.check_open(request.dataset)
        self._ready(request.dataset)
        return self._service.ask(request)

    def quote_all(self, requests: Sequence[Request]) -> TogetherQuote:
        """What questions cost that are settled on together; free."""
        for request in requests:
            self._records.check_open(request.dataset)
        return self._service.quote_all(requests)

    def ask_all(self, requests: Sequence[Request], *, max_cost: Epsilon | None = None) -> list[Answer]:
        """The answers to questions that were settled on together, before any of them is answered."""
        for dataset in {request.dataset for request in requests}:
            self._records.check_open(dataset)
            self._ready(dataset)
        return self._service.ask_all(requests, max_cost=max_cost)

    def answered_under(self, key: RequestKey, *, silence: timedelta) -> dict[int, Answer]:
        """What was answered under a key, by part; refused while a part is under way, and if one was lost.

        A part of which nothing was heard for ``silence`` is taken for abandoned, and is lost.
        """
        charged = self._ledger.charged_under(self.user, key, silence=silence)
        return {part: read_answer(stored) for part, stored in charged.items()}

    def answers(
        self,
        dataset: str | None = None,
        *,
        limit: int | None = None,
        before: int | None = None,
        after: int | None = None,
        skip: int = 0,
    ) -> list[Answer]:
        """Every stored answer, oldest first; with ``limit``, the last ones before number ``before``.

        With ``after``, the first ones behind that number instead. The first ``skip`` of these are left out.
        """
        page = self._ledger.answers(dataset, limit=limit, before=before, after=after, skip=skip)
        return [read_answer(stored) for stored in page]

    def answers_at(self, numbers: Sequence[int]) -> list[Answer]:
        """The stored answers with these numbers, in this order; those that there are."""
        stored = self._ledger.stored(numbers)
        return [read_answer(stored[number]) for number in numbers if number in stored]

    def answer(self, number: int) -> Answer:
        """The stored answer with that number."""
        stored = self._ledger.stored([number]).get(number)
        if stored is None:
            raise NotFound(f"There is no answer number {number}.", fixes=("list the answers",))
        return read_answer(stored)

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
        return self._ledger.events(dataset, kinds=kinds, limit=limit, before=before, after=after)

    @property
    def pages(self) -> Pages:
        """Counts and pages of what is in the books."""
        return Pages(self._ledger.store)

    @property
    def desk(self) -> Desk:
        """What people keep beside answers: names, notes, cards, dashboards, plans, requests for more."""
        return Desk(self._ledger)

    def audit(self, *, since: Head | str | None = None, witness: str | Path | None = None) -> Audited:
        """What is wrong with the books, and what was looked at.

        They must extend the head ``since``, and every head of the file ``witness``.
        """
        return self.audited([] if since is None else [Head.of(str(since))], witness)

    def audited(self, since: Sequence[Head], witness: str | Path | None = None) -> Audited:
        """The same, for any number of heads that were kept."""
        seen = [] if witness is None else Witness(witness).heads()
        audited = self._ledger.audit([*seen, *since])
        return audited if witness is None else replace(audited, witnessed=len(seen))

    def watch(self, witness: str | Path) -> Watch:
        """Write every new head into a file outside the workspace, until ``end``; refused if it disagrees."""
        watch = Watch(self._ledger, Witness(witness))
        watch.start()
        return watch

    def head(self) -> Head:
        """Where the books end: the number of the last event and its hash, to be kept elsewhere."""
        return self._ledger.head()

    # --- where rows are -------------------------------------------------------------------------

    def _books(self, name: str) -> str:
        """The dataset whose budget pays for questions about this one: itself, but for one of its tables."""
        return self._records[name].books if self._records.is_table(name) else name

    def _assumed(self, record: DatasetEntry) -> str:
        tables = self._records[record.books].tables
        return "" if tables is None else tables.declared.promise()

    def _askable(self, name: str) -> DatasetEntry:
        return records.askable(self._records[name])

    def _about(self, record: DatasetEntry, total: Epsilon) -> tuple[str, ...]:
        """A dataset that was deleted told what it told."""
        current = set(self._records.names())
        others = []
        for name in declaration.sharing(self._records.every(), record):
            budget = self._ledger.budget(name)
            others.append((name, budget.total if name in current else budget.spent))
        return declaration.about(record.name, records.rules_of(record), others, total)


def _table_facts(record: DatasetEntry) -> tuple[TableFacts, ...]:
    """The tables of a dataset that has several."""
    if record.tables is None:
        return ()
    tables = record.asked_tables()
    return tuple(TableFacts(each.table_name, each.rows_per_person, each.domain.names) for each in tables)


def open_workspace(path: str | Path, user: str | None = None) -> Workspace:
    """The workspace at ``path``, made if it is not there yet."""
    return Workspace(path, user)
