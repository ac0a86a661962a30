"""Importing: where rows are, then which values they may hold. Limits are proposed; the curator confirms each.

The form carries everything from step to step, so that nothing is kept on the server until it is confirmed.

The columns of an import as a form: what is proposed, what the curator typed, and what is wrong with it.

A form has no types: every field is a text, and stays the text that was typed until all columns can be read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final, final, get_args

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from starlette.datastructures import FormData

from blowfishdb.adapters.copies.values import SEPARATORS
from blowfishdb.adapters.proposal import WARNING, Proposal, ProposedColumn, propose
from blowfishdb.adapters.proposal.guesses import OTHER
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.dates import Unit
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.core.policy import codec
from blowfishdb.entrypoints.server.access import Caller, PageCurator
from blowfishdb.entrypoints.server.api import datasets as interface
from blowfishdb.entrypoints.server.api.bodies import DialectSaid, NewDataset
from blowfishdb.entrypoints.server.api.datasets import check_place
from blowfishdb.entrypoints.server.problems import read
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    dataset_address,
    redirect,
    render,
    text,
    ticked,
    told,
)
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


@final
@dataclass(frozen=True)
class ColumnForm:
    """One column as the page shows it; ``problem`` says what to mend."""

    name: str
    type_text: str
    note: str
    use: bool
    kind: str = "integer"
    lo: str = ""
    hi: str = ""
    step: str = ""
    unit: str = "day"
    values: str = ""
    ordered: bool = False
    missing: str = ""
    outside: str = ""
    confirmed: bool = False
    problem: str = ""
    some: bool = False
    """Whether values are missing, so that there is a question about them."""
    prices: str = ""
    rare: str = ""
    """Values that are folded into "other" because few rows have them, one on each line."""

    @classmethod
    def proposed(cls, column: ProposedColumn) -> ColumnForm:
        """As proposed, with nothing confirmed; what looks like an identifier is left out."""
        use = column.attribute is not None and not column.looks_like_id
        form = cls(column.name, column.type_text, column.note, use)
        if column.attribute is None:
            return form
        said = codec.plain(column.attribute)
        return replace(
            form,
            kind=said["kind"],
            lo=_shown(said.get("lo", "")),
            hi=_shown(said.get("hi", "")),
            step=_shown(said.get("step", said.get("grid", ""))),
            unit=said.get("unit", "day"),
            values="\n".join(str(value) for value in said.get("values", ())),
            ordered=bool(said.get("ordered", False)),
            missing=said["missing"],
            outside=said["outside"],
            some=column.some_missing,
            prices=str(missing_prices(column.attribute)) if column.some_missing else "",
            rare="\n".join(column.rare),
        )

    @classmethod
    def sent(cls, form: FormData, number: int) -> ColumnForm:
        """As typed; fields end with the number of their column."""

        def of(field: str) -> str:
            return text(form, f"{field}-{number}")

        return cls(
            name=of("name"),
            type_text=of("type"),
            note=of("note"),
            use=ticked(form, f"use-{number}"),
            kind=of("kind"),
            lo=of("lo"),
            hi=of("hi"),
            step=of("step"),
            unit=of("unit") or "day",
            values=of("values").replace("\r\n", "\n"),
            ordered=ticked(form, f"ordered-{number}"),
            missing=of("missing"),
            outside=of("outside"),
            confirmed=ticked(form, f"confirmed-{number}"),
            some=ticked(form, f"some-{number}"),
            prices=of("prices"),
            rare=of("rare").replace("\r\n", "\n"),
        )

    def attribute(self) -> Attribute:
        """The declaration; raises with what to mend."""
        if self.kind != "boolean" and not self.confirmed:
            raise InvalidInput(f"Confirm that the limits of '{self.name}' may be known, or leave it out.")
        said: dict[str, Any] = {"kind": self.kind}
        if self.kind in ("integer", "real", "date"):
            if not self.lo or not self.hi:
                raise InvalidInput(f"'{self.name}' has no limits: type the lowest and the highest value.")
            whole = self.kind == "integer"
            said |= {"lo": _whole(self.lo), "hi": _whole(self.hi)} if whole else self._ends()
            if self.kind == "date":
                said["unit"] = self.unit
            elif self.step:
                said["step" if whole else "grid"] = _whole(self.step) if whole else self.step.replace(",", "")
        if self.kind == "category":
            listed = [line.strip() for line in self.values.splitlines() if line.strip()]
            folded = bool(self.rare) and self.outside == "clamp" and OTHER in listed
            said |= {"values": [*(v for v in listed if v != OTHER), OTHER] if folded else listed}
            said["ordered"] = self.ordered
        said |= {
            name: given for name, given in (("missing", self.missing), ("outside", self.outside)) if given
        }
        return read(f"declaration of '{self.name}'", lambda: codec.attribute(said))

    def _ends(self) -> dict[str, str]:
        ends = {"lo": self.lo, "hi": self.hi}
        return ends if self.kind == "date" else {name: end.replace(",", "") for name, end in ends.items()}


def proposed_columns(proposal: Proposal) -> list[ColumnForm]:
    """Every column of a source, as it is proposed."""
    return [ColumnForm.proposed(column) for column in proposal.columns]


def sent_columns(form: FormData) -> list[ColumnForm]:
    """Every column, as it came back."""
    count = text(form, "columns", "0")
    if not count.isdecimal() or int(count) > _MOST_COLUMNS:
        raise InvalidInput("This is not the form that was made for this source.", fixes=("start over",))
    return [ColumnForm.sent(form, number) for number in range(int(count))]


def checked(columns: Sequence[ColumnForm]) -> tuple[list[ColumnForm], dict[str, Attribute]]:
    """The columns with what is wrong about each, and those that could be read."""
    shown: list[ColumnForm] = []
    found: dict[str, Attribute] = {}
    for column in columns:
        if not column.use:
            shown.append(column)
            continue
        try:
            found[column.name] = column.attribute()
            shown.append(column)
        except InvalidInput as error:
            shown.append(replace(column, problem=str(error)))
    return shown, found


def _shown(value: object) -> str:
    """A number as people type it: a fraction with a power of ten below the line as a decimal."""
    from fractions import Fraction

    said = str(value)
    if "/" not in said:
        return said
    exact = Fraction(said)
    return said if Fraction(str(float(exact))) != exact else f"{float(exact):.12f}".rstrip("0")


def _whole(typed: str) -> int:
    try:
        return int(typed.replace(",", "").replace("_", "").replace("$", ""))
    except ValueError:
        raise InvalidInput(f"'{typed[:40]}' is not a whole number.") from None


router: Final = APIRouter(include_in_schema=False)

_ENCODINGS: Final = ("utf-8", "utf-8-sig", "cp1252", "latin-1", "utf-16")

_MEND: Final = {
    "name": "A name begins with a letter or a digit, and has letters, digits, spaces, dots, - and _.",
    "source": "Say where the rows are: a path or a database address.",
    "rows_per_person": "Rows per person is a whole number from 1 on.",
}


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

    @classmethod
    def sent(cls, form: FormData) -> SourceForm:
        """As it came; a dataset without a name is called like its file or its table."""
        source, table = text(form, "source"), text(form, "table")
        return cls(
            source=source,
            table=table,
            view=text(form, "view"),
            name=text(form, "name") or _name_of(table or source),
            person=text(form, "person"),
            rows_per_person=text(form, "rows_per_person") or "1",
            row_key=text(form, "row_key"),
            public=text(form, "public"),
            rows_vary=text(form, "rows_vary"),
            same_rows=text(form, "same_rows"),
            dialect=_sent_dialect(form),
        )

    def body(self, domain: Domain) -> NewDataset:
        """What the interface is sent to declare it."""
        try:
            return NewDataset(
                name=self.name,
                source=self.source,
                table=self.table or None,
                view=self.view or None,
                person=self.person or None,
                rows_per_person=int(self.rows_per_person) if self.rows_per_person.isdecimal() else 0,
                row_key=self.row_key or None,
                public=[name.strip() for name in self.public.split(",") if name.strip()],
                rows_vary={"vary": True, "fixed": False}.get(self.rows_vary),
                same_rows=bool(self.same_rows),
                dialect=self.dialect,
                domain=codec.plain(domain),
            )
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
    try:
        if not source.source:
            raise InvalidInput(_MEND["source"])
        if source.name in caller.gateway:
            raise InvalidInput(
                f"There is already a dataset '{source.name}' in this workspace.", fixes=("another name",)
            )
        check_place(source.source, caller.server.settings.sources, caller.gateway.store.name)
        proposal = _proposal(source, caller.server.settings.proposal_seconds)
    except BlowfishError as error:
        return _source_page(request, caller, source, error)
    if proposal.dialect is not None:
        source = replace(source, dialect=DialectSaid(**proposal.dialect.to_plain()))
    if not source.view:
        source = replace(source, table=proposal.table or "")  # the only table of a file has a name, too
    return _columns_page(request, caller, source, proposed_columns(proposal), suggested=proposal.person or "")


@router.post("/import")
def declare(request: Request, form: Sent, caller: PageCurator) -> Response:
    """The last step: the confirmed columns become a dataset with everything hidden."""
    source = SourceForm.sent(form)
    columns = sent_columns(form)
    shown, found = checked(columns)
    wrong = sum(1 for column in shown if column.problem)
    try:
        if wrong:
            raise InvalidInput(f"{wrong} column{'s' if wrong > 1 else ''} still {_need(wrong)} attention.")
        if not found:
            raise InvalidInput("No column is used, so nothing could be asked.", fixes=("use a column",))
        interface.add_dataset(source.body(Domain.of(found)), caller, Response())
    except BlowfishError as error:
        suggested = text(form, "suggested")
        return _columns_page(request, caller, source, shown, suggested=suggested, error=error)
    return redirect(
        dataset_address(source.name),
        flash=f"'{source.name}' is declared. Everything about a record is hidden, and the budget is 1.",
    )


def _need(wrong: int) -> str:
    return "need" if wrong > 1 else "needs"


def _proposal(source: SourceForm, seconds: float) -> Proposal:
    with interface.typed_place():
        return propose(
            source.source,
            table=source.table or None,
            view=source.view or None,
            dialect=None if source.dialect is None else source.dialect.model_dump(),
            timeout=seconds,
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
    request: Request, caller: Caller, source: SourceForm, error: BlowfishError | None = None
) -> Response:
    problem = None if error is None else told(request, error)
    return render(
        request,
        "import_source.html",
        caller=caller,
        status=200 if problem is None else problem["status"],
        problem=problem,
        source=source,
    )


def _columns_page(
    request: Request,
    caller: Caller,
    source: SourceForm,
    columns: Sequence[ColumnForm],
    *,
    suggested: str,
    error: BlowfishError | None = None,
) -> Response:
    problem = None if error is None else told(request, error)
    return render(
        request,
        "import_columns.html",
        caller=caller,
        status=200 if problem is None else problem["status"],
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
        encodings=_encodings(source.dialect),
    )


def _signs(dialect: DialectSaid | None) -> list[tuple[str, str]]:
    """What may stand between values: the usual signs, and the one that does."""
    known = {"tab" if sign == "\t" else sign: words for sign, words in SEPARATORS.items()}
    other = None if dialect is None or dialect.delimiter in SEPARATORS else dialect.delimiter
    return [*known.items(), *([] if other is None else [(other, other)])]


def _encodings(dialect: DialectSaid | None) -> list[str]:
    said = [] if dialect is None or dialect.encoding in _ENCODINGS else [dialect.encoding]
    return [*_ENCODINGS, *said]


def _name_of(place: str) -> str:
    """A name for a dataset from its file or table: the last part, without what a name may not have."""
    last = PurePath(place.partition("?")[0].rstrip("/")).name
    stem = last.rpartition(".")[0] if "." in last else last
    return re.sub(r"[^A-Za-z0-9_. -]+", "_", stem).strip("_. -")[:255]
