"""Records: datasets as the catalogue knows them, every version of their declaration and policy kept."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

from blowfishdb.adapters.backends.dialects import dialect_of
from blowfishdb.adapters.backends.duckdb_files import holds_rows, table_name
from blowfishdb.adapters.catalogue import Catalogue
from blowfishdb.adapters.sql_source import Source
from blowfishdb.adapters.sql_unit import Unit
from blowfishdb.core import codec
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidInput, UnknownDataset
from blowfishdb.core.policy import Policy


@final
@dataclass(frozen=True, eq=False)
class DatasetRecord:
    """Where the rows of a dataset are, what they may hold, what is hidden."""

    name: str
    location: str = field(repr=False)  # an address may hold a password
    source: Source | None
    domain: Domain
    policy: Policy
    policy_version: int
    snapshot: int

    @property
    def rows_per_person(self) -> int:
        """How many rows one person's secret can be in; each may move along an edge."""
        return 1 if self.source is None or self.source.unit is None else self.source.unit.rows


@final
class Records:
    """The datasets of one catalogue; each version is read once."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._read: dict[tuple[object, ...], DatasetRecord] = {}

    def names(self) -> list[str]:
        """All datasets, in alphabetical order."""
        return self._catalogue.names("dataset")

    def __getitem__(self, name: str) -> DatasetRecord:
        """What the catalogue says now; read anew only when it has a newer version."""
        newest = self._catalogue.versions(name)
        versions = (name, newest.get("dataset"), newest.get("policy"))
        found = self._read.get(versions)
        if found is None:
            found = self._read[versions] = self._newest(name)
        return found

    def declare(self, name: str, location: str, source: Source | None, domain: Domain) -> None:
        """Enter a dataset; everything about a record stays hidden until a policy says otherwise."""
        body = {
            "location": location,
            "source": None if source is None else _plain_source(source),
            "domain": codec.plain(domain),
            "snapshot": 1,
        }
        self._catalogue.put("dataset", name, json.dumps(body))
        self.put_policy(name, Policy.differential_privacy(domain))

    def redeclare(self, name: str, domain: Domain) -> None:
        """Enter other columns; the policy for the earlier ones means nothing any more."""
        stored = json.loads(self._catalogue.get("dataset", name) or "{}")
        self._catalogue.put("dataset", name, json.dumps({**stored, "domain": codec.plain(domain)}))
        self.put_policy(name, Policy.differential_privacy(domain))

    def put_draft(self, name: str, policy: Policy) -> None:
        """Keep a policy that is not published."""
        self._catalogue.put("draft", name, json.dumps(codec.plain(policy)))

    def draft(self, name: str) -> Policy:
        """The newest draft that fits the columns; the published policy if there is none."""
        published, body = self[name], self._catalogue.get("draft", name)
        draft = None if body is None else codec.policy(json.loads(body))
        return draft if draft is not None and draft.domain == published.domain else published.policy

    def put_policy(self, name: str, policy: Policy) -> int:
        """Enter a new version of the policy."""
        return self._catalogue.put("policy", name, json.dumps(codec.plain(policy)))

    def policy(self, name: str, version: int) -> Policy | None:
        """A policy as it was."""
        body = self._catalogue.get("policy", name, version)
        return None if body is None else codec.policy(json.loads(body))

    def new_snapshot(self, name: str) -> None:
        """The rows have changed."""
        stored = json.loads(self._catalogue.get("dataset", name) or "{}")
        self._catalogue.put("dataset", name, json.dumps({**stored, "snapshot": stored["snapshot"] + 1}))

    def _newest(self, name: str) -> DatasetRecord:
        body = self._catalogue.get("dataset", name)
        if body is None:
            known = self.names()
            raise UnknownDataset(
                f"There is no dataset '{name}' in this workspace.",
                fixes=(f"one that is there: {', '.join(known)}" if known else "add a dataset first",),
            )
        stored, version = json.loads(body), self._catalogue.version("policy", name)
        policy = self.policy(name, version)
        assert policy is not None
        return DatasetRecord(
            name=name,
            location=stored["location"],
            source=None if stored["source"] is None else _stored_source(stored["source"]),
            domain=codec.domain(stored["domain"]),
            policy=policy,
            policy_version=version,
            snapshot=stored["snapshot"],
        )


def declared_source(
    location: str,
    *,
    table: str | None,
    view: str | None,
    person: str | None,
    rows_per_person: int,
    row_key: str | None,
) -> Source | None:
    """Which rows of a location are meant, and whose they are; None for the only table there."""
    if person is None and (rows_per_person != 1 or row_key is not None):
        raise InvalidInput(
            "Rows per person need to know whose row each is.", fixes=("person='the column with the id'",)
        )
    unit = None if person is None else Unit(person, rows_per_person, row_key, salt=secrets.token_hex(8))
    if view is not None and table is not None:
        raise InvalidInput("The rows come from a table or from a view, not from both.")
    if view is not None:
        return Source.of_view(view, dialect_of(location), unit=unit)
    if table is None and unit is not None and "://" not in location and holds_rows(Path(location)):
        table = table_name(Path(location))
    if table is None and unit is not None:
        raise InvalidInput("Name the table whose rows belong to people.", fixes=("table='visits'",))
    return None if table is None else Source.of_table(table, unit=unit)


def place(source: str | Path) -> str:
    """An address as it is, a path in full, so that the workspace can be opened from anywhere."""
    return str(source) if "://" in str(source) else str(Path(source).resolve())


def _plain_source(source: Source) -> dict[str, object]:
    unit = None if source.unit is None else asdict(source.unit)
    return {"table": source.table, "view": source.view, "dialect": source.dialect, "unit": unit}


def _stored_source(stored: Mapping[str, Any]) -> Source:
    unit = None if stored["unit"] is None else Unit(**stored["unit"])
    return Source(table=stored["table"], view=stored["view"], dialect=stored["dialect"], unit=unit)
