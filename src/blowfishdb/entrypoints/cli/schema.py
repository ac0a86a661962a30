"""schema show | set: which columns there are, and which values they may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from blowfishdb.entrypoints.cli.declarations import Declaration, Kind, Missing, Outside
from blowfishdb.entrypoints.cli.here import AsJson, Data, Here
from blowfishdb.entrypoints.cli.panels import CURATOR, examples

if TYPE_CHECKING:
    from blowfishdb.gateway import Gateway


def show(ctx: typer.Context, data: Data, _json: AsJson = False) -> None:
    """The declared columns and their limits."""
    here = Here.of(ctx)
    with here.gateway() as gateway:
        _tell(here, gateway, data)


def set_column(
    ctx: typer.Context,
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
    _json: AsJson = False,
) -> None:
    """Declare a column anew, while nothing has been asked. Everything is hidden again."""
    here = Here.of(ctx)
    with here.gateway() as gateway:
        dataset = gateway[data]
        now = dataset.schema[column] if column in dataset.schema.names else None
        typed = Declaration(kind, domain, step, unit, ordered, missing, outside)
        dataset.declare(**{column: typed.over(now)})
        _tell(here, gateway, data)


def _tell(here: Here, gateway: Gateway, data: str) -> None:
    from blowfishdb.core import codec
    from blowfishdb.entrypoints.terminal import grid

    domain = gateway.facts(data).domain
    table = grid("column", "values", wrap=(1,))
    for name in domain.names:
        table.add_row(name, domain[name].describe())
    here.say({"dataset": data, "domain": codec.plain(domain)}, table)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(help="Which columns there are and which values they may hold.", no_args_is_help=True)
    group.command(epilog=examples("blowfishdb schema show people"))(show)
    group.command(
        "set",
        epilog=examples(
            "blowfishdb schema set people salary --domain 0:200000 --step 100",
            "blowfishdb schema set people size --domain small,medium,large --ordered",
        ),
    )(set_column)
    app.add_typer(group, name="schema", rich_help_panel=CURATOR)
