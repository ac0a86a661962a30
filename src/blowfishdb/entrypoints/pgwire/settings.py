"""What a connection can set: how accurate answers must be, what they may cost, and what PostgreSQL has.

A setting is looked for in the connection, then in what the account begins with, then in what the dataset
begins with. Caps of an account cannot be raised by a connection. What is set belongs to the transaction in
which it is set: it is undone with it, and what is set ``LOCAL`` ends with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, final

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.entrypoints.pgwire import protocol
from blowfishdb.entrypoints.pgwire.errors import UNKNOWN_SETTING, WRONG_VALUE, Refusal

PREFIX: Final = "blowfishdb."
OURS: Final[dict[str, tuple[str, str]]] = {
    "error": (
        "",
        "How far from the truth an answer may be: 50, or 1%. A statement may say WITH ERROR itself.",
    ),
    "confidence": ("0.95", "How often it must be that close."),
    "each": ("off", "Whether each number is that close by itself, instead of all at once."),
    "epsilon": ("", "What to spend instead of stating an error."),
    "max_cost": ("", "What one statement may cost at most; without it nothing is spent."),
    "connection_cap": ("", "What this connection may spend altogether."),
    "daily_cap": ("", "What the account may spend in a day (UTC)."),
    "intervals": ("off", "Whether name_low and name_high are shown beside every number, and as_of."),
    "preview": ("off", "off, declared or made-up: what SELECT *, DISTINCT, MIN and MAX show."),
}
"""Our settings without their prefix: what they are if nobody says otherwise, and what they mean."""

USUAL: Final = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_table_access_method": "heap",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "row_security": "off",
    "search_path": '"$user", public',
    "server_encoding": "UTF8",
    "server_version": "15.0",
    "server_version_num": "150000",
    "session_authorization": "",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "timezone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "enable_seqscan": "on",
    "xmloption": "content",
}
"""What PostgreSQL's own settings are, for whoever asks; few of them change anything here."""
_FIXED: Final = {
    "integer_datetimes",
    "is_superuser",
    "lc_collate",
    "lc_ctype",
    "max_identifier_length",
    "max_index_keys",
    "server_encoding",
    "server_version",
    "server_version_num",
    "session_authorization",
}
REPORTED: Final = {
    "application_name": "application_name",
    "client_encoding": "client_encoding",
    "datestyle": "DateStyle",
    "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby",
    "integer_datetimes": "integer_datetimes",
    "intervalstyle": "IntervalStyle",
    "is_superuser": "is_superuser",
    "server_encoding": "server_encoding",
    "server_version": "server_version",
    "session_authorization": "session_authorization",
    "standard_conforming_strings": "standard_conforming_strings",
    "timezone": "TimeZone",
}
"""Settings that clients are told of, at the beginning and whenever they change."""
_UTF8: Final = ("utf8", "utf-8", "unicode", "sql_ascii", "auto")
_MOST: Final = 200  # settings of extensions that a client may make up


class State(NamedTuple):
    """What is set, and what stays of it when the transaction ends; neither is ever changed, only replaced."""

    now: Mapping[str, str]
    kept: Mapping[str, str]


@final
class Settings:
    """The settings of one connection."""

    def __init__(self, user: str) -> None:
        self._user = user
        self._usual: dict[str, str] = {}
        self._first: Mapping[str, str] = {}
        self._state = State(self._first, self._first)
        self.version: tuple[tuple[str, str], ...] = ()
        """What answers, and what the catalogue says, depend on."""

    # --- transactions ---------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """How things are, to come back to."""
        return self._state

    def restore(self, state: State) -> bytes:
        """Come back to how things were; what clients are told of it."""
        return self._become(state) if state is not self._state else b""

    def end_local(self) -> bytes:
        """The transaction is over, and what was set for it alone; what clients are told of it."""
        kept = self._state.kept
        return b"" if self._state.now is kept else self._become(State(kept, kept))

    def _become(self, state: State) -> bytes:
        before, self._state = self._state.now, state
        self.version = tuple(
            sorted((n, v) for n, v in state.now.items() if n.startswith(PREFIX) or n == "search_path")
        )
        told = (key for key in REPORTED if before.get(key) != state.now.get(key))
        return b"".join(protocol.parameter_status(REPORTED[key], self.get(key)) for key in told)

    # --- values ---------------------------------------------------------------------------------

    def begin_with(self, values: Mapping[str, str]) -> None:
        """What the account says, which is not a change of the connection."""
        self._usual = {PREFIX + name: value for name, value in values.items()}

    def get(self, name: str) -> str:
        """The value of a setting by its whole name; refused if there is none of that name."""
        key = _key(name)
        if key in self._state.now:
            return self._state.now[key]
        if key.startswith(PREFIX):
            short = key.removeprefix(PREFIX)
            if short not in OURS:
                raise _unknown(name)
            return self._usual.get(key, OURS[short][0])
        if key == "session_authorization":
            return self._user
        if key not in USUAL:
            raise _unknown(name)
        return USUAL[key]

    def ours(self, name: str, dataset: Mapping[str, str]) -> str:
        """One of our settings: of the connection, of the account, of the dataset, or as usual."""
        key = PREFIX + name
        if key in self._state.now:
            return self._state.now[key]
        return self._usual.get(key) or dataset.get(name) or OURS[name][0]

    def nearer(self, name: str, other: str) -> bool:
        """Whether one of our settings was said closer to the statement than another one.

        What the connection says is closer than what the account begins with, and that than the dataset's.
        """
        said = self._state.now, self._usual
        places = ([PREFIX + each in level for level in said] for each in (name, other))
        mine, others = ((found.index(True) if True in found else len(said)) for found in places)
        return mine < others

    def cap(self, name: str) -> list[str]:
        """Every cap of that name that holds."""
        key = PREFIX + name
        return [value for value in (self._state.now.get(key, ""), self._usual.get(key, "")) if value]

    def set(self, name: str, value: str, *, local: bool = False) -> bytes:
        """Set a value, if it can be one, or only for this transaction; what clients are told of it."""
        key = _key(name)
        if key in _FIXED:
            if value.casefold() != self.get(key).casefold():
                raise Refusal("55P02", f'parameter "{name}" cannot be changed')
            return b""
        value = checked(key.removeprefix(PREFIX), value) if key.startswith(PREFIX) else _usual(key, value)
        now, kept = self._state
        if key not in now and len(now) > _MOST:
            raise Refusal(WRONG_VALUE, "So many settings are not kept.")
        changed = {**now, key: value}
        return self._become(
            State(changed, kept if local else changed if now is kept else {**kept, key: value})
        )

    def connected(self) -> None:
        """What is set by now is what a reset goes back to."""
        self._first = self._state.now

    def reset(self, name: str, *, local: bool = False) -> bytes:
        """Back to what it was at the beginning; what clients are told of it."""
        key = _key(name)
        if key == "all":
            return self._become(State(self._first, self._first))
        self.get(key)
        first = {key: self._first[key]} if key in self._first else {}
        now, kept = ({**{n: v for n, v in each.items() if n != key}, **first} for each in self._state)
        return self._become(State(now, self._state.kept if local else kept))

    def every(self) -> list[tuple[str, str, str]]:
        """All settings with what they mean."""
        ours = [(PREFIX + name, self.get(PREFIX + name), words) for name, (_, words) in OURS.items()]
        return ours + [(name, self.get(name), "") for name in sorted(USUAL)]

    @property
    def timeout(self) -> float | None:
        """How long a statement may take, in seconds; None for as long as the server lets it."""
        said = self._state.now.get("statement_timeout")
        return None if said is None else _seconds(said) or None


def _usual(key: str, value: str) -> str:
    """A value of one of PostgreSQL's settings as it is kept."""
    if key not in USUAL and "." not in key:
        raise _unknown(key)
    if key == "client_encoding":
        if value.strip("'\"").casefold() not in _UTF8:
            raise Refusal(WRONG_VALUE, f'invalid value for parameter "client_encoding": "{value[:40]}"')
        return "UTF8"
    if key == "datestyle":
        if "iso" not in value.casefold():
            raise Refusal(
                WRONG_VALUE, "Dates are written as ISO 8601 has them.", hint="SET datestyle = 'ISO'"
            )
        return "ISO, MDY"
    if key == "statement_timeout":
        _seconds(value)
    return value[:1_000]


def checked(name: str, value: str) -> str:
    """A value of one of our settings as it is kept; an empty text takes it back."""
    if name not in OURS:
        raise _unknown(PREFIX + name)
    value = value.strip()
    if value == "" or value.casefold() == "default":
        return ""
    if name in ("max_cost", "connection_cap", "daily_cap", "epsilon"):
        try:
            amount = Epsilon(value)
        except BlowfishError as error:
            raise _wrong(name, value, error.message, "a privacy loss, such as '0.1'") from None
        if name == "epsilon" and not amount:
            raise _wrong(name, value, "", "a privacy loss above 0, such as '0.1'")
        return str(amount)
    if name == "preview":
        return _choice(name, value, ("off", "declared", "made-up"))
    if name in ("intervals", "each"):
        word = {"true": "on", "1": "on", "yes": "on", "false": "off", "0": "off", "no": "off"}
        return _choice(name, word.get(value.casefold(), value), ("on", "off"))
    number = value.removesuffix("%").strip() if name == "error" else value
    try:
        fine = float(number) > 0 and (name == "error" or float(number) < 1)
    except ValueError:
        fine = False
    if not fine or "n" in number.casefold():
        example = "'50', or '1%'" if name == "error" else "a share between 0 and 1, such as '0.95'"
        raise _wrong(name, value, "", example)
    return value


def relative(error: str) -> tuple[float, bool]:
    """The number of an error, and whether it is a share of the whole."""
    return (float(error[:-1]) / 100, True) if error.endswith("%") else (float(error), False)


def _choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    word = value.casefold().replace("_", "-")
    if word not in choices:
        raise _wrong(name, value, "", f"one of {', '.join(choices)}")
    return word


def _wrong(name: str, value: str, why: str, example: str) -> Refusal:
    return Refusal(
        WRONG_VALUE, f"blowfishdb.{name} cannot be {value[:40]!r}. {why}".strip(), hint=f"Try: {example}"
    )


def _key(name: str) -> str:
    key = name.strip().strip('"').casefold().replace(" ", "")
    return {"timezone": "timezone", "time zone": "timezone", "names": "client_encoding"}.get(key, key)


def _unknown(name: str) -> Refusal:
    known = ", ".join(PREFIX + each for each in OURS)
    return Refusal(
        UNKNOWN_SETTING, f'unrecognized configuration parameter "{name[:60]}"', hint=f"There are {known}."
    )


def _seconds(text: str) -> float:
    units = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text.strip()[len(digits) :].strip() or "ms"
    try:
        seconds = float(digits) * units[unit]
    except (ValueError, KeyError):
        raise InvalidInput(f"{text[:40]!r} is not a length of time.", fixes=("'30s'",)) from None
    return max(seconds, 0.0)
