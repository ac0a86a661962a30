"""The columns of an import as a form: what is proposed, what the curator typed, and what is wrong with it.

A form has no types: every field is a text, and stays the text that was typed until all columns can be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, get_args

from starlette.datastructures import FormData

from blowfishdb.adapters.proposal import Proposal, ProposedColumn
from blowfishdb.adapters.proposal.guesses import OTHER
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Integer, Real
from blowfishdb.core.domain.dates import Unit
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy.columns import grouped, with_point
from blowfishdb.entrypoints.server.problems import read
from blowfishdb.entrypoints.server.web.frame import text, ticked
from blowfishdb.language.columns import FIELDS, read_column, written_column
from blowfishdb.service.advice import missing_prices

_KINDS: Final = (
    ("integer", "whole numbers"),
    ("real", "numbers"),
    ("date", "dates"),
    ("category", "a list of values"),
    ("boolean", "false and true"),
)
_UNITS: Final = tuple((unit, f"one {unit}") for unit in get_args(Unit))
_MISSING: Final = (
    ("none", "none"),
    ("value", "apart; who has none is secret"),
    ("public", "apart; who has none is not secret"),
    ("drop", "the row is left out"),
    ("clamp", "count as the lowest, and answers say so"),
)
_SOME_MISSING: Final = (
    ("value", "apart; who has none is secret"),
    ("public", "apart; everyone may know who has none"),
    ("drop", "the row is left out"),
    ("clamp", "count as the lowest, and answers say so"),
)
_OUTSIDE: Final = (("clamp", "nearest limit"), ("drop", "left out"))
CHOICES: Final[dict[str, Any]] = {
    "kinds": _KINDS,
    "units": _UNITS,
    "missing": _MISSING,
    "some_missing": _SOME_MISSING,
    "outside": _OUTSIDE,
}
"""What can be picked for a column, by the names that the form has for it."""
_MOST_COLUMNS: Final = 2_000


_FIELDS: Final = (
    *("name", "type", "note", "use", "confirmed", "some", "prices", "rare", "problem", "wrong"),
    *("samples", "shape"),
    *("kind", "lo", "hi", "step", "unit", "values", "ordered", "missing", "outside"),
)
ColumnTexts = dict[str, str]
"""One column as the page shows it, every field by its name: what is ticked is not empty. ``some``: values are
missing, so that there is a question about them. ``rare``: values that are folded into "other" because few
rows have them, one on each line. ``problem`` says what to mend, and ``wrong`` in which field. ``samples`` are
first values, one on each line, and ``shape`` counts with spaces between them."""


def proposed_columns(proposal: Proposal) -> list[ColumnTexts]:
    """Every column of a source, as it is proposed, with nothing confirmed."""
    return [_proposed(column) for column in proposal.columns]


def _proposed(column: ProposedColumn) -> ColumnTexts:
    """What looks like an identifier is left out."""
    shown = dict.fromkeys(_FIELDS, "") | {"kind": "integer", "unit": "day"}
    shown |= {"name": column.name, "type": column.type_text, "note": column.note}
    shown |= {"samples": "\n".join(column.samples), "shape": " ".join(map(str, column.shape))}
    if column.attribute is None:
        return shown
    shown |= _written(column.attribute) | {"rare": "\n".join(column.rare)}
    if column.some_missing:
        shown |= {"some": "1", "prices": str(missing_prices(column.attribute))}
    return shown | {"use": "" if column.looks_like_id else "1"}


def declared_columns(domain: Domain) -> list[ColumnTexts]:
    """The columns of a dataset as they are declared, every one confirmed."""
    return [
        dict.fromkeys(_FIELDS, "")
        | {"unit": "day", "name": name, "use": "1", "confirmed": "1"}
        | _written(attribute)
        for name, attribute in domain.columns
    ]


def _written(attribute: Attribute) -> ColumnTexts:
    """A declaration as it can be typed, thousands set apart."""
    written = {name: str(each) for name, each in written_column(attribute).items()}
    if isinstance(attribute, Integer | Real):
        written |= {name: grouped(Fraction(written[name])) for name in ("lo", "hi")}
    return written


def sent_columns(form: FormData) -> list[ColumnTexts]:
    """Every column, as it came back; fields end with the number of their column. One tick may be for all."""
    count = text(form, "columns", "0")
    if not count.isdecimal() or int(count) > _MOST_COLUMNS:
        raise InvalidInput("This is not the form that was made for this source.", fixes=("start over",))
    every = ticked(form, "all")
    return [
        {name: text(form, f"{name}-{number}").replace("\r\n", "\n") for name in _FIELDS}
        | {"unit": text(form, f"unit-{number}") or "day", "problem": "", "wrong": ""}
        | ({"confirmed": "1"} if every else {})
        for number in range(int(count))
    ]


def checked(columns: Sequence[ColumnTexts]) -> tuple[list[ColumnTexts], dict[str, Attribute]]:
    """The columns with what is wrong about each, and where, and those that could be read."""
    shown: list[ColumnTexts] = []
    attributes: dict[str, Attribute] = {}
    for column in columns:
        problem = ""
        try:
            if column["use"]:
                attributes[column["name"]] = _attribute(column)
        except InvalidInput as error:
            problem = str(error)
        shown.append(column | {"problem": problem, "wrong": _wrong_field(column, problem)})
    return shown, attributes


def check_complete(columns: Sequence[ColumnTexts], attributes: dict[str, Attribute]) -> None:
    """Every column that is used could be read, and there is one."""
    if wrong := sum(1 for column in columns if column["problem"]):
        raise InvalidInput(
            "1 column still needs attention." if wrong == 1 else f"{wrong} columns still need attention."
        )
    if not attributes:
        raise InvalidInput("No column is used, so nothing could be asked.", fixes=("use a column",))


def _wrong_field(column: ColumnTexts, problem: str) -> str:
    """The field that a problem is about: one that is empty, or that the problem quotes."""
    if not problem:
        return ""
    if column["kind"] != "boolean" and not column["confirmed"]:
        return "confirmed"
    limits = [name for name in ("lo", "hi", "step") if name in FIELDS.get(column["kind"], ())]
    empty = [name for name in limits if name != "step" and not column[name]]
    quoted = [name for name in limits if column[name] and repr(column[name]) in problem]
    return next(iter((*empty, *quoted)), "values" if column["kind"] == "category" else "hi")


def confirmed_count(columns: Sequence[ColumnTexts]) -> tuple[int, int]:
    """How many of the columns that are used have their limits confirmed, and how many have to."""
    wanted = [column for column in columns if column["use"] and column["kind"] != "boolean"]
    return sum(1 for column in wanted if column["confirmed"]), len(wanted)


def _attribute(column: ColumnTexts) -> Attribute:
    """The declaration; raises with what to mend."""
    name, kind = column["name"], column["kind"]
    if kind != "boolean" and not column["confirmed"]:
        raise InvalidInput(f"Confirm that the limits of '{name}' may be known, or leave it out.")
    wanted = FIELDS.get(kind, ())
    if "lo" in wanted and not (column["lo"] and column["hi"]):
        raise InvalidInput(f"'{name}' has no limits: type the lowest and the highest value.")
    texts = {field: column[field] or None for field in ("kind", *wanted, "missing", "outside")}
    if kind in ("integer", "real"):
        texts |= {field: with_point(column[field]) for field in ("lo", "hi", "step") if column[field]}
    if "values" in wanted:
        listed = column["values"].splitlines()
        if column["rare"] and column["outside"] == "clamp":  # what is folded counts as the last value
            listed.sort(key=lambda value: value.strip() == OTHER)
        texts["values"] = "\n".join(listed)
    return read(f"declaration of '{name}'", lambda: read_column(texts))
