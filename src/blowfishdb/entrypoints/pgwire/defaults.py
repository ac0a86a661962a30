"""What connections of an account, or questions about a dataset, begin with: set by whoever may, on record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import unknown_user
from blowfishdb.adapters.wire_passwords import WirePasswords
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, NotAllowed
from blowfishdb.entrypoints.pgwire.errors import Refusal
from blowfishdb.entrypoints.pgwire.settings import checked

_USER: Final = "user "
_CAP: Final = "daily_cap"


def of_user(accounts: Accounts, name: str) -> str:
    """What the defaults of someone who may come in are kept under."""
    account = accounts.find(name)
    if account is None or not account.active:
        raise unknown_user(name)
    return of_account(account.user)


def of_account(user: str) -> str:
    """What the defaults of an account are kept under."""
    return f"{_USER}{user}"


def _ceiling(subject: str) -> str:
    return f"ceiling of {subject}"


def of_dataset(name: str) -> str:
    """What the defaults of a dataset are kept under."""
    return f"dataset {name}"


def ceiling(passwords: WirePasswords, subject: str) -> str | None:
    """The cap for a day that a curator has set for an account; None without one."""
    return passwords.defaults(_ceiling(subject)).get(_CAP)


def caps(passwords: WirePasswords, subject: str) -> list[str]:
    """Every cap for a day that holds for an account, whoever set it."""
    said = (passwords.defaults(subject).get(_CAP), ceiling(passwords, subject))
    return [cap for cap in said if cap]


def change(
    passwords: WirePasswords,
    subject: str,
    said: Mapping[str, str | None],
    *,
    reset: bool = False,
    by: str,
    curator: bool,
) -> dict[str, str]:
    """Change what was said, with everything else as it was (or, to ``reset``, as usual); what holds now.

    What is None was not said; an empty text takes a value back. The cap for a day that a ``curator`` sets for
    an account is a ceiling: its user may lower it, and take that back, but not raise it.
    """
    before, highest = passwords.defaults(subject), ceiling(passwords, subject)
    wanted = {name: value for name, value in said.items() if value is not None}
    values = changed_defaults({} if reset else before, wanted, None if curator else highest)
    if values != before:
        passwords.set_defaults(subject, values, by=by)
    cap = values.get(_CAP)
    if curator and (reset or _CAP in wanted) and cap != highest and subject.startswith(_USER):
        passwords.set_defaults(_ceiling(subject), {} if cap is None else {_CAP: cap}, by=by)
    return values


def read_setting(name: str, value: str) -> str:
    """A value as it is kept."""
    try:
        return checked(name, value)
    except Refusal as refusal:
        fixes = (refusal.hint.removeprefix("Try: "),) if refusal.hint else ()
        raise InvalidInput(refusal.message, fixes=fixes) from None


def changed_defaults(
    before: Mapping[str, str], said: Mapping[str, str], highest: str | None = None
) -> dict[str, str]:
    """What an account or a dataset begins with; a ``max_cost`` that nobody types needs a cap for a day.

    That cap is at most the ``highest``, and is that one where nothing else is said.
    """
    values = {**before, **{name: read_setting(name, value) for name, value in said.items()}}
    values = {name: value for name, value in values.items() if value}
    if highest is not None and Epsilon(values.get(_CAP, highest)) > Epsilon(highest):
        raise NotAllowed(
            f"A curator has set the cap for a day to ε {highest}: it can be lowered here, and not raised.",
            fixes=(f"a daily cap of up to {highest}", "ask a curator for a higher one"),
        )
    if highest is not None:
        values.setdefault(_CAP, highest)
    if "max_cost" in values and _CAP not in values:
        raise InvalidInput(
            "Tools spend a standing max_cost by themselves, so it needs a cap for each day.",
            fixes=(f"a daily cap of {Epsilon(values['max_cost']) * 10}, say",),
        )
    return values
