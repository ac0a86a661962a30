"""The command line: one file for each group of commands; what is heavy is imported by the command itself.

The program: what can be said in front of every command, and what happens when one fails.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final, final

import typer
from typer.core import TyperGroup

from blowfishdb.core.errors import BlowfishError
from blowfishdb.entrypoints.cli import (
    answers,
    books,
    datasets,
    people,
    policy,
    questions,
    session,
    synthesis,
    system,
)
from blowfishdb.entrypoints.cli.session import DEFAULT_WORKSPACE, TOKEN, Session

_HELP: Final = "Private answers from any relational database, under a policy that says what must stay hidden."
_EXAMPLES: Final = """Examples:

  blowfishdb demo

  blowfishdb import people.csv --name people

  blowfishdb quote people "cumulative(salary, bins=20)" --error 50

  blowfishdb -w http://127.0.0.1:8787 ask people "mean(age)" --error 0.1
"""


@final
class Program(TyperGroup):
    """Turns every failure into its words and its exit code, in one place."""

    def invoke(self, ctx: Any) -> Any:
        typed = [*getattr(ctx, "_protected_args", ()), *ctx.args]
        try:
            return super().invoke(ctx)
        except BlowfishError as error:
            raise ctx.obj.fail(error) from None
        except session.USAGE_ERROR as error:
            if "--json" not in typed:
                raise
            message = getattr(error, "format_message", error.__str__)()
            typer.echo(json.dumps(session.usage_problem(message), indent=2), err=True)
            raise typer.Exit(session.USAGE) from None


app = typer.Typer(
    name="blowfishdb",
    cls=Program,
    help=_HELP,
    epilog=_EXAMPLES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("blowfishdb"))
        raise typer.Exit


@app.callback()
def main(
    ctx: typer.Context,
    workspace: Annotated[
        str,
        typer.Option(
            "--workspace",
            "-w",
            envvar="BLOWFISHDB_WORKSPACE",
            help="A workspace file, the address of its database, or the address of a server (http…).",
        ),
    ] = DEFAULT_WORKSPACE,
    user: Annotated[
        str | None,
        typer.Option(
            envvar="BLOWFISHDB_USER",
            help="In whose name; your login name by default. Servers know by the token.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"A file with the token for a server; otherwise it is taken from {TOKEN}."),
    ] = None,
    _: Annotated[
        bool,
        typer.Option("--version", help="Show the version and stop.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    """Private answers from any relational database, under a policy that says what must stay hidden."""
    ctx.obj = Session(workspace, user, token_file)


for commands in (
    datasets.commands,
    datasets.schema,
    policy.commands,
    questions.pricing,
    books.budget,
    questions.commands,
    synthesis.commands,
    synthesis.curating,
    answers.commands,
    books.commands,
    system.commands,
    people.users,
    people.tokens,
    people.wire,
):
    commands.add_to(app)
