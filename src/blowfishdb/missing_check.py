"""Whether columns that are declared without missing values have none; for the curator, before anyone asks.

The rule for missing values is part of the declaration, so that no answer depends on whether there are any.
Where it says that there are none, somebody has to look: here, when rows are declared or refreshed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from blowfishdb.adapters.backends import TIMEOUT, Backend
from blowfishdb.adapters.patience import Patience
from blowfishdb.core.axis import Axis
from blowfishdb.core.bins import Bins
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidAttribute, QueryFailed
from blowfishdb.core.projection import CellQuery
from blowfishdb.mechanisms.curator_view import some_rows

_UNSEEN: Final = ("say how missing values count, and nobody has to look", "fewer columns")


def check_none_missing(domain: Domain, opened: Callable[[Domain], Backend]) -> None:
    """Refuse a declaration of no missing values that the rows contradict; one statement for each column.

    All of them together take no longer than one question may.
    """
    unsaid = {name: _apart(attribute) for name, attribute in domain.columns if attribute.missing == "none"}
    if not unsaid:
        return
    backend, patience = opened(Domain.of(dict(domain.columns) | unsaid)), Patience(TIMEOUT, _UNSEEN)
    try:
        found = [axis.column for axis in _axes(unsaid) if _some_missing(backend, axis, patience)]
    finally:
        backend.close()
    if found:
        listed = ", ".join(f"'{name}'" for name in found)
        raise InvalidAttribute(
            f"Some values of {listed} are missing, or cannot be read as declared: say how they count.",
            fixes=(
                'missing="value": they have a place of their own, and who has none stays secret',
                'missing="public": a place of their own, and everyone may know who has none; costs nothing',
                'missing="drop": their rows are left out',
                'missing="clamp": they count as the lowest value, and every answer says so',
            ),
        )


def _apart(attribute: Any) -> Any:
    return replace(attribute, missing="value")


def _axes(columns: dict[str, Any]) -> Iterator[Axis]:
    for name, attribute in columns.items():
        yield Axis(name, attribute, Bins.edges(attribute.size, [0, attribute.value_count]))


def _some_missing(backend: Backend, axis: Axis, patience: Patience) -> bool:
    prepared = backend.prepare(CellQuery((axis,)))
    try:
        return some_rows(1, replace(prepared, timeout=patience.left).count())
    except QueryFailed:
        patience.check()
        raise
