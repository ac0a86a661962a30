"""Made-up rows: a dataset with the same columns and the same hidden pairs, about nobody.

For those who may not look yet. The rows are a function of the declarations and of a seed that everybody may
know, so nothing that is done with them can tell anything about the real ones.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from blowfishdb.core.arrays import whole
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.messages.policies import DatasetInfo

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS: Final = 100_000
_MISSING: Final = 0.03
_PERSON: Final = "whose"


def declared(facts: DatasetInfo, rows: int, seed: int) -> dict[str, Any]:
    """A dataset like the one with these facts, as ``add_dataset`` takes it."""
    if not 1 <= whole(rows, "The number of rows", InvalidInput) <= MOST_ROWS:
        raise InvalidInput(f"Between 1 and {MOST_ROWS:,} rows can be made up, not {rows:,}.")
    if facts.tables:
        raise InvalidInput(
            f"'{facts.name}' has several tables: rows are made up of one of them.",
            fixes=tuple(f"'{facts.name}.{table.name}'" for table in facts.tables),
        )
    people = facts.rows_per_person
    return {
        "name": facts.name,
        "source": table_of(facts.domain, rows, seed, rows_per_person=people),
        "domain": facts.domain,
        "person": _whose(facts.domain) if people > 1 else None,
        "rows_per_person": people,
        "public": facts.public,
        "rows_vary": facts.rows_vary or None,
    }


def table_of(domain: Domain, rows: int, seed: int, *, rows_per_person: int = 1) -> pa.Table:
    """Rows for declared columns, each drawn by itself; the same for the same seed."""
    import pyarrow as pa

    columns: dict[str, Any] = {name: _values(name, domain[name], rows, seed) for name in domain.names}
    if rows_per_person > 1:
        columns[_whose(domain)] = [row // rows_per_person for row in range(rows)]
    return pa.table(columns)


def _whose(domain: Domain) -> str:
    """A name for the column that says whose row it is, which no declared column has."""
    name = _PERSON
    while name in domain.names:
        name += "_"
    return name


def _values(name: str, attribute: Attribute, rows: int, seed: int) -> list[Any]:
    """Values of one column: a hill somewhere on the line, or a few names more often than the others."""
    key = int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8])
    draw = np.random.Generator(np.random.Philox(key=key))
    places = draw.beta(draw.uniform(1.5, 4.0), draw.uniform(1.5, 4.0), size=rows)
    ticks = np.minimum((places * attribute.ticks).astype(np.int64), attribute.ticks - 1)
    values = [_plain(attribute.at(int(tick))) for tick in ticks]
    absent = draw.random(rows) < (_MISSING if attribute.has_missing_cell else 0.0)
    return [None if gone else value for value, gone in zip(values, absent, strict=True)]


def _plain(value: object) -> object:
    return float(value) if isinstance(value, Fraction) else value
