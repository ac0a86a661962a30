"""The catalogue that tools believe: PostgreSQL's system tables in an engine of their own, from declarations.

What clients ask of ``pg_catalog`` and ``information_schema`` is read by a parser, shown to name nothing but
their tables and functions that only compute, written in the engine's dialect, and run there: in memory, one
thread, little room, without access to files or the network, with its configuration locked, for a few seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast, final

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from blowfishdb.entrypoints.pgwire import shells, types
from blowfishdb.entrypoints.pgwire.errors import (
    CANCELLED,
    NOT_SUPPORTED,
    SYNTAX,
    Refusal,
)
from blowfishdb.entrypoints.pgwire.relations import (
    CLASSES,
    DATABASE,
    OWNER,
    SOMEONE,
    Relations,
    formatted,
)
from blowfishdb.entrypoints.pgwire.results import Column, Table
from blowfishdb.language.selected import output_name
from blowfishdb.messages.policies import DatasetInfo

VERSION: Final = "PostgreSQL 15.0 (BlowfishDB)"
SECONDS: Final = 5.0
MOST_ROWS: Final = 100_000
_ROOM: Final = "256MB"
_PG, _IS = "bf_pg", "bf_is"
_UNDEFINED_TABLE: Final = "42P01"
_UNDEFINED_FUNCTION: Final = "42883"

_TABLES: Final = {name: dict(columns) for name, columns in shells.tables(shells.PG_CATALOG)}
_INFORMATION: Final = {name: dict(columns) for name, columns in shells.tables(shells.INFORMATION_SCHEMA)}

_MACROS: Final = (
    "pg_get_userbyid(x) AS CASE x WHEN 10 THEN 'blowfishdb' ELSE 'unknown (OID=' || x || ')' END",
    "pg_table_is_visible(x) AS x >= 16384",
    "pg_type_is_visible(x) AS true",
    "pg_function_is_visible(x) AS true",
    "pg_opclass_is_visible(x) AS true",
    "pg_collation_is_visible(x) AS true",
    "pg_operator_is_visible(x) AS true",
    "pg_conversion_is_visible(x) AS true",
    "pg_statistics_obj_is_visible(x) AS true",
    "pg_ts_config_is_visible(x) AS true",
    "pg_get_expr(a, b) AS CAST(NULL AS VARCHAR), (a, b, c) AS CAST(NULL AS VARCHAR)",
    "pg_get_constraintdef(a) AS CAST(NULL AS VARCHAR), (a, b) AS CAST(NULL AS VARCHAR)",
    "pg_get_indexdef(a) AS CAST(NULL AS VARCHAR), (a, b, c) AS CAST(NULL AS VARCHAR)",
    "pg_get_viewdef(a) AS CAST(NULL AS VARCHAR), (a, b) AS CAST(NULL AS VARCHAR)",
    "pg_get_triggerdef(a) AS CAST(NULL AS VARCHAR), (a, b) AS CAST(NULL AS VARCHAR)",
    "pg_get_ruledef(a) AS CAST(NULL AS VARCHAR), (a, b) AS CAST(NULL AS VARCHAR)",
    "pg_get_partkeydef(a) AS CAST(NULL AS VARCHAR)",
    "pg_get_partition_constraintdef(a) AS CAST(NULL AS VARCHAR)",
    "pg_get_function_result(a) AS CAST(NULL AS VARCHAR)",
    "pg_get_function_arguments(a) AS CAST(NULL AS VARCHAR)",
    "pg_get_function_identity_arguments(a) AS CAST(NULL AS VARCHAR)",
    "pg_get_functiondef(a) AS CAST(NULL AS VARCHAR)",
    "pg_get_statisticsobjdef_columns(a) AS CAST(NULL AS VARCHAR)",
    "pg_get_serial_sequence(a, b) AS CAST(NULL AS VARCHAR)",
    "pg_relation_is_publishable(a) AS false",
    "pg_encoding_to_char(a) AS CASE a WHEN 6 THEN 'UTF8' ELSE '' END",
    "pg_char_to_encoding(a) AS 6",
    "pg_tablespace_location(a) AS ''",
    "pg_relation_size(a) AS CAST(NULL AS BIGINT), (a, b) AS CAST(NULL AS BIGINT)",
    "pg_table_size(a) AS CAST(NULL AS BIGINT)",
    "pg_indexes_size(a) AS CAST(NULL AS BIGINT)",
    "pg_total_relation_size(a) AS CAST(NULL AS BIGINT)",
    "pg_database_size(a) AS CAST(NULL AS BIGINT)",
    "pg_tablespace_size(a) AS CAST(NULL AS BIGINT)",
    "pg_size_pretty(a) AS CASE WHEN a IS NULL THEN NULL ELSE a || ' bytes' END",
    "pg_is_in_recovery() AS false",
    "pg_my_temp_schema() AS 0",
    "pg_is_other_temp_schema(a) AS false",
    "pg_stat_get_numscans(a) AS CAST(NULL AS BIGINT)",
    "pg_column_is_updatable(a, b, c) AS false",
    "pg_relation_is_updatable(a, b) AS 0",
    "pg_has_role(a, b) AS true, (a, b, c) AS true",
    "has_table_privilege(a, b) AS lower(b) LIKE 'select%', (a, b, c) AS lower(c) LIKE 'select%'",
    "has_any_column_privilege(a, b) AS lower(b) LIKE 'select%', (a, b, c) AS lower(c) LIKE 'select%'",
    "has_column_privilege(a, b, c) AS lower(c) LIKE 'select%', (a, b, c, d) AS lower(d) LIKE 'select%'",
    "has_schema_privilege(a, b) AS lower(b) LIKE 'usage%', (a, b, c) AS lower(c) LIKE 'usage%'",
    "has_database_privilege(a, b) AS lower(b) LIKE 'connect%', (a, b, c) AS lower(c) LIKE 'connect%'",
    "has_function_privilege(a, b) AS false, (a, b, c) AS false",
    "has_sequence_privilege(a, b) AS false, (a, b, c) AS false",
    "quote_ident(a) AS CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_]*') THEN a "
    "ELSE '\"' || replace(a, '\"', '\"\"') || '\"' END",
    "quote_literal(a) AS '''' || replace(a, '''', '''''') || ''''",
    "array_upper(a, d) AS CASE WHEN len(a) > 0 THEN len(a) END",
    "array_lower(a, d) AS CASE WHEN len(a) > 0 THEN 1 END",
    "generate_subscripts(a, d) AS unnest(range(1, len(a) + 1))",
    "bf_type(x) AS (SELECT any_value(formatted) FROM bf_pg.bf_types WHERE oid = x)",
    "format_type(x, m) AS (SELECT any_value(formatted) FROM bf_pg.bf_types WHERE oid = x)",
    "to_regtype(x) AS (SELECT any_value(oid) FROM bf_pg.bf_types WHERE "
    "lower(CAST(x AS VARCHAR)) IN (name, formatted))",
    "bf_class(x) AS (SELECT any_value(name) FROM bf_pg.bf_classes WHERE oid = x)",
    "to_regclass(x) AS (SELECT any_value(oid) FROM bf_pg.bf_classes WHERE name = "
    "replace(replace(replace(CAST(x AS VARCHAR), 'public.', ''), 'pg_catalog.', ''), '\"', ''))",
    "bf_namespace(x) AS (SELECT any_value(nspname) FROM bf_pg.pg_namespace WHERE oid = x)",
    "bf_namespace_id(x) AS (SELECT any_value(oid) FROM bf_pg.pg_namespace WHERE nspname = x)",
    "obj_description(x) AS (SELECT any_value(description) FROM bf_pg.pg_description WHERE objoid = x AND "
    "objsubid = 0), (x, c) AS (SELECT any_value(description) FROM bf_pg.pg_description WHERE objoid = x "
    "AND objsubid = 0 AND c = 'pg_class')",
    "col_description(x, n) AS (SELECT any_value(description) FROM bf_pg.pg_description WHERE objoid = x AND "
    "objsubid = n)",
    "shobj_description(x, c) AS CAST(NULL AS VARCHAR)",
    "pg_get_keywords() AS CAST(NULL AS VARCHAR)",
    "txid_current() AS CAST(1 AS BIGINT)",
    "pg_postmaster_start_time() AS TIMESTAMP '2000-01-01'",
    "inet_server_addr() AS CAST(NULL AS VARCHAR)",
    "inet_client_addr() AS CAST(NULL AS VARCHAR)",
    "inet_server_port() AS CAST(NULL AS INTEGER)",
    "pg_jit_available() AS false",
    "_pg_truetypid(a, t) AS 0",
    "_pg_expandarray(a) AS struct_pack(x := a[1], n := 1)",
    "pg_try_advisory_lock(a) AS true",
    "pg_advisory_unlock(a) AS true",
)
_FUNCTIONS: Final = frozenset(macro.partition("(")[0] for macro in _MACROS) | {
    "array_to_string",
    "array_length",
    "cardinality",
    "array_position",
    "btrim",
    "ltrim",
    "rtrim",
    "strpos",
    "concat_ws",
    "starts_with",
    "md5",
    "chr",
    "ascii",
    "upper",
    "lower",
    "length",
    "replace",
    "regexp_replace",
    "to_json",
    "json_object",
    "unnest",
    "generate_series",
    "array_agg",
    "string_agg",
    "bool_and",
    "bool_or",
    "row_number",
    "coalesce",
    "nullif",
    "greatest",
    "least",
    "char_length",
    "position",
    "array_cat",
    "array_append",
    "any_value",
    "count",
    "min",
    "max",
    "sum",
    "any",
}
_HARMLESS: Final[tuple[type[exp.Expr], ...]] = (
    exp.And,
    exp.Or,
    exp.Xor,
    exp.Case,
    exp.If,
    exp.Coalesce,
    exp.Concat,
    exp.ConcatWs,
    exp.Cast,
    exp.Array,
    exp.ArrayAgg,
    exp.ArrayConcat,
    exp.ArraySize,
    exp.ArrayToString,
    exp.ArrayContains,
    exp.ArrayContainsAll,
    exp.GroupConcat,
    exp.Count,
    exp.Min,
    exp.Max,
    exp.Sum,
    exp.Avg,
    exp.LogicalAnd,
    exp.LogicalOr,
    exp.Exists,
    exp.RegexpLike,
    exp.RegexpILike,
    exp.RegexpReplace,
    exp.Lower,
    exp.Upper,
    exp.Length,
    exp.Substring,
    exp.StrPosition,
    exp.Replace,
    exp.Trim,
    exp.Left,
    exp.Right,
    exp.Split,
    exp.SplitPart,
    exp.Round,
    exp.Abs,
    exp.Ceil,
    exp.Floor,
    exp.Greatest,
    exp.Least,
    exp.Nullif,
    exp.Explode,
    exp.Unnest,
    exp.GenerateSeries,
    exp.ExplodingGenerateSeries,
    exp.RowNumber,
    exp.AnyValue,
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.StartsWith,
    exp.Chr,
    exp.MD5,
    exp.Initcap,
    exp.Mod,
    exp.Anonymous,
    exp.CurrentUser,
    exp.SessionUser,
    exp.CurrentRole,
    exp.CurrentSchema,
    exp.CurrentSchemas,
    exp.CurrentDatabase,
    exp.CurrentCatalog,
    exp.CurrentVersion,
)
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
class Catalogue:
    """The system tables over some datasets; safe to share between threads."""

    def __init__(self, datasets: Sequence[DatasetInfo]) -> None:
        relations = Relations(tuple(datasets))
        config = {"threads": "1", "memory_limit": _ROOM, "enable_external_access": "false"}
        self._database = duckdb.connect(":memory:", config=cast("dict[str, Any]", config))
        for schema, tables, rows in (
            (_PG, _TABLES, relations.pg_catalog()),
            (_IS, _INFORMATION, relations.information_schema()),
        ):
            self._database.execute(f"CREATE SCHEMA {schema}")
            for name, columns in tables.items():
                _create(self._database, f"{schema}.{name}", columns, rows.get(name, []))
        kinds = [{"oid": k.oid, "name": k.name, "formatted": formatted(k)} for k in types.BY_OID.values()]
        of_kinds = {"oid": "UINTEGER", "name": "VARCHAR", "formatted": "VARCHAR"}
        _create(self._database, f"{_PG}.bf_types", of_kinds, kinds)
        classes = [{"oid": oid, "name": name} for name, oid in CLASSES.items()]
        classes += [{"oid": row["oid"], "name": row["relname"]} for row in relations.pg_catalog()["pg_class"]]
        _create(self._database, f"{_PG}.bf_classes", {"oid": "UINTEGER", "name": "VARCHAR"}, classes)
        for macro in _MACROS:
            self._database.execute(f"CREATE MACRO {macro}")
        self._database.execute("SET lock_configuration = true")

    def ask(self, tree: exp.Expr, names: Sequence[str] | None = None) -> Table:
        """The rows that a statement of the engine's own asks for, in time."""
        cursor = self._database.cursor()
        with _in_time(cursor):
            try:
                cursor.execute(tree.sql("duckdb"))
                rows = cursor.fetchmany(MOST_ROWS + 1)
            except duckdb.InterruptException:
                raise Refusal(CANCELLED, "This took too long, and was given up.") from None
            except (duckdb.Error, SqlglotError) as error:
                raise _not_answered(error) from None
        if len(rows) > MOST_ROWS:
            raise Refusal("54000", f"These are more than {MOST_ROWS:,} rows.", hint="Try: LIMIT 1000")
        described = cursor.description or []
        called = names if names is not None and len(names) == len(described) else [d[0] for d in described]
        kinds = [_type(str(kind)) for _, kind, *_ in described]
        return Table(tuple(map(Column, called, kinds)), rows)

    def close(self) -> None:
        """Let go of its memory."""
        self._database.close()


def _create(
    database: duckdb.DuckDBPyConnection,
    name: str,
    columns: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
) -> None:
    listed = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
    database.execute(f"CREATE TABLE {name} ({listed})")
    if rows:
        marks = ", ".join("?" for _ in columns)
        filled = [[row.get(column) for column in columns] for row in rows]
        database.executemany(f"INSERT INTO {name} VALUES ({marks})", filled)  # noqa: S608 - names of ours


@contextmanager
def _in_time(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    timer = threading.Timer(SECONDS, cursor.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _not_answered(error: Exception) -> Refusal:
    """What the engine could not do; its message speaks of tables of ours, and of nothing else."""
    words = str(error).splitlines()[0][:200].replace(f"{_PG}.", "").replace(f"{_IS}.", "")
    return Refusal(NOT_SUPPORTED, f"The catalogue does not answer this: {words}")


def _type(name: str) -> types.PgType:
    element = name.removesuffix("[]")
    plain = {
        "BOOLEAN": types.BOOL,
        "TINYINT": types.INT2,
        "SMALLINT": types.INT2,
        "INTEGER": types.INT4,
        "BIGINT": types.INT8,
        "UINTEGER": types.OID,
        "UBIGINT": types.NUMERIC,
        "HUGEINT": types.NUMERIC,
        "FLOAT": types.FLOAT4,
        "DOUBLE": types.FLOAT8,
        "DATE": types.DATE,
        "TIMESTAMP": types.TIMESTAMP,
        "TIMESTAMP WITH TIME ZONE": types.TIMESTAMPTZ,
    }.get(element)
    if plain is None:
        plain = types.NUMERIC if element.startswith("DECIMAL") else types.TEXT
    return types.ARRAYS.get(plain.oid, types.TEXT) if name != element else plain


# --- statements -----------------------------------------------------------------------------------


@final
class Reader:
    """Reads statements about the catalogue in the name of someone, and writes them for the engine."""

    def __init__(self, user: str, process: int, setting: Any) -> None:
        self._user = user
        self._process = process
        self._setting = setting

    def read(self, text: str) -> tuple[exp.Expr, list[str] | None]:
        """The statement as the engine runs it, and the names of its columns where the statement says them.

        Refused if it names anything else than the catalogue.
        """
        tree = parsed(text)
        for node in tree.walk():
            if isinstance(node, _FORBIDDEN):
                raise Refusal("42501", "The catalogue is read, and nothing is written.")
        tree = _from_below(tree, self._unqualified)
        names = _names(tree)
        self._tables(tree)
        tree = _from_below(tree, self._rewritten)
        for node in tree.find_all(exp.Func):
            if not isinstance(node, _HARMLESS):
                raise _unknown_function(node.sql_name().lower())
            if isinstance(node, exp.Anonymous) and str(node.this).lower() not in _FUNCTIONS:
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
                table.set("db", None)
                table.set("catalog", None)
                continue
            name, schema = table.name.casefold(), table.db.casefold()
            if not schema and name in steps:
                continue
            if schema in ("", "pg_catalog") and name in _TABLES:
                self._named(table, name, _PG, _TABLES[name])
            elif schema == "information_schema" and name in _INFORMATION:
                self._named(table, name, _IS, _INFORMATION[name])
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
                return exp.Literal.string("public")
            case exp.CurrentSchemas():
                return exp.array("'pg_catalog'", "'public'") if _truth(node) else exp.array("'public'")
            case exp.CurrentVersion():
                return exp.Literal.string(VERSION)
            case exp.Column() if not node.table and node.name == "user" and not node.this.args.get("quoted"):
                return exp.Literal.string(self._user)
            case exp.Anonymous():
                return self._function(node)
            case exp.EQ() | exp.NEQ():
                return _listed(node)
        return node

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
            return exp.Literal.string("public")
        if name == "current_schemas":
            return exp.array("'public'")
        asked = node.expressions[0] if node.expressions else None
        asked = asked.this if isinstance(asked, exp.Cast) else asked
        if name == "current_setting" and asked is not None and asked.is_string:
            try:
                return exp.Literal.string(self._setting(asked.name, None))
            except Refusal:
                if len(node.expressions) > 1:
                    return exp.null()
                raise
        if (
            name == "set_config"
            and len(node.expressions) == 3
            and all(e.is_string for e in node.expressions[:2])
        ):
            return exp.Literal.string(self._setting(node.expressions[0].name, node.expressions[1].name))
        node.set("this", name)
        return node


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


def _names(tree: exp.Expr) -> list[str] | None:
    """What PostgreSQL calls the columns; None where a star or a list of values says it."""
    if not isinstance(tree, exp.Select) or any(item.is_star for item in tree.expressions):
        return None
    return [output_name(item) for item in tree.expressions]


def _unescaped(text: str) -> str:
    for escape, meant in (("\\n", "\n"), ("\\t", "\t"), ("\\'", "'"), ("\\\\", "\\")):
        text = text.replace(escape, meant)
    return text


def parsed(text: str) -> exp.Expr:
    """A statement that asks for rows, as a tree."""
    try:
        trees = sqlglot.parse(text, read="postgres")
    except (SqlglotError, RecursionError):
        raise Refusal(SYNTAX, "This is not SQL that can be read.") from None
    except Exception:  # the parser is not ours: whatever it trips over, the text could not be read
        raise Refusal(SYNTAX, "This is not SQL that can be read.") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query | exp.Values):
        raise Refusal(SYNTAX, "This is not SQL that can be read.")
    return trees[0]


def _truth(node: exp.Expr) -> bool:
    said = node.this or (node.expressions[0] if node.expressions else None)
    return isinstance(said, exp.Boolean) and bool(said.this)


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


def parameter_type(column: str) -> types.PgType:
    """What a parameter is that is compared with a column of the catalogue."""
    for columns in (*_TABLES.values(), *_INFORMATION.values()):
        if column in columns:
            return _type(columns[column])
    return types.TEXT


def names_catalogue(schema: str, name: str) -> bool:
    """Whether a table is one of the catalogue."""
    if schema.casefold() == "information_schema":
        return name.casefold() in _INFORMATION
    return schema.casefold() in ("", "pg_catalog") and name.casefold() in _TABLES


__all__ = [
    "DATABASE",
    "OWNER",
    "VERSION",
    "Catalogue",
    "Reader",
    "names_catalogue",
    "parameter_type",
    "parsed",
]
