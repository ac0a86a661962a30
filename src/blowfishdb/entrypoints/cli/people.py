"""user and token: who may come in through a server. They are kept in the workspace itself."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer

from blowfishdb.entrypoints.cli import session as prompts
from blowfishdb.entrypoints.cli.session import SYSTEM, AsJson, Session, examples

Who = Annotated[str, typer.Argument(metavar="USER", help="The name of a user.", show_default=False)]


class RoleName(StrEnum):
    """What someone may do."""

    curator = "curator"
    analyst = "analyst"
    auditor = "auditor"


def add_user(
    ctx: typer.Context,
    user: Who,
    role: Annotated[RoleName, typer.Option(help="What they may do.")],
    password: Annotated[
        bool,
        typer.Option(
            "--password/--no-password",
            help="Ask for a password, or read it from a pipe; without one, they come in by tokens only.",
        ),
    ] = True,
    _json: AsJson = False,
) -> None:
    """Let someone in: a curator decides, an analyst asks, an auditor reads the books."""
    here = Session.of(ctx)
    with here.embedded("adding users", create=True) as workspace:
        from blowfishdb.adapters.accounts import Accounts
        from blowfishdb.adapters.tokens import Role

        secret = prompts.ask_password(user) if password else None
        account = Accounts(workspace.store).add(user, Role(role.value), secret, by=workspace.user)
        here.say(account.to_plain(), f"{account.user} may come in as {account.role.value}.")


def list_users(ctx: typer.Context, _json: AsJson = False) -> None:
    """Everyone who may come in, and who no longer may."""
    here = Session.of(ctx)
    with here.embedded("listing users") as workspace:
        from blowfishdb.adapters.accounts import Accounts
        from blowfishdb.show.terminal import grid

        accounts = Accounts(workspace.store).list()
        table = grid("user", "role", "since", "")
        for account in accounts:
            state = "" if account.active else "revoked"
            table.add_row(account.user, account.role.value, f"{account.created:%Y-%m-%d}", state)
        plain = {"users": [account.to_plain() for account in accounts]}
        here.say(plain, table if accounts else "Nobody yet: blowfishdb user add NAME --role analyst")


def revoke_user(ctx: typer.Context, user: Who, _json: AsJson = False) -> None:
    """Let someone in no longer, neither by password nor by token. What they spent stays spent."""
    here = Session.of(ctx)
    with here.embedded("revoking users") as workspace:
        from blowfishdb.adapters.accounts import Accounts

        Accounts(workspace.store).revoke(user, by=workspace.user)
        here.say({"user": user, "active": False}, f"{user} may no longer come in.")


def issue_token(
    ctx: typer.Context,
    user: Who,
    days: Annotated[float, typer.Option(help="How long it is valid.")] = 90,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    _json: AsJson = False,
) -> None:
    """Make a token by which a program is known to be this user. It is shown once."""
    here = Session.of(ctx)
    with here.embedded("issuing tokens") as workspace:
        from blowfishdb.adapters.tokens import Tokens

        text, known = Tokens(workspace.store).issue(
            user, purpose="api", lifetime=timedelta(days=days), label=label, by=workspace.user
        )
        if not here.json:
            here.console(stderr=True).print(
                f"A token for {known.user}, valid until {known.expires:%Y-%m-%d}. It is not shown again."
            )
        here.say({"token": text, **known.to_plain()}, text)


def list_tokens(ctx: typer.Context, user: Who, _json: AsJson = False) -> None:
    """The tokens of a user, without their text."""
    here = Session.of(ctx)
    with here.embedded("listing tokens") as workspace:
        from blowfishdb.adapters.tokens import Tokens
        from blowfishdb.show.terminal import grid

        found = [known for known in Tokens(workspace.store).tokens(user) if known.purpose == "api"]
        table = grid("id", "label", "until", "")
        for known in found:
            table.add_row(known.id, known.label, f"{known.expires:%Y-%m-%d}", "" if known.active else "ended")
        plain = {"tokens": [known.to_plain() for known in found]}
        here.say(plain, table if found else f"{user} has no tokens.")


def revoke_token(
    ctx: typer.Context,
    token: Annotated[str, typer.Argument(metavar="ID", help="The id of a token.", show_default=False)],
    _json: AsJson = False,
) -> None:
    """End a token."""
    here = Session.of(ctx)
    with here.embedded("revoking tokens") as workspace:
        from blowfishdb.adapters.tokens import Tokens

        Tokens(workspace.store).revoke_token(token, by=workspace.user)
        here.say({"id": token, "active": False}, "This token is no longer valid.")


def register(app: typer.Typer) -> None:
    """Add these commands."""
    users = typer.Typer(help="Who may come in through a server.", no_args_is_help=True)
    users.command("add", epilog=examples("blowfishdb user add ana --role analyst"))(add_user)
    users.command("list", epilog=examples("blowfishdb user list"))(list_users)
    users.command("revoke", epilog=examples("blowfishdb user revoke ana"))(revoke_user)
    app.add_typer(users, name="user", rich_help_panel=SYSTEM)
    tokens = typer.Typer(help="Tokens by which programs are known to a server.", no_args_is_help=True)
    tokens.command("issue", epilog=examples("blowfishdb token issue ana --days 30 --label notebook"))(
        issue_token
    )
    tokens.command("list", epilog=examples("blowfishdb token list ana"))(list_tokens)
    tokens.command("revoke", epilog=examples("blowfishdb token revoke ID"))(revoke_token)
    app.add_typer(tokens, name="token", rich_help_panel=SYSTEM)
