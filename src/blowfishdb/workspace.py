"""The embedded workspace: `bf.open(path)`, datasets, and questions that read like sentences.

ws = bf.open("demo.blowfish")
q = ws["salaries"]["salary"].cumulative(bins=20).accurate_to(50, confidence=0.95)
q.quote()            # free
a = q.ask()          # charged once; asking again returns the stored answer
"""

from __future__ import annotations

import getpass
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, Self, final

from blowfishdb.adapters.backends import Backend, open_backend
from blowfishdb.adapters.backends.duckdb_memory import save_table
from blowfishdb.adapters.catalogue import Catalogue
from blowfishdb.adapters.ledger import Budget, Ledger
from blowfishdb.adapters.sql_source import Source
from blowfishdb.adapters.sql_unit import Unit
from blowfishdb.adapters.store import Store
from blowfishdb.core import codec, questions
from blowfishdb.core.accuracy import Accuracy, check_beta
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.axis import Axis
from blowfishdb.core.bins import Bins, whole_bin
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidInput, NotProven, PolicyConflict, UnknownDataset
from blowfishdb.core.policy import Policy
from blowfishdb.core.predicates import Everything, Predicate
from blowfishdb.core.questions import Question
from blowfishdb.core.values import Value
from blowfishdb.mechanisms import Best
from blowfishdb.messages import Answer, Quote, Request
from blowfishdb.noise import secure
from blowfishdb.owned import Owned
from blowfishdb.service import DatasetRecord, Service, read_answer

AnyEpsilon = Epsilon | str | Fraction | int | float

DEFAULT_BUDGET = Epsilon(1)
ABANDONED = timedelta(minutes=15)
"""Charges that a process left unfinished so long ago are ended when a workspace is opened."""


@final
class Workspace:
    """Datasets, their policies, their budget ledger and every answer so far, in one file."""

    def __init__(self, path: str | Path, user: str | None = None) -> None:
        self._store = Store.open(path)
        self.user = user or getpass.getuser()
        self._catalogue = Catalogue(self._store)
        self._ledger = Ledger(self._store)
        self._ledger.recover(ABANDONED)
        self._backends: dict[str, Backend] = {}
        self._records: dict[tuple[object, ...], DatasetRecord] = {}
        self._service = Service(
            self._record, self._backend, self._ledger, Owned(self._ledger), secure(), Best()
        )

    def add_dataset(
        self,
        name: str,
        source: object,
        *,
        domain: Domain,
        table: str | None = None,
        view: str | None = None,
        person: str | None = None,
        rows_per_person: int = 1,
        row_key: str | None = None,
    ) -> Dataset:
        """Declare a dataset: where its rows are and which values they may hold.

        ``source`` is a path (DuckDB, SQLite, CSV, Parquet), a database address, or a pandas, Arrow or Polars
        table, of which a copy is kept beside the workspace. The rows are those of ``table``, or of ``view``,
        a SELECT over several tables. With ``person``, the column that says whose row it is, at most
        ``rows_per_person`` rows count for each. Everything about a record stays hidden until a policy says
        otherwise, and the budget is 1.
        """
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("A dataset needs a name.")
        if name in self:
            raise InvalidInput(f"There is already a dataset '{name}' in this workspace.")
        location = _place(source) if isinstance(source, str | Path) else self._keep(name, source)
        where = _declared_source(location, table, view, person, rows_per_person, row_key)
        backend = open_backend(location, domain, source=where)
        backend.check()
        body = {
            "location": location,
            "source": None if where is None else _plain_source(where),
            "domain": codec.plain(domain),
            "snapshot": 1,
        }
        self._catalogue.put("dataset", name, json.dumps(body))
        self._catalogue.put("policy", name, json.dumps(codec.plain(Policy.differential_privacy(domain))))
        self._ledger.set_budget(name, DEFAULT_BUDGET, self.user)
        self._backends[name] = backend
        return self[name]

    def __getitem__(self, name: str) -> Dataset:
        self._record(name)
        return Dataset(self, name)

    def __contains__(self, name: object) -> bool:
        return name in self.datasets()

    def datasets(self) -> list[str]:
        """The names of all datasets."""
        return self._catalogue.names("dataset")

    def answers(self) -> list[Answer]:
        """Every stored answer, oldest first."""
        return [read_answer(stored) for stored in self._ledger.answers()]

    def verify(self) -> list[str]:
        """What is wrong with the ledger; empty if every charge and every hash adds up."""
        return self._ledger.verify()

    def close(self) -> None:
        """Let go of the files."""
        for backend in self._backends.values():
            backend.close()
        self._backends.clear()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what the service asks for --------------------------------------------------------------

    def _record(self, name: str) -> DatasetRecord:
        """What the catalogue says; read anew only when it has a newer version."""
        versions = (name, *(self._catalogue.version(kind, name) for kind in ("dataset", "policy")))
        if versions not in self._records:
            self._records[versions] = self._read_record(name)
        return self._records[versions]

    def _read_record(self, name: str) -> DatasetRecord:
        body = self._catalogue.get("dataset", name)
        if body is None:
            raise UnknownDataset(
                f"There is no dataset '{name}' in this workspace.",
                fixes=(f"one of: {', '.join(self.datasets())}" if self.datasets() else "add_dataset()",),
            )
        stored = json.loads(body)
        version = self._catalogue.version("policy", name)
        policy = self._catalogue.get("policy", name, version)
        assert policy is not None
        return DatasetRecord(
            name=name,
            location=stored["location"],
            source=None if stored["source"] is None else _stored_source(stored["source"]),
            domain=codec.domain(stored["domain"]),
            policy=codec.policy(json.loads(policy)),
            policy_version=version,
            snapshot=stored["snapshot"],
        )

    def _keep(self, name: str, table: object) -> str:
        """A copy of a table in memory, beside the workspace, so that it is there next time."""
        if not self._store.sqlite:
            raise InvalidInput(
                "A workspace on a database server has no folder for a copy of this table.",
                fixes=("write it to a Parquet file and give its path",),
            )
        file = Path(self._store.name)
        copy = file.with_name(f"{file.stem}-{codec.digest(name)[:12]}.parquet").resolve()
        save_table(table, copy)
        return str(copy)

    def _new_snapshot(self, name: str) -> None:
        stored = json.loads(self._catalogue.get("dataset", name) or "{}")
        self._catalogue.put("dataset", name, json.dumps({**stored, "snapshot": stored["snapshot"] + 1}))
        backend = self._backends.pop(name, None)
        if backend is not None:
            backend.close()

    def _backend(self, record: DatasetRecord) -> Backend:
        if record.name not in self._backends:
            self._backends[record.name] = open_backend(record.location, record.domain, source=record.source)
        return self._backends[record.name]


@final
@dataclass(frozen=True, eq=False)
class Dataset:
    """One dataset of a workspace."""

    workspace: Workspace
    name: str
    condition: Predicate = field(default_factory=Everything)

    @property
    def schema(self) -> Domain:
        """The declared columns."""
        return self.workspace._record(self.name).domain

    @property
    def policy(self) -> Policy:
        """The published policy."""
        return self.workspace._record(self.name).policy

    def publish(self, policy: Policy, *, confirm: bool = True) -> Dataset:
        """Make ``policy`` the one that new answers follow.

        Once budget is spent, earlier answers were given under the earlier policy, so the change has
        to be confirmed.
        """
        if policy.domain != self.schema:
            raise PolicyConflict(
                f"This policy is about other columns than '{self.name}' declares.",
                fixes=("build it from dataset.schema",),
            )
        if self.budget.status.spent and not confirm:
            raise PolicyConflict(
                "Answers were already given under the current policy, and they keep following it.",
                fixes=("publish with confirm=True to go on under both",),
            )
        self.workspace._catalogue.put("policy", self.name, json.dumps(codec.plain(policy)))
        return self

    def refresh(self) -> Dataset:
        """Declare that the rows have changed: answers from now on belong to a new snapshot.

        The same people are in it, so what was spent stays spent.
        """
        self.workspace._new_snapshot(self.name)
        return self

    @property
    def budget(self) -> DatasetBudget:
        """What may be lost in total, and what is."""
        return DatasetBudget(self.workspace, self.name)

    def where(self, condition: Predicate) -> Dataset:
        """The rows that satisfy ``condition``, and every condition so far."""
        condition.check(self.schema)
        both = condition if isinstance(self.condition, Everything) else self.condition & condition
        return replace(self, condition=both)

    def __getitem__(self, columns: str | tuple[str, ...]) -> Columns:
        names = (columns,) if isinstance(columns, str) else columns
        return Columns(self, tuple(names), tuple(self.schema[name] for name in names))

    def count(self) -> Asking:
        """How many rows there are; exact and free where the policy does not hide it."""
        return self[self.schema.names[0]].count()


@final
@dataclass(frozen=True, eq=False)
class DatasetBudget:
    """The total privacy loss that a dataset may suffer, and how much of it is gone."""

    workspace: Workspace
    name: str

    @property
    def status(self) -> Budget:
        """Total, spent and held, exact."""
        return self.workspace._ledger.budget(self.name)

    @property
    def remaining(self) -> Epsilon:
        """What new answers may still cost."""
        return self.status.remaining

    def grant(self, user: str, epsilon: AnyEpsilon) -> None:
        """Let ``user`` spend up to ``epsilon`` of the total; once there are grants, only they can spend."""
        self.workspace._ledger.grant(self.name, user, Epsilon(epsilon), self.workspace.user)

    def set(self, total: AnyEpsilon) -> None:
        """Declare the total."""
        self.workspace._ledger.set_budget(self.name, Epsilon(total), self.workspace.user)

    def __repr__(self) -> str:
        status = self.status
        return f"<Budget of {self.name}: {status.spent} of {status.total} spent, {status.remaining} left>"


@final
@dataclass(frozen=True, eq=False)
class Columns:
    """One or more columns of a dataset, about to be asked about."""

    dataset: Dataset
    names: tuple[str, ...]
    attributes: tuple[Attribute, ...]

    def histogram(
        self,
        bins: int | None = None,
        *,
        width: object = None,
        edges: Sequence[object] | None = None,
        groups: Mapping[str, Iterable[object]] | None = None,
    ) -> Asking:
        """How many rows fall into each bin."""
        return self._asking(questions.Histogram(), bins, width, edges, groups)

    def cumulative(
        self, bins: int | None = None, *, width: object = None, edges: Sequence[object] | None = None
    ) -> Asking:
        """How many rows fall into each bin or below it."""
        return self._asking(questions.Cumulative(), bins, width, edges)

    def ranges(self, bounds: Iterable[tuple[Value, Value]]) -> Asking:
        """How many rows have a value from ``lo`` to ``hi``, both included, for each pair."""
        return self._asking(questions.Ranges(tuple((lo, hi) for lo, hi in bounds)))

    def top(self, count: int, bins: int | None = None, *, width: object = None) -> Asking:
        """The fullest bins: none that is more than α short of its place, none missed by more than α."""
        return self._asking(questions.Top(count), bins, width)

    def above(self, limit: float, bins: int | None = None, *, width: object = None) -> Asking:
        """The bins with more than ``limit`` rows, give or take α."""
        return self._asking(questions.Above(limit), bins, width)

    def quantiles(self, shares: Iterable[float], bins: int | None = None, *, width: object = None) -> Asking:
        """The values below which the given shares of the rows lie; accuracy counts people."""
        return self._asking(questions.Quantiles(tuple(shares)), bins, width)

    def median(self, bins: int | None = None, *, width: object = None) -> Asking:
        """The value in the middle; accuracy counts people."""
        return self.quantiles([0.5], bins, width=width)

    def sum(self) -> Asking:
        """The sum, in the column's own units."""
        return self._asking(questions.Sum())

    def mean(self) -> Asking:
        """The mean over all rows, whose number must be public."""
        total = self.count().spend(1)
        if total.quote().epsilon:
            raise NotProven(
                "The number of these rows is not public, so a mean cannot be promised from a sum alone.",
                fixes=("ask for the sum and the count", "ask for the mean of all rows"),
            )
        return self._asking(questions.Sum(rows=int(total.ask().values[0])))

    def count(self) -> Asking:
        """How many rows have a value in this column."""
        attribute = self.attributes[0]
        everything = Axis(self.names[0], attribute, whole_bin(attribute.size))
        return Asking(self.dataset, Question(questions.Histogram(), (everything,), self.dataset.condition))

    def _asking(
        self,
        kind: questions.Kind,
        bins: int | None = None,
        width: object = None,
        edges: Sequence[object] | None = None,
        groups: Mapping[str, Iterable[object]] | None = None,
    ) -> Asking:
        axes = []
        for name, attribute in zip(self.names, self.attributes, strict=True):
            cut: Bins = attribute.bins(count=bins, width=width, edges=edges, groups=groups)
            axes.append(Axis(name, attribute, cut))
        return Asking(self.dataset, Question(kind, tuple(axes), self.dataset.condition))


@final
@dataclass(frozen=True, eq=False)
class Asking:
    """A question, and what it may cost."""

    dataset: Dataset
    question: Question
    accuracy: Accuracy | None = None
    epsilon: Epsilon | None = None

    def accurate_to(self, alpha: float, *, confidence: float = 0.95, each: bool = False) -> Asking:
        """Within ±alpha, ``confidence`` of the time: on all answers at once, or on each by itself."""
        beta = check_beta(float(1 - Fraction(repr(confidence))))
        return replace(self, accuracy=Accuracy(alpha, beta, not each), epsilon=None)

    def spend(self, epsilon: AnyEpsilon) -> Asking:
        """As accurate as ``epsilon`` allows."""
        return replace(self, accuracy=None, epsilon=positive(epsilon))

    def quote(self) -> Quote:
        """What the answer costs; free."""
        return self.dataset.workspace._service.quote(self._request())

    def ask(self, *, max_cost: AnyEpsilon | None = None) -> Answer:
        """The answer, charged once."""
        limit = None if max_cost is None else Epsilon(max_cost)
        return self.dataset.workspace._service.ask(self._request(), max_cost=limit)

    def _request(self) -> Request:
        if self.accuracy is None and self.epsilon is None:
            raise InvalidInput(
                "This question does not say how accurate the answer must be.",
                fixes=(".accurate_to(50, confidence=0.95)", ".spend(epsilon='0.1')"),
            )
        return Request(
            self.dataset.name, self.question, self.accuracy, self.epsilon, self.dataset.workspace.user
        )


_DIALECTS = {"postgresql": "postgres", "postgres": "postgres", "mariadb": "mysql"}
"""What sqlglot calls the language of an address, where that differs from the beginning of the address."""


def _declared_source(
    location: str, table: str | None, view: str | None, person: str | None, rows: int, key: str | None
) -> Source | None:
    if person is None and (rows != 1 or key is not None):
        raise InvalidInput(
            "Rows per person need to know whose row each is.", fixes=("person='the column with the id'",)
        )
    unit = None if person is None else Unit(person, rows, key, salt=secrets.token_hex(8))
    if view is not None and table is not None:
        raise InvalidInput("The rows come from a table or from a view, not from both.")
    if view is not None:
        scheme, address, _ = location.partition("://")
        spoken = scheme.split("+")[0].removesuffix("-local") if address else "duckdb"
        return Source.of_view(view, _DIALECTS.get(spoken, spoken), unit=unit)
    if table is None and unit is not None:
        raise InvalidInput("Name the table whose rows belong to people.", fixes=("table='visits'",))
    return None if table is None else Source.of_table(table, unit=unit)


def _plain_source(source: Source) -> dict[str, object]:
    unit = None if source.unit is None else asdict(source.unit)
    return {"table": source.table, "view": source.view, "dialect": source.dialect, "unit": unit}


def _stored_source(stored: Mapping[str, Any]) -> Source:
    unit = None if stored["unit"] is None else Unit(**stored["unit"])
    return Source(table=stored["table"], view=stored["view"], dialect=stored["dialect"], unit=unit)


def _place(source: str | Path) -> str:
    """An address as it is, a path in full, so that the workspace can be opened from anywhere."""
    return str(source) if "://" in str(source) else str(Path(source).resolve())


def open_workspace(path: str | Path, user: str | None = None) -> Workspace:
    """The workspace at ``path``, made if it is not there yet."""
    return Workspace(path, user)
