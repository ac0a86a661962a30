"""One question instead of several: the same bins, once for every group that conditions pick rows by.

Several histograms of some rows each pay for rows that come and go. One histogram of all rows, in groups of
what they are picked by, pays for them once.
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


def wider_questions(tasks: Iterable[CountTask], domain: Domain) -> list[Request]:
    """A question for every histogram that is asked of several parts of the rows, as close as the closest."""
    alike: dict[tuple[ColumnForm, ...], list[CountTask]] = defaultdict(list)
    for task in tasks:
        if task.request.form.kind == "histogram":
            alike[task.request.form.columns].append(task)
    several = [parts for parts in alike.values() if len(parts) > 1]
    return [request for parts in several if (request := _in_groups(parts, domain)) is not None]


def _in_groups(parts: Sequence[CountTask], domain: Domain) -> Request | None:
    """The histogram in groups; None where rows are picked by its own columns, or by nothing.

    Or where it has so many boxes that nothing is planned together with it.
    """
    first = parts[0].request
    bins = first.form.columns
    picked = sorted({column for part in parts for column in part.request.form.where.columns()})
    partition = Partition.common([part.problem.cells.axes for part in parts])
    if not picked or partition is None or {column.name for column in bins} & {*picked}:
        return None
    cut = {axis.column: axis for axis in partition.axes}
    groups = []
    for name in picked:
        attribute = domain[name]
        if attribute.has_missing_cell or name not in cut:
            return None
        starts = cut[name].bins.first(np.arange(cut[name].bins.count)) if attribute.ordered else ()
        edges = tuple(attribute.lower(int(start)) for start in starts)
        groups.append(ColumnForm(name, edges=edges or None))
    closest = [part.request.terms.accuracy for part in parts]
    accuracy = min((one for one in closest if one is not None), key=lambda one: (one.alpha, one.beta))
    form = QuestionForm("histogram", (*groups, *bins), Everything())
    if math.prod(column.axis(domain).bins.count for column in form.columns) > MOST_BOXES:
        return None
    return replace(first, form=form, question=form.question(domain), terms=Terms(accuracy), key=None)
