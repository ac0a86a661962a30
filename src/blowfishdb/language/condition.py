"""Conditions as SQL: ``age >= 30 AND region IN ('north')`` to a predicate and back.

A condition compares columns with constants. Arithmetic on one column and functions of declared values
become such comparisons (``computed``); whatever else would have to be computed from a row (other columns,
subqueries) is refused, with the nearest condition that works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, final

from sqlglot import exp

from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.conditions import COMPARES, Between, Comparison, Constant, IsIn, IsMissing, Op
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import And, Atom, Everything, Not, Or, Predicate
from blowfishdb.core.domain.values import moment
from blowfishdb.core.errors import BlowfishError, InvalidPredicate, InvalidQuestion, UnsupportedSql
from blowfishdb.language.computed import (
    Linear,
    bare,
    like,
    matches,
    number_in,
    spelt_out,
)
from blowfishdb.language.expressions import (
    NotComputed,
    divides_whole_numbers,
    exactly,
    forgets_missing,
    value_of,
)
from blowfishdb.language.text import (
    DEEPEST,
    column_name,
    name_text,
    number_from,
    quoted_text,
    shown,
    sql_tree,
    sql_value,
    with_full_names,
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
_TODAY = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime, exp.CurrentDatetime)
_WHY: tuple[tuple[tuple[type[exp.Expr], ...], str], ...] = (
    ((exp.Subquery, exp.Query, exp.Exists, exp.SubqueryPredicate), _NO_SUBQUERY),
    (
        (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.Glob, exp.Escape),
        "only LIKE and ILIKE, and simple patterns, are matched with listed values; list those you mean.",
    ),
    ((exp.Placeholder, exp.Parameter), "there are no parameters here; write the value itself."),
    (
        (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.IntDiv),
        "only multiples and sums of one column of numbers are calculated; move the rest to the other side.",
    ),
    (_TODAY, "a question means the same on every day; write the day itself."),
    ((exp.Case, exp.Func), "functions of a column are not computed; compare the column itself."),
)


def condition(text: str, domain: Domain) -> Predicate:
    """The predicate that a SQL condition stands for, checked against the declared columns."""
    return condition_of(sql_tree(text, exp.Condition, example_condition(domain)), domain)


def named_conditions(text: str, domain: Domain) -> tuple[tuple[str, Predicate], ...]:
    """``age < 30 as young, salary > 50000 as rich``; one without a name is called as it is written."""
    example = f"{example_condition(domain)} as some"
    tree = sql_tree(f"SELECT {text} FROM t", None, example)  # noqa: S608 - parsed, never run
    only = isinstance(tree, exp.Select) and not any(
        value for name, value in tree.args.items() if name not in ("expressions", "from_")
    )
    if not only:
        raise InvalidQuestion("Conditions are listed with commas between them.", fixes=(example,))
    return tuple(
        (each.alias or shown(each), condition_of(each.unalias(), domain)) for each in tree.expressions
    )


def condition_of(tree: exp.Expr, domain: Domain) -> Predicate:
    """The same for a condition that is already a tree."""
    predicate = _Reader(domain).predicate(spelt_out(with_full_names(tree, domain)), 0)
    for atom in predicate.atoms():
        _check(atom, domain)
    return predicate


def _check(atom: Atom, domain: Domain) -> None:
    """Whether a comparison fits its column; a text that is no value of it is refused with one that is."""
    try:
        atom.check(domain)
    except InvalidPredicate as error:
        attribute = domain[atom.column]
        if error.fixes or not isinstance(attribute, Category):
            raise
        values = [str(attribute.at(tick)) for tick in range(attribute.ticks)]
        typed = atom.values if isinstance(atom, IsIn) else (getattr(atom, "value", None),)
        folded = {value.casefold(): value for value in values}
        near = [folded.get(str(each).casefold()) for each in typed]
        meant = tuple(dict.fromkeys(each for each in near if each is not None)) or tuple(values[:1])
        raise InvalidPredicate(error.message, fixes=(condition_text(IsIn(atom.column, meant)),)) from None


def condition_text(predicate: Predicate) -> str:
    """SQL that reads back as ``predicate`` (a combination of a single part as that part)."""
    return _written(predicate, 0)


def example_condition(domain: Domain, column: str | None = None) -> str:
    """A condition that works, about ``column`` or the first one."""
    name = column if column is not None and column in domain else domain.names[0]
    attribute = domain[name]
    if isinstance(attribute, Category):
        words = (value for value in attribute.values if str(value)[:1].isalnum())  # rather than '?'
        return f"{name_text(name)} IN ({sql_value(next(words, attribute.at(0)))})"
    if isinstance(attribute, Boolean):
        return f"{name_text(name)} = TRUE"
    return f"{name_text(name)} >= {sql_value(attribute.lower(attribute.value_count // 2))}"


# --- reading ------------------------------------------------------------------------------------

_DAY = len("2024-12-31")
_TRUTHS = {"true": True, "t": True, "false": False, "f": False}
_MOST_VALUES = 40_000
_MOST_RUNS = 100  # of values for which a condition holds
_MOST_LISTED = 1_200  # or does not hold


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
            case exp.Not() if self._never_missing(node.this.unnest()):
                return self._has_a_value(node.this.unnest().this)
            case exp.Not():
                return Not(self.predicate(node.this, depth + 1))
            case exp.Boolean():
                return Everything() if node.this else Not(Everything())
            case exp.Column():
                return self._flag(node)
            case exp.Between():
                column = self._column(self._bare(node.this), node)
                low, high = (self._constant(node.args[end], column) for end in ("low", "high"))
                if node.args.get("symmetric") and type(low) is type(high):
                    low, high = sorted((low, high))
                return Between(column, low, high)
            case exp.In() if node.expressions:
                column = self._column(self._bare(node.this), node)
                return IsIn(column, tuple(self._constant(value, column) for value in node.expressions))
            case exp.Is() if isinstance(node.expression, exp.Boolean):
                return self._is(node)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return IsMissing(self._column(node.this, node))
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._distinct(node)
            case exp.Like() | exp.ILike():
                matched = self._like(node)
                return Not(matched) if node.args.get("negate") else matched
            case exp.Escape() if isinstance(node.this, exp.Like | exp.ILike):
                matched = self._like(node.this, self._constant(node.expression))
                return Not(matched) if node.this.args.get("negate") else matched
            case exp.StartsWith() | exp.Contains():
                return self._part_of_text(node)
            case exp.Coalesce() if node.expressions == [exp.false()] and isinstance(node.this, exp.Column):
                return self._is(exp.Is(this=node.this.copy(), expression=exp.true()))
            case exp.RegexpLike() | exp.RegexpILike() | exp.RegexpFullMatch() | exp.SimilarTo():
                return self._pattern(node)
            case exp.Anonymous() if (
                str(node.this).casefold() == "regexp_matches" and len(node.expressions) == 2
            ):
                return self._pattern(node)
        if type(node) in _OPS:
            return self._comparison(node, _OPS[type(node)])
        raise self._refusal(node)

    def _comparison(self, node: exp.Expr, op: Op) -> Predicate:
        left, right = self._bare(node.this), self._bare(node.expression)
        if isinstance(left, exp.Column) and isinstance(right, exp.Column):
            raise self._two_columns(left, right, op)
        self._not_null(right, left, op)
        self._not_null(left, right, op)
        if isinstance(right, exp.Column) or (right.find(exp.Column) and not left.find(exp.Column)):
            left, right, op = right, left, _TURNED[op]
        if isinstance(left, exp.Column):
            column = self._column(left, node)
            return Comparison(column, op, self._constant(right, column))
        if isinstance(left, exp.Coalesce):
            return self._coalesced(left, right, op, node)
        computed = self._computed(left, right, op)
        if computed is None:
            wrong = left if not isinstance(left, exp.Literal | exp.Cast | exp.Boolean) else right
            raise self._refusal(wrong if isinstance(wrong, exp.Func | exp.Binary | exp.Unary) else node)
        return computed

    def _coalesced(self, left: exp.Coalesce, right: exp.Expr, op: Op, whole: exp.Expr) -> Predicate:
        """``COALESCE(bonus, 0) > 100``: true or false also where a value is missing."""
        column = self._column(left.this, whole)
        if len(left.expressions) != 1 or not self.domain[column].has_missing_cell:
            raise self._refusal(left)
        same = Comparison(column, op, self._constant(right, column))
        try:
            held = _compared(op, value_of(left.expressions[0]), value_of(right))
        except NotComputed:
            raise self._refusal(left) from None
        if held is None:
            raise self._refusal(left)
        missing = IsMissing(column)
        return Or((missing, same)) if held else And((Not(missing), same))

    def _computed(self, left: exp.Expr, right: exp.Expr, op: Op) -> Predicate | None:
        """A comparison with what is computed from one column, or from none; None where it is not."""
        one, other = Linear.of(left), Linear.of(right)
        if one is not None and other is not None and other.column is None:
            if one.column is None:
                return self._settled(COMPARES[op](one.plus, other.plus))
            column = self._column(one.column, one.column)
            if not isinstance(self.domain[column], Integer | Real) or not one.times:
                return None
            limit = (other.plus - one.plus) / one.times
            return Comparison(column, op if one.times > 0 else _TURNED[op], _number(limit))
        if right.find(exp.Column) is not None or divides_whole_numbers(left):
            return None
        return self._by_value(left, right, op)

    def _by_value(self, left: exp.Expr, right: exp.Expr, op: Op) -> Predicate | None:
        """``EXTRACT(YEAR FROM day) = 2021``: the declared values for which it holds; None for others."""
        try:
            wanted = value_of(right)
        except NotComputed:
            return None
        return self._values(left, lambda value: _compared(op, value, wanted))

    def _values(self, node: exp.Expr, holds: Callable[[Any], bool | None]) -> Predicate | None:
        """The declared values of a column for which something holds; None where that cannot be said."""
        columns = {column.name: column for column in node.find_all(exp.Column)}
        if len(columns) != 1:
            return None
        name = self._column(next(iter(columns.values())), node)
        attribute = self.domain[name]
        if attribute.ticks > _MOST_VALUES or (attribute.has_missing_cell and forgets_missing(node)):
            return None
        try:
            held = [holds(value_of(node, attribute.at(tick))) for tick in range(attribute.ticks)]
        except NotComputed:
            return None
        if any(answer is None for answer in held):
            return None
        chosen = [tick for tick, answer in enumerate(held) if answer]
        first = attribute.at(0)
        if not chosen:
            return And((Comparison(name, Op.EQ, first), Comparison(name, Op.NE, first)))  # NULL stays NULL
        if not attribute.ordered or isinstance(attribute, Category):
            return IsIn(name, tuple(attribute.at(tick) for tick in chosen))
        runs: list[tuple[int, int]] = []
        for tick in chosen:
            last = runs[-1][1] if runs else None
            runs[-1:] = [(runs[-1][0], tick)] if last == tick - 1 else [*runs[-1:], (tick, tick)]
        if len(runs) > _MOST_RUNS:
            return _in_pieces(name, chosen, attribute)
        parts = tuple(Between(name, attribute.at(start), attribute.at(end)) for start, end in runs)
        return parts[0] if len(parts) == 1 else Or(parts)

    def _part_of_text(self, node: exp.StartsWith | exp.Contains) -> Predicate:
        """``STARTS_WITH(region, 'n')``."""
        part, column = self._constant(node.expression), self._bare(node.this)
        begins = isinstance(node, exp.StartsWith)
        if isinstance(part, str) and not column.find(exp.Cast):
            found = self._matched(column, lambda text: text.startswith(part) if begins else part in text)
            if found is not None:
                return found
        raise self._refusal(node)

    def _like(self, node: exp.Like | exp.ILike, escape: Constant = "") -> Predicate:
        pattern, column = self._bare(node.expression), self._bare(node.this)
        typed = self._constant(pattern) if pattern.find(exp.Column) is None else None
        if isinstance(typed, str) and isinstance(escape, str) and not column.find(exp.Cast):
            meant = like(typed, folded=isinstance(node, exp.ILike), escape=escape)
            if meant is not None:
                found = self._values(
                    column,
                    lambda value: meant.fullmatch(value) is not None if isinstance(value, str) else None,
                )
                if found is not None:
                    return found
        raise self._refusal(node)

    def _pattern(self, node: exp.Expr) -> Predicate:
        """A pattern on declared values, where databases agree on which of them it matches."""
        parts = [node.this, node.expression] if not isinstance(node, exp.Anonymous) else node.expressions
        said = [name for name, given in node.args.items() if given]
        if len(parts) != 2 or len(said) != 2 or not isinstance(parts[1], exp.Literal):
            raise self._refusal(node)
        column = self._bare(parts[0])
        chosen = [self._matched(column, test) for test in matches(node, str(parts[1].this))]
        if not chosen or chosen[0] is None or column.find(exp.Cast):
            raise self._refusal(node)
        if any(each != chosen[0] for each in chosen):
            raise UnsupportedSql(
                f"{shown(node)}: databases do not agree on whether a pattern must match the whole text, and "
                "whether capital letters count.",
                fixes=(condition_text(chosen[0]),),
            )
        return chosen[0]

    def _matched(self, column: exp.Expr, test: Callable[[str], bool]) -> Predicate | None:
        return self._values(column, lambda value: test(value) if isinstance(value, str) else None)

    def _is(self, node: exp.Is) -> Predicate:
        """``employed IS TRUE``: true or false also where a value is missing."""
        column = self._column(self._bare(node.this), node)
        if not isinstance(self.domain[column], Boolean):
            raise self._refusal(node)
        same = Comparison(column, Op.EQ, bool(node.expression.this))
        return And((Not(IsMissing(column)), same)) if self.domain[column].has_missing_cell else same

    def _never_missing(self, node: exp.Expr) -> bool:
        """Whether it asks who has no value where no row is counted that has none."""
        null = isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)
        if not null or not isinstance(node.this, exp.Column):
            return False
        attribute = self.domain[self._column(node.this, node)]
        return attribute.missing in ("drop", "none") and not attribute.has_missing_cell

    def _has_a_value(self, node: exp.Column) -> Predicate:
        """Everybody, where every row is declared to have a value; else those with a declared one."""
        name = self._column(node, node)
        attribute = self.domain[name]
        if attribute.missing == "none":
            return Everything()
        if attribute.ordered:
            return Between(name, attribute.at(0), attribute.at(attribute.ticks - 1))
        return IsIn(name, tuple(attribute.at(tick) for tick in range(attribute.ticks)))

    def _distinct(self, node: exp.NullSafeEQ | exp.NullSafeNEQ) -> Predicate:
        """IS [NOT] DISTINCT FROM, which is true or false also where a value is missing."""
        column, same = self._column(self._bare(node.this), node), isinstance(node, exp.NullSafeEQ)
        if isinstance(node.expression, exp.Null):
            return IsMissing(column) if same else Not(IsMissing(column))
        equal = Comparison(column, Op.EQ, self._constant(node.expression, column))
        if self.domain[column].has_missing_cell:
            equal = And((Not(IsMissing(column)), equal))  # type: ignore[assignment]
        return equal if same else Not(equal)

    @staticmethod
    def _settled(true: bool) -> Predicate:
        return Everything() if true else Not(Everything())

    def _bare(self, node: exp.Expr) -> exp.Expr:
        return bare(node, self.domain)

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

    def _constant(self, node: exp.Expr, column: str | None = None) -> Constant:
        """A constant; a number in quotes is one where it is compared with a ``column`` of numbers."""
        match node:
            case exp.Literal() if node.is_string:
                text, numbers = str(node.this), column and isinstance(self.domain[column], Integer | Real)
                if column and isinstance(self.domain[column], Boolean) and text.lower() in _TRUTHS:
                    return _TRUTHS[text.lower()]
                number = number_in(text) if numbers else None
                return text if number is None else number
            case exp.Literal():
                return number_from(node.this)
            case exp.Boolean():
                return bool(node.this)
            case exp.Paren():
                return self._constant(node.this, column)
            case exp.Add() | exp.Sub() | exp.Mul() if (sum_ := Linear.of(node)) and sum_.column is None:
                return _number(sum_.plus)
            case exp.Neg():
                return _minus(self._number(node.this, node))
            case exp.Div():
                return self._ratio(node)
            case exp.Cast() if isinstance(node.this, exp.Literal) and node.this.is_string:
                return _dated(node)
            case exp.Column():
                raise self._unquoted(node)
        if node.find(exp.Column) is None:
            try:
                said = value_of(node)
            except NotComputed:
                raise self._refusal(node) from None
            return _number(said) if isinstance(said, Fraction) else said
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
        if node.find(*_TODAY) is not None:
            reason = next(why for kinds, why in _WHY if kinds is _TODAY)
        if node.find(exp.Query) is not None:
            reason = _NO_SUBQUERY
        around = (node, node.parent) if isinstance(node.parent, exp.Condition) else (node,)
        columns = (column.name for part in around for column in part.find_all(exp.Column))
        names = [name for name in columns if name in self.domain]
        exactly = self._exactly(around[-1])
        example = example_condition(self.domain, names[0] if names else None)
        return UnsupportedSql(
            f"{shown(node)}: {reason or 'a condition compares a column with constants.'}",
            fixes=(*((exactly,) if exactly else ()), example),
        )

    def _exactly(self, node: exp.Expr) -> str | None:
        """The same with exact divisions, if that is a condition; None where nothing is divided."""
        exact = exactly(node) if isinstance(node, exp.Predicate) else None
        if exact is None:
            return None
        try:
            return condition_text(self.predicate(exact, 0))
        except BlowfishError:
            return None


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """``a AND b AND c`` as three parts; the tree leans to the left, as deep as the text is long."""
    kind, parts, rest = type(node), [], node
    while type(rest) is kind:
        parts.append(rest.expression)
        rest = rest.this
    return [rest, *reversed(parts)]


def _number(exact: Fraction) -> int | Fraction:
    return int(exact) if exact.denominator == 1 else exact


def _in_pieces(name: str, chosen: list[int], attribute: Attribute) -> Predicate | None:
    """Values in many pieces, such as all Sundays, by which they are or are not; None where too many."""
    rest = sorted(set(range(attribute.ticks)) - set(chosen))
    shorter = min(chosen, rest, key=len)
    if len(shorter) > _MOST_LISTED:
        return None
    among = IsIn(name, tuple(attribute.at(tick) for tick in shorter))
    return among if shorter is chosen else ~among


def _compared(op: Op, value: Any, wanted: Any) -> bool | None:
    """None where a text meets a number; a day is compared with a day, also as a text."""
    if isinstance(value, date):
        moments = isinstance(value, datetime) or isinstance(wanted, datetime)
        if moments or (isinstance(wanted, str) and len(wanted) > _DAY):
            return None  # days are compared with days
        try:
            wanted = value_of(exp.Date(this=exp.Literal.string(str(wanted))))
        except NotComputed:
            return None
    numbers = all(isinstance(each, int | Fraction) and not isinstance(each, bool) for each in (value, wanted))
    return COMPARES[op](value, wanted) if numbers or type(value) is type(wanted) else None


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
