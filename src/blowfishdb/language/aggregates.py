"""What a select list can ask for: ``COUNT(*)``, ``SUM(salary)``, ``QUANTILE(salary, 0.9)``, ``BIN(age, 5)``.

Each is read to a form or a column of one, and can be written as SQL again for a suggestion.

Why a SELECT is not answered, and the nearest one that is.

Every suggestion is a whole statement on the same dataset with the same condition, and can be run as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any, final

from sqlglot import TokenType, exp

from blowfishdb.core.domain.attributes import Integer, Real
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import BlowfishError, InvalidQuestion, InvalidWorkload, UnsupportedSql
from blowfishdb.core.questions.aggregates import SPREADS, Measure
from blowfishdb.core.questions.arrangement import Having
from blowfishdb.core.questions.conditions import Conditions
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.core.questions.numbers import Computed, Constant, Number, Told
from blowfishdb.language.arrangement import Meant, NumberReader
from blowfishdb.language.beside import Beside, OfSome, beside, groups_apart
from blowfishdb.language.condition import condition_of, condition_text
from blowfishdb.language.conditional import aggregated_rows, counted_rows, multiplied, share_of_rows
from blowfishdb.language.expressions import exactly
from blowfishdb.language.grouping import computed, cut_text, is_computed, part_text, without_rest
from blowfishdb.language.text import (
    TypedSql,
    column_name,
    duration,
    duration_text,
    name_text,
    number_from,
    number_text,
    shown,
    sql_tokens,
    sql_value,
)

_FEW_BINS = 20
_SPREAD: dict[type[exp.Expr], str] = {
    exp.Variance: "variance",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
    exp.VariancePop: "variance",
    exp.StddevPop: "stddev",
}
_SOURCES: tuple[tuple[str, str], ...] = (
    ("with_", "WITH … AS names a subquery, and a question reads one dataset, once."),
    ("joins", "A question reads one dataset; with a join one person could be in many rows."),
    ("laterals", "A question reads one dataset, and nothing is unfolded from its rows."),
)
_CLAUSES: tuple[tuple[str, str], ...] = (
    ("distinct", "DISTINCT would show which values occur in the data."),
    ("qualify", "QUALIFY is about window functions, which compare rows with each other."),
    ("windows", "Window functions compare rows with each other."),
    ("into", "INTO writes, and a question only reads."),
)
_KNOWN = frozenset({"expressions", "from_", "where", "group", "having", "order", "limit", "offset"})


@final
@dataclass(frozen=True)
class SelectContext:
    """The dataset of a SELECT and the rows it is about; writes statements about them."""

    domain: Domain
    dataset: str
    where: Predicate = field(default_factory=Everything)
    keys: tuple[str, ...] = ()
    """By what rows are grouped, as SQL."""
    cuts: tuple[ColumnForm, ...] = ()
    """Columns by which rows are grouped in several ways at once."""

    def select(self, wanted: str, tail: str = "", *, where: str | None = None) -> str:
        """A statement on the same dataset and rows."""
        if where is None and not isinstance(self.where, Everything):
            where = condition_text(self.where)
        filtered = f" WHERE {where}" if where else ""
        return f"SELECT {wanted} FROM {name_text(self.dataset)}{filtered}{tail}"  # noqa: S608 - shown, never run

    def only(self, holds: Predicate) -> SelectContext:
        """The same dataset, of the rows for which something holds, too."""
        if isinstance(holds, Everything):
            return self
        everything = isinstance(self.where, Everything)
        return replace(self, where=holds if everything else self.where & holds)

    def counted(self, *keys: str, tail: str = "") -> str:
        """The number of rows for each of ``keys``, which are SQL."""
        listed = ", ".join(keys)
        return self.select(f"{listed}, COUNT(*)", f" GROUP BY {listed}{tail}")

    def of_groups(self, wanted: str) -> str:
        """A statement about the same groups of the same rows."""
        tail = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return self.select(", ".join((*self.keys, wanted)), tail)

    def key(self, column: str) -> str:
        """A column as it is best counted: long ones in bins."""
        attribute, name = self.domain[column], name_text(column)
        if not isinstance(attribute, Integer | Real | Date) or attribute.value_count <= _FEW_BINS:
            return name
        cells = _round_number(attribute.value_count // (_FEW_BINS + 1) + 1)
        return f"BIN({name}, {number_text(Fraction(cells) / attribute.in_cells(1))})"

    def key_beside(self, node: exp.Expr) -> Callable[[str], str]:
        """Groups that are answered, of columns of a part of it: parts of days as months of years."""

        def months(column: str) -> str:
            return f"DATE_TRUNC('month', {name_text(column)})"

        return months if self.is_part_of_days(node) else self.key

    def is_part_of_days(self, node: exp.Expr) -> bool:
        """Whether it is the month, say, of a column of dates."""
        dated = isinstance(node, exp.Extract | exp.Month | exp.Quarter | exp.Day | exp.DayOfWeek)
        return dated and isinstance(self.domain[self.first_column(node)], Date)

    def refuse(self, reason: str, *fixes: str) -> UnsupportedSql:
        """The refusal with its suggestions; the total is always one that works."""
        return UnsupportedSql(reason, fixes=fixes or (self.select("COUNT(*)"),))

    def numeric(self, column: str) -> bool:
        """Whether sums and quantiles of the column exist."""
        return isinstance(self.domain[column], Integer | Real)

    def limits(self, column: str) -> str:
        """What is declared of a column, in words."""
        attribute = self.domain[column]
        if not attribute.ordered:
            return f"the declaration of {column} lists its values"
        ends = (attribute.lower(0), attribute.upper(attribute.value_count - 1))
        return f"{column} is declared from {' to '.join(map(sql_value, ends))}"

    def first_column(self, node: exp.Expr) -> str:
        """The first declared column that a part of the statement mentions, else the first declared."""
        return self.columns_in(node)[0]

    def columns_in(self, node: exp.Expr) -> list[str]:
        """The declared columns that a part of the statement mentions; the first declared if it does none."""
        places = [node] if isinstance(node, exp.Column) else _in_order(node)
        folded = {known.casefold(): known for known in reversed(self.domain.names)}
        names = [folded[each.name.casefold()] for each in places if each.name.casefold() in folded]
        return list(dict.fromkeys(names)) or [self.domain.names[0]]


def _in_order(node: exp.Expr) -> list[exp.Column]:
    """The columns of an expression as they are written."""
    return [each for each in node.dfs() if isinstance(each, exp.Column)]


def _round_number(least: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50, …"""
    power: int = 10 ** (len(str(least)) - 1)
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least)


def refuse_statement(typed: str, source: SelectContext) -> None:
    """Anything that does not begin like a SELECT; the parser never sees it."""
    first = next(iter(sql_tokens(typed)), None)
    if first is not None and first.token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN):
        raise source.refuse(f"A question begins with SELECT, not with {first.text[:40]!r}.")


def refuse_shape(tree: exp.Expr, source: SelectContext, apart: Callable[[], list[str]] = list) -> None:
    """Anything that is not one SELECT from one place; ``apart`` says what subqueries can be asked alone."""
    if not isinstance(tree, exp.Select):
        raise source.refuse(f"{shown(tree)}: a question is one SELECT, without parentheses around it.")
    for clause, reason in _SOURCES:
        if tree.args.get(clause):
            raise source.refuse(reason, *apart())
    if any(isinstance(node, exp.Query | exp.Subquery) and node is not tree for node in tree.walk()):
        raise source.refuse("A question reads one dataset, once, so subqueries are not answered.", *apart())


def refuse_clauses(tree: exp.Expr, source: SelectContext) -> None:
    """Clauses that no question has."""
    column = source.first_column(tree)
    for clause, reason in _CLAUSES:
        if tree.args.get(clause):
            tail = " HAVING COUNT(*) > 0" if clause == "distinct" else ""
            fixes = (source.counted(source.key(column), tail=tail),) if clause != "into" else ()
            raise source.refuse(reason, *fixes)
    for clause, value in tree.args.items():
        if value and clause not in _KNOWN:
            raise source.refuse(f"{clause.rstrip('_').upper()} is not part of a question.")


def refuse_window(node: exp.Expr, source: SelectContext) -> UnsupportedSql:
    """OVER (…)."""
    keys = source.keys or (source.key(source.first_column(node)),)
    fixes = [source.counted(*keys)]
    name = source.first_column(node)
    attribute = source.domain[name]
    if is_running_total(node) and source.keys == (name_text(name),):
        adds_up = attribute.ordered and not attribute.has_missing_cell
        fixes += [source.of_groups(f"SUM(COUNT(*)) OVER (ORDER BY {keys[0]})")] if adds_up else []
    elif isinstance(node.this, _PLACES) and source.keys:
        fixes = [source.counted(*keys, tail=" ORDER BY COUNT(*) DESC"), *fixes]
    return source.refuse(
        "Window functions compare rows with each other; counts can be asked for bin by bin, and "
        "cumulative(column) in the short form of questions adds them up.",
        *fixes,
    )


def refuse_extremes(nodes: Sequence[exp.Expr], source: SelectContext) -> None:
    """``MIN(age), MAX(age)`` beside each other, with a statement for all quantiles of each column."""
    shares: dict[str, list[str]] = {}
    for node in nodes:
        if isinstance(node, exp.Min | exp.Max) and source.numeric(column := source.first_column(node)):
            share = 0.01 if isinstance(node, exp.Min) else 0.99
            shares.setdefault(column, []).append(f"QUANTILE({name_text(column)}, {share})")
    if not shares or len(nodes) == 1:
        return
    others = [measure_text(told) for node in nodes if (told := _told_in(node, source)) is not None]
    apart = [", ".join(dict.fromkeys(each)) for each in (*shares.values(), others) if each]
    raise source.refuse(
        "The smallest and the largest value are those of single persons; "
        f"{', and '.join(map(source.limits, shares))}.",
        *map(source.of_groups, apart),
    )


def refuse_aggregate(node: exp.Expr, source: SelectContext) -> UnsupportedSql:
    """An expression in the select list that is neither a known aggregate nor a column."""
    column = source.first_column(node)
    mentioned = node.find(exp.Column) is not None
    counts = source.counted(source.key(column)) if mentioned else source.select("COUNT(*)")
    match node:
        case exp.Count(this=exp.Distinct()) | exp.ApproxDistinct():
            fix = source.counted(*source.keys, source.key(column), tail=" HAVING COUNT(*) > 0")
            return source.refuse("One person can add a value, so distinct values are not counted.", fix)
        case exp.Count():
            return source.refuse(f"{shown(node)}: rows are counted by COUNT(*) or COUNT(column).")
        case exp.Min() | exp.Max():
            share = 0.01 if isinstance(node, exp.Min) else 0.99
            fix = (
                source.of_groups(f"QUANTILE({name_text(column)}, {share})")
                if source.numeric(column)
                else counts
            )
            return source.refuse(
                f"The smallest and the largest value are those of single persons; {source.limits(column)}.",
                fix,
            )
        case exp.Mode():
            fix = source.counted(source.key(column), tail=" ORDER BY COUNT(*) DESC LIMIT 1")
            return source.refuse("The most frequent value is asked for as the fullest group.", fix)
        case exp.Star() | exp.Column():
            return source.refuse("Rows are never shown; they are counted.", source.select("COUNT(*)"))
    if isinstance(node, exp.VariancePop | exp.StddevPop) and isinstance(node.this, exp.Column):
        word = _WORDS[_SPREAD[type(node)]]
        fix = source.of_groups(f"{word}({name_text(column)})") if source.numeric(column) else counts
        return source.refuse(f"Of the spread, {word} is answered, which divides by one row less.", fix)
    spread = isinstance(node, exp.Sub) and [type(side) for side in (node.this, node.expression)]
    if spread == [exp.Max, exp.Min] and source.numeric(column):
        ends = (f"QUANTILE({name_text(column)}, {share})" for share in (0.99, 0.01))
        return source.refuse(
            f"The smallest and the largest value are those of single persons; {source.limits(column)}.",
            source.of_groups(" - ".join(ends)),
        )
    if isinstance(node, exp.AggFunc):
        exact = exactly(node)
        fixes = () if exact is None else (source.of_groups(exact.sql(TypedSql)),)
        return source.refuse(f"{shown(node)} is not answered; a distribution is.", *fixes, counts)
    inside = dict.fromkeys(of for each in node.walk() if (of := _told_in(each, source)) is not None)
    fixes = (source.of_groups(", ".join(map(measure_text, inside))),) if inside else ()
    return source.refuse(f"{shown(node)}: nothing is calculated from columns or counts.", *fixes, counts)


def _told_in(node: exp.Expr, source: SelectContext) -> Measure | None:
    """The aggregate that a part of an expression is; None where it is none that is answered."""
    try:
        return measure_in(node, source)
    except BlowfishError:
        return None


_PLACES = (exp.Rank, exp.DenseRank, exp.RowNumber)
_QUANTILES = (exp.Quantile, exp.ApproxQuantile, exp.PercentileCont, exp.PercentileDisc)
_MORE_QUANTILES = ("QUANTILE_CONT", "QUANTILE_DISC", "APPROX_PERCENTILE")
_MEASURES: dict[type[exp.Expr], str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "mean"}
_WORDS = {"count": "COUNT", "sum": "SUM", "mean": "AVG", "variance": "VARIANCE", "stddev": "STDDEV"}


def is_key(node: object) -> bool:
    """Whether it is a column, a BIN or computed from one, by which rows can be grouped."""
    return is_computed(node) or is_cut(node)


def is_cut(node: object) -> bool:
    """Whether it is a column or a BIN of one."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper() == "BIN"
    return isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)


def is_count(node: exp.Expr) -> bool:
    """``COUNT(*)`` or ``COUNT(1)``, and nothing about it."""
    if not isinstance(node, exp.Count) or node.expressions:
        return False
    star = isinstance(node.this, exp.Star) and not any(node.this.args.values())
    return star or isinstance(node.this, exp.Literal)


def is_running_total(node: exp.Expr) -> bool:
    """``SUM(COUNT(*)) OVER (PARTITION BY region ORDER BY age)``, of all groups up to each."""
    if not isinstance(node, exp.Window) or not isinstance(node.this, exp.Sum) or not is_count(node.this.this):
        return False
    said = {name for name, value in node.args.items() if value} - {"this", "over", "order", "partition_by"}
    order = node.args.get("order")
    return not said and order is not None and len(order.expressions) == 1


def key(node: exp.Expr, source: SelectContext) -> ColumnForm:
    """``age``, ``BIN(age, 5)`` or ``FLOOR(age / 5)``."""
    known = source.columns_in(node)[0] if source.cuts else ""
    cut = next((cut for cut in source.cuts if cut.name == known), None)
    return _key(node, source) if cut is None else cut


def _key(node: exp.Expr, source: SelectContext) -> ColumnForm:
    if is_computed(node):
        groups = computed(node, source.domain)
        if groups is None:
            fix = source.counted(*map(source.key_beside(node), source.columns_in(node)))
            if source.is_part_of_days(node):
                raise source.refuse(
                    f"{shown(node)}: its groups lie in many pieces of the calendar; those of one piece each "
                    "are counted.",
                    fix,
                )
            apart = without_rest(node, source.domain)
            if apart is not None:
                raise source.refuse(
                    f"{shown(node)}: missing values have a group of their own, and ELSE would put them in "
                    "another.",
                    source.counted(apart.sql(TypedSql)),
                )
            raise source.refuse(
                f"{shown(node)}: groups are columns, BIN(column, width), or computed from one column.", fix
            )
        return groups
    if isinstance(node, exp.Column):
        if node.table or not isinstance(node.this, exp.Identifier):
            raise source.refuse(f"{shown(node)} is not a column of {source.dataset}.")
        quoted = bool(node.this.args.get("quoted"))
        return ColumnForm(column_name(node.name, source.domain, quoted=quoted))
    if len(node.expressions) != 2 or not isinstance(node.expressions[0], exp.Column):
        fix = source.counted(source.key(source.first_column(node)))
        raise InvalidQuestion("BIN is written with a column and a width: BIN(column, width).", fixes=(fix,))
    column, width = node.expressions
    name = key(column, source).name
    return ColumnForm(name, width=_width(width, name, source))


def key_text(column: ColumnForm) -> str:
    """A column of GROUP BY as SQL."""
    name, width = name_text(column.name), column.width
    if column.part is not None:
        return part_text(column)
    if column.edges is not None or column.groups is not None:
        return cut_text(column)
    if width is None:
        return name
    if isinstance(width, timedelta):
        amount, unit = duration_text(width).split()
        return f"BIN({name}, INTERVAL '{amount}' {unit.upper().removesuffix('S')})"
    return f"BIN({name}, {number_text(width)})"


def _width(node: exp.Expr, name: str, source: SelectContext) -> Any:
    if isinstance(node, exp.Literal) and not node.is_string:
        return number_from(node.this)
    if isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal) and node.unit is not None:
        length = duration(number_from(str(node.this.this)), node.unit.name)
        if length is not None:
            return length
    fix = source.counted(source.key(name))
    raise InvalidQuestion(f"{shown(node)} is not the width of a bin.", fixes=(fix,))


def aggregate(node: exp.Expr, source: SelectContext) -> QuestionForm:
    """The question that one expression of the select list asks about all rows."""
    asked = quantiles(node, source)
    if asked is not None:
        return asked
    measure = measure_in(node, source)
    if measure is None:
        raise refuse_aggregate(node, source)
    if measure.of in SPREADS:
        return QuestionForm("aggregates", (), source.where, measures=(measure,))
    columns = () if measure.column is None else (ColumnForm(measure.column),)
    return QuestionForm(measure.of, columns, source.where)


def measure_in(node: exp.Expr, source: SelectContext) -> Measure | None:
    """The aggregate that one expression is; None where it is none."""
    match node:
        case exp.Count() if is_count(node):
            return Measure("count")
        case exp.Sum(this=exp.Literal(this="1", is_string=False)):
            return Measure("count")
        case exp.Count() | exp.Sum() | exp.Avg() if (
            isinstance(node.this, exp.Column) and not node.expressions
        ):
            return Measure(_MEASURES[type(node)], key(node.this, source).name)
        case exp.Variance() | exp.Stddev() | exp.StddevSamp() if isinstance(node.this, exp.Column):
            return Measure(_SPREAD[type(node)], key(node.this, source).name)
        case exp.Filter():
            raise _filtered(node, source)
    return None


def quantiles(node: exp.Expr, source: SelectContext) -> QuestionForm | None:
    """The quantiles that one expression asks for; None where it asks for none."""
    if isinstance(node, exp.Median) and is_cut(node.this):
        return QuestionForm("quantiles", (key(node.this, source),), source.where, shares=(0.5,))
    quantile = _quantile(node)
    if quantile is None or not is_cut(quantile[0]):
        return None
    shares = tuple(map(_share, quantile[1]))
    return QuestionForm("quantiles", (key(quantile[0], source),), source.where, shares=shares)


class Released(ABC):
    """What a statement is told from, as its numbers come up in the select list, HAVING and ORDER BY."""

    def __init__(self, source: SelectContext, meant: Meant) -> None:
        self.source = source
        self._reader = NumberReader(self._told, meant)

    def number(self, node: exp.Expr) -> Number:
        """A number of the select list, of HAVING or of ORDER BY."""
        number = self._reader.number(node)
        if number is None:
            windows = list(node.find_all(exp.Window))
            raise refuse_window(windows[0], self.source) if windows else refuse_aggregate(node, self.source)
        try:
            told = number.told
        except InvalidWorkload as error:
            raise self._not_computed(error.message) from None
        if not told:
            raise refuse_aggregate(node, self.source)
        return number

    def having(self, node: exp.Expr, keys: list[str]) -> Having:
        """A condition on groups of ``keys``."""
        having = self._reader.having(node)
        if having is not None and any(number.told for number in having.numbers):
            return having
        fixes = (self.source.counted(*keys, tail=" HAVING COUNT(*) > 100"),) if keys else ()
        raise self.source.refuse(f"{shown(node)}: HAVING compares aggregates with numbers.", *fixes)

    @abstractmethod
    def _told(self, node: exp.Expr) -> Number | None:
        """The number that an aggregate stands for; None for what is none."""

    @abstractmethod
    def _not_computed(self, why: str) -> Exception:
        """The refusal of a number that is not computed from what can be released together."""


@final
class ReleasedSums(Released):
    """Aggregates, or counts of some rows."""

    def __init__(self, source: SelectContext, meant: Meant) -> None:
        super().__init__(source, meant)
        self.numbers: list[Measure | Predicate | OfSome] = []
        self.names: dict[int, str] = {}

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The aggregates of all rows that a group has."""
        return tuple(each for each in self.numbers if isinstance(each, Measure))

    def of_some(self, keys: list[str]) -> tuple[Predicate, tuple[Measure, ...]] | None:
        """The rows of which all aggregates are, and these; None where none is of some rows only."""
        some = [each for each in self.numbers if isinstance(each, OfSome)]
        if not some:
            return None
        holds = some[0].holds
        alike = [OfSome(Measure("count"), holds) if each == holds else each for each in self.numbers]
        told = tuple(each.measure for each in alike if isinstance(each, OfSome) and each.holds == holds)
        if len(set(told)) == len(self.numbers):
            return holds, told
        tail = f" GROUP BY {', '.join(keys)}" if keys else ""
        fixes: dict[str, None] = {}
        for condition in dict.fromkeys(each.holds for each in some):
            measured = [measure_text(each.measure) for each in some if each.holds == condition]
            rows = self.source.only(condition)
            fixes[rows.select(", ".join([*keys, *measured]), tail)] = None
        raise self.source.refuse(
            "Aggregates of one question are of the same rows; those of some rows are asked for with WHERE.",
            *fixes,
        )

    def beside(self, keys: Sequence[str]) -> Beside | None:
        """All of them from one release of groups beside each other, in groups of columns ``keys``."""
        everybody = Everything()
        asked = [
            OfSome(each, everybody)
            if isinstance(each, Measure)
            else each
            if isinstance(each, OfSome)
            else OfSome(Measure("count"), each)
            for each in self.numbers
        ]
        if any(each.holds.columns() & set(keys) for each in asked):
            return None
        return beside(asked, self.source.domain)

    def conditions(self) -> Conditions | None:
        """Every number as a count of some rows, by name; None where no row is left out."""
        if len(self.measures) == len(self.numbers):
            return None
        if set(self.measures) - {Measure("count")}:
            apart = (
                ", ".join(measure_text(each) for each in self.measures if each.of != "count") or "COUNT(*)"
            )
            raise self.source.refuse(
                "Counts of some rows are told together, aggregates of a column too, but not both at once.",
                self.source.of_groups(apart),
            )
        named: dict[str, Predicate] = {}
        for index, number in enumerate(self.numbers):
            name = self.names.get(index, "rows")
            while name in named:
                name += "'"
            assert not isinstance(number, OfSome)
            named[name] = Everything() if isinstance(number, Measure) else number
        return tuple(named.items())

    def _told(self, node: exp.Expr) -> Number | None:
        share = share_of_rows(node)
        if share is not None:
            return Computed("/", self._counted(share), self._place(Measure("count")))
        holds = counted_rows(node)
        if holds is not None:
            return self._counted(holds)
        some, times = aggregated_rows(node), multiplied(node)
        if some is not None and (of := measure_in(some[0], self.source)) is not None:
            return self._place(OfSome(of, condition_of(some[1], self.source.domain)))
        if times is not None and (of := measure_in(times[0], self.source)) is not None:
            factor = Constant(Fraction(str(number_from(times[2].this))))
            return Computed(times[1], self._place(of), factor)
        measure = measure_in(node, self.source)
        return None if measure is None else self._place(measure)

    def _counted(self, holds: exp.Expr) -> Told:
        told = self._place(condition_of(holds, self.source.domain))
        self.names.setdefault(told.index, shown(holds))
        return told

    def _place(self, number: Measure | Predicate | OfSome) -> Told:
        if number not in self.numbers:
            self.numbers.append(number)
        return Told(self.numbers.index(number))

    def _not_computed(self, why: str) -> UnsupportedSql:
        parts = ", ".join(map(measure_text, self.measures)) or "COUNT(*)"
        return self.source.refuse(why, self.source.select(parts))


class NotAlone(Exception):
    """Quantiles beside what is not read from the same counts."""


def quantiles_of_some(node: exp.Expr, source: SelectContext) -> tuple[QuestionForm, Predicate] | None:
    """The quantiles that one expression asks for, and of which rows; None where it asks for none."""
    asked = quantiles(node, source)
    if asked is not None:
        return asked, Everything()
    filtered = isinstance(node, exp.Filter) and isinstance(node.expression, exp.Where)
    some = (node.this, node.expression.this) if filtered else aggregated_rows(node)
    asked = None if some is None else quantiles(some[0], source)
    return None if asked is None or some is None else (asked, condition_of(some[1], source.domain))


@final
class ReleasedQuantiles(Released):
    """The quantiles of one column."""

    def __init__(self, source: SelectContext, meant: Meant) -> None:
        super().__init__(source, meant)
        self.asked: list[tuple[float, Predicate]] = []
        self._columns: list[ColumnForm] = []

    @property
    def column(self) -> ColumnForm:
        """Whose quantiles they are."""
        return self._columns[0]

    @property
    def holds(self) -> Predicate | None:
        """The rows of which all of them are; None where they are of different ones."""
        held = {holds for _, holds in self.asked}
        return held.pop() if len(held) == 1 else None

    @property
    def shares(self) -> tuple[float, ...]:
        """Which of them are read, of the same rows or of every group."""
        return tuple(dict.fromkeys(share for share, _ in self.asked))

    def beside(self, keys: Sequence[str]) -> tuple[tuple[ColumnForm, ...], tuple[Number, ...]]:
        """Groups beside each other, each number a quantile of one of them; refused where it is of several."""
        conditions = [holds for _, holds in self.asked]
        mixed = any(each.columns() & set(keys) for each in conditions)
        apart = None if mixed else groups_apart(conditions, self.source.domain)
        if apart is None or any(len(places) != 1 for places in apart[1].values()):
            raise NotAlone(
                "Quantiles of one question are of the same rows, or of groups that do not overlap."
            )
        columns, places = apart
        shares = self.shares
        numbers = (
            Told(int(places[holds][0]) * len(shares) + shares.index(share)) for share, holds in self.asked
        )
        return columns, tuple(numbers)

    def shown(self, item: exp.Expr) -> list[tuple[str, Number]]:
        """The numbers of one entry of the select list by their names; a list of shares is several."""
        node = item.unalias()
        asked = quantiles(node, self.source)
        if asked is not None and len(asked.shares) > 1:
            name = item.alias or shown(node)
            return [
                (f"{name} {share:g}", self._place(asked.columns[0], share, Everything()))
                for share in asked.shares
            ]
        return [(item.alias or shown(item), self.number(node))]

    def _told(self, node: exp.Expr) -> Number | None:
        found = quantiles_of_some(node, self.source)
        if found is not None:
            asked, holds = found
            if len(asked.shares) > 1:
                raise NotAlone(
                    f"{shown(node)} is several numbers, and nothing is computed from them at once."
                )
            return self._place(asked.columns[0], asked.shares[0], holds)
        others = (share_of_rows(node), counted_rows(node), aggregated_rows(node), _told_in(node, self.source))
        if any(each is not None for each in others):
            raise NotAlone("One question at a time: quantiles are read from a curve, sums and means are not.")
        return None

    def _not_computed(self, why: str) -> NotAlone:
        return NotAlone(why)

    def _place(self, column: ColumnForm, share: float, holds: Predicate) -> Told:
        if self._columns and self._columns[0] != column:
            raise NotAlone("One question at a time: its quantiles are of one column, in the same bins.")
        self._columns.append(column)
        if (share, holds) not in self.asked:
            self.asked.append((share, holds))
        return Told(self.asked.index((share, holds)))


def _filtered(node: exp.Filter, source: SelectContext) -> UnsupportedSql:
    """``COUNT(*) FILTER (WHERE …)``: the same with WHERE."""
    asked = aggregate(node.this, source).only(condition_of(node.expression.this, source.domain))
    fix = replace(source, where=asked.where).select(aggregate_text(asked))
    return source.refuse("FILTER is written as WHERE.", fix)


def aggregate_text(form: QuestionForm) -> str:
    """The expression that ``aggregate`` reads as ``form``."""
    if form.measures:
        return ", ".join(map(measure_text, form.measures))
    if form.kind == "count":
        return f"COUNT({key_text(form.columns[0])})" if form.columns else "COUNT(*)"
    column = key_text(form.columns[0])
    if form.kind in _WORDS:
        return f"{_WORDS[form.kind]}({column})"
    if form.shares == (0.5,):
        return f"MEDIAN({column})"
    shares = ", ".join(str(number_text(share)) for share in form.shares)
    return f"QUANTILE({column}, {shares if len(form.shares) == 1 else f'[{shares}]'})"


def measure_text(measure: Measure) -> str:
    """An aggregate as SQL."""
    return f"{_WORDS[measure.of]}({'*' if measure.column is None else name_text(measure.column)})"


def _quantile(node: exp.Expr) -> tuple[Any, list[exp.Expr]] | None:
    """What a quantile is of, and its shares, in any of the ways in which databases write it."""
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        order = node.args.get("expression")
        ordered = order.expressions if isinstance(order, exp.Order) else []
        if len(ordered) != 1 or ordered[0].args.get("desc") or node.this.args.get("expression"):
            return None
        return ordered[0].this, _shares(node.this.this)
    if isinstance(node, exp.Anonymous) and str(node.this).upper() in _MORE_QUANTILES:
        return (node.expressions[0], _shares(node.expressions[1])) if len(node.expressions) == 2 else None
    if isinstance(node, _QUANTILES):
        share = node.args.get("quantile") or node.args.get("expression")
        return None if share is None else (node.this, _shares(share))
    return None


def _shares(node: exp.Expr) -> list[exp.Expr]:
    return node.expressions if isinstance(node, exp.Array) else [node]


def _share(node: exp.Expr) -> float:
    if not isinstance(node, exp.Literal) or node.is_string:
        raise InvalidQuestion(f"{shown(node)} is not a share between 0 and 1.", fixes=("0.5",))
    return float(number_from(node.this))
