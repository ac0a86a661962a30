"""Made-up rows: a dataset with the same columns, the same policy and the same prices, about nobody.

For those who may not look yet. The rows are a function of the declarations and of a seed that everybody may
know, so nothing that is done with them can tell anything about the real ones. They live in a workspace of
their own that is gone with the process, and every answer from them says so.
"""

from __future__ import annotations

import hashlib
import tempfile
import weakref
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from blowfishdb.core.arrays import whole
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.messages.answers import MADE_UP
from blowfishdb.workspace.embedded import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

    from blowfishdb.workspace.datasets import Dataset

MOST_ROWS: Final = 100_000
_MISSING: Final = 0.03
_PERSON: Final = "whose"


def made_up(dataset: Dataset, rows: int = 1_000, seed: int = 0) -> Dataset:
    """The dataset with made-up rows in the place of its own: the same questions and prices, for nothing.

    They may lose as much as the real ones may in all, so that what runs out there runs out here. What
    everyone knows about the real rows is not true of these, and is left out of the policy.
    """
    if not 1 <= whole(rows, "The number of rows", InvalidInput) <= MOST_ROWS:
        raise InvalidInput(f"Between 1 and {MOST_ROWS:,} rows can be made up, not {rows:,}.")
    facts = dataset.gateway.facts(dataset.name)
    folder = tempfile.TemporaryDirectory(prefix="blowfishdb-made-up-")
    workspace = Workspace(Path(folder.name) / "made-up.blowfish", "nobody", mark=MADE_UP)
    weakref.finalize(workspace, folder.cleanup)
    several = facts.rows_per_person > 1
    workspace.add_dataset(
        facts.name,
        table_of(facts.domain, rows, seed, rows_per_person=facts.rows_per_person),
        domain=facts.domain,
        person=_whose(facts.domain) if several else None,
        rows_per_person=facts.rows_per_person,
        public=facts.public,
        rows_vary=facts.rows_vary or None,
    )
    workspace.set_budget(facts.name, dataset.gateway.budget(facts.name).total or Epsilon(1))
    return replace(workspace[facts.name].publish(facts.policy.knowing(None)), condition=dataset.condition)


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
