"""Declarations of datasets: entered, changed, deleted. Each step is one transaction, whole or not at all."""

from __future__ import annotations

from typing import Final, final

from sqlalchemy import Connection, select

from blowfishdb.adapters.catalogue import newest, put
from blowfishdb.adapters.clock import Clock, stamp, utc_now
from blowfishdb.adapters.ledger_books import declare_budget
from blowfishdb.adapters.ledger_charges import unfinished
from blowfishdb.adapters.store import Store
from blowfishdb.adapters.store_schema import charges
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, NameTaken, PolicyConflict, QueryFailed

DATASET: Final = "dataset"
POLICY: Final = "policy"
DELETED: Final = "deleted"
_LONGEST_NAME: Final = 255


@final
class Declarations:
    """The declarations of a workspace, in the database that it shares with the ledger."""

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def declare(self, name: str, by: str, body: str, policy: str, total: Epsilon) -> None:
        """Enter a dataset with its policy and its budget; one name is used once, for good."""
        if not name.isprintable() or len(name) > _LONGEST_NAME:
            raise InvalidInput(f"The name of a dataset is a text of 1 to {_LONGEST_NAME} characters.")
        with self._store.writing() as connection:
            if newest(connection, DATASET, name) or _is_charged(connection, name):
                raise name_taken(name, deleted=bool(newest(connection, DELETED, name)))
            at = stamp(self._clock)
            declare_budget(connection, name, total, by, at=at)
            put(connection, DATASET, name, body, at=at, by=by)
            put(connection, POLICY, name, policy, at=at, by=by)

    def redeclare(self, name: str, by: str, body: str, policy: str, *, over: int) -> None:
        """Enter other columns and the policy for them, while nothing has been asked."""
        with self._store.writing() as connection:
            check_declared(connection, name, over)
            if _is_charged(connection, name):
                raise already_asked(name)
            at = stamp(self._clock)
            put(connection, DATASET, name, body, at=at, by=by)
            put(connection, POLICY, name, policy, at=at, by=by)

    def replace(self, name: str, by: str, body: str, *, over: int) -> None:
        """Enter a new version of a declaration over version ``over``: other rows, the same columns."""
        with self._store.writing() as connection:
            check_declared(connection, name, over)
            put(connection, DATASET, name, body, at=stamp(self._clock), by=by)

    def complete(self, name: str, by: str, policy: str) -> bool:
        """Give a dataset the first policy that a crash once left it without; False if it has one."""
        with self._store.writing() as connection:
            if newest(connection, POLICY, name):
                return False
            put(connection, POLICY, name, policy, at=stamp(self._clock), by=by)
            return True

    def delete(self, name: str, by: str, *, over: int) -> None:
        """End a dataset. Its books stay, and so does its name, which nothing else can have."""
        with self._store.writing() as connection:
            check_declared(connection, name, over)
            if is_under_way(connection, name):
                raise PolicyConflict(
                    f"A question about '{name}' is just being answered.", fixes=("try again in a moment",)
                )
            put(connection, DELETED, name, "{}", at=stamp(self._clock), by=by)

    def is_under_way(self, name: str) -> bool:
        """Whether a question is just being answered."""
        with self._store.reading() as connection:
            return is_under_way(connection, name)


def check_declared(connection: Connection, name: str, version: int) -> None:
    """What was planned or prepared under a version of a declaration holds only while it is the newest."""
    if newest(connection, DELETED, name):
        raise PolicyConflict(f"'{name}' was deleted meanwhile. Nothing was charged.")
    if newest(connection, DATASET, name) != version:
        raise PolicyConflict(
            f"The rows or columns of '{name}' were declared anew meanwhile. Nothing was charged.",
            fixes=("try again",),
        )


def check_read(connection: Connection, name: str, version: int) -> None:
    """Rows that were read under a version of a declaration were those of one snapshot."""
    if newest(connection, DATASET, name) != version:
        raise QueryFailed(
            f"The rows of '{name}' were declared anew while they were read, so the answer would belong to no "
            "snapshot. It is withheld, and stays charged.",
            fixes=("ask again, about the rows as they are now",),
        )


def is_under_way(connection: Connection, name: str) -> bool:
    """Whether a charge of a dataset is neither answered nor ended."""
    under_way = select(charges.c.id).where(charges.c.dataset == name, unfinished()).limit(1)
    return connection.execute(under_way).first() is not None


def name_taken(name: str, *, deleted: bool = False) -> NameTaken:
    """Why a dataset cannot have a name."""
    if deleted:
        return NameTaken(
            f"A dataset '{name}' was deleted; its books stay under its name.", fixes=("another name",)
        )
    return NameTaken(f"There is already a dataset '{name}' in this workspace.", fixes=("another name",))


def already_asked(name: str) -> PolicyConflict:
    """Why columns cannot be declared anew."""
    return PolicyConflict(
        f"Questions about '{name}' were already asked, and their answers follow its declaration.",
        fixes=("leave its columns as they are",),
    )


def _is_charged(connection: Connection, name: str) -> bool:
    asked = select(charges.c.id).where(charges.c.dataset == name).limit(1)
    return connection.execute(asked).first() is not None
