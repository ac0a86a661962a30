"""What an upgrade means for what is on record: from here on everything present is sealed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection

from blowfishdb.adapters.clock import stamp, utc_now
from blowfishdb.adapters.ledger_events import append, canonical
from blowfishdb.adapters.seals import cover, unsealed
from blowfishdb.adapters.store_schema import SCHEMA_VERSION

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
