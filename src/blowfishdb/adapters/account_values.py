"""What accounts speak of: roles and users. Nothing here is secret, so everything may be shown."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, final

from sqlalchemy import Row

from blowfishdb.core.errors import InvalidInput, NotAllowed, NotFound

LONGEST_NAME: Final = 255


class Role(Enum):
    """What someone may do: a curator decides, an analyst asks, an auditor reads the books."""

    CURATOR = "curator"
    ANALYST = "analyst"
    AUDITOR = "auditor"


@final
@dataclass(frozen=True)
class Account:
    """Someone who may come in; not ``active`` once revoked."""

    name: str
    role: Role
    created: datetime
    active: bool = True

    def check_role(self, *allowed: Role) -> None:
        """Refuse anyone who has none of these roles."""
        if self.role in allowed:
            return
        wanted = " or ".join(role.value for role in allowed)
        raise NotAllowed(
            f"This is for the role {wanted}; '{self.name}' has the role {self.role.value}.",
            fixes=("ask a curator",),
        )


def account_of(row: Row[Any]) -> Account:
    """A row of users as a value."""
    return Account(row.name, Role(row.role), datetime.fromisoformat(row.created), row.ended is None)


def known_name(name: object) -> str | None:
    """A name in the one way in which it is stored; None for what cannot be one."""
    if not isinstance(name, str):
        return None
    composed = unicodedata.normalize("NFC", name)
    fits = composed.isprintable() and composed == composed.strip() and 0 < len(composed) <= LONGEST_NAME
    return composed if fits else None


def checked_name(name: object) -> str:
    """A name for a new user."""
    found = known_name(name)
    if found is None:
        raise InvalidInput(
            f"A name has 1 to {LONGEST_NAME} printable characters, and no space at either end."
        )
    return found


def unknown_user(name: object) -> NotFound:
    """Nobody is called so, or no longer."""
    shown = known_name(name)
    who = "such a user" if shown is None else f"active user '{shown}'"
    return NotFound(f"There is no {who}.", fixes=("look at the list of users",))
