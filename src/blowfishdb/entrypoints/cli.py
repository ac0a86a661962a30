"""The command line."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="blowfishdb",
    help="Private answers from any relational database, under a policy that says what must stay hidden.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("blowfishdb"))
        raise typer.Exit


@app.callback()
def main(
    _: Annotated[
        bool,
        typer.Option("--version", help="Show the version and stop.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Private answers from any relational database, under a policy that says what must stay hidden."""


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the demonstration keeps its data.")] = Path("demo"),
    reset: Annotated[bool, typer.Option("--reset", help="Start over: new data, empty ledger.")] = False,
) -> None:
    """Ask two private questions of 500,000 synthetic salaries."""
    from blowfishdb.core.errors import BlowfishError
    from blowfishdb.entrypoints import demo as demonstration
    from blowfishdb.entrypoints.terminal import console

    try:
        demonstration.run(folder, console(), reset=reset)
    except BlowfishError as error:
        typer.secho(str(error), fg=typer.colors.RED, err=True)
        raise typer.Exit(1) from error
