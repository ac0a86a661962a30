"""Gateway: what a workspace can do, however it is reached.

The file beside this process (``embedded``) and a server (``remote``) implement it; everything that people
type is written once, on top of it, in ``datasets`` and ``asking``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from blowfishdb.adapters.copies.values import Dialect, Holdings, SourceFacts, SourceRows
from blowfishdb.adapters.store.values import Audited, Budget, Event, Grant, Head
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.statements import Guarantee, PolicyDifference
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.policies import DatasetInfo, EarlierPolicy, Face, PastLoss
from blowfishdb.messages.questions import Request
from blowfishdb.messages.quotes import Candidate, Explanation, Quote, TogetherQuote, Tradeoff

if TYPE_CHECKING:
    from blowfishdb.messages.curator import KeptColumns, KnownCheck, Preview, SyntheticComparison
    from blowfishdb.messages.synthesis import SynthesisQuote
    from blowfishdb.messages.synthetic_table import SyntheticTable

_PAGE: Final = 50


class Gateway(ABC):
    """A workspace: its datasets, their policies and budgets, and every answer so far."""

    user: str

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- datasets -------------------------------------------------------------------------------

    @abstractmethod
    def datasets(self) -> list[str]:
        """The names of all datasets."""

    def counted(self) -> list[str]:
        """The names under which rows can be counted: datasets, and every table of those that have several."""
        found = []
        for name in self.datasets():
            tables = self.facts(name).tables
            found += [f"{name}.{table.name}" for table in tables] if tables else [name]
        return found

    @abstractmethod
    def facts(self, name: str) -> DatasetInfo:
        """The columns and the policy of a dataset."""

    def __contains__(self, name: object) -> bool:
        return name in self.datasets()

    @abstractmethod
    def declare(self, name: str, source: object, domain: Domain, rows: SourceRows) -> None:
        """Declare a dataset: where its rows are and which values they may hold."""

    @abstractmethod
    def redeclare(self, name: str, domain: Domain) -> None:
        """Declare other columns or limits, while nothing has been asked; everything is hidden again."""

    def refresh(
        self,
        name: str,
        source: object | None = None,
        *,
        dialect: Mapping[str, Any] | None = None,
        same_rows: bool = False,
    ) -> None:
        """Declare that the rows have changed: answers from now on belong to a new snapshot."""
        written = None if dialect is None else Dialect.from_plain(dialect)
        self._refresh(name, source, SourceRows(dialect=written, same_rows=same_rows))

    @abstractmethod
    def _refresh(self, name: str, source: object | None, rows: SourceRows) -> None:
        """The same; of ``rows`` it counts how a file is written, and whether another dataset has them too."""

    @abstractmethod
    def source(self, name: str) -> SourceFacts:
        """Where the rows of a dataset come from; for the curator."""

    @abstractmethod
    def copies(self) -> Holdings:
        """Where all rows come from, and how much room their copies take; for the curator."""

    @abstractmethod
    def introduce(self, name: str, face: Face) -> None:
        """Say what a dataset is called on pages, what it is about, whose it is, and whom to write to."""

    @abstractmethod
    def stand(self, name: str, *, opened: bool) -> None:
        """Open a dataset to questions again, or close it; answers that were given stay."""

    @abstractmethod
    def delete(self, name: str) -> str:
        """End a dataset and erase the copy of its rows; says what is left of it, and where."""

    # --- policies -------------------------------------------------------------------------------

    @abstractmethod
    def draft(self, name: str) -> Policy:
        """The policy that the curator is working on; the published one if there is none."""

    @abstractmethod
    def save_draft(self, name: str, policy: Policy) -> PolicyDifference:
        """Keep a policy to go on with later; says what publishing it would change. Nothing follows it yet."""

    @abstractmethod
    def propose(self, name: str, policy: Policy) -> PolicyDifference:
        """What would change, in words."""

    @abstractmethod
    def past(self, name: str, policy: Policy) -> PastLoss:
        """What answers so far lost between values that ``policy`` hides."""

    @abstractmethod
    def publish(self, name: str, policy: Policy, *, confirm: bool = False, withdraw: bool = False) -> None:
        """Make ``policy`` the one that new answers follow.

        If it hides less, the policy so far stays promised beside it, unless it is withdrawn at once.
        """

    @abstractmethod
    def kept(self, name: str) -> list[EarlierPolicy]:
        """Earlier policies that are still promised, oldest first."""

    @abstractmethod
    def withdraw(self, name: str, version: int) -> None:
        """Take an earlier promise back, on record for everyone."""

    @abstractmethod
    def check_known(self, name: str) -> KnownCheck:
        """Which counts that the draft takes to be known are not true of the data; for the curator."""

    @abstractmethod
    def guarantee(self, name: str) -> Guarantee:
        """What is promised to the people in the data, in words."""

    def tradeoff(
        self,
        request: Request,
        policies: Mapping[str, Policy],
        *,
        at_epsilon: Epsilon | None = None,
        thetas: Mapping[str, float] | None = None,
        progress: Progress | None = None,
    ) -> Tradeoff:
        """What a question costs under each policy; reads no data."""
        distances = thetas or {}
        candidates = [Candidate(name, policy, distances.get(name)) for name, policy in policies.items()]
        return self._tradeoff(replace(request, progress=progress), candidates, at_epsilon)

    @abstractmethod
    def _tradeoff(
        self, request: Request, candidates: Sequence[Candidate], at_epsilon: Epsilon | None
    ) -> Tradeoff:
        """The same, for policies by name."""

    @abstractmethod
    def preview(self, request: Request, *, policy: Policy | None = None, stand_in: bool = False) -> Preview:
        """The true answer beside a noisy one, for the curator."""

    # --- budgets --------------------------------------------------------------------------------

    @abstractmethod
    def budget(self, name: str) -> Budget:
        """Total, spent and held."""

    @abstractmethod
    def left(self, name: str) -> Epsilon:
        """What this user can still spend."""

    @abstractmethod
    def set_budget(self, name: str, total: Epsilon) -> None:
        """Declare the total."""

    @abstractmethod
    def grant(self, name: str, user: str, epsilon: Epsilon) -> None:
        """Let a user spend part of the total."""

    @abstractmethod
    def grants(self, name: str) -> list[Grant]:
        """Who may spend what, and has."""

    # --- questions and answers ------------------------------------------------------------------

    @abstractmethod
    def quote(self, request: Request, *, more: bool = True) -> Quote:
        """What the answer costs; free. Without ``more``, the price alone."""

    @abstractmethod
    def quote_synthesis(self, request: Request) -> SynthesisQuote:
        """What a synthetic table costs, and what would be measured for it; free."""

    @abstractmethod
    def keep_rows(self, name: str, columns: Sequence[str], *, confirm: bool = False) -> KeptColumns:
        """What it means that synthetic tables keep rows of these columns; on record once it is confirmed."""

    @abstractmethod
    def compare_synthetic(self, name: str, number: int) -> SyntheticComparison:
        """True counts beside those of a synthetic table, for the curator; that they looked is on record."""

    @abstractmethod
    def synthetic(self, number: int) -> SyntheticTable:
        """The synthetic table that is stored under a number; free, like all rows drawn from it."""

    @abstractmethod
    def explain(self, request: Request) -> Explanation:
        """How the question would be answered; free."""

    def ask(
        self,
        request: Request,
        *,
        max_cost: Epsilon | None = None,
        cancel: Cancellation | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """The answer, charged once."""
        return self._ask(replace(request, max_cost=max_cost, cancel=cancel, progress=progress))

    @abstractmethod
    def _ask(self, request: Request) -> Answer:
        """The same, for a request that says everything itself."""

    @abstractmethod
    def made_up(self, name: str, *, rows: int, seed: int) -> Gateway:
        """A workspace of its own in which a dataset has made-up rows; it is gone when nobody holds it."""

    @abstractmethod
    def quote_all(self, requests: Sequence[Request]) -> TogetherQuote:
        """What questions cost that are settled on together; free."""

    @abstractmethod
    def ask_all(self, requests: Sequence[Request], *, max_cost: Epsilon | None = None) -> list[Answer]:
        """The answers to questions that were settled on together, before any of them is answered."""

    @abstractmethod
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

    def newest(self, dataset: str | None = None, *, before: int | None = None) -> Iterator[Answer]:
        """Stored answers from the newest on, or from number ``before``, read a page at a time."""
        page = self.answers(dataset, limit=_PAGE, before=before)
        while page:
            yield from reversed(page)
            page = self.answers(dataset, limit=_PAGE, before=page[0].number) if len(page) == _PAGE else []

    @abstractmethod
    def answer(self, number: int) -> Answer:
        """The stored answer with that number."""

    @abstractmethod
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

    @abstractmethod
    def audit(self, *, since: Head | str | None = None, witness: str | Path | None = None) -> Audited:
        """What is wrong with the books, and what was looked at.

        They must extend the head ``since``, and every head of the file ``witness``.
        """

    @abstractmethod
    def head(self) -> Head:
        """Where the books end: the number of the last event and its hash, to be kept elsewhere."""

    def verify(self) -> list[str]:
        """What is wrong with the books; empty if every charge, every hash and every fact adds up."""
        return list(self.audit().problems)
