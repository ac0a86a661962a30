"""What the ledger speaks of as JSON, with the keys that the API uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from blowfishdb.messages import plain_epsilon

if TYPE_CHECKING:
    from blowfishdb.adapters.accounts import Account
    from blowfishdb.adapters.ledger import Event, Grant
    from blowfishdb.adapters.tokens import Token
    from blowfishdb.core.guarantee import Guarantee


def grant(given: Grant) -> dict[str, Any]:
    """What one analyst may spend; null is as much as there is."""
    granted = {"granted": None, "nano_granted": None}
    if given.granted is not None:
        granted = plain_epsilon("granted", given.granted)
    return {
        "user": given.user,
        **granted,
        **plain_epsilon("spent", given.spent),
        **plain_epsilon("held", given.held),
    }


def event(happened: Event) -> dict[str, Any]:
    """One link of the audit chain."""
    return {
        "seq": happened.seq,
        "at": happened.at.isoformat(),
        "kind": happened.kind,
        "dataset": happened.dataset,
        "analyst": happened.analyst,
        "charge": happened.charge,
        **plain_epsilon("amount", happened.amount),
        "facts": dict(happened.facts),
        "hash": happened.hash,
        "salt": happened.salt,
        "sealed": [dict(entry) for entry in happened.sealed],
    }


def account(user: Account) -> dict[str, Any]:
    """Someone who may come in."""
    return {
        "user": user.name,
        "role": user.role.value,
        "created": user.created.isoformat(),
        "active": user.active,
    }


def token(known: Token) -> dict[str, Any]:
    """What may be known of a token once it was handed over."""
    return {
        "id": known.id,
        "user": known.owner,
        "label": known.label,
        "created": known.created.isoformat(),
        "expires": known.expires.isoformat(),
        "active": known.active,
    }


def guarantee(promised: Guarantee) -> dict[str, Any]:
    """A guarantee, and its words in the order in which they are read."""
    return {**promised.to_plain(), "paragraphs": list(promised.paragraphs)}
