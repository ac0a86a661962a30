"""import: where rows are, and which values they may hold. Limits are proposed, never taken silently.

schema show | set: which columns there are, and which values they may hold.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from blowfishdb.adapters.copies.values import SourceKind
from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.cli import session as prompts
from blowfishdb.entrypoints.cli.session import CURATOR, Commands, Data, Session, read_text

if TYPE_CHECKING:
    from rich.table import Table

    from blowfishdb.adapters.proposal import Proposal, ProposedColumn
    from blowfishdb.core.domain.attribute import Attribute
    from blowfishdb.core.domain.domain import Domain
    from blowfishdb.core.domain.tables import Tables
    from blowfishdb.workspace.datasets import Datasets


Kind = StrEnum("Kind", ["integer", "real", "category", "date", "boolean"])
Missing = StrEnum("Missing", ["none", "value", "public", "drop", "clamp"])
Outside = StrEnum("Outside", ["clamp", "drop"])


def _declared(now: Attribute | None, **typed: str | bool | None) -> Attribute:
    """The column as it was, with what was typed in place of it."""
    from blowfishdb.language.columns import read_column

    if now is None and typed.get("kind") is None:
        raise InvalidInput("Say what the column holds.", fixes=tuple(f"--type {kind}" for kind in Kind))
    return read_column(typed, now)


def domain_file(file: Path) -> Domain:
    """Columns from a YAML or JSON file, in the form in which ``schema show --json`` writes them."""
    import yaml

    from blowfishdb.core.policy import codec

    try:
        declared = yaml.safe_load(read_text(file))
        return codec.domain(
            declared["domain"] if "domain" in declared and "kind" not in declared["domain"] else declared
        )
    except InvalidInput:
        raise
    except (yaml.YAMLError, TypeError, ValueError, KeyError, AttributeError):
        raise InvalidInput(
            f"'{file}' does not declare columns.",
            fixes=("salary: {kind: integer, lo: 0, hi: 200000, step: 1}",),
        ) from None


def tables_file(file: Path) -> tuple[Tables, Domain | None]:
    """Several tables from a YAML or JSON file, and their columns if it declares these as well."""
    import yaml

    from blowfishdb.core.domain.tables import Tables
    from blowfishdb.core.policy import codec

    try:
        said = yaml.safe_load(read_text(file))
        within = said.get("domain")
        tables = Tables.from_plain(said.get("tables", said))
        return tables, None if within is None else codec.domain(within)
    except InvalidInput:
        raise
    except (yaml.YAMLError, TypeError, ValueError, KeyError, AttributeError):
        raise InvalidInput(
            f"'{file}' does not declare tables.",
            fixes=("tables: {people: {kind: people, key: id}, orders: {kind: child, of: people, …}}",),
        ) from None


_SIGNS: Final = {"tab": "\t"}
_TAKE: Final = "yes"
_LEAVE: Final = "no"
_MISSING: Final = {"secret": "value", "public": "public", "drop": "drop", "lowest": "clamp"}
_OTHERWISE: Final = "--accept, if the limits may be known, or --domain FILE"


commands = Commands(CURATOR)


@commands(
    "blowfishdb import people.csv --name people",
    "blowfishdb import leute.csv --name leute --delimiter ';' --decimal , --encoding cp1252",
    "blowfishdb import staff.xlsx --name staff --sheet 2024",
    "blowfishdb import postgresql://db/hr --table staff --name staff --person id --rows-per-person 3",
    "blowfishdb import visits.parquet --name visits --domain columns.yaml",
    "blowfishdb import shop.duckdb --name shop --tables shop.yaml",
    name="import",
)
def import_source(
    here: Session,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A CSV, Excel, Parquet, DuckDB or SQLite file, or a database address.",
            show_default=False,
        ),
    ],
    name: Annotated[str, typer.Option(help="What to call the dataset.")],
    table: Annotated[str | None, typer.Option(help="The table, if there are several.")] = None,
    view: Annotated[
        str | None, typer.Option(metavar="SELECT", help="Rows of a SELECT over several tables.")
    ] = None,
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that says whose row it is.")
    ] = None,
    rows_per_person: Annotated[int, typer.Option(help="At most so many rows count for each person.")] = 1,
    row_key: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A column by which the rows of a person are ordered.")
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column that no policy may hide, such as one in WHERE."),
    ] = None,
    rows_vary: Annotated[
        bool | None,
        typer.Option(
            "--rows-vary/--rows-fixed",
            help="Whether hidden values decide which rows a view in the database has.",
            show_default=False,
        ),
    ] = None,
    same_rows: Annotated[
        bool,
        typer.Option("--same-rows", help="The rows are in another dataset too, and the promises add up."),
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Take all proposed limits without asking: they become known.")
    ] = False,
    rare: Annotated[
        int,
        typer.Option(min=1, help="Texts that fewer rows have are not proposed by name but count as 'other'."),
    ] = 10,
    tables: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Several tables and their keys, from a YAML or JSON file."),
    ] = None,
    domain: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Columns from a YAML or JSON file; the data is not looked at."),
    ] = None,
    kind: Annotated[
        SourceKind | None,
        typer.Option(help="Files are copied; rows in a database are frozen, or live if they may change."),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(metavar="SIGN", help="What stands between values of a CSV file; or: tab.")
    ] = None,
    quote: Annotated[str | None, typer.Option(metavar="SIGN", help="What values are quoted by.")] = None,
    encoding: Annotated[str | None, typer.Option(help="How a CSV file is encoded.")] = None,
    decimal: Annotated[str | None, typer.Option(metavar="SIGN", help="The decimal sign of numbers.")] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether a CSV file, or a sheet, names its columns."),
    ] = None,
    sheet: Annotated[str | None, typer.Option(help="The sheet of an Excel file.")] = None,
) -> None:
    """Add a dataset. Its limits are proposed from the data, and you confirm each of them."""
    ids = {person, row_key} - set(public or ())  # no policy can hide them, so they are no columns
    declared = None if domain is None else domain_file(domain)
    several, within = (None, None) if tables is None else tables_file(tables)
    declared = declared or within
    signs = {"delimiter": delimiter and _SIGNS.get(delimiter, delimiter), "quote": quote, "decimal": decimal}
    typed = {**signs, "encoding": encoding, "header": header, "sheet": sheet}
    dialect = _dialect(here, source, {name: what for name, what in typed.items() if what is not None})
    if declared is None:
        declared = _proposed(here, source, table, view, dialect, accept, rare, ids, several)
    with here.gateway(create=True) as gateway:
        gateway.add_dataset(
            name,
            source,
            domain=declared,
            table=table,
            view=view,
            person=person,
            rows_per_person=rows_per_person,
            row_key=row_key,
            public=public or (),
            rows_vary=rows_vary,
            same_rows=same_rows,
            kind=kind,
            dialect=dialect,
            tables=several,
        )
        here.say(
            gateway.facts(name).to_plain(),
            f"'{name}' has {len(declared.names)} columns. Everything is hidden, and the budget is 1.",
            f"Next: blowfishdb policy set {name} COLUMN --hide-within DISTANCE, or blowfishdb quote {name} …",
        )


def _dialect(here: Session, source: str, typed: dict[str, Any]) -> dict[str, Any] | None:
    """How a CSV or Excel file is read: what was said, and what is found for the rest; it is shown."""
    from blowfishdb.adapters.backends.duckdb import has_dialect
    from blowfishdb.adapters.copies.dialects import find_dialect
    from blowfishdb.adapters.copies.values import Dialect

    if here.is_server or not has_dialect(source):
        return typed or None
    dialect = Dialect.from_plain(find_dialect(Path(source)).to_plain() | typed)
    typer.echo(f"The file is read once, as {dialect.describe()}.", err=True)
    return dialect.to_plain()


def _proposed(
    here: Session,
    source: str,
    table: str | None,
    view: str | None,
    dialect: dict[str, Any] | None,
    accept: bool,
    rare: int,
    ids: Set[str | None],
    tables: Tables | None = None,
) -> Domain:
    if here.is_server:
        raise InvalidInput(
            "A server does not propose limits here, because the rows are on its side.",
            fixes=("--domain FILE", "the Import page of the server"),
        )
    from blowfishdb.adapters.proposal import propose

    screen = here.console(stderr=True)
    if screen.is_terminal:
        with screen.status("Looking at the columns …"):
            proposal = propose(source, table=table, view=view, dialect=dialect, rare=rare, tables=tables)
    else:
        proposal = propose(source, table=table, view=view, dialect=dialect, rare=rare, tables=tables)
    proposal = replace(proposal, columns=tuple(each for each in proposal.columns if each.name not in ids))
    if not here.json:
        here.console().print(_table(proposal))
    typer.secho(proposal.warning, fg=typer.colors.YELLOW, err=True)
    if proposal.person is not None and tables is None:
        typer.echo(
            f"'{proposal.person}' may say whose row it is: then add --person {proposal.person}", err=True
        )
    return proposal.domain() if accept else proposal.domain(_confirmed(proposal))


def _table(proposal: Proposal) -> Table:
    from blowfishdb.show.terminal import grid

    typed = any(column.type_text != "VARCHAR" for column in proposal.columns)  # in a text file all are texts
    table = grid("column", *(["type"] if typed else []), "proposed", "note", wrap=(1 + typed, 2 + typed))
    for column in proposal.columns:
        words = "nothing" if column.attribute is None else column.attribute.describe().partition(";")[0]
        table.add_row(column.name, *([column.type_text] if typed else []), words, column.note)
    return table


def _confirmed(proposal: Proposal) -> dict[str, Attribute]:
    """Every column, one after the other: as proposed, with other limits, or not at all."""
    typer.echo(
        f"For each column: {_TAKE}, {_LEAVE} (leave it out), or its limits, such as 0:200000.", err=True
    )
    answers = {column.name: _answer(column) for column in proposal.columns}
    return {name: attribute for name, attribute in answers.items() if attribute is not None}


def _answer(column: ProposedColumn) -> Attribute | None:
    usual = _LEAVE if column.attribute is None or column.looks_like_id else _TAKE
    while True:
        typed = prompts.ask(column.name, default=usual, otherwise=_OTHERWISE)
        if typed.lower() in (_LEAVE, "n"):
            return None
        if typed.lower() in (_TAKE, "y") and column.attribute is not None:
            return _missing_said(column, column.attribute)
        try:
            return _missing_said(column, _declared(column.attribute, limits=typed))
        except InvalidInput as error:
            typer.secho(str(error), fg=typer.colors.RED, err=True)


def _missing_said(column: ProposedColumn, attribute: Attribute) -> Attribute:
    """Where values are missing: whether that is secret, with what either costs."""
    if not column.some_missing:
        return attribute
    from blowfishdb.service.advice import missing_prices

    typer.echo(f"Some values of '{column.name}' are missing. {missing_prices(attribute)}", err=True)
    question = f"Is it secret who has no {column.name}? ({', '.join(_MISSING)})"
    while True:
        typed = prompts.ask(question, default="secret", otherwise=_OTHERWISE).lower()
        if typed in _MISSING:
            return _declared(attribute, missing=_MISSING[typed])
        typer.secho(f"One of {', '.join(_MISSING)}.", fg=typer.colors.RED, err=True)


schema = Commands(CURATOR, "schema", "Which columns there are and which values they may hold.")


@schema("blowfishdb schema show people")
def show(here: Session, gateway: Datasets, data: Data) -> None:
    """The declared columns and their limits."""
    _tell(here, gateway, data)


@schema(
    "blowfishdb schema set people salary --domain 0:200000 --step 100",
    "blowfishdb schema set people size --domain small,medium,large --ordered",
    name="set",
)
def set_column(
    here: Session,
    gateway: Datasets,
    data: Data,
    column: Annotated[
        str, typer.Argument(metavar="COLUMN", help="The column to declare.", show_default=False)
    ],
    kind: Annotated[
        Kind | None, typer.Option("--type", help="What it holds, if that changes.", show_default=False)
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(metavar="LO:HI", help="Both limits (LO:HI or LO..HI), or all values (A,B,C)."),
    ] = None,
    step: Annotated[str | None, typer.Option(metavar="S", help="How finely numbers are told apart.")] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="UNIT", help="How finely dates are: second, minute, hour, day or week."),
    ] = None,
    ordered: Annotated[
        bool | None,
        typer.Option("--ordered/--unordered", help="Whether categories have an order.", show_default=False),
    ] = None,
    missing: Annotated[
        Missing | None,
        typer.Option(
            help="Missing values: there are none; a secret (value) or a public place of their own; a dropped "
            "row; the lowest value (clamp).",
            show_default=False,
        ),
    ] = None,
    outside: Annotated[
        Outside | None,
        typer.Option(
            help="Values beyond the limits: the nearest limit, or a dropped row.", show_default=False
        ),
    ] = None,
) -> None:
    """Declare a column anew, while nothing has been asked. Everything is hidden again."""
    dataset = gateway[data]
    now = dataset.schema[column] if column in dataset.schema.names else None
    declared = _declared(
        now,
        kind=kind and kind.value,
        limits=domain,
        step=step,
        unit=unit,
        ordered=ordered,
        missing=missing and missing.value,
        outside=outside and outside.value,
    )
    dataset.declare(**{column: declared})
    _tell(here, gateway, data)


def _tell(here: Session, gateway: Datasets, data: str) -> None:
    from blowfishdb.core.policy import codec
    from blowfishdb.show.terminal import grid

    domain = gateway.facts(data).domain
    table = grid("column", "values", wrap=(1,))
    for name in domain.names:
        table.add_row(name, domain[name].describe())
    here.say({"dataset": data, "domain": codec.plain(domain)}, table)
