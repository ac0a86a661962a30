"""The index of stored releases: on which boxes, with which rows and scales each was measured.

A question touches few of thousands of stored answers, and which ones follows from what was measured alone. So
that is kept beside the answers, without any number that came out. It is a cache of what the answers say:
entered when one is settled, made anew when a workspace is upgraded, and compared with them by the audit.

``grid`` names the boxes, ``shape`` boxes and rows: releases of one shape differ by their scales and by what
came out. Of an answer whose noise is shared by several counts nothing was measured that others could be
combined with, but what is promised of its counts is known: it has no rows, no boxes, its margin as a scale.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple, final

from sqlalchemy import Connection, Row, select

from blowfishdb.adapters.store.chain import canonical, digest
from blowfishdb.adapters.store.tables import charges, events, grids, releases
from blowfishdb.adapters.store.texts import read
from blowfishdb.adapters.store.values import State

_NO_RELEASE: Final = (LookupError, ValueError, TypeError, AttributeError)
_AT_ONCE: Final = 500


@final
@dataclass(frozen=True, slots=True)
class IndexedRelease:
    """What was measured for one stored answer."""

    charge: int
    seq: int
    """The event that settled it: releases are entered in this order."""
    snapshot: int
    grid: str
    shape: str
    scales: str
    """The distinct scales of the noise, as a JSON list of fractions."""
    noisy: int
    """How many rows have noise."""
    exact: int
    """How many rows are known exactly."""
    replaces: int | None = None
    """The release that this one is a more accurate copy of: that one is no longer used."""
    about: str | None = None
    """The question, however accurately it is answered; None for answers of older versions."""

    @property
    def measured(self) -> bool:
        """Whether there are rows; otherwise there are only counts, and a margin around all of them."""
        return bool(self.grid)


_EVERY_TREE: Final = select(
    select(grids.c.grid).where(grids.c.grid == "").exists(),
    select(releases.c.charge).where(releases.c.charge == -1).exists(),
    select(releases.c.charge).where(releases.c.dataset == "", releases.c.seq == 0).exists(),
    select(releases.c.charge)
    .where(releases.c.dataset == "", releases.c.snapshot == 0, releases.c.grid == "")
    .exists(),
    select(releases.c.charge).where(releases.c.about == "").exists(),
)


def check_readable(connection: Connection) -> None:
    """Look into every tree of the index: one that is damaged is found before a charge and not after it."""
    connection.execute(_EVERY_TREE).one()


def enter_release(connection: Connection, dataset: str, charge: int, seq: int, answer: str) -> None:
    """Index an answer that has just been settled; one that nothing follows from is not in the index."""
    described = _described(answer, dataset)
    if described is None:
        return
    facts, axes = described
    connection.execute(releases.insert().values(charge=charge, seq=seq, **facts))
    if axes is None:
        return
    known = connection.execute(select(grids.c.grid).where(grids.c.grid == facts["grid"])).first()
    if known is None:
        connection.execute(grids.insert().values(grid=facts["grid"], axes=axes))


def reindex(connection: Connection) -> None:
    """Make the index anew from the answers themselves."""
    connection.execute(releases.delete())
    connection.execute(grids.delete())
    for dataset, charge, seq, answer in list(_settled(connection)):
        enter_release(connection, dataset, charge, seq, answer)


def compare_releases(connection: Connection) -> list[str]:
    """Where the index is not what the answers say."""
    indexed = {row.charge: dict(row._mapping) for row in connection.execute(select(releases))}
    named = {row.grid: row.axes for row in connection.execute(select(grids))}
    problems, known = [], {}
    for dataset, charge, seq, answer in _settled(connection):
        described = _described(answer, dataset)
        if described is not None:
            facts, axes = described
            if axes is not None:
                known[facts["grid"]] = axes
            if indexed.pop(charge, None) != {"charge": charge, "seq": seq, **facts}:
                problems.append(f"The index of release {charge} is not what its answer says.")
    problems += [f"The index speaks of a release {charge} that is not stored." for charge in indexed]
    problems += [
        f"The boxes {grid} of the index are not those of any answer."
        for grid in sorted(known.keys() | named.keys(), key=repr)
        if known.get(grid) != named.get(grid)
    ]
    return problems


def release_of(row: Row[Any]) -> IndexedRelease:
    """A row of the index as a value."""
    return IndexedRelease(
        charge=row.charge,
        seq=row.seq,
        snapshot=row.snapshot,
        grid=row.grid,
        shape=row.shape,
        scales=row.scales,
        noisy=row.noisy,
        exact=row.exact,
        replaces=row.replaces,
        about=row.about,
    )


def in_parts(numbers: Collection[Any]) -> Iterator[list[Any]]:
    """As many at once as one statement can name."""
    listed = list(numbers)
    return (listed[begin : begin + _AT_ONCE] for begin in range(0, len(listed), _AT_ONCE))


def _settled(connection: Connection) -> Iterator[tuple[str, int, int, str]]:
    """Every stored answer: its dataset, its charge, the event that settled it, and its text."""
    ended = select(events.c.charge, events.c.seq).where(events.c.kind == State.SETTLED.value)
    seqs = {row.charge: row.seq for row in connection.execute(ended)}
    stored = select(charges.c.dataset, charges.c.id, charges.c.answer)
    for row in connection.execute(stored.where(charges.c.state == State.SETTLED.value)):
        yield row.dataset, row.id, seqs.get(row.id, 0), row.answer


def _described(answer: object, dataset: str) -> tuple[dict[str, Any], str | None] | None:
    """What the index says of an answer, and its boxes if it has any; None for one that nothing follows from.

    Of a ``dataset`` with several tables, it says which of them was counted: ``shop.orders``.

    Totals of which nobody noted whether they were shown (nothing says what was ``used``) are not known.
    """
    try:
        told = _facts(read(answer), dataset)
        if told.rounded:
            told = _facts(json.loads(answer), dataset)  # type: ignore[arg-type]
    except _NO_RELEASE:
        return None
    return told.facts, told.axes


class _Told(NamedTuple):
    """What the index says of an answer, its boxes, and the boxes and rows in one text."""

    facts: dict[str, Any]
    axes: str | None
    shape: str

    @property
    def rounded(self) -> bool:
        """Whether a whole number may have needed more than 64 bits: the quick reader makes it a float.

        Rows that differ only there would share a shape, and be added up as one.
        """
        return "e+" in self.shape


def _facts(body: Mapping[str, Any], dataset: str) -> _Told:
    release, receipt = body["release"], body["answer"]["receipt"]
    if release is None or _without_noise(body):
        return _Told(_without_rows(body, receipt, dataset), None, "")
    count, which = len(release["values"]), release["which"]
    exactly = [str(scale) == "0" for scale in release["scales"]]
    exact = sum(exactly[at] for at in which) if which is not None else count * (count > 0 and exactly[0])
    axes, used = canonical(release["axes"]), release.get("used", "all exact rows")
    shape = canonical([release["axes"], release["rows"], which, used, exactly])
    facts = {
        "dataset": _counted(receipt.get("dataset"), dataset),
        "snapshot": int(receipt["snapshot"]),
        "grid": digest(axes),
        "shape": digest(shape),
        "scales": canonical(release["scales"]),
        "noisy": count - exact,
        "exact": exact if "used" in release else 0,
        "replaces": body.get("replaces"),
        "about": body.get("about"),
    }
    return _Told(facts, axes, shape)


def _without_noise(body: Mapping[str, Any]) -> bool:
    """Whether rows were kept as noisy ones although every answer is exact, so that no noise was drawn.

    Earlier versions did so: these are true counts that were never shown, and nothing may follow from them.
    """
    exactly = body.get("bound", {}).get("margin") == 0 and all(body["answer"]["exact"])
    return exactly and any(str(scale) != "0" for scale in body["release"]["scales"])


def _without_rows(body: Mapping[str, Any], receipt: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """What the index says of an answer of which only the promise is known."""
    return {
        "dataset": _counted(receipt.get("dataset"), dataset),
        "snapshot": int(receipt["snapshot"]),
        "grid": "",
        "shape": "",
        "scales": canonical([str(Fraction(float(body["bound"]["margin"])))]),
        "noisy": 0,
        "exact": 0,
        "replaces": None,
        "about": str(body["about"]),
    }


def _counted(named: object, dataset: str) -> str:
    """The table that was counted, where it is one of the dataset that was charged; else the dataset."""
    return named if isinstance(named, str) and named.startswith(f"{dataset}.") else dataset
