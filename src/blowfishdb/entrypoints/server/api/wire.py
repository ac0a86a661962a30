"""How database clients come in: wire passwords, and what their connections begin with."""

from __future__ import annotations

from typing import Final

from blowfishdb.adapters.tokens import Role
from blowfishdb.adapters.wire_passwords import WirePasswords
from blowfishdb.core.budget import Epsilon
from blowfishdb.entrypoints.pgwire import defaults
from blowfishdb.entrypoints.pgwire.spending import spent_today
from blowfishdb.entrypoints.server.access import Caller, Curator, SignedIn
from blowfishdb.entrypoints.server.api.requests import WireChange
from blowfishdb.entrypoints.server.api.responses import WireAccess, WireDefaults, WireMade
from blowfishdb.entrypoints.server.routing import PREFIX, Router

router: Final = Router(PREFIX, tags=["Database clients"])


@router.get("/wire", summary="How my database clients come in")
def wire(caller: SignedIn) -> WireAccess:
    """Whether there is a wire password, what connections begin with, and what they spent today."""
    return wire_access(caller, caller.name)


@router.post("/wire", summary="Make my wire password", status_code=201)
def make_password(caller: SignedIn) -> WireMade:
    """The password by which database clients of the caller come in, shown this once; an earlier one ends."""
    return new_password(caller, caller.name)


@router.patch("/wire", summary="Change what my connections begin with")
def change_wire(body: WireChange, caller: SignedIn) -> WireAccess:
    """How accurate answers are, what one statement may cost, and all of a day; only what is said changes.

    A cap that a curator has set can be lowered, not raised."""
    return change_defaults(caller, caller.name, body)


@router.delete("/wire", summary="End my wire password", status_code=204)
def end_password(caller: SignedIn) -> None:
    """No database client of the caller is let in any more, nor goes on if it is connected."""
    revoke_password(caller, caller.name)


@router.get("/users/{user}/wire", summary="How database clients of a user come in")
def wire_of_user(user: str, caller: Curator) -> WireAccess:
    """Whether there is a wire password, what connections begin with, and what they spent today."""
    return wire_access(caller, user)


@router.post("/users/{user}/wire", summary="Make the wire password of a user", status_code=201)
def make_password_of_user(user: str, caller: Curator) -> WireMade:
    """Shown this once, to be handed over; an earlier one ends."""
    return new_password(caller, user)


@router.patch("/users/{user}/wire", summary="Change what connections of a user begin with")
def change_wire_of_user(user: str, body: WireChange, caller: Curator) -> WireAccess:
    """How accurate answers are, what one statement may cost, and all of a day; only what is said changes."""
    return change_defaults(caller, user, body)


@router.delete("/users/{user}/wire", summary="End the wire password of a user", status_code=204)
def end_password_of_user(user: str, caller: Curator) -> None:
    """No database client of the user is let in any more, nor goes on if it is connected."""
    revoke_password(caller, user)


@router.get("/datasets/{dataset}/wire", summary="What database clients begin with on a dataset")
def wire_of_dataset(dataset: str, caller: SignedIn) -> WireDefaults:
    """What holds for questions where neither the connection nor the account says otherwise."""
    name = caller.gateway.facts(dataset).name
    return WireDefaults(dataset=name, defaults=passwords(caller).defaults(defaults.of_dataset(name)))


@router.patch("/datasets/{dataset}/wire", summary="Change what database clients begin with on a dataset")
def change_wire_of_dataset(dataset: str, body: WireChange, caller: Curator) -> WireDefaults:
    """For everyone who asks about it through a database client; only what is said changes."""
    return change_dataset(caller, dataset, body)


# --- what pages do, too ---------------------------------------------------------------------------


def passwords(caller: Caller) -> WirePasswords:
    """The wire passwords of the workspace."""
    return WirePasswords(caller.server.workspace.store)


def wire_access(caller: Caller, user: str) -> WireAccess:
    """How database clients of a user come in."""
    subject = defaults.of_user(caller.server.accounts, user)
    known, name = passwords(caller), subject.partition(" ")[2]
    return WireAccess(
        user=name,
        active=known.find(name) is not None,
        defaults=known.defaults(subject),
        highest_cap=defaults.ceiling(known, subject),
        spent_today=str(Epsilon.from_nano(spent_today(caller.server.scratch, name))),
    )


def new_password(caller: Caller, user: str) -> WireMade:
    """A wire password in place of an earlier one."""
    return WireMade(user=user, password=passwords(caller).issue(user, by=caller.name))


def revoke_password(caller: Caller, user: str) -> None:
    """From now on no database client comes in under this name."""
    passwords(caller).revoke(user, by=caller.name)


def change_defaults(caller: Caller, user: str, change: WireChange) -> WireAccess:
    """Other defaults for the connections of a user."""
    subject = defaults.of_user(caller.server.accounts, user)
    curator = caller.account.role is Role.CURATOR
    defaults.change(
        passwords(caller), subject, change.said(), reset=change.reset, by=caller.name, curator=curator
    )
    return wire_access(caller, user)


def change_dataset(caller: Caller, dataset: str, change: WireChange) -> WireDefaults:
    """Other defaults for questions about a dataset."""
    name = caller.gateway.facts(dataset).name
    subject = defaults.of_dataset(name)
    values = defaults.change(
        passwords(caller), subject, change.said(), reset=change.reset, by=caller.name, curator=True
    )
    return WireDefaults(dataset=name, defaults=values)
