"""Statements that ask for no rows of data: settings, and what is shown of budgets and policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy.words import sentences
from blowfishdb.entrypoints.pgwire import types
from blowfishdb.entrypoints.pgwire.asking import Asker
from blowfishdb.entrypoints.pgwire.errors import NOT_ALLOWED, NOT_SUPPORTED, SYNTAX, Refusal, notice
from blowfishdb.entrypoints.pgwire.results import Column, Table
from blowfishdb.entrypoints.pgwire.settings import REPORTED, Settings
from blowfishdb.entrypoints.pgwire.statements import Statement, tokens_of

_WRITING: Final = frozenset(
    [
        "INSERT",
        "UPDATE",
        "DELETE",
        "MERGE",
        "CREATE",
        "ALTER",
        "DROP",
        "TRUNCATE",
        "GRANT",
        "REVOKE",
        "COMMENT",
        "VACUUM",
        "ANALYZE",
        "CLUSTER",
        "REINDEX",
        "REFRESH",
        "REASSIGN",
        "SECURITY",
        "IMPORT",
        "LOCK",
        "CALL",
        "DO",
        "LOAD",
        "CHECKPOINT",
        "IMPORT",
    ]
)
_LISTENING: Final = frozenset({"LISTEN", "NOTIFY"})
_ELSEWHERE: Final = frozenset({"DESCRIBE", "DESC", "USE"})
_LISTS: Final = frozenset({"TABLES", "DATABASES", "SCHEMAS", "VIEWS", "COLUMNS", "FIELDS", "DATASETS"})
_LOOK: Final = (
    "Try: \\d, which lists the datasets\n"
    "  or: \\d+ and the name of one, which lists its columns\n"
    "  or: SELECT table_name, column_name FROM information_schema.columns"
)


def refused(statement: Statement) -> Refusal | None:
    """Why a statement is never run; None if it may be."""
    verb = statement.verb
    if verb in _WRITING:
        return Refusal(
            NOT_ALLOWED,
            f"{verb} changes something, and through this door questions are only asked.",
            hint="Datasets, policies and budgets are changed on the pages, at the command line or in Python.",
        )
    if verb in _LISTENING:
        return Refusal(NOT_SUPPORTED, f"{verb} is not available: nobody is notified through this door.")
    if verb in _ELSEWHERE or (verb == "SHOW" and _LISTS & set(statement.words[1:3])):
        written = " ".join(statement.words[: 2 if verb == "SHOW" else 1])
        return Refusal(
            SYNTAX, f"{written} is what other databases say; PostgreSQL's clients list them.", hint=_LOOK
        )
    return None


@final
@dataclass(frozen=True, eq=False)
class Commands:
    """SET, SHOW and RESET of one connection."""

    settings: Settings
    asker: Asker

    def set(self, statement: Statement, *, inside: bool) -> Table:
        """``SET [SESSION | LOCAL] name = value``; LOCAL means something ``inside`` a transaction."""
        words, local = [token.text for token in tokens_of(statement.text)][1:], False
        if words and words[0].upper() in ("SESSION", "LOCAL") and words[1:2] != ["."]:
            local = words[0].upper() == "LOCAL"
            if words[1:2] and words[1].upper() in ("AUTHORIZATION", "CHARACTERISTICS"):
                return self._ignored(words)
            words = words[1:]
        upper = [word.upper() for word in words]
        if upper[:1] in (["TRANSACTION"], ["CONSTRAINTS"]) or upper[:1] == ["ROLE"]:
            return self._ignored(words)
        name, rest = _assigned(words)
        value = _value(rest)
        if value.upper() == "DEFAULT":
            told = self.settings.reset(name, local=local)
        else:
            told = self.settings.set(name, value, local=local)
        warned = notice("SET LOCAL can only be used in transaction blocks", severity="WARNING", code="25P01")
        return Table((), (), "SET", tuple(filter(None, (warned if local and not inside else b"", told))))

    def _ignored(self, words: list[str]) -> Table:
        if words[0].upper() == "ROLE" or "AUTHORIZATION" in [word.upper() for word in words[:2]]:
            named = words[-1].casefold()
            if named not in ("none", "default", self.asker.caller.name.casefold()):
                raise Refusal(NOT_ALLOWED, "Nobody asks in the name of somebody else.")
        return Table((), (), "SET")

    def reset(self, statement: Statement) -> Table:
        """``RESET name`` or ``RESET ALL``."""
        if statement.words[1:] in (("ROLE",), ("SESSION", "AUTHORIZATION")):
            return Table((), (), "RESET")
        name, _ = _name([t.text for t in tokens_of(statement.text)][1:])
        told = self.settings.reset(name)
        return Table((), (), "RESET", (told,) if told else ())

    # --- SHOW -----------------------------------------------------------------------------------

    def show(self, statement: Statement) -> Table:
        """A setting, all of them, budgets, a policy or a guarantee."""
        words = [t.text for t in tokens_of(statement.text)][1:]
        upper = [word.upper() for word in words]
        told: dict[str, Callable[[str | None], Table]] = {
            "POLICY": self._policy,
            "GUARANTEE": self._guarantee,
        }
        if upper[:1] and upper[0] in told and upper[1:2] != ["."]:
            named = [word for word in words[1:] if word.upper() not in ("OF", "FOR", "ON")]
            return told[upper[0]](named[-1] if named else None)
        if upper == ["ALL"]:
            columns = tuple(Column(name, types.TEXT) for name in ("name", "setting", "description"))
            return Table(columns, self.settings.every(), "SHOW")
        if upper[:3] == ["TRANSACTION", "ISOLATION", "LEVEL"]:
            return _one("transaction_isolation", "read committed")
        if upper[:2] == ["TIME", "ZONE"]:
            return _one("TimeZone", self.settings.get("timezone"))
        name, _ = _name(words)
        if name.casefold() == "blowfishdb.budget":
            return self._budget()
        if name.casefold() == "blowfishdb.spent_today":
            return _one("blowfishdb.spent_today", str(Epsilon.from_nano(self.asker.purse.today())))
        return _one(REPORTED.get(name.casefold(), name.casefold()), self.settings.get(name))

    def _budget(self) -> Table:
        names = ("dataset", "total", "spent", "left_for_you")
        gateway = self.asker.caller.gateway
        rows = []
        for name in gateway.counted():
            budget = gateway.budget(name)
            rows.append((name, str(budget.total), str(budget.spent), str(gateway.left(name))))
        return Table(tuple(Column(name, types.TEXT) for name in names), rows, "SHOW")

    def _policy(self, named: str | None) -> Table:
        rows = []
        for name in self._datasets(named):
            facts = self.asker.caller.gateway.facts(name)
            rows += [(name, facts.policy_version, line) for line in sentences(facts.policy)]
        columns = (Column("dataset", types.TEXT), Column("version", types.INT4), Column("hidden", types.TEXT))
        return Table(columns, rows, "SHOW")

    def _guarantee(self, named: str | None) -> Table:
        rows = [
            (name, line)
            for name in self._datasets(named)
            for line in self.asker.caller.gateway.guarantee(name).paragraphs
        ]
        return Table((Column("dataset", types.TEXT), Column("guarantee", types.TEXT)), rows, "SHOW")

    def _datasets(self, named: str | None) -> list[str]:
        return self.asker.caller.gateway.counted() if named is None else [self.asker.dataset(named).name]


_EXAMPLE: Final = "Try: SET blowfishdb.error = '50';"


def _one(name: str, value: str) -> Table:
    return Table((Column(name, types.TEXT),), [(value,)], "SHOW")


def _name(words: list[str]) -> tuple[str, int]:
    """A name of several words with dots between them, and where it ends."""
    if not words:
        raise Refusal(SYNTAX, "This says no name.", hint=_EXAMPLE)
    name, at = words[0], 1
    while words[at : at + 1] == ["."] and at + 1 < len(words):
        name, at = f"{name}.{words[at + 1]}", at + 2
    return name, at


def _assigned(words: list[str]) -> tuple[str, list[str]]:
    """The name that is set, and the words of its value."""
    upper = [word.upper() for word in words[:2]]
    if upper == ["TIME", "ZONE"]:
        return "timezone", words[2:]
    if upper[:1] == ["NAMES"]:
        return "client_encoding", words[1:]
    name, at = _name(words)
    if words[at : at + 1] != ["="] and [word.upper() for word in words[at : at + 1]] != ["TO"]:
        raise Refusal(SYNTAX, "SET is written with a name and a value.", hint=_EXAMPLE)
    return name, words[at + 1 :]


def _value(words: list[str]) -> str:
    if not words:
        raise InvalidInput("A setting needs a value.", fixes=("SET blowfishdb.error = '50'",))
    joined = ""
    for word in words:
        joined += word if word in ("%", ".", "-", "+") or joined[-1:] in ("-", "+", ".") else f" {word}"
    return joined.strip().replace(" ,", ",").replace(" %", "%")
