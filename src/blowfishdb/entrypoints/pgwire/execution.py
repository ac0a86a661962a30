"""What becomes of a statement: a question, a look into the catalogue, a command, or a refusal.

Whatever may take a while runs in a thread; what is known already is told at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar, final

from sqlglot import exp

from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.domain.domain import Domain
from blowfishdb.entrypoints.pgwire import types
from blowfishdb.entrypoints.pgwire.asking import Asker, Question
from blowfishdb.entrypoints.pgwire.catalogue import (
    Catalogue,
    Reader,
    names_catalogue,
    parameter_type,
    parsed,
)
from blowfishdb.entrypoints.pgwire.commands import ENDING, TRANSACTIONS, Block, Commands, refused
from blowfishdb.entrypoints.pgwire.errors import (
    FAILED_BLOCK,
    NOT_SUPPORTED,
    SYNTAX,
    Refusal,
)
from blowfishdb.entrypoints.pgwire.previews import preview
from blowfishdb.entrypoints.pgwire.relations import formatted
from blowfishdb.entrypoints.pgwire.results import Column, Table, typed
from blowfishdb.entrypoints.pgwire.statements import Statement, filled, tokens_of, without_max_cost
from blowfishdb.entrypoints.pgwire.types import PgType
from blowfishdb.language.select import split_extensions
from blowfishdb.language.selected import declared
from blowfishdb.language.text import quoted_text, sql_value

T = TypeVar("T")
Work = Callable[[], Any]
"""Something that may take a while; whoever runs a generator runs it in a thread and sends back the result."""
Steps = Generator[Work, Any, T]

_MOST_KEPT: Final = 256
_LARGEST_KEPT: Final = 500
_CHANGING: Final = ("SETTING", "SET_CONFIG", "PID", "TIMESTAMP", "NOW", "CURRENT_DATE", "TXID")


@final
@dataclass(frozen=True)
class Kept:
    """The last results of one catalogue, by who asked what."""

    tables: OrderedDict[tuple[str, str], Table]

    def get(self, key: tuple[str, str]) -> Table | None:
        """The result, if it is there."""
        return self.tables.get(key)

    def put(self, key: tuple[str, str], table: Table) -> None:
        """Keep a result that is small."""
        if len(table.rows) <= _LARGEST_KEPT:
            self.tables[key] = table
            while len(self.tables) > _MOST_KEPT:
                self.tables.popitem(last=False)


class Catalogues(ABC):
    """Where the catalogue over the datasets of this moment is found."""

    @abstractmethod
    def current(self) -> tuple[Catalogue, Kept]:
        """The catalogue, built anew if anything was declared since."""


@final
class Executor:
    """Runs the statements of one connection, one after another."""

    def __init__(self, asker: Asker, reader: Reader, catalogues: Catalogues) -> None:
        self.block = Block()
        self.asker = asker
        self.commands = Commands(asker.settings, asker)
        self._reader = reader
        self._catalogues = catalogues
        self._last: tuple[str, Question] | None = None

    # --- running --------------------------------------------------------------------------------

    def run(
        self, statement: Statement, values: Mapping[int, str], cancel: Cancellation, memory: dict[Any, Any]
    ) -> Steps[Table]:
        """The result of a statement; in ``memory`` is what stays true while nothing is changed."""
        verb = statement.verb
        if self.block.status == "E" and verb not in ENDING:
            raise Refusal(
                FAILED_BLOCK,
                "current transaction is aborted, commands ignored until end of transaction block",
                hint="ROLLBACK; what was answered before stays answered, and paid.",
            )
        if (refusal := refused(statement)) is not None:
            raise refusal
        if verb in TRANSACTIONS:
            return self.block.run(statement)
        match verb:
            case "SET":
                return self.commands.set(statement)
            case "RESET":
                return self.commands.reset(statement)
            case "DISCARD":
                return self.commands.discard(statement)
            case "SHOW":
                told: Table = yield lambda: self.commands.show(statement)
                return told
            case "EXPLAIN":
                text = filled(statement.text, values)
                told = yield lambda: self._explain(text)
                return told
            case "COPY":
                return (yield from self._copy(statement, cancel, memory))
        if statement.reads:
            text = filled(statement.text, values) if values else statement.text
            return (yield from self._rows(text, cancel, memory))
        raise Refusal(SYNTAX, f"A question begins with SELECT, not with {statement.verb[:40]!r}.", hint=_HELP)

    def _rows(self, text: str, cancel: Cancellation, memory: dict[Any, Any]) -> Steps[Table]:
        """The rows that a SELECT asks for: those that are known at once, or after a while."""
        key = (self.asker.caller.name, text, self.asker.settings.version)
        kept: Table | None = memory.get(key)
        if kept is not None:
            return kept
        told: Table = yield lambda: self._worked_out(text, cancel)
        if not told.cost and len(told.rows) <= _LARGEST_KEPT and not _changes(text):
            memory[key] = told  # if anything was changed meanwhile, nobody looks there any more
            if len(memory) > _MOST_KEPT:
                memory.pop(next(iter(memory)))
        return told

    def _worked_out(self, text: str, cancel: Cancellation) -> Table:
        if not self.about_data(text):
            return self._looked_up(text)
        shown = self._previewed(text)
        if shown is not None:
            return shown
        question = self._read(text)
        self._last = None  # by the next time the policy may be another
        return self.asker.ask(question, cancel)

    def _previewed(self, text: str) -> Table | None:
        """What is shown without asking anything, where the settings say so."""
        if self.asker.settings.get("blowfishdb.preview") == "off" and not self._usual_previews():
            return None
        tree = parsed(split_extensions(without_max_cost(text)[0]).select)
        tables = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
        if len(tables) != 1:
            return None
        dataset = self.asker.dataset(tables[0].name)
        return preview(tree, dataset, self.asker.settings.ours("preview", self.asker.usual(dataset.name)))

    def _usual_previews(self) -> bool:
        """Whether any dataset begins with previews."""
        names = self.asker.caller.gateway.datasets()
        return any(self.asker.usual(name).get("preview", "off") != "off" for name in names)

    def _looked_up(self, text: str) -> Table:
        """What the catalogue says, kept as long as it says the same."""
        catalogue, kept = self._catalogues.current()
        key = (self.asker.caller.name, text)
        if (told := kept.get(key)) is not None:
            return told
        table = catalogue.ask(*self._reader.read(text))
        if not _changes(text):
            kept.put(key, table)
        return table

    def about_data(self, text: str) -> bool:
        """Whether a statement asks about a dataset, and not only the catalogue."""
        plain = split_extensions(without_max_cost(text)[0]).select
        tree = parsed(plain)
        steps = {step.alias.casefold() for step in tree.find_all(exp.CTE)}
        tables = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
        return any(
            not names_catalogue(table.db, table.name)
            for table in tables
            if table.db or table.name.casefold() not in steps
        )

    def _explain(self, text: str) -> Table:
        as_json, rest = _explained(text)
        if not self.about_data(rest):
            raise Refusal(
                NOT_SUPPORTED, "EXPLAIN gives the price and the plan of a question about a dataset."
            )
        return self.asker.explain(self.asker.read(rest), as_json=as_json)

    def _copy(self, statement: Statement, cancel: Cancellation, memory: dict[Any, Any]) -> Steps[Table]:
        inner, options = _copied(statement)
        table = yield from self._rows(inner, cancel, memory)
        return Table(table.columns, table.rows, f"COPY {options}", table.notices, table.cost)

    # --- describing -----------------------------------------------------------------------------

    def described(
        self, statement: Statement, oids: Sequence[int], values: Mapping[int, str] | None = None
    ) -> tuple[tuple[Column, ...] | None, list[int]]:
        """What the rows of a statement will look like, None without any, and the types of its parameters.

        Nothing is asked: as long as ``values`` are not known, others of their types stand there.
        """
        if not statement.reads and statement.verb not in ("SHOW", "EXPLAIN"):
            return None, [*oids, *[types.TEXT.oid] * (statement.parameters - len(oids))]
        if statement.verb == "SHOW":
            return self.commands.show(statement).columns, []
        as_json, body = _explained(statement.text) if statement.verb == "EXPLAIN" else (False, statement.text)
        kinds, stand_ins = self._parameters(body, statement.parameters, oids)
        if statement.verb == "EXPLAIN":
            return (Column("QUERY PLAN", types.JSON if as_json else types.TEXT),), kinds
        text = filled(statement.text, stand_ins if values is None else values)
        if self.about_data(text):
            shown = self._previewed(text)
            if shown is not None:
                return shown.columns, kinds
            return self._read(text).columns(intervals=self.asker.intervals), kinds
        return self._looked_up(text).columns, kinds

    def parameter_types(self, statement: Statement, oids: Sequence[int]) -> list[int]:
        """The types of the parameters of a statement, as they were sent or as they are meant."""
        if not statement.reads and statement.verb != "EXPLAIN":
            return [*oids, *[types.TEXT.oid] * (statement.parameters - len(oids))]
        body = _explained(statement.text)[1] if statement.verb == "EXPLAIN" else statement.text
        return self._parameters(body, statement.parameters, oids)[0]

    def _read(self, text: str) -> Question:
        """A question, which is described before it is asked and read once for both."""
        if self._last is None or self._last[0] != text:
            self._last = (text, self.asker.read(text))
        return self._last[1]

    def _parameters(self, text: str, count: int, oids: Sequence[int]) -> tuple[list[int], dict[int, str]]:
        """The type of each parameter: as it was sent, or as what it is compared with has it."""
        kinds = [oid or 0 for oid in oids[:count]] + [0] * (count - len(oids))
        stand_ins: dict[int, str] = {}
        places = _places(text, count)
        domain = self._domain(text) if count and self.about_data(text) else None
        for number in range(1, count + 1):
            column, stated = places.get(number, ("", None))
            kind, value = _meant(column, domain)
            if not kinds[number - 1]:
                kinds[number - 1] = (stated or kind).oid
            known = types.BY_OID.get(kinds[number - 1], types.TEXT)
            stand_ins[number] = value if domain is not None else _stand_in(known)
        return kinds, stand_ins

    def _domain(self, text: str) -> Domain:
        tree = parsed(split_extensions(without_max_cost(text)[0]).select)
        table = next(t for t in tree.find_all(exp.Table) if not names_catalogue(t.db, t.name))
        return self.asker.dataset(table.name).schema


_HELP: Final = "\\d lists the datasets. Try: SELECT COUNT(*) FROM dataset WITH ERROR 50;"


def _changes(text: str) -> bool:
    """Whether a statement says something else each time."""
    words = [token.text.upper() for token in tokens_of(text)]
    return any(mark in word for word in words for mark in _CHANGING)


def _stand_in(kind: PgType) -> str:
    """A value of a type."""
    moments = (types.DATE, types.TIMESTAMP, types.TIMESTAMPTZ)
    value = (
        "'2000-01-01'" if kind in moments else "'x'" if kind.size < 0 and kind is not types.NUMERIC else "0"
    )
    return "NULL" if kind.name.startswith("_") else f"CAST({value} AS {formatted(kind)})"


def literal(value: Any) -> str:
    """A parameter as SQL."""
    if value is None:
        return "NULL"
    return quoted_text(value) if isinstance(value, str) else sql_value(value)


def _explained(text: str) -> tuple[bool, str]:
    """Whether JSON is wanted, and the statement that is to be explained."""
    tokens = tokens_of(text)
    at, as_json = 1, False
    if len(tokens) > 1 and tokens[1].text == "(":
        while at < len(tokens) and tokens[at].text != ")":
            word = tokens[at].text.upper()
            if word == "ANALYZE" and tokens[at + 1].text.upper() not in ("OFF", "FALSE", "0"):
                raise _analyze()
            as_json |= word == "JSON"
            at += 1
        at += 1
    while at < len(tokens) and tokens[at].text.upper() in ("VERBOSE", "ANALYZE"):
        if tokens[at].text.upper() == "ANALYZE":
            raise _analyze()
        at += 1
    return as_json, text[tokens[at].start :] if at < len(tokens) else ""


def _analyze() -> Refusal:
    return Refusal(
        NOT_SUPPORTED,
        "EXPLAIN ANALYZE would ask the question; EXPLAIN gives its price and its plan, for nothing.",
        hint="Try: EXPLAIN SELECT …",
    )


def _copied(statement: Statement) -> tuple[str, str]:
    """The statement of ``COPY (…) TO STDOUT``, and how its rows are written."""
    tokens = tokens_of(statement.text)
    words = [token.text.upper() for token in tokens]
    if words[1:2] != ["("]:
        raise Refusal("42501", "Rows are never copied; answers are.", hint="Try: COPY (SELECT …) TO STDOUT")
    depth, end = 0, 0
    for at, word in enumerate(words[1:], start=1):
        depth += (word == "(") - (word == ")")
        if depth == 0:
            end = at
            break
    if words[end + 1 : end + 3] != ["TO", "STDOUT"]:
        raise Refusal(
            "42501", "Answers are copied to STDOUT, and nowhere else.", hint="Try: COPY (…) TO STDOUT"
        )
    rest = words[end + 3 :]
    if "BINARY" in rest:
        raise Refusal(NOT_SUPPORTED, "Answers are copied as text or CSV.")
    off = "HEADER" in rest and rest[rest.index("HEADER") + 1 : rest.index("HEADER") + 2] in (
        ["FALSE"],
        ["OFF"],
    )
    header = "header" if "HEADER" in rest and not off else ""
    form = "csv" if "CSV" in rest else "text"
    return statement.text[tokens[1].end + 1 : tokens[end].start], f"{form} {header}".strip()


def _places(text: str, count: int) -> dict[int, tuple[str, PgType | None]]:
    """The column that each parameter is compared with, and its type where that is said.

    ``*`` stands for a number of rows.
    """
    if not count:
        return {}
    marked = filled(text, {number: f"'bf\x01{number}'" for number in range(1, count + 1)}, casts=True)
    tree = parsed(split_extensions(without_max_cost(marked)[0]).select)
    found: dict[int, tuple[str, PgType | None]] = {}
    for node in tree.find_all(exp.Literal):
        if not node.is_string or not node.name.startswith("bf\x01"):
            continue
        above: exp.Expr | None = node.parent
        stated: PgType | None = None
        while isinstance(above, exp.Paren | exp.Cast | exp.Tuple | exp.Neg):
            if isinstance(above, exp.Cast) and stated is None:
                name = above.to.sql("postgres").lower()
                stated = types.TEXT if "reg" in name else _STATED.get(name)
            above = above.parent
        number = int(node.name[3:])
        if isinstance(above, exp.Limit | exp.Offset):
            found[number] = "*", stated
        elif isinstance(above, exp.Predicate | exp.In | exp.Between | exp.Binary):
            column = above.find(exp.Column)
            found[number] = column.name if column is not None else "", stated
        else:
            found[number] = "", stated
    return found


_STATED: Final = {
    **{formatted(kind): kind for kind in types.BY_OID.values()},
    **{kind.name: kind for kind in types.BY_OID.values()},
    "int": types.INT4,
    "decimal": types.NUMERIC,
    "varchar": types.VARCHAR,
    "timestamp": types.TIMESTAMP,
}


def _meant(column: str, domain: Domain | None) -> tuple[PgType, str]:
    """The type of what is compared with a column, and a value that may stand there."""
    if column == "*":
        return types.INT8, "1"
    if domain is None:
        return parameter_type(column.casefold()), "NULL"
    name = next((known for known in domain.names if known.casefold() == column.casefold()), None)
    if name is None:
        return types.TEXT, "1"
    return typed(declared(domain[name])), sql_value(domain[name].at(0))
