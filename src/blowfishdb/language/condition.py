"""Conditions as SQL: ``age >= 30 AND region IN ('north')`` to a predicate and back.

A condition compares columns with constants. Whatever would have to be computed from a row (functions,
patterns, arithmetic, other columns, subqueries) is refused, with the nearest condition that works.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import final

from sqlglot import exp

from blowfishdb.core.domain.attributes import Boolean, Category
from blowfishdb.core.domain.conditions import Between, Comparison, Constant, IsIn, IsMissing, Op
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import And, Everything, Not, Or, Predicate
from blowfishdb.core.domain.values import moment
from blowfishdb.core.errors import InvalidPredicate, InvalidQuestion, UnsupportedSql
from blowfishdb.language.text import (
    DEEPEST,
    column_name,
    name_text,
    number_from,
    quoted_text,
    shown,
    sql_tree,
    sql_value,
)

_DEEPEST_TREE = 2 * DEEPEST  # each level of parentheses can hold one NOT more
_OPS: dict[type[exp.Expr], Op] = {
    exp.GTE: Op.GE,
    exp.GT: Op.GT,
    exp.LTE: Op.LE,
    exp.LT: Op.LT,
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
}
_TURNED = {Op.GE: Op.LE, Op.GT: Op.LT, Op.LE: Op.GE, Op.LT: Op.GT, Op.EQ: Op.EQ, Op.NE: Op.NE}
_SQL_OPS = {Op.EQ: "=", Op.NE: "<>"}
_NO_SUBQUERY = "a question reads one dataset, once, so subqueries are not answered."
_WHY: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Subquery, exp.Query, exp.Exists, exp.SubqueryPredicate), _NO_SUBQUERY),
    (
        (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.Glob, exp.Escape),
        "patterns are not matched; list the values that are meant.",
    ),
    ((exp.Placeholder, exp.Parameter), "there are no parameters here; write the value itself."),
    ((exp.NullSafeEQ, exp.NullSafeNEQ), "compare with = or <>, and ask for IS NULL apart."),
    (
        (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.IntDiv),
        "nothing is calculated from a column; move the arithmetic to the other side.",
    ),
    ((exp.Case, exp.Func), "functions of a column are not computed; compare the column itself."),
)


def condition(text: str, domain: Domain) -> Predicate:
    """The predicate that a SQL condition stands for, checked against the declared columns."""
    return condition_of(sql_tree(text, exp.Condition, example_condition(domain)), domain)


def condition_of(tree: exp.Expr, domain: Domain) -> Predicate:
    """The same for a condition that is already a tree."""
    predicate = _Reader(domain).predicate(tree, 0)
    predicate.check(domain)
    return predicate


def condition_text(predicate: Predicate) -> str:
    """SQL that reads back as ``predicate`` (a combination of a single part as that part)."""
    return _written(predicate, 0)


def example_condition(domain: Domain, column: str | None = None) -> str:
    """A condition that works, about ``column`` or the first one."""
    name = column if column is not None and column in domain else domain.names[0]
    attribute = domain[name]
    if isinstance(attribute, Category):
        return f"{name_text(name)} IN ({sql_value(attribute.at(0))})"
    if isinstance(attribute, Boolean):
        return f"{name_text(name)} = TRUE"
    return f"{name_text(name)} >= {sql_value(attribute.lower(attribute.value_count // 2))}"


# --- reading ------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class _Reader:
    """Walks a syntax tree, accepting only what a predicate can say."""

    domain: Domain

    def predicate(self, node: exp.Expr, depth: int) -> Predicate:
        if depth > _DEEPEST_TREE:
            raise InvalidQuestion("This condition is nested too deeply.", fixes=("a flatter one",))
        match node:
            case exp.Paren():
                return self.predicate(node.this, depth + 1)
            case exp.And() | exp.Or():
                parts = tuple(self.predicate(part, depth + 1) for part in _chain(node))
                return And(parts) if isinstance(node, exp.And) else Or(parts)
            case exp.Not():
                return Not(self.predicate(node.this, depth + 1))
            case exp.Boolean():
                return Everything() if node.this else Not(Everything())
            case exp.Column():
                return self._flag(node)
            case exp.Between() if not node.args.get("symmetric"):
                low, high = node.args["low"], node.args["high"]
                return Between(self._column(node.this, node), self._constant(low), self._constant(high))
            case exp.In() if node.expressions:
                values = tuple(self._constant(value) for value in node.expressions)
                return IsIn(self._column(node.this, node), values)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsMissing(self._column(node.this, node))
        if type(node) in _OPS:
            return self._comparison(node, _OPS[type(node)])
        raise self._refusal(node)

    def _comparison(self, node: exp.Expr, op: Op) -> Predicate:
        left, right = node.this, node.expression
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            raise self._two_columns(left, right, op)
        if isinstance(left, exp.Column):
            self._not_null(right, left, op)
            return Comparison(self._column(left, node), op, self._constant(right))
        self._not_null(left, right, op)
        computed = left if not isinstance(left, exp.Literal | exp.Cast | exp.Boolean) else right
        column = self._column(right if isinstance(right, exp.Column) else computed, node)
        return Comparison(column, _TURNED[op], self._constant(left))

    def _flag(self, node: exp.Column) -> Predicate:
        name = self._column(node, node)
        if not isinstance(self.domain[name], Boolean):
            raise InvalidPredicate(
                f"{name} is a column, not a condition.", fixes=(example_condition(self.domain, name),)
            )
        return Comparison(name, Op.EQ, True)

    def _column(self, node: exp.Expr, whole: exp.Expr) -> str:
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise self._refusal(node if isinstance(node, exp.Func | exp.Binary | exp.Unary) else whole)
        if node.table:
            raise UnsupportedSql(
                f"{shown(node)}: a condition is about the columns of one dataset.",
                fixes=(example_condition(self.domain, node.name),),
            )
        return column_name(node.name, self.domain, quoted=bool(node.this.args.get("quoted")))

    def _constant(self, node: exp.Expr) -> Constant:
        match node:
            case exp.Literal():
                return str(node.this) if node.is_string else number_from(node.this)
            case exp.Boolean():
                return bool(node.this)
            case exp.Paren():
                return self._constant(node.this)
            case exp.Neg():
                return _minus(self._number(node.this, node))
            case exp.Div():
                return self._ratio(node)
            case exp.Cast() if isinstance(node.this, exp.Literal) and node.this.is_string:
                return _dated(node)
            case exp.Column():
                raise self._unquoted(node)
        raise self._refusal(node)

    def _number(self, node: exp.Expr, whole: exp.Expr) -> int | float | Decimal | Fraction:
        number = self._constant(node) if isinstance(node, exp.Literal | exp.Neg | exp.Paren) else None
        if isinstance(number, bool) or not isinstance(number, int | float | Decimal | Fraction):
            raise self._refusal(whole)
        return number

    def _ratio(self, node: exp.Div) -> Fraction:
        """1/3 is a number that no decimal says exactly."""
        top, bottom = (self._number(part, node) for part in (node.this, node.expression))
        if not isinstance(top, int) or not isinstance(bottom, int) or bottom == 0:
            raise InvalidQuestion(f"{shown(node)} is not a fraction of two whole numbers.", fixes=("1/3",))
        return Fraction(top, bottom)

    # --- refusals -------------------------------------------------------------------------------

    def _not_null(self, node: exp.Expr, column: exp.Expr, op: Op) -> None:
        if isinstance(node, exp.Null) and isinstance(column, exp.Column):
            name = name_text(self._column(column, column))
            asked = "IS NOT NULL" if op is Op.NE else "IS NULL"
            raise InvalidPredicate("Nothing is equal to NULL, not even NULL.", fixes=(f"{name} {asked}",))

    def _two_columns(self, left: exp.Column, right: exp.Column, op: Op) -> Exception:
        known = column_name(left.name, self.domain, quoted=bool(left.this.args.get("quoted")))
        if right.name not in self.domain and not right.table:  # "north" where 'north' was meant
            written = f"{name_text(known)} {_SQL_OPS.get(op, op.value)} {quoted_text(right.name)}"
            return InvalidPredicate(f"There is no column {right.name!r}.", fixes=(written,))
        return UnsupportedSql(
            f"{shown(left)} and {shown(right)}: two columns cannot be compared with each other.",
            fixes=(example_condition(self.domain, known),),
        )

    def _unquoted(self, node: exp.Column) -> Exception:
        if node.name in self.domain or node.table:
            return self._refusal(node)
        return InvalidPredicate(f"{node.name!r} is not a value.", fixes=(quoted_text(node.name),))

    def _refusal(self, node: exp.Expr) -> Exception:
        reason = next((why for kinds, why in _WHY if isinstance(node, kinds)), None)
        if node.find(exp.Query) is not None:
            reason = _NO_SUBQUERY
        around = (node, node.parent) if isinstance(node.parent, exp.Condition) else (node,)
        columns = (column.name for part in around for column in part.find_all(exp.Column))
        names = [name for name in columns if name in self.domain]
        return UnsupportedSql(
            f"{shown(node)}: {reason or 'a condition compares a column with constants.'}",
            fixes=(example_condition(self.domain, names[0] if names else None),),
        )


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """``a AND b AND c`` as three parts; the tree leans to the left, as deep as the text is long."""
    kind, parts, rest = type(node), [], node
    while type(rest) is kind:
        parts.append(rest.expression)
        rest = rest.this
    return [rest, *reversed(parts)]


def _minus(value: int | float | Decimal | Fraction) -> int | float | Decimal | Fraction:
    return value.copy_negate() if isinstance(value, Decimal) else -value


def _dated(node: exp.Cast) -> date:
    """DATE '…' and TIMESTAMP '…'."""
    kind, written = node.to.this, str(node.this.this)
    if kind == exp.DataType.Type.DATE:
        value = moment(written, "DATE '…'", InvalidQuestion)
        if isinstance(value, datetime):
            raise InvalidQuestion(
                "DATE '…' has no time of day.", fixes=(f"TIMESTAMP {quoted_text(written)}",)
            )
        return value
    if kind in (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.DATETIME, exp.DataType.Type.TIMESTAMPNTZ):
        value = moment(written, "TIMESTAMP '…'", InvalidQuestion)
        return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    raise UnsupportedSql(
        f"{shown(node)}: only dates and moments are written with their type.",
        fixes=("DATE '2024-12-31'", "TIMESTAMP '2024-12-31 23:59:59'"),
    )


# --- writing ------------------------------------------------------------------------------------


def _written(predicate: Predicate, depth: int) -> str:
    if depth >= DEEPEST:
        raise InvalidPredicate("This condition is nested too deeply to be written.", fixes=("a flatter one",))
    match predicate:
        case And((part,)) | Or((part,)):
            return _written(part, depth)
        case And(parts) | Or(parts):
            word = " AND " if isinstance(predicate, And) else " OR "
            return word.join(_inside(part, depth) for part in parts)
        case Not(part):
            return _negated(part, depth)
        case Everything():
            return "TRUE"
        case Comparison(column, op, value):
            return f"{name_text(column)} {_SQL_OPS.get(op, op.value)} {sql_value(value)}"
    return _listed(predicate, "")


def _inside(part: Predicate, depth: int) -> str:
    """A part of a longer condition, in parentheses where it is one itself."""
    bare = _single(part)
    if isinstance(bare, And | Or):
        return f"({_written(bare, depth + 1)})"
    return _written(bare, depth)


def _single(part: Predicate) -> Predicate:
    while isinstance(part, And | Or) and len(part.parts) == 1:
        part = part.parts[0]
    return part


def _negated(part: Predicate, depth: int) -> str:
    if isinstance(part, Between | IsIn | IsMissing):
        return _listed(part, "NOT ")
    return f"NOT ({_written(part, depth + 1)})"


def _listed(predicate: Predicate, negation: str) -> str:
    match predicate:
        case Between(column, lo, hi):
            return f"{name_text(column)} {negation}BETWEEN {sql_value(lo)} AND {sql_value(hi)}"
        case IsIn(column, values):
            return f"{name_text(column)} {negation}IN ({', '.join(map(sql_value, values))})"
        case IsMissing(column):
            return f"{name_text(column)} IS {negation}NULL"
    raise InvalidPredicate(f"A {type(predicate).__name__} cannot be written in SQL.")
