"""The event chain: every change of the ledger, each sealed with the hash of the one before it.

Whoever changes, removes or reorders an event breaks the chain; cutting off its end disagrees with the head.

Seals: what is on record about the rows outside the ledger, so that the audit can tell if one was changed.

Declarations, policies, accounts, tokens and kept responses lie in tables of their own. Whoever enters,
changes or removes a row of them does it here, and puts the seals that come back into an event of the chain,
in the same transaction. A seal is a keyed hash (HMAC-SHA-256, under a key that stays in the workspace) of the
whole row, so nothing about a row can be guessed from it: an address with a weak password, a role, a name.

What an upgrade means for what is on record: from here on everything present is sealed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, bindparam, literal_column, select

from blowfishdb.adapters.store.tables import (
    SCHEMA_VERSION,
    SEAL_KEY,
    catalogue,
    events,
    heads,
    idempotency,
    seals,
    tokens,
    users,
)
from blowfishdb.adapters.store.values import Event, stamp, utc_now
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import WorkspaceError

Sealed = list[dict[str, Any]]
"""What an event says of rows outside the ledger: which they are, and the seal of each."""
NOTES: Final = ("policy", "preview", "source")
"""Kinds of events that move no budget."""
FACTS: Final = ("entry", "account", "token", "request", "covered")
"""Kinds of events about rows outside the ledger."""
_SALT, _SEALED = "salt", "sealed"
# Written once, as in charges: every event runs them.
_HEAD: Final = select(heads.c.seq, heads.c.hash)
_MOVE_HEAD: Final = heads.update().values(seq=bindparam("new_seq"), hash=bindparam("new_hash"))
_SEAL: Final = select(seals.c.seal).where(seals.c.place == bindparam("at_place"))


def canonical(value: object) -> str:
    """The one way to write a JSON value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@final
@dataclass(frozen=True, kw_only=True)
class ChainedEvent:
    """One event as it is chained: ``kind`` is budget, grant, a note, or the state that a charge entered."""

    seq: int
    at: str
    kind: str
    dataset: str
    analyst: str
    charge: int | None
    amount: int
    body: str

    def seal(self, previous: str) -> str:
        """The hash of this event behind ``previous``."""
        return digest(previous + "\n" + canonical(vars(self)))

    @property
    def facts(self) -> dict[str, Any]:
        """What the event tells, without its salt and its seals."""
        return {name: fact for name, fact in json.loads(self.body).items() if name not in (_SALT, _SEALED)}

    @property
    def salt(self) -> str:
        """Random digits: without them nothing can be guessed from the hash. Older events have none."""
        return str(json.loads(self.body).get(_SALT, ""))

    @property
    def sealed(self) -> Sealed:
        """What it says of rows outside the ledger."""
        return list(json.loads(self.body).get(_SEALED, ()))


def append(
    connection: Connection,
    *,
    at: str,
    kind: str,
    dataset: str,
    analyst: str,
    amount: int,
    charge: int | None = None,
    body: str = "{}",
    sealed: Sequence[dict[str, Any]] = (),
) -> int:
    """Add an event behind the last, and return its number, which is also that of a charge it reserves.

    ``sealed`` are the seals of the rows outside the ledger that were changed with it.
    """
    head = connection.execute(_HEAD).one()
    seq: int = head.seq + 1
    link = ChainedEvent(
        seq=seq,
        at=at,
        kind=kind,
        dataset=dataset,
        analyst=analyst,
        charge=seq if kind == "reserved" else charge,
        amount=amount,
        body=_salted(body, sealed),
    )
    chained = link.seal(head.hash)
    connection.execute(events.insert(), {**vars(link), "previous": head.hash, "hash": chained})
    connection.execute(_MOVE_HEAD, {"new_seq": seq, "new_hash": chained})
    return seq


def _salted(body: str, sealed: Sequence[dict[str, Any]]) -> str:
    told = {**json.loads(body), _SALT: secrets.token_hex(16)}
    return canonical({**told, _SEALED: list(sealed)} if sealed else told)


def link_of(row: Row[Any]) -> ChainedEvent:
    """A row of events as it was sealed."""
    return ChainedEvent(
        seq=row.seq,
        at=row.at,
        kind=row.kind,
        dataset=row.dataset,
        analyst=row.analyst,
        charge=row.charge,
        amount=row.amount,
        body=row.body,
    )


def event_of(row: Row[Any]) -> Event:
    """A row of events in the words of the ledger."""
    try:
        link = link_of(row)
        return Event(
            seq=row.seq,
            at=datetime.fromisoformat(row.at),
            kind=row.kind,
            dataset=row.dataset,
            analyst=row.analyst,
            charge=row.charge,
            amount=Epsilon.from_nano(row.amount),
            facts=link.facts,
            hash=row.hash,
            salt=link.salt,
            sealed=tuple(link.sealed),
        )
    except (ValueError, TypeError, AttributeError):
        raise WorkspaceError(f"Event {row.seq} cannot be read.", fixes=("verify() to see why",)) from None


NOT_PRINTABLE: Final = "\x1f"
"""How the keys of notes between processes begin, which lie among the kept responses and are not covered."""
_KEY: Final = re.compile("[0-9a-f]{64}")


@final
@dataclass(frozen=True)
class Covered:
    """A table whose rows are sealed: by which columns a row is known, and in which words."""

    table: Table
    key: tuple[str, ...]
    nouns: str
    """What its rows are, for the list of what was checked."""
    words: str
    """One row, with its key filled in."""
    secret: frozenset[str] = frozenset()
    """Columns of the key that an event names by their digest."""

    def named(self, row: Mapping[str, Any]) -> list[Any]:
        """The key of a row, as events have it."""
        return [digest(str(row[name])) if name in self.secret else row[name] for name in self.key]

    def said(self, named: Iterable[Any]) -> str:
        """A row in words."""
        return self.words.format(*named)


COVERED: Final = (
    Covered(
        catalogue,
        ("kind", "name", "version"),
        "versions of declarations and policies",
        "Version {2} of the {0} of '{1}'",
    ),
    Covered(users, ("name",), "accounts with their roles and passwords", "The account '{0}'"),
    Covered(tokens, ("id",), "tokens with their owners and ends", "The token {0}"),
    Covered(
        idempotency,
        ("owner", "key"),
        "responses that are kept for requests sent again",
        "A response kept for '{0}'",
        frozenset({"key"}),
    ),
)
_OF: Final = {covered.table.name: covered for covered in COVERED}


def covers(table: str, row: Mapping[str, Any]) -> bool:
    """Whether a row of a table is sealed: no draft, no note between processes, no response under way."""
    if table == catalogue.name:
        return bool(row["kind"] != "draft")
    if table == idempotency.name:
        return row["body"] is not None and not str(row["key"]).startswith(NOT_PRINTABLE)
    return True


# --- writing ----------------------------------------------------------------------------------


def insert(connection: Connection, table: Table, row: Mapping[str, Any]) -> Sealed:
    """Enter a row; what comes back belongs into an event."""
    connection.execute(table.insert(), dict(row))
    return _record(connection, table, (), [row])


def change(
    connection: Connection, table: Table, where: ColumnElement[bool], values: Mapping[str, Any]
) -> Sealed:
    """Change the rows that ``where`` finds, as ``insert``; one that is not as it was left is told of."""
    before = _rows(connection, table, where)
    connection.execute(table.update().where(where).values(dict(values)))
    return _record(connection, table, before, [{**row, **values} for row in before])


def remove(connection: Connection, table: Table, where: ColumnElement[bool]) -> Sealed:
    """Remove the rows that ``where`` finds, as ``insert``."""
    before = _rows(connection, table, where)
    connection.execute(table.delete().where(where))
    return _record(connection, table, before, ())


def _rows(connection: Connection, table: Table, where: ColumnElement[bool]) -> list[Mapping[str, Any]]:
    return [dict(row) for row in connection.execute(select(table).where(where)).mappings()]


def _record(
    connection: Connection,
    table: Table,
    before: Iterable[Mapping[str, Any]],
    after: Iterable[Mapping[str, Any]],
) -> Sealed:
    covered, secret = _OF[table.name], seal_key(connection)
    new = {_place(covered, row): row for row in after if covers(table.name, row)}
    old = {_place(covered, row): row for row in before if covers(table.name, row)}
    entries: Sealed = []
    for place in (*old, *(place for place in new if place not in old)):
        row = new.get(place)
        found = None if row is None else seal(secret, table.name, row)
        left = _write(connection, place, found)
        entry = {"of": table.name, "key": covered.named(old[place] if row is None else row), "seal": found}
        as_left = seal(secret, table.name, old[place]) if place in old else None
        entries.append(entry if left == as_left else {**entry, "altered": True})
    return entries


def _write(connection: Connection, place: str, found: str | None) -> str | None:
    """Put a seal in place of the last one, and return that."""
    here = seals.c.place == place
    left = connection.execute(_SEAL, {"at_place": place}).scalar()
    if found is None:
        connection.execute(seals.delete().where(here))
    elif left is None:
        connection.execute(seals.insert(), {"place": place, "seal": found})
    else:
        connection.execute(seals.update().where(here).values(seal=found))
    return left


# --- seals ------------------------------------------------------------------------------------


def seal_key(connection: Connection) -> bytes:
    """The key of this workspace."""
    said = connection.execute(_SEAL, {"at_place": SEAL_KEY}).scalar()
    if not isinstance(said, str) or _KEY.fullmatch(said) is None:
        raise WorkspaceError(
            "The key under which the workspace seals its facts is missing or damaged.",
            fixes=("restore it from a backup",),
        )
    return bytes.fromhex(said)


def seal(secret: bytes, table: str, row: Mapping[str, Any]) -> str:
    """The seal of a row. A column that holds nothing does not count, so that tables may get new ones."""
    said = canonical([table, {name: _plain(value) for name, value in row.items() if value is not None}])
    return hmac.new(secret, said.encode(), hashlib.sha256).hexdigest()


def _place(covered: Covered, row: Mapping[str, Any]) -> str:
    return place_of(covered.table.name, covered.named(row))


def place_of(table: str, named: Iterable[Any]) -> str:
    """Where the seal of a row stands."""
    return digest(canonical([table, *map(_plain, named)]))


def _plain(value: object) -> object:
    """Texts and whole numbers as they are; nothing else is written here, but an edit may put it there."""
    return value if value is None or isinstance(value, str | int) else [repr(value)]


def present(connection: Connection) -> Iterator[tuple[Covered, str, Mapping[str, Any]]]:
    """Every row that should be sealed, with its place; also while a workspace is being upgraded."""
    for covered in COVERED:
        rows: Select[Any] = select(literal_column("*")).select_from(covered.table)
        for found in connection.execute(rows).mappings():
            row = {str(name): value for name, value in found.items()}
            if covers(covered.table.name, row):
                yield covered, _place(covered, row), row


# --- older workspaces -------------------------------------------------------------------------


def unsealed(connection: Connection) -> set[str]:
    """The places of rows that are not as they were sealed."""
    secret = seal_key(connection)
    known = {row.place: row.seal for row in connection.execute(select(seals))}
    return {
        place
        for covered, place, row in present(connection)
        if known.get(place) != seal(secret, covered.table.name, row)
    }


def cover(connection: Connection, *, leave: frozenset[str] = frozenset()) -> Sealed:
    """Seal every row as it is now, but those in ``leave``; for a workspace that was just upgraded."""
    secret = seal_key(connection)
    wanted = unsealed(connection) - leave
    entries: Sealed = []
    for covered, place, row in present(connection):
        if place in wanted:
            found = seal(secret, covered.table.name, row)
            _write(connection, place, found)
            entries.append({"of": covered.table.name, "key": covered.named(row), "seal": found})
    return entries


_FIRST: Final = 4  # the format that brought seals


@contextmanager
def sealed_again(connection: Connection, found: int) -> Iterator[None]:
    """Inside, a workspace of the format ``found`` is upgraded; afterwards what that changed is sealed.

    A row that was not as it had been sealed before stays so: an upgrade does not make good what was altered.
    """
    before = frozenset(unsealed(connection)) if found >= _FIRST else frozenset()
    yield
    sealed = cover(connection, leave=before)
    if sealed or found < _FIRST:
        append(
            connection,
            at=stamp(utc_now),
            kind="covered",
            dataset="",
            analyst="",
            amount=0,
            body=canonical({"from_format": found, "to_format": SCHEMA_VERSION, "rows": len(sealed)}),
            sealed=sealed,
        )
