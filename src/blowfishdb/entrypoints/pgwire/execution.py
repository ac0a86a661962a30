"""What becomes of a statement: a question, a look into the catalogue, a command, or a refusal.

Whatever may take a while runs in a thread; what is known already is told at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, TypeVar, final

from sqlglot import TokenType, exp

from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.domain.domain import Domain
from blowfishdb.entrypoints.pgwire import types
from blowfishdb.entrypoints.pgwire.asking import Asker, Question
from blowfishdb.entrypoints.pgwire.blocks import ENDING, TRANSACTIONS, Block
from blowfishdb.entrypoints.pgwire.catalogue import LARGEST_KEPT, MOST_KEPT, Catalogues
from blowfishdb.entrypoints.pgwire.commands import Commands, refused
from blowfishdb.entrypoints.pgwire.copying import copied_by
from blowfishdb.entrypoints.pgwire.cursors import declared_by, executed_by, fetched_by, moved, prepared_by
from blowfishdb.entrypoints.pgwire.errors import (
    FAILED_BLOCK,
    NOT_SUPPORTED,
    SYNTAX,
    Refusal,
)
from blowfishdb.entrypoints.pgwire.parameters import literal, meant, places, stand_in
from blowfishdb.entrypoints.pgwire.portals import Portal, Prepared, Shelf
from blowfishdb.entrypoints.pgwire.previews import preview
from blowfishdb.entrypoints.pgwire.reader import Reader, parsed
from blowfishdb.entrypoints.pgwire.results import Column, Table
from blowfishdb.entrypoints.pgwire.shells import names_catalogue
from blowfishdb.entrypoints.pgwire.statements import (
    Statement,
    explained_by,
    filled,
    identifiers,
    split,
    tokens_of,
    without_max_cost,
)
from blowfishdb.language.extensions import split_extensions
from blowfishdb.language.select import full_name

T = TypeVar("T")
Work = Callable[[], Any]
"""Something that may take a while; whoever runs a generator runs it in a thread and sends back the result."""
Steps = Generator[Work, Any, T]
Described = tuple[tuple[Column, ...] | None, list[int]]
"""The columns of a statement, None without any, and the types of its parameters."""
VARYING: Final = frozenset({"FETCH", "EXECUTE", "SHOW"})
"""Statements whose columns are those of something else."""

_CHANGING: Final = ("SETTING", "SET_CONFIG", "PID", "TIMESTAMP", "NOW", "CURRENT_DATE", "TXID")


@final
class Executor:
    """Runs the statements of one connection, one after another."""

    def __init__(self, asker: Asker, reader: Reader, catalogues: Catalogues, shelf: Shelf) -> None:
        self.block = Block(asker.settings, shelf)
        self.asker = asker
        self._user = asker.caller.name
        self._shelf = shelf
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
        self.block.begin()
        if statement.reads:
            text = filled(statement.text, values) if values else statement.text
            return (yield from self._rows(text, cancel, memory))
        if (refusal := refused(statement)) is not None:
            raise refusal
        if verb in TRANSACTIONS:
            return self.block.run(statement)
        match verb:
            case "SET":
                return self.commands.set(statement, inside=self.block.inside)
            case "RESET":
                return self.commands.reset(statement)
            case "DISCARD":
                return self._discard(statement)
            case "PREPARE":
                return (yield from self._prepare(statement))
            case "EXECUTE":
                prepared, filled_in = yield from self._filled_in(statement)
                return (yield from self.run(prepared, filled_in, cancel, memory))
            case "DEALLOCATE":
                return self._deallocate(statement)
            case "DECLARE":
                return (yield from self._declare(statement, values))
            case "FETCH" | "MOVE":
                return (yield from self._fetch(statement, cancel, memory))
            case "CLOSE":
                return self._close(statement)
            case "UNLISTEN":
                return Table((), (), "UNLISTEN")  # nobody was listening
            case "SHOW":
                told: Table = yield lambda: self.commands.show(statement)
                return told
            case "EXPLAIN":
                as_json, rest = yield from self._explained(statement, values)
                told = yield lambda: self._explain(rest, as_json=as_json)
                return told
            case "COPY":
                return (yield from self._copy(statement, cancel, memory))
        raise Refusal(SYNTAX, f"A question begins with SELECT, not with {statement.verb[:40]!r}.", hint=_HELP)

    def recalled(
        self, statement: Statement, values: Mapping[int, str], memory: Mapping[Any, Any]
    ) -> Table | None:
        """The rows of a SELECT, if they are known; None otherwise, and for everything that does something."""
        if not statement.reads or self.block.status == "E":
            return None
        self.block.begin()
        text = filled(statement.text, values) if values else statement.text
        kept: Table | None = memory.get(self._key(text))
        return kept

    def _key(self, text: str) -> tuple[object, ...]:
        """By which what a SELECT says is kept."""
        return self._user, text, self.asker.settings.version

    def _rows(self, text: str, cancel: Cancellation, memory: dict[Any, Any]) -> Steps[Table]:
        """The rows that a SELECT asks for: those that are known at once, or after a while."""
        key = self._key(text)
        kept: Table | None = memory.get(key)
        if kept is not None:
            return kept
        told: Table = yield lambda: self._worked_out(text, cancel)
        if not told.cost and len(told.rows) <= LARGEST_KEPT and not _changes(text):
            _keep(memory, key, told)
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
        dataset = self.asker.dataset(full_name(tables[0]))
        return preview(tree, dataset, self.asker.settings.ours("preview", self.asker.usual(dataset.name)))

    def _usual_previews(self) -> bool:
        """Whether any dataset begins with previews."""
        names = self.asker.caller.gateway.datasets()
        return any(self.asker.usual(name).get("preview", "off") != "off" for name in names)

    def _looked_up(self, text: str) -> Table:
        """What the catalogue says, kept as long as it says the same."""
        catalogue, kept = self._catalogues.current()
        key = (self.asker.caller.name, text, self.asker.settings.get("search_path"))
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

    def _explained(self, statement: Statement, values: Mapping[int, str]) -> Steps[tuple[bool, str]]:
        """Whether JSON is wanted, and the statement that is to be explained, which may be a prepared one."""
        as_json, rest = explained_by(filled(statement.text, values))
        inner = split(rest)
        if inner and inner[0].verb == "EXECUTE":
            prepared, filled_in = yield from self._filled_in(inner[0])
            rest = filled(prepared.text, filled_in)
        return as_json, rest

    def _explain(self, text: str, *, as_json: bool) -> Table:
        if not self.about_data(text):
            raise Refusal(
                NOT_SUPPORTED, "EXPLAIN gives the price and the plan of a question about a dataset."
            )
        return self.asker.explain(self.asker.read(text), as_json=as_json)

    def _copy(self, statement: Statement, cancel: Cancellation, memory: dict[Any, Any]) -> Steps[Table]:
        inner, options = copied_by(statement)
        table = yield from self._rows(inner, cancel, memory)
        return Table(table.columns, table.rows, f"COPY {options}", table.notices, table.cost)

    # --- statements and cursors that are kept ---------------------------------------------------

    def _prepare(self, statement: Statement) -> Steps[Table]:
        """Keep a statement that can be asked; it is not."""
        kept = prepared_by(statement)
        columns, oids = yield lambda: self.described(kept.statement, kept.oids)
        version = self.asker.settings.version
        self._shelf.prepare(kept.name, Prepared(kept.statement, oids, columns, version))
        return Table((), (), "PREPARE")

    def _filled_in(self, statement: Statement) -> Steps[tuple[Statement, dict[int, str]]]:
        """The statement that EXECUTE means, and the values for its parameters."""
        name, said = executed_by(statement)
        prepared = self._shelf.prepared(name)
        inner = prepared.statement
        if inner is None or not inner.reads:
            raise Refusal(NOT_SUPPORTED, "EXECUTE runs statements that ask for rows.")
        if len(said) != inner.parameters:
            raise Refusal(
                SYNTAX,
                f'wrong number of parameters for prepared statement "{name[:60]}"',
                detail=f"Expected {inner.parameters} parameters but got {len(said)}.",
            )
        if said:
            prepared.oids = yield lambda: self.parameter_types(inner, prepared.oids)
        return inner, {
            number: literal(types.parameter(oid, types.TEXT_FORMAT, None if text is None else text.encode()))
            for number, (oid, text) in enumerate(zip(prepared.oids, said, strict=False), start=1)
        }

    def _deallocate(self, statement: Statement) -> Table:
        name = _last(statement)
        if name is None:
            self._shelf.forget_all()
            return Table((), (), "DEALLOCATE ALL")
        self._shelf.prepared(name)
        self._shelf.forget(name)
        return Table((), (), "DEALLOCATE")

    def _declare(self, statement: Statement, values: Mapping[int, str]) -> Steps[Table]:
        """Keep a cursor over what can be asked; nothing is asked before rows of it are wanted."""
        cursor = declared_by(statement)
        if not cursor.held and not self.block.inside:
            raise Refusal("25P01", "DECLARE CURSOR can only be used in transaction blocks", hint=_HOLD)
        _, oids = yield lambda: self.described(cursor.statement, (), values)
        portal = Portal(Prepared(cursor.statement, oids), {**values})
        portal.held, portal.scrolls, portal.binary = cursor.held, cursor.scrolls, cursor.binary
        self._shelf.open(cursor.name, portal)
        return Table((), (), "DECLARE CURSOR")

    def _fetch(self, statement: Statement, cancel: Cancellation, memory: dict[Any, Any]) -> Steps[Table]:
        """Rows of a cursor, or only the way past them; whatever it costs is spent the first time."""
        fetched = fetched_by(statement)
        portal = self._shelf.portal(fetched.name)
        inner, table, first = portal.prepared.statement, portal.table, portal.table is None
        if not portal.scrolls and fetched.goes_back(portal.at):
            raise Refusal("55000", "cursor can only scan forward", hint="Declare it with SCROLL.")
        if table is None:
            if inner is None or not inner.reads:
                raise Refusal("55000", f'portal "{fetched.name[:60]}" cannot be run')
            table = portal.table = yield from self._rows(filled(inner.text, portal.values), cancel, memory)
        wanted, portal.at = moved(fetched, portal.at, len(table.rows))
        tag = f"{statement.verb} {len(wanted)}"
        notices, cost = (table.notices, table.cost) if first else ((), 0)
        if statement.verb == "MOVE":
            return Table((), (), tag, notices, cost)
        rows = [table.rows[number - 1] for number in wanted]
        return Table(table.columns, rows, tag, notices, cost, binary=portal.binary)

    def _close(self, statement: Statement) -> Table:
        name = _last(statement)
        if name is None:
            self._shelf.close_all()
            return Table((), (), "CLOSE CURSOR ALL")
        self._shelf.portal(name)
        self._shelf.close(name)
        return Table((), (), "CLOSE CURSOR")

    def _discard(self, statement: Statement) -> Table:
        """``DISCARD ALL``: everything that a connection has gathered; of the rest there is nothing."""
        what = statement.words[-1]
        if what not in ("ALL", "PLANS", "SEQUENCES", "TEMP", "TEMPORARY"):
            raise Refusal(SYNTAX, "DISCARD is written with what to discard.", hint="Try: DISCARD ALL")
        told = b""
        if what == "ALL":
            if self.block.inside:
                raise Refusal("25001", "DISCARD ALL cannot run inside a transaction block")
            self._shelf.forget_all()
            self._shelf.close_all()
            told = self.asker.settings.reset("all")
        return Table((), (), f"DISCARD {what}", (told,) if told else ())

    # --- describing -----------------------------------------------------------------------------

    def looked(
        self,
        statement: Statement,
        oids: Sequence[int],
        values: Mapping[int, str] | None,
        memory: dict[Any, Any],
    ) -> Steps[Described]:
        """``described``, at once if it is known."""
        said = None if values is None else tuple(values.values())
        key = ("columns", *self._key(statement.text), tuple(oids), said)
        described: Described | None = memory.get(key)
        if described is None:
            described = yield lambda: self.described(statement, oids, values)
            if statement.verb not in VARYING:
                _keep(memory, key, described)
        return described[0], [*described[1]]

    def typed(self, statement: Statement, oids: Sequence[int], memory: dict[Any, Any]) -> Steps[list[int]]:
        """``parameter_types``, at once if they are known."""
        key = ("types", *self._key(statement.text), tuple(oids))
        kinds: list[int] | None = memory.get(key)
        if kinds is None:
            kinds = yield lambda: self.parameter_types(statement, oids)
            _keep(memory, key, kinds)
        return [*kinds]

    def described(
        self, statement: Statement, oids: Sequence[int], values: Mapping[int, str] | None = None
    ) -> Described:
        """What the rows of a statement will look like, None without any, and the types of its parameters.

        Nothing is asked: as long as ``values`` are not known, others of their types stand there.
        """
        match statement.verb:
            case "SHOW":
                return self.commands.show(statement).columns, []
            case "EXPLAIN":
                kinds = self.parameter_types(statement, oids)
                return (
                    Column("QUERY PLAN", types.JSON if explained_by(statement.text)[0] else types.TEXT),
                ), kinds
            case "FETCH":
                portal = self._shelf.portal(fetched_by(statement).name)
                return self._described_again(portal.prepared, portal.values), []
            case "EXECUTE":
                return self._described_again(self._shelf.prepared(executed_by(statement)[0]), None), []
        if not statement.reads:
            return None, self.parameter_types(statement, oids)
        kinds, stand_ins = self._parameters(statement.text, statement.parameters, oids)
        text = filled(statement.text, stand_ins if values is None else values)
        if self.about_data(text):
            shown = self._previewed(text)
            if shown is not None:
                return shown.columns, kinds
            return self._read(text).columns(intervals=self.asker.intervals), kinds
        return self._looked_up(text).columns, kinds

    def _described_again(
        self, prepared: Prepared, values: Mapping[int, str] | None
    ) -> tuple[Column, ...] | None:
        inner = prepared.statement
        return None if inner is None else self.described(inner, prepared.oids, values)[0]

    def parameter_types(self, statement: Statement, oids: Sequence[int]) -> list[int]:
        """The types of the parameters of a statement, as they were sent or as they are meant."""
        body = statement.text
        if statement.verb == "EXPLAIN":
            body = explained_by(body)[1]
        elif statement.verb == "DECLARE":
            body = declared_by(statement).statement.text
        elif not statement.reads:
            return [*oids, *[types.TEXT.oid] * (statement.parameters - len(oids))]
        return self._parameters(body, statement.parameters, oids)[0] if statement.parameters else []

    def _read(self, text: str) -> Question:
        """A question, which is described before it is asked and read once for both."""
        if self._last is None or self._last[0] != text:
            self._last = (text, self.asker.read(text))
        return self._last[1]

    def _parameters(self, text: str, count: int, oids: Sequence[int]) -> tuple[list[int], dict[int, str]]:
        """The type of each parameter: as it was sent, or as what it is compared with has it."""
        kinds = [oid or 0 for oid in oids[:count]] + [0] * (count - len(oids))
        stand_ins: dict[int, str] = {}
        found = places(text, count)
        domain = self._domain(text) if count and self.about_data(text) else None
        for number in range(1, count + 1):
            column, stated = found.get(number, ("", None))
            kind, value = meant(column, domain)
            if not kinds[number - 1]:
                kinds[number - 1] = (stated or kind).oid
            known = types.BY_OID.get(kinds[number - 1], types.TEXT)
            stand_ins[number] = value if domain is not None else stand_in(known)
        return kinds, stand_ins

    def _domain(self, text: str) -> Domain:
        tree = parsed(split_extensions(without_max_cost(text)[0]).select)
        table = next(t for t in tree.find_all(exp.Table) if not names_catalogue(t.db, t.name))
        return self.asker.dataset(full_name(table)).schema


_HOLD: Final = "Try: BEGIN before it, or DECLARE … CURSOR WITH HOLD FOR …"
_HELP: Final = "\\d lists the datasets. Try: SELECT COUNT(*) FROM dataset WITH ERROR 50;"


def _keep(memory: dict[Any, Any], key: object, value: object) -> None:
    """Remember something; if anything was changed meanwhile, nobody looks there any more."""
    memory[key] = value
    if len(memory) > MOST_KEPT:
        memory.pop(next(iter(memory)))


def _changes(text: str) -> bool:
    """Whether a statement says something else each time."""
    words = [token.text.upper() for token in tokens_of(text)]
    return any(mark in word for word in words for mark in _CHANGING)


def _last(statement: Statement) -> str | None:
    """The name at the end of a statement; None for ALL."""
    if len(statement.words) < 2:
        raise Refusal(SYNTAX, f"{statement.verb} is written with a name.")
    unquoted = tokens_of(statement.text)[-1].token_type != TokenType.IDENTIFIER
    return None if unquoted and statement.words[-1] == "ALL" else identifiers(statement)[-1]
