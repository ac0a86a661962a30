"""Importing: where rows are, then which values they may hold. Limits are proposed; the curator confirms each.

The form carries everything from step to step, so that nothing is kept on the server until it is confirmed.

The columns of an import as a form: what is proposed, what the curator typed, and what is wrong with it.

A form has no types: every field is a text, and stays the text that was typed until all columns can be read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import PurePath
from typing import Any, Final, TypeVar, final, get_args

from fastapi import Request, Response
from pydantic import ValidationError
from starlette.datastructures import FormData

from blowfishdb.adapters.copies.values import SEPARATORS
from blowfishdb.adapters.proposal import WARNING, Proposal, ProposedColumn
from blowfishdb.adapters.proposal.guesses import OTHER
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.dates import Unit
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.server.access import Caller, PageCurator
from blowfishdb.entrypoints.server.api.datasets import declare_dataset, propose_columns
from blowfishdb.entrypoints.server.api.requests import Declared, DialectSaid, Located, Place, TableSaid
from blowfishdb.entrypoints.server.problems import Problem, read
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web.frame import Sent, dataset_address, redirect, render, shown_again, text
from blowfishdb.language.columns import FIELDS, read_column, written_column
from blowfishdb.service.advice import missing_prices

KINDS: Final = (
    ("integer", "whole numbers"),
    ("real", "numbers"),
    ("date", "dates"),
    ("category", "a list of values"),
    ("boolean", "false and true"),
)
UNITS: Final = tuple((unit, f"one {unit}") for unit in get_args(Unit))
MISSING: Final = (
    ("none", "there are none"),
    ("value", "a place of their own; who has none is secret"),
    ("public", "a place of their own; who has none is not secret"),
    ("drop", "the row is left out"),
    ("clamp", "count as the lowest value, and every answer says so"),
)
SOME_MISSING: Final = (
    ("value", "Yes, secret: a place of their own, as hidden as the values"),
    ("public", "No, everyone may know who has none: their number is exact and free"),
    ("drop", "Leave these rows out of questions about this column"),
    ("clamp", "Count them as the lowest value (the last one of a list); every answer says so"),
)
OUTSIDE: Final = (("clamp", "count as the nearest limit"), ("drop", "the row is left out"))
_MOST_COLUMNS: Final = 2_000


_FIELDS: Final = (
    *("name", "type", "note", "use", "confirmed", "some", "prices", "rare", "problem"),
    *("kind", "lo", "hi", "step", "unit", "values", "ordered", "missing", "outside"),
)
ColumnTexts = dict[str, str]
"""One column as the page shows it, every field by its name: what is ticked is not empty. ``some``: values are
missing, so that there is a question about them. ``rare``: values that are folded into "other" because few
rows have them, one on each line. ``problem`` says what to mend."""


def proposed_columns(proposal: Proposal) -> list[ColumnTexts]:
    """Every column of a source, as it is proposed, with nothing confirmed."""
    return [_proposed(column) for column in proposal.columns]


def _proposed(column: ProposedColumn) -> ColumnTexts:
    """What looks like an identifier is left out."""
    shown = dict.fromkeys(_FIELDS, "") | {"kind": "integer", "unit": "day"}
    shown |= {"name": column.name, "type": column.type_text, "note": column.note}
    if column.attribute is None:
        return shown
    shown |= written_column(column.attribute) | {"rare": "\n".join(column.rare)}
    if column.some_missing:
        shown |= {"some": "1", "prices": str(missing_prices(column.attribute))}
    return shown | {"use": "" if column.looks_like_id else "1"}


def sent_columns(form: FormData) -> list[ColumnTexts]:
    """Every column, as it came back; fields end with the number of their column."""
    count = text(form, "columns", "0")
    if not count.isdecimal() or int(count) > _MOST_COLUMNS:
        raise InvalidInput("This is not the form that was made for this source.", fixes=("start over",))
    return [
        {name: text(form, f"{name}-{number}").replace("\r\n", "\n") for name in _FIELDS}
        | {"unit": text(form, f"unit-{number}") or "day", "problem": ""}
        for number in range(int(count))
    ]


def checked(columns: Sequence[ColumnTexts]) -> tuple[list[ColumnTexts], dict[str, Attribute]]:
    """The columns with what is wrong about each, and those that could be read."""
    shown: list[ColumnTexts] = []
    attributes: dict[str, Attribute] = {}
    for column in columns:
        problem = ""
        try:
            if column["use"]:
                attributes[column["name"]] = _attribute(column)
        except InvalidInput as error:
            problem = str(error)
        shown.append(column | {"problem": problem})
    return shown, attributes


def _attribute(column: ColumnTexts) -> Attribute:
    """The declaration; raises with what to mend."""
    name, kind = column["name"], column["kind"]
    if kind != "boolean" and not column["confirmed"]:
        raise InvalidInput(f"Confirm that the limits of '{name}' may be known, or leave it out.")
    wanted = FIELDS.get(kind, ())
    if "lo" in wanted and not (column["lo"] and column["hi"]):
        raise InvalidInput(f"'{name}' has no limits: type the lowest and the highest value.")
    texts = {field: column[field] or None for field in ("kind", *wanted, "missing", "outside")}
    if "values" in wanted:
        listed = column["values"].splitlines()
        if column["rare"] and column["outside"] == "clamp":  # what is folded counts as the last value
            listed.sort(key=lambda value: value.strip() == OTHER)
        texts["values"] = "\n".join(listed)
    return read(f"declaration of '{name}'", lambda: read_column(texts))


router: Final = Router(include_in_schema=False)

_ENCODINGS: Final = ("utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16")

_MEND: Final = {
    "name": "A name begins with a letter or a digit, and has letters, digits, spaces, dots, - and _.",
    "source": "Say where the rows are: a path or a database address.",
    "rows_per_person": "Rows per person is a whole number from 1 on.",
}


TableTexts = dict[str, str]
"""One of several tables as the page shows it, every field by its name."""
_TABLE_FIELDS: Final = ("called", "is", "of", "by", "key", "rows")
_FEW_TABLES: Final = 4
_MOST_TABLES: Final = 64


def _sent_tables(form: FormData) -> tuple[TableTexts, ...]:
    """The tables that have a name; fields end with the number of their table."""
    every = ({name: text(form, f"{name}-t{at}") for name in _TABLE_FIELDS} for at in range(_MOST_TABLES))
    return tuple(each for each in every if each["called"])


def _said_tables(typed: Sequence[TableTexts]) -> dict[str, TableSaid]:
    """The same as the interface takes them; a table of a schema is called like itself."""
    said: dict[str, TableSaid] = {}
    for each in typed:
        name = each["called"].rpartition(".")[2]
        kind = each["is"] if each["is"] in ("people", "child", "lookup") else "people"
        if name in said:
            raise InvalidInput(f"Two tables are called '{name}'.")
        if kind == "child" and not (each["rows"].isdecimal() and int(each["rows"])):
            raise InvalidInput(f"Say how many rows of '{name}' count for one person, at most.")
        belongs = {} if kind == "people" else {"of": each["of"] or None, "by": each["by"] or None}
        said[name] = TableSaid.model_validate(
            {
                "kind": kind,
                "key": each["key"] or None,
                "table": each["called"] if name != each["called"] else None,
                "rows_per_person": int(each["rows"]) if kind == "child" else None,
                **belongs,
            }
        )
    return said


@final
@dataclass(frozen=True)
class SourceForm:
    """Where rows are, as typed."""

    source: str = ""
    table: str = ""
    view: str = ""
    name: str = ""
    person: str = ""
    rows_per_person: str = "1"
    row_key: str = ""
    public: str = ""
    rows_vary: str = ""
    same_rows: str = ""
    dialect: DialectSaid | None = None
    tables: tuple[TableTexts, ...] = ()
    """Several tables, in place of one."""

    @classmethod
    def sent(cls, form: FormData) -> SourceForm:
        """As it came; a dataset without a name is called like its file or its table."""
        texts = (each.name for each in fields(cls) if each.name not in ("dialect", "tables"))
        typed = {name: text(form, name) for name in texts}
        typed["name"] = typed["name"] or _name_of(typed["table"] or typed["source"])
        typed["rows_per_person"] = typed["rows_per_person"] or "1"
        return cls(**typed, dialect=_sent_dialect(form), tables=_sent_tables(form))

    @property
    def table_fields(self) -> list[TableTexts]:
        """What is typed, and some room for more."""
        empty = dict.fromkeys(_TABLE_FIELDS, "")
        return [*self.tables, *[empty] * max(2, _FEW_TABLES - len(self.tables))]

    def declared(self) -> Declared:
        """What is declared besides the columns."""
        return _checked(
            Declared,
            name=self.name,
            person=self.person or None,
            rows_per_person=int(self.rows_per_person) if self.rows_per_person.isdecimal() else 0,
            row_key=self.row_key or None,
            public=[name.strip() for name in self.public.split(",") if name.strip()],
            rows_vary={"vary": True, "fixed": False}.get(self.rows_vary),
            same_rows=bool(self.same_rows),
            **self._located(),
        )

    def looked_at(self) -> Place:
        """Where to look for rows."""
        return _checked(Place, **self._located())

    def _located(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "table": self.table or None,
            "view": self.view or None,
            "dialect": self.dialect,
            "tables": _said_tables(self.tables) or None,
        }


B = TypeVar("B", bound=Located)


def _checked(body: type[B], **fields: Any) -> B:
    """What the interface would be sent; what it would refuse, in words for who typed it."""
    try:
        return body(**fields)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        raise InvalidInput(_MEND.get(field, f"The field '{field}' is too long.")) from None


@router.get("/import")
def source_page(request: Request, caller: PageCurator) -> Response:
    """The first step: where the rows are."""
    return _source_page(request, caller, SourceForm())


@router.post("/import/columns")
def columns_page(request: Request, form: Sent, caller: PageCurator) -> Response:
    """The second step: the columns as they are proposed. Looks at the rows, for the curator's eyes only."""
    source = SourceForm.sent(form)
    shown_again(request, lambda problem: _source_page(request, caller, source, problem))
    if source.name in caller.gateway:
        raise InvalidInput(
            f"There is already a dataset '{source.name}' in this workspace.", fixes=("another name",)
        )
    proposal = propose_columns(caller, source.looked_at())
    located = source
    if proposal.dialect is not None:
        located = replace(located, dialect=DialectSaid(**proposal.dialect.to_plain()))
    if not source.view:
        located = replace(located, table=proposal.table or "")  # the only table of a file has a name, too
    return _columns_page(
        request, caller, located, proposed_columns(proposal), suggested=proposal.person or ""
    )


@router.post("/import")
def declare(request: Request, form: Sent, caller: PageCurator) -> Response:
    """The last step: the confirmed columns become a dataset with everything hidden."""
    source = SourceForm.sent(form)
    columns, attributes = checked(sent_columns(form))
    shown_again(
        request,
        lambda problem: _columns_page(
            request, caller, source, columns, suggested=text(form, "suggested"), problem=problem
        ),
    )
    if wrong := sum(1 for column in columns if column["problem"]):
        raise InvalidInput(
            "1 column still needs attention." if wrong == 1 else f"{wrong} columns still need attention."
        )
    if not attributes:
        raise InvalidInput("No column is used, so nothing could be asked.", fixes=("use a column",))
    declare_dataset(caller, source.declared(), Domain.of(attributes))
    return redirect(
        dataset_address(source.name),
        flash=f"'{source.name}' is declared. Everything about a record is hidden, and the budget is 1.",
    )


def _sent_dialect(form: FormData) -> DialectSaid | None:
    """How a file of texts is written, as the curator says it; None while nobody has."""
    if "delimiter" not in form:
        return None
    sign = str(form.get("delimiter") or "")
    try:
        return DialectSaid.model_validate(
            {
                "delimiter": "\t" if sign == "tab" else sign,
                "quote": text(form, "quote"),
                "encoding": text(form, "encoding"),
                "header": text(form, "header") == "yes",
                "decimal": text(form, "decimal"),
            }
        )
    except ValidationError:
        raise InvalidInput("This is not how a file is written.", fixes=("one of the choices",)) from None


def _source_page(
    request: Request, caller: Caller, source: SourceForm, problem: Problem | None = None
) -> Response:
    return render(request, "import_source.html", caller=caller, problem=problem, source=source)


def _columns_page(
    request: Request,
    caller: Caller,
    source: SourceForm,
    columns: Sequence[ColumnTexts],
    *,
    suggested: str,
    problem: Problem | None = None,
) -> Response:
    return render(
        request,
        "import_columns.html",
        caller=caller,
        problem=problem,
        source=source,
        columns=columns,
        suggested=suggested,
        warning=WARNING,
        kinds=KINDS,
        units=UNITS,
        missing=MISSING,
        some_missing=SOME_MISSING,
        outside=OUTSIDE,
        signs=_signs(source.dialect),
        encodings=list(dict.fromkeys([*_ENCODINGS, *([source.dialect.encoding] if source.dialect else [])])),
    )


def _signs(dialect: DialectSaid | None) -> list[tuple[str, str]]:
    """What may stand between values: the usual signs, and the one that does."""
    signs = {"tab" if sign == "\t" else sign: words for sign, words in SEPARATORS.items()}
    if dialect is not None and dialect.delimiter not in SEPARATORS:
        signs[dialect.delimiter] = dialect.delimiter
    return list(signs.items())


def _name_of(source: str) -> str:
    """A name for a dataset from its file or table: the last part, without what a name may not have."""
    last = PurePath(source.partition("?")[0].rstrip("/")).name
    stem = last.rpartition(".")[0] if "." in last else last
    return re.sub(r"[^A-Za-z0-9_. -]+", "_", stem).strip("_. -")[:255]
