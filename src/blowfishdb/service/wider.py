"""One question instead of several: the same bins, once for every group that conditions pick rows by.

Several histograms of some rows each pay for rows that come and go. One histogram of all rows, in groups of
what they are picked by, pays for them once. So do several curves, which medians are read from.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.mechanisms.reuse import Partition
from blowfishdb.mechanisms.together import MOST_BOXES
from blowfishdb.messages.questions import Request, Terms
from blowfishdb.service.tasks import CountTask

_CURVES = ("cumulative", "quantiles")
"""What is read from one curve along a column."""


def wider_questions(tasks: Iterable[CountTask], domain: Domain) -> list[Request]:
    """A question for all bars, or all curves, of several parts of the rows, as close as the closest.

    Those that state an ε have no error that a wider one could keep.
    """
    alike: dict[tuple[str, tuple[ColumnForm, ...]], list[CountTask]] = defaultdict(list)
    for task in tasks:
        form = task.request.form
        kind = "cumulative" if form.kind in _CURVES else form.kind
        if kind in ("cumulative", "histogram") and not form.by and task.request.terms.accuracy is not None:
            alike[kind, form.columns].append(task)
    several = [(kind, parts) for (kind, _), parts in alike.items() if len(parts) > 1]
    return [request for kind, parts in several if (request := _in_groups(kind, parts, domain)) is not None]


def _in_groups(kind: str, parts: Sequence[CountTask], domain: Domain) -> Request | None:
    """The bars or curves in groups; None where rows are picked by their own columns, or by nothing.

    Or where it has so many boxes that nothing is planned together with it.
    """
    first = parts[0].request
    columns = first.form.columns
    picked = sorted({column for part in parts for column in part.request.form.where.columns()})
    partition = Partition.common([part.problem.cells.axes for part in parts])
    if not picked or partition is None or {column.name for column in columns} & {*picked}:
        return None
    cut = {axis.column: axis for axis in partition.axes}
    groups = []
    for name in picked:
        attribute = domain[name]
        if attribute.has_missing_cell or name not in cut:
            return None
        bins = cut[name].bins
        every = not attribute.ordered or bins.count == attribute.size
        starts = () if every else bins.first(np.arange(bins.count))
        edges = tuple(attribute.lower(int(start)) for start in starts)
        groups.append(ColumnForm(name, edges=edges or None))
    closest = [part.request.terms.accuracy for part in parts]
    accuracy = min((one for one in closest if one is not None), key=lambda one: (one.alpha, one.beta))
    if math.prod(column.axis(domain).bins.count for column in (*groups, *columns)) > MOST_BOXES:
        return None
    if kind == "histogram":
        form = QuestionForm(kind, (*groups, *columns), Everything())
    else:
        form = QuestionForm(kind, columns, Everything(), by=tuple(groups))
    return replace(first, form=form, question=form.question(domain), terms=Terms(accuracy), key=None)
