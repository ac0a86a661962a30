"""Writing a form as text in the short form."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from blowfishdb.adapters.sql_condition import condition_text
from blowfishdb.adapters.sql_text import duration_text, name_text, number_text, quoted_text
from blowfishdb.core.cluster_question import USUAL_ITERATIONS
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.forms import ColumnForm, QuestionForm
from blowfishdb.core.predicates import Everything
from blowfishdb.core.values import plain


def question_text(form: QuestionForm) -> str:
    """The short form that reads back as ``form``."""
    name = "median" if form.kind == "quantiles" and form.shares == (0.5,) else form.kind
    details = [f"{value_text(lo)}..{value_text(hi)}" for lo, hi in form.bounds]
    if name != "median":
        details += [value_text(share) for share in form.shares]
    details += [value_text(number) for number in (form.count, form.limit) if number is not None]
    details += [f"{name}={value_text(number)}" for name, number in _numbers(form)]
    if len(form.columns) == 1:
        (column,) = form.columns
        said = [name_text(column.name), *details, *_cut_text(column)]
    else:
        said = [*map(column_text, form.columns), *details]
    where = "" if isinstance(form.where, Everything) else f" where {condition_text(form.where)}"
    return f"{name}({', '.join(said)}){where}"


def _numbers(form: QuestionForm) -> list[tuple[str, object]]:
    """What clusters need; how many rounds there are only where it is not as usual."""
    said = [("k", form.k), ("iterations", None if form.iterations == USUAL_ITERATIONS else form.iterations)]
    return [(name, number) for name, number in said if number is not None]


def column_text(column: ColumnForm) -> str:
    """A column with its bins, as one of several."""
    cuts = _cut_text(column)
    return name_text(column.name) + (f"({', '.join(cuts)})" if cuts else "")


def _cut_text(column: ColumnForm) -> list[str]:
    said: list[str] = []
    if column.bins is not None:
        said.append(f"bins={value_text(column.bins)}")
    if column.width is not None:
        said.append(f"width={value_text(column.width)}")
    if column.edges is not None:
        said.append(f"edges={_list_text(column.edges)}")
    if column.groups is not None:
        said.append(f"groups={_groups_text(column.groups)}")
    return said


def _list_text(values: tuple[Any, ...]) -> str:
    return f"[{', '.join(map(value_text, values))}]"


def _groups_text(groups: Mapping[str, tuple[Any, ...]]) -> str:
    inside = (f"{quoted_text(name)}: {_list_text(tuple(values))}" for name, values in groups.items())
    return "{" + ", ".join(inside) + "}"


def value_text(value: object) -> str:
    """A value as it is typed."""
    found = plain(value)
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, str):
        return quoted_text(found)
    if isinstance(found, date):
        return found.isoformat()
    if isinstance(found, timedelta):
        return duration_text(found)
    number = number_text(found)
    if number is None:
        raise InvalidInput(f"A {type(value).__name__} cannot be written in a question.")
    return number
