"""What can be set about a server. Nothing here is secret, and nothing changes what an answer costs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import final

from blowfishdb.core.errors import InvalidInput


@final
@dataclass(frozen=True)
class Settings:
    """How a server treats those who call it.

    ``https`` says that people reach it through TLS: cookies are then marked Secure and browsers are told to
    stay with TLS. A caller may send ``requests_per_second`` on average and ``burst`` at once. ``demo`` lets
    people on this machine choose a role without a password, and is for the demonstration only. ``witness``
    is a file outside the workspace into which every new head of the books is written.
    """

    session_hours: float = 12
    token_days: float = 90
    longest_body: int = 1_000_000
    requests_per_second: float = 50
    burst: int = 500
    wrong_passwords: int = 5
    wrong_password_minutes: float = 15
    https: bool = False
    loopback_metrics: bool = True
    warm_up: bool = True
    demo: bool = False
    witness: str = ""
    sources: tuple[str, ...] = ()
    """Folders and hosts whose rows curators may declare; none named: every one that the process reaches.
    ``serve`` always names some."""
    proposal_seconds: float = 25
    """How long the rows of a source may be looked at to propose its columns."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))
        positive = {
            "session_hours": self.session_hours,
            "token_days": self.token_days,
            "longest_body": self.longest_body,
            "requests_per_second": self.requests_per_second,
            "burst": self.burst,
            "wrong_passwords": self.wrong_passwords,
            "wrong_password_minutes": self.wrong_password_minutes,
            "proposal_seconds": self.proposal_seconds,
        }
        for name, value in positive.items():
            if not 0 < value < float("inf"):
                raise InvalidInput(f"The setting {name} must be a positive number.")
        if self.burst < 1 or self.wrong_passwords < 1:
            raise InvalidInput("At least one request and one password must be allowed.")

    @property
    def session_lifetime(self) -> timedelta:
        """How long someone who signed in with a password stays signed in."""
        return timedelta(hours=self.session_hours)

    @property
    def token_lifetime(self) -> timedelta:
        """How long a token is valid unless its owner says otherwise."""
        return timedelta(days=self.token_days)

    @property
    def browser_lifetime(self) -> timedelta:
        """How long a browser is known as one in which somebody signed in."""
        return timedelta(days=365)

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers hold ``__Host-`` ones to TLS and to this very host."""
        return "__Host-blowfishdb" if self.https else "blowfishdb"

    @property
    def browser_cookie(self) -> str:
        """The name of the cookie by which a browser is known; it lets nobody in."""
        return f"{self.cookie}-browser"

    def to_text(self) -> str:
        """As a text, by which a server tells its workers."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Settings:
        """Settings from their text."""
        return cls(**json.loads(text))
