"""user and token: who may come in through a server. They are kept in the workspace itself."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from blowfishdb.entrypoints.cli import session as prompts
from blowfishdb.entrypoints.cli.session import SYSTEM, Commands, Session

if TYPE_CHECKING:
    from blowfishdb.workspace.embedded import Workspace

Who = Annotated[str, typer.Argument(metavar="USER", help="The name of a user.", show_default=False)]


class RoleName(StrEnum):
    """What someone may do."""

    curator = "curator"
    analyst = "analyst"
    auditor = "auditor"


users = Commands(SYSTEM, "user", "Who may come in through a server.")


@users("blowfishdb user add ana --role analyst", name="add", embedded="adding users", create=True)
def add_user(
    here: Session,
    workspace: Workspace,
    user: Who,
    role: Annotated[RoleName, typer.Option(help="What they may do.")],
    password: Annotated[
        bool,
        typer.Option(
            "--password/--no-password",
            help="Ask for a password, or read it from a pipe; without one, they come in by tokens only.",
        ),
    ] = True,
) -> None:
    """Let someone in: a curator decides, an analyst asks, an auditor reads the books."""
    from blowfishdb.adapters.accounts import Accounts
    from blowfishdb.adapters.tokens import Role

    secret = prompts.ask_password(user) if password else None
    account = Accounts(workspace.store).add(user, Role(role.value), secret, by=workspace.user)
    here.say(account.to_plain(), f"{account.user} may come in as {account.role.value}.")


@users("blowfishdb user list", name="list", embedded="listing users")
def list_users(here: Session, workspace: Workspace) -> None:
    """Everyone who may come in, and who no longer may."""
    from blowfishdb.adapters.accounts import Accounts
    from blowfishdb.show.terminal import grid

    accounts = Accounts(workspace.store).list()
    table = grid("user", "role", "since", "")
    for account in accounts:
        state = "" if account.active else "revoked"
        table.add_row(account.user, account.role.value, f"{account.created:%Y-%m-%d}", state)
    plain = {"users": [account.to_plain() for account in accounts]}
    here.say(plain, table if accounts else "Nobody yet: blowfishdb user add NAME --role analyst")


@users("blowfishdb user revoke ana", name="revoke", embedded="revoking users")
def revoke_user(here: Session, workspace: Workspace, user: Who) -> None:
    """Let someone in no longer, neither by password nor by token. What they spent stays spent."""
    from blowfishdb.adapters.accounts import Accounts

    Accounts(workspace.store).revoke(user, by=workspace.user)
    here.say({"user": user, "active": False}, f"{user} may no longer come in.")


tokens = Commands(SYSTEM, "token", "Tokens by which programs are known to a server.")


@tokens("blowfishdb token issue ana --days 30 --label notebook", name="issue", embedded="issuing tokens")
def issue_token(
    here: Session,
    workspace: Workspace,
    user: Who,
    days: Annotated[float, typer.Option(help="How long it is valid.")] = 90,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
) -> None:
    """Make a token by which a program is known to be this user. It is shown once."""
    from blowfishdb.adapters.tokens import Tokens

    text, token = Tokens(workspace.store).issue(
        user, purpose="api", lifetime=timedelta(days=days), label=label, by=workspace.user
    )
    if not here.json:
        here.console(stderr=True).print(
            f"A token for {token.user}, valid until {token.expires:%Y-%m-%d}. It is not shown again."
        )
    here.say({"token": text, **token.to_plain()}, text)


@tokens("blowfishdb token list ana", name="list", embedded="listing tokens")
def list_tokens(here: Session, workspace: Workspace, user: Who) -> None:
    """The tokens of a user, without their text."""
    from blowfishdb.adapters.tokens import Tokens
    from blowfishdb.show.terminal import grid

    issued = [token for token in Tokens(workspace.store).tokens(user) if token.purpose == "api"]
    table = grid("id", "label", "until", "")
    for token in issued:
        table.add_row(token.id, token.label, f"{token.expires:%Y-%m-%d}", "" if token.active else "ended")
    plain = {"tokens": [token.to_plain() for token in issued]}
    here.say(plain, table if issued else f"{user} has no tokens.")


@tokens("blowfishdb token revoke ID", name="revoke", embedded="revoking tokens")
def revoke_token(
    here: Session,
    workspace: Workspace,
    token: Annotated[str, typer.Argument(metavar="ID", help="The id of a token.", show_default=False)],
) -> None:
    """End a token."""
    from blowfishdb.adapters.tokens import Tokens

    Tokens(workspace.store).revoke_token(token, by=workspace.user)
    here.say({"id": token, "active": False}, "This token is no longer valid.")


wire = Commands(SYSTEM, "wire", "How psql and other PostgreSQL clients come in, and what they may spend.")
OrDataset = Annotated[
    bool, typer.Option("--dataset", help="The name is that of a dataset: for everyone who asks about it.")
]


@wire("blowfishdb wire issue ana", name="issue", embedded="issuing wire passwords")
def issue_wire(here: Session, workspace: Workspace, user: Who) -> None:
    """Make the password by which database clients of a user come in; shown once. An earlier one ends."""
    from blowfishdb.adapters.wire_passwords import WirePasswords

    password = WirePasswords(workspace.store).issue(user, by=workspace.user)
    if not here.json:
        here.console(stderr=True).print(
            f"A wire password for {user}. It is not shown again; an earlier one no longer works."
        )
    here.say({"user": user, "password": password}, password)


@wire("blowfishdb wire revoke ana", name="revoke", embedded="revoking wire passwords")
def revoke_wire(here: Session, workspace: Workspace, user: Who) -> None:
    """Let no database client of a user in any more, also those that are connected."""
    from blowfishdb.adapters.wire_passwords import WirePasswords

    WirePasswords(workspace.store).revoke(user, by=workspace.user)
    here.say({"user": user, "active": False}, f"Database clients of {user} are let in no longer.")


@wire(
    "blowfishdb wire defaults ana --max-cost 0.1 --daily-cap 0.5 --error 1%",
    "blowfishdb wire defaults salaries --dataset --error 50",
    name="defaults",
    embedded="setting defaults of connections",
)
def wire_defaults(
    here: Session,
    workspace: Workspace,
    subject: Annotated[
        str, typer.Argument(metavar="NAME", help="The name of a user, or of a dataset.", show_default=False)
    ],
    dataset: OrDataset = False,
    error: Annotated[str | None, typer.Option(metavar="A", help="The usual error: 50, or 1%.")] = None,
    confidence: Annotated[str | None, typer.Option(metavar="P", help="The usual confidence.")] = None,
    epsilon: Annotated[str | None, typer.Option(metavar="E", help="What to spend instead.")] = None,
    max_cost: Annotated[
        str | None, typer.Option(metavar="E", help="What one statement may cost; needs a --daily-cap.")
    ] = None,
    daily_cap: Annotated[
        str | None,
        typer.Option(metavar="E", help="What all statements of a day may cost; its user can only lower it."),
    ] = None,
    preview: Annotated[
        str | None, typer.Option(metavar="KIND", help="off, declared or made-up: what SELECT * shows.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Forget all of them first.")] = False,
) -> None:
    """What connections of a user, or questions about a dataset, begin with; without options, show it."""
    from blowfishdb.adapters.accounts import Accounts
    from blowfishdb.adapters.wire_passwords import WirePasswords
    from blowfishdb.entrypoints.pgwire import defaults

    if dataset:
        known = defaults.of_dataset(workspace.facts(subject).name)
    else:
        known = defaults.of_user(Accounts(workspace.store), subject)
    said = {
        "error": error,
        "confidence": confidence,
        "epsilon": epsilon,
        "max_cost": max_cost,
        "daily_cap": daily_cap,
        "preview": preview,
    }
    values = defaults.change(
        WirePasswords(workspace.store), known, said, reset=reset, by=workspace.user or "", curator=True
    )
    lines = [f"blowfishdb.{name} = {value}" for name, value in values.items()]
    here.say({"name": subject, "defaults": values}, "\n".join(lines) or "Nothing: as usual.")
