"""Passwords: kept as argon2id hashes, compared with the same work whether or not there is one."""

from __future__ import annotations

import secrets
import unicodedata
from typing import TYPE_CHECKING, Final, final

from blowfishdb.core.errors import InvalidInput

if TYPE_CHECKING:
    from pwdlib import PasswordHash

SHORTEST: Final = 10
LONGEST: Final = 1000  # hashing takes longer the longer the text is


@final
class Passwords:
    """The one way to make and check hashes; ``hasher`` is argon2id with pwdlib's costs unless given."""

    def __init__(self, hasher: PasswordHash | None = None) -> None:
        self._given = hasher
        self._nobody: str | None = None

    def hash(self, password: str) -> str:
        """The hash of a password that is long enough."""
        _check_text(password)
        if not SHORTEST <= len(password.strip()) <= len(password) <= LONGEST:
            raise InvalidInput(
                f"A password has {SHORTEST} to {LONGEST:,} characters, not counting spaces at its ends.",
                fixes=("four or five random words",),
            )
        return self._hasher().hash(_prepared(password))

    def matches(self, password: str, stored: str | None) -> tuple[bool, str | None]:
        """Whether a password is the stored one, and a new hash if the costs have changed since.

        Without a stored hash the work is done on a hash that nothing matches, so that the time taken does
        not tell whether there is one; that hash is made on the first call, whoever it is about.
        """
        from pwdlib.exceptions import UnknownHashError

        _check_text(password)
        hasher = self._hasher()
        if self._nobody is None:
            self._nobody = hasher.hash(secrets.token_bytes(32))
        usable = stored is not None and len(password) <= LONGEST
        against = stored if stored is not None and usable else self._nobody
        try:
            right, renewed = hasher.verify_and_update(_prepared(password[:LONGEST]), against)
        except UnknownHashError:  # its message is the hash
            return False, None
        return right and usable, renewed

    def _hasher(self) -> PasswordHash:
        if self._given is None:
            from pwdlib import PasswordHash

            self._given = PasswordHash.recommended()
        return self._given


def _check_text(password: object) -> None:
    if not isinstance(password, str):
        raise InvalidInput("A password is a text.")


def _prepared(password: str) -> bytes:
    """The same characters are the same password, however a keyboard composes them."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
