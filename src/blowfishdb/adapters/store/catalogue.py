"""The catalogue: datasets, policies and whatever else a workspace describes, every version of it kept.

Declarations of datasets: entered, changed, deleted. Each step is one transaction, whole or not at all.

Policies as promises: published, kept beside newer ones, withdrawn. Each step is one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, final

from sqlalchemy import Connection, bindparam, func, select

from blowfishdb.adapters.store.chain import Sealed, append, canonical, insert
from blowfishdb.adapters.store.charges import (
    active_promises,
    carried_by,
    declare_budget,
    newest_policy,
    read_budget,
    unfinished,
)
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.tables import budgets, catalogue, charges, promises
from blowfishdb.adapters.store.values import Clock, PolicyBalance, stamp, utc_now
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, NameTaken, PolicyConflict, QueryFailed

OF_DATASETS: Final = ("dataset", "policy", "deleted", "sharing", "face", "standing", "kept rows")
"""Kinds of entries that are called after a dataset."""

_KIND: Final = catalogue.c.kind == bindparam("of_kind")
_NAME: Final = catalogue.c.name == bindparam("of_name")
# Written once, as in charges: every question runs them.
_BODIES: Final = select(catalogue.c.body).where(_KIND, _NAME).order_by(catalogue.c.version.desc()).limit(1)
_BODY: Final = select(catalogue.c.body).where(_KIND, _NAME, catalogue.c.version == bindparam("of_version"))
_VERSIONS: Final = (
    select(catalogue.c.kind, func.max(catalogue.c.version)).where(_NAME).group_by(catalogue.c.kind)
)
_EVERY_VERSION: Final = (
    select(catalogue.c.name, catalogue.c.kind, func.max(catalogue.c.version))
    .where(catalogue.c.kind.in_(("dataset", "policy", "deleted")))
    .group_by(catalogue.c.name, catalogue.c.kind)
    .order_by(catalogue.c.name)
)
_NEWEST: Final = select(func.max(catalogue.c.version)).where(_KIND, _NAME)
_NAMES: Final = select(catalogue.c.name).where(_KIND).distinct().order_by(catalogue.c.name)


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
        asked = {"of_kind": kind, "of_name": name}
        if version is None:
            return self._store.recalled(
                ("newest", kind, name), lambda connection: connection.execute(_BODIES, asked).scalar()
            )
        with self._store.reading() as connection:
            return connection.execute(_BODY, {**asked, "of_version": version}).scalar()

    def first(self, kind: str, name: str) -> str | None:
        """The body of the first version; None if there is none."""
        asked = {"of_kind": kind, "of_name": name, "of_version": 1}
        return self._store.recalled(("first", kind, name), lambda read: read.execute(_BODY, asked).scalar())

    def version(self, kind: str, name: str) -> int:
        """The number of the newest version; 0 if there is none."""
        with self._store.reading() as connection:
            return newest(connection, kind, name)

    def versions(self, name: str) -> dict[str, int]:
        """The number of the newest version of everything of this name, by kind; one question for all."""

        def read(connection: Connection) -> dict[str, int]:
            return {row[0]: row[1] for row in connection.execute(_VERSIONS, {"of_name": name})}

        return {**self._store.recalled(("versions", name), read)}

    def every_version(self) -> dict[str, dict[str, int]]:
        """The same for every dataset, in alphabetical order: what is declared, promised and deleted."""

        def read(connection: Connection) -> dict[str, dict[str, int]]:
            found: dict[str, dict[str, int]] = {}
            for name, kind, version in connection.execute(_EVERY_VERSION):
                found.setdefault(name, {})[kind] = version
            return found

        return {**self._store.recalled("every version", read)}

    def names(self, kind: str) -> list[str]:
        """The names of a kind, in alphabetical order."""

        def read(connection: Connection) -> list[str]:
            return list(connection.execute(_NAMES, {"of_kind": kind}).scalars())

        return [*self._store.recalled(("names", kind), read)]

    def newest_of(self, kind: str) -> dict[str, str]:
        """The newest body of everything of a kind, by name, in the order in which the names were entered."""

        def read(connection: Connection) -> dict[str, str]:
            rows = select(catalogue.c.name, catalogue.c.body).where(_KIND)
            rows = rows.order_by(catalogue.c.version, catalogue.c.created)
            return {row.name: row.body for row in connection.execute(rows, {"of_kind": kind})}

        return {**self._store.recalled(("newest of", kind), read)}


# --- inside one transaction -------------------------------------------------------------------


def newest(connection: Connection, kind: str, name: str) -> int:
    """The number of the newest version; 0 if there is none."""
    return connection.execute(_NEWEST, {"of_kind": kind, "of_name": name}).scalar() or 0


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


DATASET: Final = "dataset"
POLICY: Final = "policy"
DELETED: Final = "deleted"
FACE: Final = "face"
STANDING: Final = "standing"
KEPT_ROWS: Final = "kept rows"
WAITING: Final = "not open yet"
OPEN: Final = "open"
CLOSED: Final = "closed"
_LONGEST_NAME: Final = 255


@final
class Declarations:
    """The declarations of a workspace, in the database that it shares with the ledger."""

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def declare(
        self, name: str, by: str, body: str, policy: str, total: Epsilon, *, opened: bool = True
    ) -> None:
        """Enter a dataset with its policy and its budget; one name is used once, for good.

        Not ``opened``: nobody can ask before a policy is published.
        """
        if not name.isprintable() or len(name) > _LONGEST_NAME:
            raise InvalidInput(f"The name of a dataset is a text of 1 to {_LONGEST_NAME} characters.")
        with self._store.writing() as connection:
            if newest(connection, DATASET, name) or _is_charged(connection, name):
                raise name_taken(name, deleted=bool(newest(connection, DELETED, name)))
            at = stamp(self._clock)
            declare_budget(connection, name, total, by, at=at)
            put(connection, DATASET, name, body, at=at, by=by)
            put(connection, POLICY, name, policy, at=at, by=by)
            if not opened:
                put(connection, STANDING, name, WAITING, at=at, by=by)

    def redeclare(self, name: str, by: str, body: str, policy: str, *, over: int) -> None:
        """Enter other columns and the policy for them, while nothing has been asked."""
        with self._store.writing() as connection:
            check_declared(connection, name, over)
            if _is_charged(connection, name):
                raise already_asked(name)
            at = stamp(self._clock)
            put(connection, DATASET, name, body, at=at, by=by)
            put(connection, POLICY, name, policy, at=at, by=by)
            if _waited(connection, name):  # the policy that opened it is gone
                put(connection, STANDING, name, WAITING, at=at, by=by)

    def stand(self, name: str, by: str, standing: str) -> None:
        """Close a dataset to new questions, or open it again; one without a published policy stays shut."""
        with self._store.writing() as connection:
            if newest(connection, DELETED, name):
                raise PolicyConflict(f"'{name}' was deleted meanwhile.")
            now = standing_of(connection, name)
            if now == standing:
                return
            if now == WAITING:
                raise PolicyConflict(
                    f"'{name}' opens when its first policy is published.", fixes=("publish a policy",)
                )
            put(connection, STANDING, name, standing, at=stamp(self._clock), by=by)

    def keep_rows(self, name: str, by: str, body: str, columns: Sequence[str], *, over: int) -> None:
        """Enter of which columns rows may be kept; the books name them, whoever reads these."""
        with self._store.writing() as connection:
            check_declared(connection, name, over)
            at = stamp(self._clock)
            sealed, version = enter_version(connection, KEPT_ROWS, name, body, at=at)
            facts = {"entry": KEPT_ROWS, "version": version, "columns": list(columns)}
            append(
                connection,
                at=at,
                kind="entry",
                dataset=name,
                analyst=by,
                amount=0,
                body=canonical(facts),
                sealed=sealed,
            )

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

    def any_under_way(self) -> bool:
        """Whether a question about any dataset is just being answered."""
        with self._store.reading() as connection:
            return connection.execute(select(charges.c.id).where(unfinished()).limit(1)).first() is not None


def standing_of(connection: Connection, name: str) -> str:
    """Whether a dataset is open; one about which nothing was said is."""
    body = connection.execute(_BODIES, {"of_kind": STANDING, "of_name": name}).scalar()
    return OPEN if body is None else str(body)


def _waited(connection: Connection, name: str) -> bool:
    """Whether a dataset was to be opened by its first policy."""
    first = {"of_kind": STANDING, "of_name": name, "of_version": 1}
    return connection.execute(_BODY, first).scalar() == WAITING


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


@final
class Policies:
    """The policies of a workspace, in the database that it shares with the ledger."""

    def __init__(self, store: Store, clock: Clock = utc_now) -> None:
        self._store = store
        self._clock = clock

    def kept(self, dataset: str) -> list[PolicyBalance]:
        """Earlier policies that new answers still have to fit under, oldest first."""
        return [*self._store.recalled(("kept", dataset), lambda read: active_promises(read, dataset))]

    def publish(
        self,
        dataset: str,
        by: str,
        body: str,
        facts: Mapping[str, object],
        *,
        last_charge: int,
        keep: bool,
        withdraw: bool,
    ) -> int:
        """Make a policy the one that answers follow, and return its version.

        ``facts`` say what the charges up to ``last_charge`` lost under it; what is above the price that was
        paid for them counts against the budget, whatever its total. With ``keep`` the policy so far stays
        promised too; with ``withdraw`` it is taken back, for everyone to see.
        """
        with self._store.writing() as connection:
            budget, version = read_budget(connection, dataset), newest_policy(connection, dataset)
            at = stamp(self._clock)
            newest = connection.execute(select(func.max(charges.c.id)).where(charges.c.dataset == dataset))
            if (newest.scalar() or 0) != last_charge:
                raise PolicyConflict(
                    f"A question about '{dataset}' was answered meanwhile, under the policy so far.",
                    fixes=("publish again, which counts it too",),
                )
            if version != facts["from_version"]:
                raise PolicyConflict(
                    f"Another policy of '{dataset}' was published meanwhile.",
                    fixes=("look at what changes now, and publish again",),
                )
            this = budgets.update().where(budgets.c.dataset == dataset)
            if withdraw and budget.held:
                raise _under_way(dataset)
            if keep:
                used = budget.used
                row = {"dataset": dataset, "version": version, "total": budget.total.nano}
                connection.execute(promises.insert().values({**row, "spent": used.nano, "held": 0}))
                append(
                    connection,
                    at=at,
                    kind="promise",
                    dataset=dataset,
                    analyst=by,
                    amount=budget.total.nano,
                    body=canonical({"version": version, "spent": used.nano}),
                )
            if withdraw:
                _enter_withdrawal(connection, dataset, by, version, at)
            carried = carried_by(facts) or Epsilon(0)
            if carried != budget.carried:
                connection.execute(this.values(carried=carried.nano))
                append(connection, at=at, kind="carried", dataset=dataset, analyst=by, amount=carried.nano)
            sealed, entered = enter_version(connection, "policy", dataset, body, at=at)
            append(
                connection,
                at=at,
                kind="policy",
                dataset=dataset,
                analyst=by,
                amount=0,
                body=canonical(dict(facts)),
                sealed=sealed,
            )
            if standing_of(connection, dataset) == WAITING:
                put(connection, STANDING, dataset, OPEN, at=at, by=by)
            return entered

    def withdraw(self, dataset: str, by: str, version: int) -> None:
        """Take an earlier promise back, for everyone to see: from now on answers need not fit under it."""
        with self._store.writing() as connection:
            active = {promise.version: promise for promise in active_promises(connection, dataset)}
            if version not in active:
                raise InvalidInput(
                    f"Version {version} of the policy of '{dataset}' is not an earlier promise that is kept.",
                    fixes=tuple(f"version {number}" for number in sorted(active)),
                )
            if active[version].held:
                raise _under_way(dataset)
            this = (promises.c.dataset == dataset) & (promises.c.version == version)
            at = stamp(self._clock)
            connection.execute(promises.update().where(this).values(withdrawn=at))
            _enter_withdrawal(connection, dataset, by, version, at)


def _enter_withdrawal(connection: Connection, dataset: str, by: str, version: int, at: str) -> None:
    body = canonical({"version": version})
    append(connection, at=at, kind="withdrawn", dataset=dataset, analyst=by, amount=0, body=body)


def _under_way(dataset: str) -> PolicyConflict:
    return PolicyConflict(
        f"A question about '{dataset}' is being answered, and it was promised what is to be withdrawn. "
        "Nothing was changed.",
        fixes=("try again in a moment", "blowfishdb doctor, if it was left unfinished"),
    )
