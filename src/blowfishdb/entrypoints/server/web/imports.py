"""Importing: where rows are, then which values they may hold. Limits are proposed; the curator confirms each.

The form carries everything from step to step, so that nothing is kept on the server until it is confirmed;
but for a file that is sent, of which only its name can travel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import PurePath
from typing import Any, BinaryIO, Final, TypeVar, final
from urllib.parse import quote

from fastapi import Request, Response
from pydantic import ValidationError
from starlette.datastructures import FormData, UploadFile

from blowfishdb.adapters.copies.folder import UPLOAD
from blowfishdb.adapters.copies.values import SEPARATORS, Dialect
from blowfishdb.adapters.proposal import WARNING
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.demo_data import SAMPLES, Sample
from blowfishdb.entrypoints.server.access import Caller, PageCurator
from blowfishdb.entrypoints.server.api.datasets import declare_dataset, propose_columns
from blowfishdb.entrypoints.server.api.requests import Declared, DialectSaid, Located, Place, TableSaid
from blowfishdb.entrypoints.server.problems import Problem
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    dataset_address,
    forward,
    redirect,
    render,
    shown_again,
    text,
)
from blowfishdb.entrypoints.server.web.import_form import (
    CHOICES,
    ColumnTexts,
    check_complete,
    checked,
    confirmed_count,
    proposed_columns,
    sent_columns,
)
from blowfishdb.messages.policies import Face

router: Final = Router(include_in_schema=False)

_BLOCK: Final = 1 << 20  # bytes of a file that are taken at once
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
    sheets: str = ""
    """Those of a file of Excel to choose from, one on each line."""
    dialect: DialectSaid | None = None
    tables: tuple[TableTexts, ...] = ()
    """Several tables, in place of one."""

    @classmethod
    def sent(cls, form: FormData) -> SourceForm:
        """As it came."""
        texts = (each.name for each in fields(cls) if each.name not in ("dialect", "tables"))
        typed = {name: text(form, name) for name in texts}
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
            opened=False,
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


@router.post("/import/file")
def receive_file(request: Request, caller: PageCurator, form: Sent) -> Response:
    """A file from the curator's own machine; kept until it is declared, or for an hour."""
    shown_again(request, lambda problem: _source_page(request, caller, SourceForm(), problem, wrong="file"))
    return forward(request, f"/import/columns?source={quote(received(caller, form), safe='')}")


def received(caller: Caller, form: FormData) -> str:
    """The file of a form, kept; how it is called as a source."""
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise InvalidInput("Choose a file first.", fixes=("a CSV, TSV, Parquet or Excel file",))
    with file.file as sent:
        return caller.gateway.receive(
            file.filename, _blocks(sent), most=caller.server.settings.longest_upload
        )


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block


@router.post("/import/sample")
def take_sample(request: Request, caller: PageCurator, form: Sent) -> Response:
    """Made-up rows with their declaration, to try things with."""
    shown_again(request, lambda problem: _source_page(request, caller, SourceForm(), problem))
    wanted = text(form, "sample")
    sample = next((each for each in _samples(caller) if each.name == wanted), None)
    if sample is None or caller.gateway.file is None:
        raise InvalidInput("There is no such sample here, or it is taken already.", fixes=("a file",))
    folder = caller.gateway.file.parent
    if not sample.file(folder).exists():
        sample.make(folder)
    caller.gateway.add_dataset(sample.name, sample.file(folder), domain=sample.domain(), opened=False)
    _introduce(caller, sample.name, f"{sample.about[0].upper()}{sample.about[1:]}; about nobody.")
    return redirect(dataset_address(sample.name, "/start"), flash=f"{sample.about}; about nobody.")


def _samples(caller: Caller) -> list[Sample]:
    """Those that are not there yet, in a workspace that has a folder to put them."""
    taken = set(caller.gateway.datasets())
    return [sample for sample in SAMPLES if sample.name not in taken and caller.gateway.file is not None]


def _introduce(caller: Caller, name: str, description: str = "") -> None:
    """A new dataset belongs to whoever declares it."""
    caller.gateway.introduce(name, Face(description=description, owner=caller.name))


@router.get("/import/columns")
def sent_columns_page(request: Request, caller: PageCurator, source: str = "") -> Response:
    """The second step for a file that was sent; other sources come by a form, as they may hold a secret."""
    shown_again(request, lambda problem: _source_page(request, caller, SourceForm(), problem, wrong="file"))
    if not source.startswith(UPLOAD):
        raise InvalidInput("Say where the rows are.", fixes=("choose a file",))
    return _proposed_page(request, caller, SourceForm(source=source))


@router.post("/import/columns")
def columns_page(request: Request, form: Sent, caller: PageCurator) -> Response:
    """The second step: the columns as they are proposed. Looks at the rows, for the curator's eyes only."""
    source = SourceForm.sent(form)
    shown_again(request, lambda problem: _source_page(request, caller, source, problem, wrong="source"))
    if source.name in caller.gateway:
        raise InvalidInput(
            f"There is already a dataset '{source.name}' in this workspace.", fixes=("another name",)
        )
    return _proposed_page(request, caller, source)


def _proposed_page(request: Request, caller: Caller, source: SourceForm) -> Response:
    proposal = propose_columns(caller, source.looked_at())
    located = source
    if proposal.dialect is not None:
        dialect = DialectSaid(**proposal.dialect.to_plain())
        located = replace(located, dialect=dialect, sheets="\n".join(proposal.sheets))
    if not source.view:
        located = replace(located, table=proposal.table or "")  # the only table of a file has a name, too
    if not source.name:
        name = _name_of(source.table or source.source) or "data"
        located = replace(located, name=_free_name(name, set(caller.gateway.datasets())))
    columns = proposed_columns(proposal)
    return _columns_page(request, caller, located, columns, suggested=proposal.person or "")


def _free_name(name: str, taken: set[str]) -> str:
    """The name, or with the next number if a dataset has it."""
    numbered = (f"{name} {number}" for number in range(2, len(taken) + 3))
    return next(each for each in (name, *numbered) if each not in taken)


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
    check_complete(columns, attributes)
    declare_dataset(caller, source.declared(), Domain.of(attributes))
    _introduce(caller, source.name)
    return redirect(
        dataset_address(source.name, "/start"),
        flash=f"'{source.name}' is declared. Nobody can ask about it before you publish a policy.",
    )


def _sent_dialect(form: FormData) -> DialectSaid | None:
    """How a file of texts is written, as the curator says it; None while nobody has."""
    if "sheet" in form:
        return _checked_sheet(text(form, "sheet"), header=text(form, "header") == "yes")
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


def _checked_sheet(name: str, *, header: bool) -> DialectSaid:
    try:
        return DialectSaid(sheet=name, header=header)
    except ValidationError:
        raise InvalidInput("This is no name of a sheet.", fixes=("one of the choices",)) from None


def _source_page(
    request: Request,
    caller: Caller,
    source: SourceForm,
    problem: Problem | None = None,
    *,
    wrong: str = "",
) -> Response:
    """``wrong``: the field that a problem is about."""
    return render(
        request,
        "import_source.html",
        caller=caller,
        problem=problem,
        wrong=wrong,
        source=source,
        samples=_samples(caller),
        most=caller.server.settings.longest_upload,
        places=caller.server.settings.sources,
    )


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
        confirmed=confirmed_count(columns),
        sent=source.source.startswith(UPLOAD),
        warning=WARNING,
        **CHOICES,
        read_as=_read_as(source.dialect),
        signs=_signs(source.dialect),
        encodings=list(dict.fromkeys([*_ENCODINGS, *([source.dialect.encoding] if source.dialect else [])])),
    )


def _read_as(dialect: DialectSaid | None) -> str:
    return "" if dialect is None else Dialect.from_plain(dialect.model_dump()).describe()


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
