"""Statements about the catalogue: shown to name nothing else, and written as the engine runs them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final, cast, final

import sqlglot
from sqlglot import TokenType, exp

from blowfishdb.core.errors import InvalidQuestion
from blowfishdb.entrypoints.pgwire.errors import NOT_SUPPORTED, SYNTAX, Refusal, hint_of
from blowfishdb.entrypoints.pgwire.functions import FUNCTIONS, HARMLESS
from blowfishdb.entrypoints.pgwire.relations import DATABASE, SOMEONE
from blowfishdb.entrypoints.pgwire.settings import Settings
from blowfishdb.entrypoints.pgwire.shells import INFORMATION, IS, PG, TABLES
from blowfishdb.entrypoints.pgwire.statements import tokens_of
from blowfishdb.language.flattened import without_top
from blowfishdb.language.selected import output_name
from blowfishdb.language.text import sql_tree

VERSION: Final = "PostgreSQL 15.0 (BlowfishDB)"
_EXAMPLE: Final = "SELECT COUNT(*) FROM dataset WITH ERROR 50"
_UNDEFINED_TABLE: Final = "42P01"
_UNDEFINED_FUNCTION: Final = "42883"
_WRONG_VALUE: Final = "22023"
_NAMES: Final = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.STAR)
_FORBIDDEN: Final = (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock, exp.Placeholder)
_CASTS: Final = {
    "name": "VARCHAR",
    "text": "VARCHAR",
    "char": "VARCHAR",
    "oid": "UINTEGER",
    "xid": "UINTEGER",
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "bool": "BOOLEAN",
    "float8": "DOUBLE",
    "sql_identifier": "VARCHAR",
    "character_data": "VARCHAR",
    "cardinal_number": "INTEGER",
    "yes_or_no": "VARCHAR",
    "information_schema.sql_identifier": "VARCHAR",
    "regproc": "VARCHAR",
    "regprocedure": "VARCHAR",
    "regoper": "VARCHAR",
    "regconfig": "VARCHAR",
    "regrole": "VARCHAR",
    "inet": "VARCHAR",
    "anyarray": "VARCHAR",
}
_NAMED_BY_ID: Final = {"regclass": "bf_class", "regtype": "bf_type", "regnamespace": "bf_namespace"}
_IDS_BY_NAME: Final = {"regclass": "to_regclass", "regtype": "to_regtype", "regnamespace": "bf_namespace_id"}


@final
class Reader:
    """Reads statements about the catalogue in the name of someone, and writes them for the engine."""

    def __init__(self, user: str, process: int, settings: Settings) -> None:
        self._user = user
        self._process = process
        self._settings = settings

    def read(self, text: str) -> tuple[exp.Expr, list[str] | None]:
        """The statement as the engine runs it, and the names of its columns where the statement says them.

        Refused if it names anything else than the catalogue.
        """
        tree = parsed(text).copy()
        for node in tree.walk():
            if isinstance(node, _FORBIDDEN):
                raise Refusal("42501", "The catalogue is read, and nothing is written.")
        tree = _from_below(tree, self._unqualified)
        names = _names(tree, text)
        self._tables(tree)
        tree = _from_below(tree, self._rewritten)
        for node in tree.find_all(exp.Func):
            if not isinstance(node, HARMLESS):
                raise _unknown_function(node.sql_name().lower())
            if isinstance(node, exp.Anonymous) and str(node.this).lower() not in FUNCTIONS:
                raise _unknown_function(str(node.this).lower())
        return tree, names

    def _unqualified(self, node: exp.Expr) -> exp.Expr:
        """``pg_catalog.version()`` without its schema."""
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            return node.expression
        if isinstance(node, exp.Column) and node.args.get("db"):
            node.set("db", None)
            node.set("catalog", None)
        return node

    def _tables(self, tree: exp.Expr) -> None:
        steps = {step.alias.casefold() for step in tree.find_all(exp.CTE)}
        for table in list(tree.find_all(exp.Table)):
            if isinstance(table.this, exp.Func):
                _called(table)
                continue
            name, schema = table.name.casefold(), table.db.casefold()
            if not schema and name in steps:
                continue
            if schema in ("", "pg_catalog") and name in TABLES:
                self._named(table, name, PG, TABLES[name])
            elif schema == "information_schema" and name in INFORMATION:
                self._named(table, name, IS, INFORMATION[name])
            else:
                raise Refusal(
                    _UNDEFINED_TABLE,
                    f'relation "{table.db + "." if table.db else ""}{table.name}" does not exist',
                    hint="\\d lists the datasets; the catalogue holds what clients usually look for.",
                )

    def _named(self, table: exp.Table, name: str, schema: str, columns: Mapping[str, str]) -> None:
        """A table of ours; those that speak of whoever is connected say the name."""
        table.set("catalog", None)
        table.set("db", exp.to_identifier(schema))
        table.set("this", exp.to_identifier(name))
        speaking = [c for c in columns if c in ("rolname", "usename", "grantee", "role_name")]
        if not speaking:
            return
        alias = table.alias or name
        plain = exp.Table(this=exp.to_identifier(name), db=exp.to_identifier(schema))
        listed = [
            exp.alias_(
                exp.case()
                .when(exp.column(c).eq(exp.Literal.string(SOMEONE)), exp.Literal.string(self._user))
                .else_(exp.column(c))
                if c in speaking
                else exp.column(c),
                c,
                quoted=True,
            )
            for c in columns
        ]
        table.replace(exp.select(*listed).from_(plain).subquery(alias))

    def _rewritten(self, node: exp.Expr) -> exp.Expr:
        match node:
            case exp.Collate():
                return cast("exp.Expr", node.this)
            case exp.Operator():
                return _operator(node)
            case exp.ByteString():
                return exp.Literal.string(_unescaped(str(node.this)))
            case exp.Cast():
                return _cast(node)
            case exp.CurrentUser() | exp.SessionUser() | exp.CurrentRole():
                return exp.Literal.string(self._user)
            case exp.CurrentDatabase() | exp.CurrentCatalog():
                return exp.Literal.string(DATABASE)
            case exp.CurrentSchema():
                return exp.Literal.string(self._schemas()[0])
            case exp.CurrentSchemas():
                return self._path(implied=_truth(node))
            case exp.CurrentVersion():
                return exp.Literal.string(VERSION)
            case exp.Column() if not node.table and node.name == "user" and not node.this.args.get("quoted"):
                return exp.Literal.string(self._user)
            case exp.Column() if node.name == "xmin":
                return exp.Literal.number(1)  # of which transaction a row is; here of the first
            case exp.Any():
                listed = node.this.unnest()
                if isinstance(listed, exp.Literal) and listed.name.startswith("{"):
                    node.set("this", _braces(listed))
                return node
            case exp.Format():
                return _formatted(node)
            case exp.Anonymous():
                return self._function(node)
            case exp.EQ() | exp.NEQ():
                return _listed(node)
        return node

    def _schemas(self) -> list[str]:
        """The schemas of the search path."""
        return _searched(self._settings.get("search_path"))

    def _path(self, *, implied: bool) -> exp.Expr:
        names = (*(["pg_catalog"] if implied else []), *self._schemas())
        return exp.Array(expressions=[exp.Literal.string(name) for name in names])

    def _function(self, node: exp.Anonymous) -> exp.Expr:
        name = str(node.this).lower()
        if name in ("version", "current_database", "pg_backend_pid", "session_user", "current_user"):
            told = {"version": VERSION, "current_database": DATABASE}
            if name == "pg_backend_pid":
                return exp.Literal.number(self._process)
            return exp.Literal.string(told.get(name, self._user))
        if name == "json_build_object":
            node.set("this", "json_object")
            return node
        if name == "current_schema":
            return exp.Literal.string(self._schemas()[0])
        if name == "current_schemas":
            return self._path(implied=_truth(node))
        asked = node.expressions[0] if node.expressions else None
        asked = asked.this if isinstance(asked, exp.Cast) else asked
        if name == "current_setting" and asked is not None and asked.is_string:
            try:
                return exp.Literal.string(self._settings.get(asked.name))
            except Refusal:
                if len(node.expressions) > 1:
                    return exp.null()
                raise
        if (
            name == "set_config"
            and len(node.expressions) == 3
            and all(e.is_string for e in node.expressions[:2])
        ):
            name, value, local = node.expressions
            self._settings.set(name.name, value.name, local=_is_true(local))
            return exp.Literal.string(self._settings.get(name.name))
        node.set("this", name)
        return node


def _searched(text: str) -> list[str]:
    """The schemas of a search path, without that of whoever is connected, which there is not."""
    named = [part.strip().strip("\"'").strip() for part in text.split(",")]
    return [name for name in named if name and name != "$user"] or ["public"]


def _from_below(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A tree in which every node was changed, those below before those above."""
    for node in reversed(list(tree.dfs())):
        new = change(node)
        if new is not node:
            if node is tree:
                tree = new
            else:
                node.replace(new)
    return tree


def _names(tree: exp.Expr, text: str) -> list[str] | None:
    """What PostgreSQL calls the columns; None where a star says it."""
    while isinstance(tree, exp.SetOperation):
        tree = tree.left
    if isinstance(tree, exp.Values):
        return [f"column{at}" for at, _ in enumerate(tree.expressions[0].expressions, start=1)]
    if not isinstance(tree, exp.Select) or any(item.is_star for item in tree.expressions):
        return None
    now = "now" if "now" in text.casefold() else "current_timestamp"  # which are the same to the parser
    return [now if isinstance(item, exp.CurrentTimestamp) else output_name(item) for item in tree.expressions]


def _unescaped(text: str) -> str:
    for escape, meant in (("\\n", "\n"), ("\\t", "\t"), ("\\'", "'"), ("\\\\", "\\")):
        text = text.replace(escape, meant)
    return text


@lru_cache(maxsize=256)
def parsed(text: str) -> exp.Expr:
    """A statement that asks for rows, as a tree; it is read again and again, and nobody changes it."""
    tree = _tree(text)
    if tree is None:
        tree = _tree(_quoted(text))
    if not isinstance(tree, exp.Query | exp.Values):
        try:
            sql_tree(text, None, _EXAMPLE)  # says where it goes wrong
        except InvalidQuestion as error:
            raise Refusal(SYNTAX, error.message, hint=hint_of(error.fixes)) from None
        raise Refusal(SYNTAX, "This is not SQL that can be read.")
    return tree


def _tree(text: str) -> exp.Expr | None:
    try:
        trees = sqlglot.parse(without_top(text), read="postgres")
    except Exception:  # the parser is not ours: whatever it trips over, the text could not be read
        return None
    return trees[0] if len(trees) == 1 else None


def _quoted(text: str) -> str:
    """A text as the parser reads it: behind AS or a dot, words like ``select`` are names and get quotes.

    Lists of what is registered, ``regtype[]``, which are found in empty tables alone, are lists of texts, and
    ``oid[]`` is one of numbers.
    """
    tokens, pieces, last = tokens_of(text), [], 0
    for at, (before, token) in enumerate(pairwise(tokens), start=1):
        listed = [following.text for following in tokens[at + 1 : at + 3]] == ["[", "]"]
        instead = {**dict.fromkeys(_NAMED_BY_ID, "text"), "oid": "bigint"}.get(token.text.lower())
        if before.token_type == TokenType.DCOLON and instead is not None and listed:
            pieces += [text[last : token.start], instead]
            last = token.end + 1
            continue
        named = before.token_type in (TokenType.ALIAS, TokenType.DOT)
        if named and token.text.isidentifier() and token.token_type not in _NAMES:
            pieces += [text[last : token.start], f'"{token.text.lower()}"']
            last = token.end + 1
    return "".join((*pieces, text[last:]))


def _truth(node: exp.Expr) -> bool:
    return _is_true(node.this or (node.expressions[0] if node.expressions else None))


def _is_true(said: object) -> bool:
    return isinstance(said, exp.Boolean) and bool(said.this)


def _called(table: exp.Table) -> None:
    """A function in the place of a table: its column has the name of the table."""
    table.set("db", None)
    table.set("catalog", None)
    alias = table.args.get("alias")
    if not isinstance(alias, exp.TableAlias) or alias.this is None or alias.columns:
        return
    if isinstance(table.this, exp.GenerateSeries | exp.ExplodingGenerateSeries):
        alias.set("columns", [alias.this.copy()])
    else:
        table.replace(
            exp.select(exp.alias_(table.this.copy(), alias.this.copy())).subquery(alias.this.copy())
        )


def _formatted(node: exp.Format) -> exp.Expr:
    """``format('%I.%I', a, b)`` as its pieces, one after another."""
    if not (isinstance(node.this, exp.Literal) and node.this.is_string):
        raise _unknown_function("format")
    written = {"s": None, "I": "quote_ident", "L": "quote_literal"}
    pieces: list[exp.Expr] = []
    values = iter(node.expressions)
    for piece in re.split("(%[sIL%])", node.this.name):
        if piece == "%%" or not piece.startswith("%"):
            pieces.append(exp.Literal.string("%" if piece == "%%" else piece))
            continue
        value, function = next(values, None), written.get(piece[1:])
        if value is None or len(piece) != 2:
            raise Refusal(_WRONG_VALUE, "too few arguments for format()")
        pieces.append(value.copy() if function is None else exp.func(function, value.copy()))
    return exp.Concat(expressions=pieces, safe=True, coalesce=True)


def _operator(node: exp.Operator) -> exp.Expr:
    sign = str(node.args["operator"]).rpartition(".")[2]
    kinds: dict[str, type[exp.Binary]] = {"=": exp.EQ, "<>": exp.NEQ, "~~": exp.Like, "~~*": exp.ILike}
    if sign in ("~", "!~", "~*", "!~*"):
        kind = exp.RegexpILike if "*" in sign else exp.RegexpLike
        found = kind(this=node.this, expression=_uncollated(node.expression))
        return exp.Not(this=found) if sign.startswith("!") else found
    if sign in kinds:
        return kinds[sign](this=node.this, expression=_uncollated(node.expression))
    raise Refusal(NOT_SUPPORTED, f"The catalogue does not know the operator {sign!r}.")


def _uncollated(node: exp.Expr) -> exp.Expr:
    return cast("exp.Expr", node.this) if isinstance(node, exp.Collate) else node


def _cast(node: exp.Cast) -> exp.Expr:
    """Types that only PostgreSQL has, and names that stand for numbers."""
    wanted = node.to
    several = isinstance(wanted, exp.DataType) and wanted.this == exp.DType.ARRAY
    inner = wanted.expressions[0] if several and wanted.expressions else wanted
    name = inner.sql("postgres").lower().removeprefix("pg_catalog.").strip('"')
    if name in ("regproc", "regprocedure") and isinstance(node.this, exp.Literal) and node.this.is_string:
        raise _unknown_function(node.this.name)
    if name in _NAMED_BY_ID and not several:
        known = node.this
        by_name = isinstance(known, exp.Literal) and known.is_string and not known.name.isdecimal()
        by_name = by_name or isinstance(known, exp.DPipe | exp.Concat | exp.Paren | exp.Cast)
        return exp.func((_IDS_BY_NAME if by_name else _NAMED_BY_ID)[name], known)
    if name.removeprefix("information_schema.") in _CASTS:
        to = _CASTS[name.removeprefix("information_schema.")] + ("[]" if several else "")
        if isinstance(node.this, exp.Literal) and node.this.name.startswith("{"):
            return _braces(node.this)
        return exp.cast(node.this, exp.DataType.build(to, dialect="duckdb"))
    if several and isinstance(node.this, exp.Literal) and node.this.name.startswith("{"):
        return _braces(node.this)
    return node


def _listed(node: exp.Expr) -> exp.Expr:
    """A list that is written as a text, ``'{0}'``."""
    for side in ("this", "expression"):
        text = node.args.get(side)
        if isinstance(text, exp.Literal) and text.is_string and text.name.startswith("{"):
            node.set(side, _braces(text))
    return node


def _braces(text: exp.Literal) -> exp.Expr:
    parts = [part for part in text.name.strip("{}").split(",") if part]
    return exp.Array(
        expressions=[
            exp.Literal.number(part) if part.isdecimal() else exp.Literal.string(part.strip('"'))
            for part in parts
        ]
    )


def _unknown_function(name: str) -> Refusal:
    return Refusal(
        _UNDEFINED_FUNCTION,
        f"function {name[:60]} is not available here",
        hint="Questions about datasets have COUNT, SUM, AVG, STDDEV, VARIANCE, MEDIAN, QUANTILE and BIN.",
    )
