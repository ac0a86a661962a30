"""The curator's side of synthetic tables: which rows may be kept, and true counts beside synthetic ones.

Kept rows are real rows of real people. No policy is broken by them, for no promise hides their columns; that
they are given at all is the curator's decision, column by column and on record. True counts are looked at for
it, and for comparisons; that somebody looked is written into the ledger, as for a preview.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from blowfishdb.core.domain.domain import Axis, CellQuery
from blowfishdb.core.errors import InvalidInput, PolicyConflict
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.synthesis import MOST_VALUES, listed, usual_bins
from blowfishdb.mechanisms.curator_view import counts_beside, given_away, rows_alone
from blowfishdb.mechanisms.synthesis.moves import check_proven
from blowfishdb.mechanisms.synthesis.tables import not_kept, tells
from blowfishdb.messages.curator import GivenAway, KeptColumns, SyntheticComparison, TrueAgainst
from blowfishdb.messages.synthetic_table import SyntheticTable
from blowfishdb.service.records import DatasetEntry
from blowfishdb.service.service import Service

_SURE: Final = 0.95
_FEWEST: Final = 10
_WORTH_SAYING: Final = 0.05
_MOST_VALUES: Final = 1_000


def keepable(service: Service, name: str) -> tuple[str, ...]:
    """Columns that no promise hides, in which no row is left out: those that could be kept."""
    dataset = service.datasets(name)
    policies = service.standing(dataset).policies
    for policy in policies:
        check_proven(policy)
    return tuple(column for column in dataset.domain.names if not _is_hidden(policies, column))


def keeping(service: Service, name: str, user: str, columns: Sequence[str]) -> KeptColumns:
    """What keeping rows of these columns means, with a warning where one gives a hidden column away.

    Columns that any promise hides are refused.
    """
    dataset, public = service.datasets(name), keepable(service, name)
    domain = dataset.domain
    if unknown := [column for column in columns if column not in domain]:
        raise InvalidInput(f"There is no column '{unknown[0]}'.", fixes=domain.names)
    if wrong := [column for column in columns if column not in public]:
        raise not_kept(Axis(wrong[0], domain[wrong[0]], domain[wrong[0]].bins()))
    kept = tuple(column for column in domain.names if column in columns)
    if not kept:
        return KeptColumns((), confirmed=False)
    facts = {"question": f"what keeping rows of {listed(kept)} would give away"}
    service.ledger.note(dataset.books, user, "preview", facts)
    axes = tuple(Axis(column, domain[column], domain[column].bins()) for column in kept)
    alone, rows = rows_alone(service.backend(dataset).prepare_kinds(CellQuery(axes)).count())
    hidden = [column for column in domain.names if column not in public]
    return KeptColumns(kept, False, alone, rows, tuple(_given_away(service, dataset, kept, hidden)))


def _is_hidden(policies: Sequence[Policy], column: str) -> bool:
    attribute = policies[0].domain[column]
    return any(tells(policy, Axis(column, attribute, attribute.bins())) for policy in policies)


def _given_away(
    service: Service, dataset: DatasetEntry, public: Sequence[str], hidden: Sequence[str]
) -> Iterator[GivenAway]:
    axes = {name: _usual_axis(dataset.policy, name) for name in (*public, *hidden)}
    backend = service.backend(dataset)
    for first, second in ((axes[p], axes[h]) for p in public for h in hidden):
        if first is None or second is None:
            continue
        told, right, before = given_away(
            backend.prepare(CellQuery((first, second))).count(),
            (first.bins.count, second.bins.count),
            sure=_SURE,
            fewest=_FEWEST,
        )
        if before < _SURE and told >= _WORTH_SAYING:
            yield GivenAway(first.column, second.column, told, right, before)


def _usual_axis(policy: Policy, column: str) -> Axis | None:
    """A column in the bins of a synthetic table, or value by value; None where it has too many of them."""
    attribute = policy.domain[column]
    if attribute.ordered or attribute.value_count <= MOST_VALUES:
        return Axis(column, attribute, usual_bins(policy, column))
    return Axis(column, attribute, attribute.bins()) if attribute.size <= _MOST_VALUES else None


def compared(service: Service, table: SyntheticTable, user: str) -> SyntheticComparison:
    """True counts of every column and every pair beside synthetic ones."""
    receipt, layout = table.receipt, table.layout
    dataset = service.datasets(receipt.dataset)
    declared = dataset.domain
    same = all(axis.column in declared and declared[axis.column] == axis.attribute for axis in layout.axes)
    if receipt.snapshot != dataset.snapshot or not same:
        raise PolicyConflict(
            "The rows were declared anew since this table was made, so there is nothing to compare it with.",
            fixes=("make another synthetic table",),
        )
    facts = {"question": f"true counts beside synthetic table {table.number}"}
    service.ledger.note(dataset.books, user, "preview", facts)
    backend, rows = service.backend(dataset), table.drawn_bins()
    known = {pair.columns: pair.known for pair in table.report().pairs}

    def beside(columns: tuple[int, ...]) -> TrueAgainst:
        axes = layout.chosen(columns)
        drawn = layout.tabulated(rows, columns)[layout.inside(columns)]
        true, off = counts_beside(backend.prepare(CellQuery(axes)).count(), drawn)
        names = tuple(axis.column for axis in axes)
        if len(columns) > 1:
            return TrueAgainst(names, (), (), (), off, known[names[0], names[1]])
        how = "kept" if names[0] in table.kept_columns else "measured"
        labels = tuple(axes[0].labels())
        return TrueAgainst(names, labels, tuple(true.tolist()), tuple(drawn.tolist()), off, how)

    alone = tuple(beside((column,)) for column in range(len(layout.axes)))
    return SyntheticComparison(table.number, receipt.dataset, alone, tuple(map(beside, layout.pairs())))
