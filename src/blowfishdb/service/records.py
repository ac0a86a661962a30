"""Records: datasets as the catalogue knows them, every version of their declaration and policy kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from blowfishdb.adapters.backends.duckdb import has_dialect, holds_rows
from blowfishdb.adapters.copies.values import Dialect, RowsCopy, SourceFacts, SourceKind
from blowfishdb.adapters.sql.source import Source, Unit
from blowfishdb.adapters.store.catalogue import (
    CLOSED,
    DATASET,
    DELETED,
    FACE,
    KEPT_ROWS,
    OPEN,
    POLICY,
    STANDING,
    WAITING,
    Catalogue,
    Declarations,
)
from blowfishdb.adapters.store.database import Store
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.tables import Tables, table_of
from blowfishdb.core.errors import InvalidInput, NotOpen, SourceError, UnknownDataset
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.policy import Policy, RowRules
from blowfishdb.messages.policies import Face


@final
@dataclass(frozen=True)
class KeyedTables:
    """Several tables as they are declared, and the salt by which it is decided which rows count."""

    declared: Tables
    salt: str

    def source(self, name: str, domain: Domain) -> Source:
        """The rows of one of them, with the columns of those that they belong to."""
        return Source.of_tables(self.declared, name, domain, salt=self.salt)

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {"declared": self.declared.to_plain(), "salt": self.salt}

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> KeyedTables:
        """From its plain form."""
        return cls(Tables.from_plain(stored["declared"]), stored["salt"])


@final
@dataclass(frozen=True, eq=False)
class DatasetEntry:
    """Where the rows of a dataset are, what they may hold, what is hidden.

    ``location`` is where the rows came from; they are read from ``copy`` where there is one. ``kind`` is
    None in a record from before there were copies.
    """

    name: str
    location: str = field(repr=False)  # an address may hold a password
    source: Source | None
    domain: Domain
    policy: Policy
    snapshot: int = 1
    kind: SourceKind | None = None
    copy: RowsCopy | None = None
    dialect: Dialect | None = None
    version: int = 0
    """Of this declaration; what was planned under one never reads the rows of another."""
    policy_version: int = 0
    shared: tuple[str, ...] = ()
    """Datasets that had the same rows when this one was declared; the curator confirmed that they add up."""
    tables: KeyedTables | None = None
    """The tables of a dataset that has several; each of them is asked about under a name of its own."""
    part_of: str | None = None
    """The dataset that this is one table of: its budget, policies and books are those of this one."""

    @property
    def books(self) -> str:
        """The dataset under whose name the ledger has what is charged."""
        return self.part_of or self.name

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """By which columns rows belong to those of other tables."""
        if self.tables is not None:
            return tuple(self.tables.declared.joins())
        joined = None if self.source is None else self.source.joined
        if joined is None:
            return ()
        reached = joined.tables.reach(joined.base)
        pairs = joined.tables.joins()
        return tuple(pair for pair in pairs if {table_of(column) for column in pair} <= set(reached))

    @property
    def table_name(self) -> str:
        """Which table of a dataset it is; empty for a dataset that has one."""
        return "" if self.part_of is None else self.name.removeprefix(f"{self.part_of}.")

    @cached_property
    def rules(self) -> RowRules:
        """What the rows demand of every policy over them."""
        return RowRules(several=True) if self.tables is not None else _rules(self.source, self.domain)

    def whole(self) -> DatasetEntry:
        """The dataset, where it is not one table of another: what is said of all tables is said there."""
        if self.part_of is not None:
            raise InvalidInput(
                f"'{self.name}' is one table of '{self.part_of}', and what is declared, promised and granted "
                "is so for all of its tables.",
                fixes=(f"the same for '{self.part_of}'",),
            )
        return self

    def table(self, name: str) -> DatasetEntry:
        """One of several tables, with the columns that its rows have and what the policy says of these."""
        assert self.tables is not None
        domain = self.tables.declared.domain(name, self.domain)
        return replace(
            self,
            name=f"{self.name}.{name}",
            source=self.tables.source(name, self.domain),
            domain=domain,
            policy=self.policy.onto(domain),
            tables=None,
            part_of=self.name,
        )

    def asked_tables(self) -> list[DatasetEntry]:
        """The tables whose rows can be asked about; the dataset itself where it has one."""
        if self.tables is None:
            return [self]
        declared = self.tables.declared
        return [self.table(name) for name in declared.asked if declared.columns(name, self.domain)]

    @property
    def rows_per_person(self) -> int:
        """How many rows one person's secret can be in; each may move along an edge."""
        return 1 if self.source is None or self.source.unit is None else self.source.unit.rows

    @property
    def declared_kind(self) -> SourceKind:
        """What is promised about the rows; nothing was asked about databases once, and they are frozen."""
        return self.kind or (SourceKind.COPY if is_copied(self.location) else SourceKind.FROZEN)

    def source_facts(self) -> SourceFacts:
        """Where the rows come from, for the curator."""
        return SourceFacts(
            self.name, self.declared_kind, _shown(self.location), self.snapshot, self.dialect, self.copy
        )

    @property
    def awaits_copy(self) -> bool:
        """Whether it is from before there were copies, and its rows are in a file of which there is one."""
        return self.kind is None and is_copied(self.location)


@final
class Records:
    """The datasets of one store; each version is read once."""

    def __init__(self, store: Store) -> None:
        self._catalogue = Catalogue(store)
        self._declarations = Declarations(store)
        self._read: dict[tuple[object, ...], DatasetEntry] = {}
        self._texts: dict[tuple[str, str, int], str] = {}

    def names(self) -> list[str]:
        """All datasets, in alphabetical order."""
        deleted = set(self._catalogue.names(DELETED))
        return [name for name in self._catalogue.names(DATASET) if name not in deleted]

    def __getitem__(self, name: str) -> DatasetEntry:
        """What the catalogue says now; read anew only when it has a newer version."""
        newest = self._catalogue.versions(name)
        if DATASET not in newest and (part := self._part(name)) is not None:
            return part
        if DATASET not in newest or DELETED in newest:
            raise self._unknown(name, deleted=DELETED in newest)
        return self._version(name, newest[DATASET], newest.get(POLICY, 0))

    def _part(self, name: str) -> DatasetEntry | None:
        """The table that ``shop.orders`` means; None if it means none."""
        of, _, table = name.rpartition(".")
        newest = self._catalogue.versions(of) if of else {}
        if DATASET not in newest or DELETED in newest:
            return None
        versions = (of, newest[DATASET], newest.get(POLICY, 0))
        whole = self._version(*versions)
        if whole.tables is None or table not in whole.tables.declared:
            return None
        key = (*versions, table)
        if key not in self._read:
            self._read[key] = whole.table(table)
        return self._read[key]

    def every(self) -> list[DatasetEntry]:
        """All datasets, those that were deleted included."""
        return [self._version(name, new[DATASET], new.get(POLICY, 0)) for name, new in self._newest()]

    def current(self) -> list[DatasetEntry]:
        """All datasets that were not deleted."""
        there = ((name, new) for name, new in self._newest() if DELETED not in new)
        return [self._version(name, new[DATASET], new.get(POLICY, 0)) for name, new in there]

    def _newest(self) -> list[tuple[str, dict[str, int]]]:
        """Every dataset with its newest versions, by one question for all of them."""
        return [(name, new) for name, new in self._catalogue.every_version().items() if DATASET in new]

    def copies(self, name: str) -> list[RowsCopy]:
        """The copies that every version of a dataset had, the newest last."""
        newest = self._catalogue.versions(name).get(DATASET, 0)
        found = (self._version(name, version, 0).copy for version in range(1, newest + 1))
        return [copy for copy in found if copy is not None]

    def is_table(self, name: str) -> bool:
        """Whether this is the name of one table of a dataset that has several."""
        return "." in name and DATASET not in self._catalogue.versions(name) and self._part(name) is not None

    def is_taken(self, name: str) -> bool:
        """Whether a dataset has this name, or had it, or one of its tables has."""
        return DATASET in self._catalogue.versions(name) or self._part(name) is not None

    # --- changes --------------------------------------------------------------------------------

    def declare(self, record: DatasetEntry, by: str, total: Epsilon, *, opened: bool = True) -> None:
        """Enter a dataset; everything about a record stays hidden until a policy says otherwise."""
        self._declarations.declare(
            record.name, by, _body(record), _policy_body(record.policy), total, opened=opened
        )

    def redeclare(self, record: DatasetEntry, domain: Domain, by: str) -> None:
        """Enter other columns; the policy for the earlier ones means nothing any more."""
        changed = replace(record, domain=domain)
        policy = changed.rules.first_policy(domain)
        changed = replace(changed, policy=policy)
        self._declarations.redeclare(
            record.name, by, _body(changed), _policy_body(policy), over=record.version
        )

    def replace(self, record: DatasetEntry, by: str) -> None:
        """Enter other rows over the version that ``record`` has."""
        self._declarations.replace(record.name, by, _body(record), over=record.version)

    def complete(self, record: DatasetEntry, by: str) -> bool:
        """Write down the policy of a dataset that was left without one, which hides everything."""
        return record.policy_version == 0 and self._declarations.complete(
            record.name, by, _policy_body(record.policy)
        )

    def delete(self, record: DatasetEntry, by: str) -> None:
        """End a dataset; its books stay."""
        self._declarations.delete(record.name, by, over=record.version)

    def is_under_way(self, name: str) -> bool:
        """Whether a question about a dataset is just being answered."""
        return self._declarations.is_under_way(name)

    def any_under_way(self) -> bool:
        """Whether a question about any dataset is just being answered."""
        return self._declarations.any_under_way()

    # --- how it introduces itself, and whether it is open ---------------------------------------

    def face(self, name: str) -> Face:
        """What its curator wrote about a dataset; empty while that is nothing."""
        body = self._said(self[name].books, FACE)
        return Face() if body is None else Face.from_plain(json.loads(body))

    def put_face(self, name: str, face: Face, by: str) -> None:
        """Enter what its curator wrote; the name stays what it is."""
        self._catalogue.put(FACE, self[name].whole().name, json.dumps(face.to_plain()), by)

    def standing(self, name: str) -> str:
        """Whether a dataset is open, closed, or waits for its first policy."""
        return self._said(self[name].books, STANDING) or OPEN

    def stand(self, name: str, *, opened: bool, by: str) -> None:
        """Open a dataset to questions, or close it."""
        self._declarations.stand(self[name].whole().name, by, OPEN if opened else CLOSED)

    def check_open(self, name: str) -> None:
        """Refuse questions about a dataset that is not open, whoever asks."""
        standing = self.standing(name)
        if standing == WAITING:
            raise NotOpen(
                f"'{name}' is not open yet: no policy says what must stay hidden. Nothing was charged.",
                fixes=("publish a policy, for its curator",),
            )
        if standing == CLOSED:
            raise NotOpen(
                f"'{name}' is closed to new questions. Nothing was charged.",
                fixes=("read the answers that were given", "open it again, for its curator"),
            )

    def _said(self, name: str, kind: str) -> str | None:
        """The newest text of a kind about a dataset; each version is read once."""
        version = self._catalogue.versions(name).get(kind)
        if version is None:
            return None
        key = (kind, name, version)
        if key not in self._texts:
            self._texts[key] = self._catalogue.get(kind, name, version) or ""
        return self._texts[key]

    def may_keep(self, name: str) -> tuple[str, ...]:
        """Columns whose rows synthetic tables may keep as they are; none once columns are declared anew."""
        record = self[name]
        return may_keep(self._said(record.books, KEPT_ROWS), record)

    def keep_rows(self, name: str, columns: Sequence[str], by: str) -> None:
        """Let synthetic tables keep the rows of these columns as they are, and of no others."""
        record = self[name]
        body = self._catalogue.get(KEPT_ROWS, record.books)
        tables = {} if body is None else json.loads(body)
        own = {"columns": list(columns), "declared": _declared(record)}
        body = json.dumps({**tables, record.table_name: own}, ensure_ascii=False)
        self._declarations.keep_rows(record.books, by, body, columns, over=record.version)

    # --- policies -------------------------------------------------------------------------------

    def put_draft(self, name: str, policy: Policy) -> None:
        """Keep a policy that is not published."""
        self._catalogue.put("draft", name, _policy_body(policy))

    def draft(self, name: str) -> Policy:
        """The newest draft that fits the columns; the published policy if there is none."""
        published, body = self[name], self._catalogue.get("draft", name)
        draft = None if body is None else codec.policy(json.loads(body))
        return draft if draft is not None and draft.domain == published.domain else published.policy

    def policy(self, name: str, version: int) -> Policy | None:
        """A policy as it was."""
        body = self._catalogue.get(POLICY, name, version)
        return None if body is None else codec.policy(json.loads(body))

    # --- reading --------------------------------------------------------------------------------

    def _version(self, name: str, version: int, policy_version: int) -> DatasetEntry:
        """Exactly these versions, whatever has come to be since they were the newest."""
        versions = (name, version, policy_version)
        entry = self._read.get(versions)
        if entry is None:
            entry = self._read[versions] = self._from_store(*versions)
        return entry

    def _from_store(self, name: str, version: int, policy_version: int) -> DatasetEntry:
        stored = json.loads(self._catalogue.get(DATASET, name, version) or "{}")
        domain = codec.domain(stored["domain"])
        policy = self.policy(name, policy_version)
        record = DatasetEntry(
            name=name,
            location=stored["location"],
            source=None if stored["source"] is None else _stored_source(stored["source"]),
            domain=domain,
            policy=policy or Policy.whole_record(domain),  # a crash left some without, once
            snapshot=stored["snapshot"],
            kind=None if stored.get("kind") is None else SourceKind(stored["kind"]),
            copy=None if stored.get("copy") is None else RowsCopy.from_plain(stored["copy"]),
            dialect=None if stored.get("dialect") is None else Dialect.from_plain(stored["dialect"]),
            version=version,
            policy_version=policy_version,
            shared=tuple(stored.get("shared", ())),
            tables=None if stored.get("tables") is None else KeyedTables.from_plain(stored["tables"]),
        )
        if record.awaits_copy and has_dialect(record.location):
            # Its texts were read by other rules: what is asked now, and quoted, is asked of the copy.
            return replace(record, snapshot=record.snapshot + 1)
        return record

    def _unknown(self, name: str, *, deleted: bool) -> UnknownDataset:
        known = self.names()
        return UnknownDataset(
            f"The dataset '{name}' was deleted."
            if deleted
            else f"There is no dataset '{name}' in this workspace.",
            fixes=(f"one that is there: {', '.join(known)}" if known else "add a dataset first",),
        )


def _body(record: DatasetEntry) -> str:
    """A declaration as it is stored: the one place that writes it."""
    return json.dumps(
        {
            "location": record.location,
            "source": None if record.source is None else _plain_source(record.source),
            "domain": codec.plain(record.domain),
            "snapshot": record.snapshot,
            "kind": None if record.kind is None else record.kind.value,
            "copy": None if record.copy is None else record.copy.to_plain(),
            "dialect": None if record.dialect is None else record.dialect.to_plain(),
            "shared": list(record.shared),
            **({} if record.tables is None else {"tables": record.tables.to_plain()}),
        }
    )


def _policy_body(policy: Policy) -> str:
    return json.dumps(codec.plain(policy))


# --- where rows are ---------------------------------------------------------------------------


def is_copied(location: str) -> bool:
    """Whether a place is a file or folder of rows, of which there is a copy, and not a database."""
    return bool(location) and "://" not in location and holds_rows(Path(location))


def _shown(location: str) -> str:
    """A place without its password."""
    if "://" not in location:
        return location
    try:
        return make_url(location).render_as_string(hide_password=True)
    except ArgumentError:
        return location.partition("://")[0] + "://…"


def _plain_source(source: Source) -> dict[str, object]:
    unit = None if source.unit is None else asdict(source.unit)
    return {
        "table": source.table,
        **({} if source.schema is None else {"schema": source.schema}),
        "view": source.view,
        "dialect": source.dialect,
        "unit": unit,
        "public": list(source.public),
        "rows_vary": source.rows_vary,
    }


def _stored_source(stored: Mapping[str, Any]) -> Source:
    unit = None if stored["unit"] is None else Unit(**stored["unit"])
    return Source(
        table=stored["table"],
        schema=stored.get("schema"),
        view=stored["view"],
        dialect=stored["dialect"],
        unit=unit,
        public=tuple(stored.get("public", ())),
        rows_vary=stored.get("rows_vary"),
    )


def _rules(source: Source | None, domain: Domain) -> RowRules:
    return RowRules() if source is None else source.rules(domain)


def askable(record: DatasetEntry) -> DatasetEntry:
    """The dataset, if its policy bears its rows; one that an older version declared may not."""
    if record.tables is not None:
        names = tuple(table.name for table in record.asked_tables())
        raise InvalidInput(f"'{record.name}' has several tables: name the one to be counted.", fixes=names)
    if not _readable(record):
        raise SourceError(
            f"The rows of '{record.name}' come from a view of a kind that no longer gives answers.",
            fixes=("ask the curator to declare it anew",),
        )
    record.rules.check(record.policy)
    return record


def rules_of(record: DatasetEntry) -> RowRules:
    """What the rows demand of a policy; the most, where it cannot be told any more."""
    return record.rules if _readable(record) else RowRules(vary=True)


def _readable(record: DatasetEntry) -> bool:
    try:
        _ = record.rules
    except InvalidInput:
        return False
    return True


def may_keep(body: str | None, record: DatasetEntry) -> tuple[str, ...]:
    """Columns whose rows its curator lets synthetic tables keep, of the columns as they are declared now."""
    own = None if body is None else json.loads(body).get(record.table_name)
    return () if own is None or own["declared"] != _declared(record) else tuple(own["columns"])


def _declared(record: DatasetEntry) -> str:
    return codec.digest(codec.plain(record.domain))
