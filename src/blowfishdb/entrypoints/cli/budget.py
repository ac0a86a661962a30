"""budget show | set | grant: what may be lost in total, and who may spend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from blowfishdb.core.errors import NotAllowed
from blowfishdb.entrypoints.cli.here import AsJson, Data, Here
from blowfishdb.entrypoints.cli.panels import CURATOR, examples

if TYPE_CHECKING:
    from blowfishdb.gateway import Gateway

Amount = Annotated[str, typer.Option("--epsilon", metavar="E", help="A privacy loss, such as 0.5.")]


def show(ctx: typer.Context, data: Data, _json: AsJson = False) -> None:
    """What is spent, held and left, and who may spend what."""
    here = Here.of(ctx)
    with here.gateway() as gateway:
        _tell(here, gateway, data)


def set_total(ctx: typer.Context, data: Data, epsilon: Amount, _json: AsJson = False) -> None:
    """Declare how much may be lost about anyone in total, by all answers together."""
    here = Here.of(ctx)
    with here.gateway() as gateway:
        gateway[data].budget.set(epsilon)
        _tell(here, gateway, data)


def grant(
    ctx: typer.Context,
    data: Data,
    user: Annotated[str, typer.Option(help="Who may spend it.")],
    epsilon: Amount,
    _json: AsJson = False,
) -> None:
    """Let someone spend a part of the total. Once there are grants, only they can spend."""
    here = Here.of(ctx)
    with here.gateway() as gateway:
        gateway[data].budget.grant(user, epsilon)
        _tell(here, gateway, data)


def _tell(here: Here, gateway: Gateway, data: str) -> None:
    from blowfishdb.entrypoints.cli import plain_forms
    from blowfishdb.entrypoints.terminal import budget_table
    from blowfishdb.messages import budget_summary

    status, left = gateway.budget(data), gateway.left(data)
    try:
        grants = gateway.grants(data)
    except NotAllowed:  # who else may spend is for curators and auditors
        grants = []
    plain = {**budget_summary(status, left), "grants": [plain_forms.grant(given) for given in grants]}
    here.say(plain, budget_table(status, left, grants))


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(help="What may be spent, is spent and is left.", no_args_is_help=True)
    group.command(epilog=examples("blowfishdb budget show people"))(show)
    group.command("set", epilog=examples("blowfishdb budget set people --epsilon 2"))(set_total)
    group.command(epilog=examples("blowfishdb budget grant people --user ana --epsilon 0.5"))(grant)
    app.add_typer(group, name="budget", rich_help_panel=CURATOR)
