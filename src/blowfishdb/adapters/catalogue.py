"""The catalogue: datasets, policies and whatever else a workspace describes, every version of it kept."""

from __future__ import annotations

from typing import Final, final

from sqlalchemy import Connection, func, select

from blowfishdb.adapters.clock import Clock, stamp, utc_now
from blowfishdb.adapters.ledger_events import Sealed, append, canonical
from blowfishdb.adapters.seals import insert
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import catalogue
from blowfishdb.core.errors import InvalidInput

OF_DATASETS: Final = ("dataset", "policy", "deleted")
"""Kinds of entries that are called after a dataset."""


@final
class Catalogue:
    """Texts by kind and name. A version is never overwritten, so an old answer can always be explained."""

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def put(self, kind: str, name: str, body: str, by: str = "") -> int:
        """Store a new version and return its number; versions are counted from 1."""
        with self._store.writing() as connection:
            return put(connection, kind, name, body, at=stamp(self._clock), by=by)

    def get(self, kind: str, name: str, version: int | None = None) -> str | None:
        """The body of a version, by default the newest; None if there is none."""
        rows = select(catalogue.c.body).where(catalogue.c.kind == kind, catalogue.c.name == name)
        if version is not None:
            rows = rows.where(catalogue.c.version == version)
        with self._store.reading() as connection:
            return connection.execute(rows.order_by(catalogue.c.version.desc()).limit(1)).scalar()

    def version(self, kind: str, name: str) -> int:
        """The number of the newest version; 0 if there is none."""
        with self._store.reading() as connection:
            return newest(connection, kind, name)

    def versions(self, name: str) -> dict[str, int]:
        """The number of the newest version of everything of this name, by kind; one question for all."""
        rows = (
            select(catalogue.c.kind, func.max(catalogue.c.version))
            .where(catalogue.c.name == name)
            .group_by(catalogue.c.kind)
        )
        with self._store.reading() as connection:
            return {row[0]: row[1] for row in connection.execute(rows)}

    def names(self, kind: str) -> list[str]:
        """The names of a kind, in alphabetical order."""
        rows = select(catalogue.c.name).where(catalogue.c.kind == kind).distinct().order_by(catalogue.c.name)
        with self._store.reading() as connection:
            return list(connection.execute(rows).scalars())


# --- inside one transaction -------------------------------------------------------------------


def newest(connection: Connection, kind: str, name: str) -> int:
    """The number of the newest version; 0 if there is none."""
    rows = select(func.max(catalogue.c.version)).where(catalogue.c.kind == kind, catalogue.c.name == name)
    return connection.execute(rows).scalar() or 0


def put(connection: Connection, kind: str, name: str, body: str, *, at: str, by: str = "") -> int:
    """Store a new version beside whatever else happens in the same transaction; an event seals it.

    Drafts are not sealed: nothing follows them.
    """
    sealed, version = enter_version(connection, kind, name, body, at=at)
    if sealed:
        append(
            connection,
            at=at,
            kind="entry",
            dataset=name if kind in OF_DATASETS else "",
            analyst=by,
            amount=0,
            body=canonical({"entry": kind, "version": version}),
            sealed=sealed,
        )
    return version


def enter_version(connection: Connection, kind: str, name: str, body: str, *, at: str) -> tuple[Sealed, int]:
    """A new version and its number; its seal belongs into an event of the caller's own."""
    for what, text in (("kind", kind), ("name", name)):
        if not isinstance(text, str) or not text or len(text) > 255:
            raise InvalidInput(f"The {what} of an entry must be a text of 1 to 255 characters.")
    version = newest(connection, kind, name) + 1
    row = {"kind": kind, "name": name, "version": version, "body": body, "created": at}
    return insert(connection, catalogue, row), version
