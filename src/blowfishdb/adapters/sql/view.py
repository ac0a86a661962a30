"""Views that a curator writes: what a SELECT may contain, and which columns decide which rows there are.

A row of a view comes from one row of each table that it names, and whatever is computed for it is computed
from that row alone and cannot fail: a statement that fails on some rows would tell that they are there, and
a row that comes and goes with a hidden value changes how many there are. So a view is read by a list of what
is allowed, not of what is forbidden; a function that nobody has thought about is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from blowfishdb.adapters.sql.values import SqlExpr
from blowfishdb.core.errors import InvalidInput

Names = frozenset[str]
"""Columns by name alone, in lower case: two tables may each have one, and then both are meant."""

_EXAMPLE: Final = "SELECT age, region FROM people"
_SELECT_PARTS: Final = {"expressions", "from_", "joins", "where", "kind"}
_TABLE_PARTS: Final = {"this", "db", "catalog", "alias"}
_CONNECTIVES: Final = (exp.And, exp.Or, exp.Not, exp.Paren)
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_ARITHMETIC: Final = (exp.Add, exp.Sub, exp.Mul, exp.Div)
_TEXTS: Final = (exp.Lower, exp.Upper, exp.Trim, exp.Length)
_TEXT_TYPES: Final = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR)


class Arithmetic(Enum):
    """What a database computes without ever failing."""

    NONE = "nothing"
    FLOATS = "floating-point numbers"
    ANY = "any numbers"


@final
@dataclass(frozen=True)
class Rules:
    """What is known never to fail in one database."""

    arithmetic: Arithmetic = Arithmetic.NONE
    tries: bool = False
    """TRY_CAST is there."""
    casts: bool = False
    """CAST itself never fails."""
    typed: bool = False
    """Values of different types are converted before they are compared, which can fail: types must agree."""
    likes: bool = True
    pipes: bool = True


_RULES: Final = {
    "duckdb": Rules(Arithmetic.FLOATS, tries=True, typed=True),
    "trino": Rules(Arithmetic.FLOATS, tries=True, typed=True),
    "spark": Rules(Arithmetic.ANY, tries=True),  # in sessions without ANSI mode, as ours are
    "sqlite": Rules(Arithmetic.ANY, casts=True),
    "postgres": Rules(typed=True, likes=False),  # LIKE fails under some collations
    "mysql": Rules(pipes=False),
}


class Need(Enum):
    """What the types of some values have to be for an expression never to fail."""

    SAME = "of one type"
    FLOAT = "floating-point numbers"


@final
@dataclass(frozen=True, eq=False)
class Group:
    """Values of one SELECT that meet in an expression, and what their types have to be."""

    select: exp.Select
    values: tuple[SqlExpr, ...]
    need: Need = Need.SAME

    @property
    def typed(self) -> list[SqlExpr]:
        """The values whose types the database knows; literals take the type of what they meet."""
        return [value for value in self.values if _literal(value) is None]

    @property
    def numbers(self) -> bool:
        """Whether a number is written among them."""
        return any(_literal(value) == "number" for value in self.values)


@final
@dataclass(frozen=True, eq=False)
class View:
    """A SELECT that was read.

    ``conditions`` decide which rows there are; ``matches`` do so unless every row finds exactly one match;
    ``lookups`` (of LEFT JOIN) do so only where a row finds several.
    """

    query: exp.Query
    tables: tuple[exp.Table, ...]
    conditions: Names
    matches: Names
    lookups: Names
    groups: tuple[Group, ...]
    _made: Mapping[str, Names] | None = field(default=None)

    @property
    def joins(self) -> bool:
        """Whether a row is made from rows of several tables."""
        return any(select.args.get("joins") for select in self.query.find_all(exp.Select))

    def made_from(self, column: str) -> Names:
        """The columns of tables from which a column of the view is made."""
        name = column.lower()
        return Names({name}) if self._made is None else self._made.get(name, Names({name}))


def statement(text: str, dialect: str) -> exp.Query:
    """The one SELECT of a text."""
    try:
        statements = sqlglot.parse(text, dialect=dialect)
    except (SqlglotError, RecursionError):
        raise InvalidInput("The view is not SQL that can be read.", fixes=(_EXAMPLE,)) from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise InvalidInput("A view is one SELECT statement.", fixes=(_EXAMPLE,))
    return statements[0]


def read_view(text: str, dialect: str) -> View:
    """A view whose every part is allowed; anything else is refused with the reason."""
    query = statement(text, dialect)
    reader = _SelectReader(_RULES.get(dialect))
    selects = list(_selects(query))
    read = [reader.select(select) for select in selects]
    tables = tuple(table for select in selects for table in select.find_all(exp.Table))
    names = [table.name.lower() for table in tables]
    if len(set(names)) < len(names):
        raise InvalidInput(
            "A view may use a table only once, and tables are told apart by their names without a schema: a "
            "row could meet others of its own table.",
            fixes=("name each table once",),
        )
    return View(
        query,
        tables,
        Names().union(*(each.conditions for each in read)),
        Names().union(*(each.matches for each in read)),
        Names().union(*(each.lookups for each in read)),
        tuple(reader.groups),
        _outputs([each.outputs for each in read]),
    )


def _selects(query: exp.Query) -> Iterator[exp.Select]:
    """The branches of UNION ALL, from left to right."""
    if isinstance(query, exp.Union):
        used = {name for name, value in query.args.items() if value}
        if query.args.get("distinct") or used - {"this", "expression", "distinct"}:
            raise _refused("UNION without ALL, BY NAME, or anything behind it")
        for side in (query.this, query.expression):
            yield from _selects(side)
    elif isinstance(query, exp.Select):
        yield query
    else:
        raise _refused(_words(query))


def _outputs(branches: list[dict[str, Names] | None]) -> dict[str, Names] | None:
    """What each column is made from; by position where several SELECTs are put behind each other."""
    if len(branches) == 1:
        return branches[0]
    lists = [None if branch is None else list(branch.values()) for branch in branches]
    if any(each is None or len(each) != len(lists[0] or ()) for each in lists):
        raise InvalidInput("With UNION ALL every SELECT lists its columns, as many as the first.")
    merged = [Names().union(*column) for column in zip(*(each or [] for each in lists), strict=True)]
    return dict(zip(branches[0] or {}, merged, strict=True))


@final
@dataclass(frozen=True)
class _Read:
    outputs: dict[str, Names] | None
    conditions: Names
    matches: Names
    lookups: Names


@final
class _SelectReader:
    """Goes through a SELECT and collects what is decided and compared in it."""

    def __init__(self, rules: Rules | None) -> None:
        self.rules = rules
        self.groups: list[Group] = []
        self._select = exp.Select()
        self._tables: set[str] = set()

    def select(self, select: exp.Select) -> _Read:
        self._select = select
        used = {name for name, value in select.args.items() if value}
        for part in sorted(used - _SELECT_PARTS):
            raise _refused(_part_words(part))
        if select.args.get("kind") or "from_" not in used:
            raise _refused("SELECT without a table")
        joins: list[exp.Join] = select.args.get("joins") or []
        tables = [self._table(select.args["from_"].this), *(self._table(join.this) for join in joins)]
        self._tables = {table.alias_or_name.lower() for table in tables}
        if self.rules is None and (joins or select.args.get("where")):
            raise _unknown()
        outputs, aliases = self._projections(select.expressions, bool(joins))
        where = select.args.get("where")
        conditions = Names() if where is None else self._condition(where.this)
        matches, lookups = Names(), Names()
        for join in joins:
            named = self._join(join)
            matches, lookups = (
                (matches, lookups | named) if join.side == "LEFT" else (matches | named, lookups)
            )
        return _Read(outputs, *(_expanded(names, aliases) for names in (conditions, matches, lookups)))

    # --- tables -----------------------------------------------------------------------------------

    def _table(self, table: SqlExpr) -> exp.Table:
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise _refused("anything but tables behind FROM and JOIN", "functions and subqueries are not")
        extra = {name for name, value in table.args.items() if value} - _TABLE_PARTS
        alias = table.args.get("alias")
        if extra or (alias is not None and alias.args.get("columns")):
            raise _refused("more than a table and another name for it behind FROM and JOIN")
        return table

    def _join(self, join: exp.Join) -> Names:
        plain = not join.method and join.side in ("", "LEFT") and join.kind in ("", "INNER", "CROSS", "OUTER")
        allowed = {"this", "side", "kind", "on", "using"}
        if not plain or {name for name, value in join.args.items() if value} - allowed:
            raise _refused("joins other than JOIN and LEFT JOIN")
        if join.args.get("using"):
            return Names(column.name.lower() for column in join.args["using"])
        on = join.args.get("on")
        if on is None:
            return Names()
        for part in on.flatten() if isinstance(on, exp.And) else (on,):
            both = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
            if not both or not all(isinstance(side, exp.Column) for side in both):
                raise _refused("join conditions other than columns that are equal, joined by AND")
        return self._condition(on)

    # --- columns ----------------------------------------------------------------------------------

    def _projections(
        self, projections: list[SqlExpr], joined: bool
    ) -> tuple[dict[str, Names] | None, dict[str, Names]]:
        """What each column is made from (None: ``*``, each from its namesake), and the new names."""
        outputs: dict[str, Names] = {}
        aliases: dict[str, Names] = {}
        everything = False
        for projection in projections:
            if _is_star(projection):
                everything = True
                continue
            value = projection.this if isinstance(projection, exp.Alias) else projection
            if not isinstance(projection, exp.Alias) and not isinstance(value, exp.Column):
                raise InvalidInput("A column that a view computes needs a name.", fixes=("… AS name",))
            made = self._value(value)
            name = projection.alias_or_name.lower()
            if name in outputs:
                raise InvalidInput(f"Two columns of the view are called {name!r}.", fixes=("rename one",))
            outputs[name] = made
            if isinstance(projection, exp.Alias):
                aliases[name] = made
        if everything and (joined or outputs):
            raise InvalidInput(
                "A view takes all columns of one table with *, or lists its columns.", fixes=(_EXAMPLE,)
            )
        made_of = {name: _expanded(made, aliases) for name, made in outputs.items()}
        return (None if everything else made_of), aliases

    def _column(self, column: exp.Column) -> Names:
        if column.args.get("db") or (column.table and column.table.lower() not in self._tables):
            raise _refused("columns of anything but the tables behind FROM and JOIN")
        if not isinstance(column.this, exp.Identifier):
            raise _refused(_words(column.this))
        if not column.table and column.name.lower() in self._tables:
            raise _refused("the name of a table as a value", "the name of the table in front of the column")
        return Names({column.name.lower()})

    # --- expressions ------------------------------------------------------------------------------

    def _condition(self, node: SqlExpr) -> Names:
        """A condition; a value that stands for itself would be converted to a truth."""
        if isinstance(node, _CONNECTIVES):
            return Names().union(*(self._condition(part) for part in node.iter_expressions()))
        if isinstance(node, exp.Boolean):
            return Names()
        if isinstance(node, exp.Is):
            return self._value(node.this) | self._constant(node.expression)
        if isinstance(node, _COMPARISONS):
            return self._met((node.this, node.expression))
        if isinstance(node, exp.In) and not {name for name, value in node.args.items() if value} - {
            "this",
            "expressions",
        }:
            return self._met((node.this, *node.expressions))
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            return self._met((node.this, node.args["low"], node.args["high"]))
        if isinstance(node, exp.Like) and self.rules is not None and self.rules.likes:
            pattern = node.expression
            if isinstance(pattern, exp.Literal) and pattern.is_string and "\\" not in pattern.name:
                return self._value(node.this)
        raise _refused(f"{_words(node)} as a condition")

    def _met(self, values: tuple[SqlExpr, ...], need: Need = Need.SAME) -> Names:
        """Values that meet: written ones are of one kind, and the database says what the others are."""
        kinds = {_literal(value) for value in values} - {None, "null"}
        if len(kinds) > 1:
            raise _refused("texts and numbers in one comparison")
        if self.rules is not None and self.rules.typed:
            self.groups.append(Group(self._select, values, need))
        return Names().union(*(self._value(value) for value in values))

    def _value(self, node: SqlExpr) -> Names:
        """A value, and the columns that it is made from."""
        if isinstance(node, exp.Column):
            return self._column(node)
        if _literal(node) is not None:
            return Names()
        if self.rules is None:
            raise _unknown()
        if isinstance(node, exp.Paren):
            return self._value(node.this)
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, _TEXTS) and set(_given(node)) <= {"this"}:
            return self._value(node.this)
        if isinstance(node, exp.DPipe) and self.rules.pipes:
            return self._value(node.this) | self._value(node.expression)
        if isinstance(node, exp.Case):
            return self._case(node)
        if isinstance(node, _ARITHMETIC) and self.rules.arithmetic is not Arithmetic.NONE:
            both = (node.this, node.expression)
            if self.rules.arithmetic is Arithmetic.ANY:
                return self._value(both[0]) | self._value(both[1])
            return self._met(both, Need.FLOAT)
        raise _refused(_words(node))

    def _case(self, node: exp.Case) -> Names:
        if node.this is not None:
            raise _refused("CASE with a value behind it", "CASE WHEN … THEN … END is allowed")
        decided = Names().union(*(self._condition(branch.this) for branch in node.args["ifs"]))
        results = [branch.args["true"] for branch in node.args["ifs"]]
        if node.args.get("default") is not None:
            results.append(node.args["default"])
        return decided | self._met(tuple(results))

    def _cast(self, node: exp.Cast) -> Names:
        assert self.rules is not None
        to = node.args["to"]
        if set(_given(node)) - {"this", "to"} or not isinstance(to, exp.DataType):
            raise _refused("conversions with further words")
        if isinstance(node.this, exp.Literal):  # a constant fails for everyone or for no one
            return Names()
        tried = isinstance(node, exp.TryCast)
        text = to.this in _TEXT_TYPES and not to.expressions
        if (tried and self.rules.tries) or (not tried and (text or self.rules.casts)):
            return self._value(node.this)
        fix = "TRY_CAST, which never fails" if self.rules.tries else "a column of the right type"
        raise _refused("a CAST that fails on some values", fix)

    def _constant(self, node: SqlExpr) -> Names:
        if isinstance(node, (exp.Null, exp.Boolean)):
            return Names()
        raise _refused(f"IS {_words(node)}")


def _given(node: SqlExpr) -> Iterable[str]:
    return (name for name, value in node.args.items() if value and name not in ("safe", "position", "action"))


def _literal(node: SqlExpr) -> str | None:
    """The kind of a written value; None for anything else."""
    if isinstance(node, exp.Literal):
        return "text" if node.is_string else "number"
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return "number"
    if isinstance(node, exp.Boolean):
        return "truth"
    return "null" if isinstance(node, exp.Null) else None


def _is_star(node: SqlExpr) -> bool:
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star):
        return False
    if any(star.args.values()):
        raise _refused("* with exceptions or replacements")
    return True


def _expanded(names: Names, aliases: Mapping[str, Names]) -> Names:
    """With what a name stands for where it is a new one: some databases look there as well."""
    columns = names
    while True:
        more = columns.union(*(aliases[name] for name in columns if name in aliases))
        if more == columns:
            return columns
        columns = more


def _words(node: SqlExpr) -> str:
    """A part of a statement as the curator knows it."""
    if isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc)):
        return f"the function {node.name}"
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name()}"
    if isinstance(node, (exp.Subquery, exp.Query)):
        return "a SELECT inside another"
    return type(node).__name__.upper()


def _part_words(part: str) -> str:
    names = {"with_": "WITH", "group": "GROUP BY", "order": "ORDER BY", "laterals": "LATERAL"}
    return names.get(part, part.strip("_").upper())


def _refused(what: str, *fixes: str) -> InvalidInput:
    return InvalidInput(
        f"A view may not use {what}: its rows come from one row of each table, and nothing in it may fail on "
        "some rows, or mix rows.",
        fixes=fixes or ("choose, rename, compare and join columns", "convert a column where it is stored"),
    )


def _unknown() -> InvalidInput:
    return InvalidInput(
        "A view of this database may only choose and rename columns: what else could fail on some rows is "
        "not known.",
        fixes=("CREATE VIEW in the database, and name it as the table",),
    )
