"""A SELECT as a question: counts, sums, means, quantiles, histograms, the fullest bins, icebergs.

One SELECT is one question. What cannot be answered privately is refused with the reason and with the nearest
statement that can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NoReturn, final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Predicate
from blowfishdb.core.errors import (
    BlowfishError,
    InvalidBins,
    InvalidQuestion,
    InvalidWorkload,
    UnknownDataset,
    UnsupportedSql,
)
from blowfishdb.core.questions.aggregates import SPREADS, Measure
from blowfishdb.core.questions.arrangement import Arrangement, Compared, Having, OrderKey
from blowfishdb.core.questions.conditions import Conditions
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.core.questions.numbers import Constant, Number, Told
from blowfishdb.language.aggregates import (
    NotAlone,
    Released,
    ReleasedQuantiles,
    ReleasedSums,
    SelectContext,
    aggregate_text,
    is_count,
    is_key,
    is_running_total,
    key,
    key_text,
    measure_in,
    measure_text,
    quantiles,
    quantiles_of_some,
    refuse_clauses,
    refuse_extremes,
    refuse_shape,
    refuse_statement,
)
from blowfishdb.language.arrangement import how_many, order_key
from blowfishdb.language.beside import OfSome
from blowfishdb.language.condition import condition_of
from blowfishdb.language.expressions import value_of
from blowfishdb.language.extensions import Extended, split_extensions
from blowfishdb.language.flattened import flattened, plainer, without_top
from blowfishdb.language.grouping import (
    case_labels,
    is_computed,
    is_condition,
    labels_in_order,
    missing_name,
    missing_truth,
    together,
)
from blowfishdb.language.grouping_sets import grouping_sets
from blowfishdb.language.joins import without_joins
from blowfishdb.language.mended import mended
from blowfishdb.language.selected import Selected, group_column, number_column
from blowfishdb.language.text import (
    TypedSql,
    name_text,
    number_from,
    shown,
    sql_tree,
    with_full_names,
)
from blowfishdb.language.totals import cut_before_adding, in_one

_ABOUT = "SELECT COUNT(*) FROM salaries"
_USUAL = ("", "main", "public", "dbo")
"""Schemas that tables are in where nobody says another."""
_TOGETHER = 3
"""So many columns are counted together where somebody asks for rows."""
_TABLE = ("this", "alias", "db", "catalog")


@final
@dataclass(frozen=True)
class SqlQuestion:
    """A SELECT: the question, and what it says about accuracy or cost. ``explain`` asks for the plan only."""

    form: QuestionForm
    accuracy: Accuracy | None
    epsilon: Epsilon | None
    explain: bool
    selecting: Callable[[], tuple[Selected, ...]] = field(default=tuple, compare=False, repr=False)

    @property
    def columns(self) -> tuple[Selected, ...]:
        """What it selects, in order, for whoever returns rows; worked out when it is asked for."""
        return self.selecting()


def parse_select(
    text: str, domain: Domain, *, dataset: str, keys: Sequence[tuple[str, str]] = ()
) -> SqlQuestion:
    """The question that a SELECT on ``dataset`` stands for, checked against the declared columns.

    ``keys``: how the rows of one of several tables belong to others; a LEFT JOIN by these says nothing new.
    """
    source = SelectContext(domain, dataset)
    parts = split_extensions(text)
    refuse_statement(parts.select, source)
    typed = sql_tree(without_top(parts.select), None, source.select("COUNT(*)"))
    try:
        return _read(typed.copy(), parts, source, keys)
    except BlowfishError as error:
        if not any(fix.startswith(("SELECT ", "WITH ")) for fix in error.fixes):
            error.fixes = _nearest(typed, parts, source, keys) or error.fixes
        raise


def _nearest(
    typed: exp.Expr, parts: Extended, source: SelectContext, keys: Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """What is answered of a statement that is refused for its conditions or its names."""
    better = mended(with_full_names(typed, source.domain), source.domain)
    if better is None:
        return ()
    try:
        _read(better.copy(), parts, source, keys)
        return (better.sql(TypedSql, comments=False),)
    except BlowfishError as error:
        return tuple(fix for fix in error.fixes if fix.startswith("SELECT "))
    except (SqlglotError, ValueError):
        return ()


def _read(
    tree: exp.Expr, parts: Extended, source: SelectContext, keys: Sequence[tuple[str, str]]
) -> SqlQuestion:
    """The question that a statement stands for."""
    domain, dataset = source.domain, source.dataset
    if keys or "." in dataset:
        tree = without_joins(tree, source, keys)
    tree = with_full_names(tree, domain)
    _check_totals(tree, source)
    tree = plainer(flattened(in_one(tree) or tree), domain)
    if isinstance(tree, exp.SetOperation):
        raise _several(tree, source)
    refuse_shape(tree, source, lambda: _apart(tree, source))
    _check_table(tree, source)
    if (where := tree.args.get("where")) is not None:
        source = replace(source, where=condition_of(where.this, domain))
    refuse_clauses(tree, source)
    select = _Select.of(tree, source)
    form = _sized(select.form(), parts.group_size, source)
    _check_form(form, source)
    form = _without_impossible(form, domain)
    return SqlQuestion(form, parts.accuracy, parts.epsilon, parts.explain, partial(select.selected, form))


def dataset_of(text: str) -> str:
    """The one name behind FROM, of a statement that says itself what it is about."""
    tree = sql_tree(without_top(split_extensions(text).select), None, _ABOUT)
    steps = {step.alias.casefold() for step in tree.find_all(exp.CTE)}
    origin = tree.args.get("from_")
    tables = [origin.this] if tree.args.get("joins") and origin is not None else tree.find_all(exp.Table)
    tables = [table for table in tables if not isinstance(table.parent, exp.Into)]
    names = {full_name(table) for table in tables if table.name.casefold() not in steps} - {""}
    if len(names) != 1:
        raise InvalidQuestion("FROM names one dataset.", fixes=(_ABOUT,))
    return names.pop()


def full_name(table: exp.Expr) -> str:
    """A name behind FROM, with the schema if it is not a usual one: ``shop.orders``."""
    if not isinstance(table, exp.Table):
        return ""
    return table.name if table.db.casefold() in _USUAL else f"{table.db}.{table.name}"


def _of_its_own_schema(table: exp.Table) -> str | None:
    """The name of a dataset in front of which it is written once more, as its schema: ``shop.shop``."""
    return table.name.casefold() if table.db.casefold() == table.name.casefold() else None


def _several(tree: exp.SetOperation, source: SelectContext) -> UnsupportedSql:
    """The refusal of several SELECTs at once, with each of them that is answered."""
    parts = [node for node in tree.walk() if isinstance(node, exp.Select) and node.parent_select is None]
    fixes = dict.fromkeys(fix for part in parts if (fix := _answered(part, source)))
    return source.refuse(
        "One SELECT at a time: UNION, INTERSECT and EXCEPT combine several, and each has a price.", *fixes
    )


def _check_totals(tree: exp.Expr, source: SelectContext) -> None:
    """A window adds up the groups that HAVING leaves, and which these are is noisy."""
    for select in cut_before_adding(tree):
        having = select.args["having"]
        select.set("having", None)
        fix = _answered(tree, source)
        select.set("having", having)
        raise source.refuse(
            "SUM(…) OVER (…) adds up the groups that HAVING leaves, and which these are is noisy.",
            *([fix] if fix else []),
        )


def _apart(tree: exp.Expr, source: SelectContext) -> list[str]:
    """The subqueries of a statement, of which each may be answered by itself."""
    apart = [node for node in tree.find_all(exp.Select) if node is not tree]
    return list(dict.fromkeys(fix for part in apart if (fix := _answered(part, source))))


def _answered(tree: exp.Expr, source: SelectContext) -> str | None:
    """A statement as it is written, if it is answered; None if not."""
    try:
        written = tree.sql(TypedSql, comments=False)
    except (SqlglotError, ValueError):
        return None
    return written if _answered_text(written, source) else None


def _answered_text(written: str, source: SelectContext) -> bool:
    """Whether a statement is answered."""
    try:
        parse_select(written, source.domain, dataset=source.dataset)
    except (BlowfishError, SqlglotError, ValueError):
        return False
    return True


def _sized(form: QuestionForm, size: int | None, source: SelectContext) -> QuestionForm:
    """With the size of groups whose mean is promised an error."""
    if size is None:
        return form
    if form.kind not in ("mean", "aggregates"):
        numeric = next((name for name in source.domain.names if source.numeric(name)), None)
        fixes = () if numeric is None else (source.select(f"AVG({name_text(numeric)})"),)
        raise InvalidQuestion("FOR GROUPS OF is said of means.", fixes=fixes)
    return replace(form, group_size=size)


def _check_form(form: QuestionForm, source: SelectContext) -> None:
    """Whether the columns are of a kind that can be asked this; if not, they can at least be counted."""
    try:
        form.check(source.domain)
    except (InvalidWorkload, InvalidBins) as error:
        named = [column.name for column in form.columns]
        named += [each.column for each in form.measures if each.column is not None][:1] if not named else []
        keys = dict.fromkeys(map(source.key, named))
        raise type(error)(error.message, fixes=(source.counted(*keys),)) from None


def _without_impossible(form: QuestionForm, domain: Domain) -> QuestionForm:
    """A database returns no group of which WHERE leaves no row; which these are is declared."""
    listed = {column.name for column in form.listed}
    if not all(each.all() for name, each in form.possible(domain).items() if name in listed):
        return replace(form, arrangement=replace(form.arrangement, possible=True))
    return form


def _check_table(tree: exp.Expr, source: SelectContext) -> None:
    """FROM names the dataset, and nothing else; its name in front of columns is let go."""
    origin = tree.args.get("from_")
    table = None if origin is None else origin.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise InvalidQuestion(
            f"FROM names the dataset, {source.dataset}.", fixes=(source.select("COUNT(*)"),)
        )
    extra = [name for name, value in table.args.items() if value and name not in _TABLE]
    if extra:
        raise source.refuse(f"{shown(table)}: FROM names the dataset and nothing else.")
    whole = source.dataset.casefold() in (full_name(table).casefold(), _of_its_own_schema(table))
    elsewhere = table.catalog or table.db.casefold() not in _USUAL
    if not whole and (elsewhere or table.name.casefold() != source.dataset.casefold()):
        raise UnknownDataset(
            f"{shown(table)}: this question is asked of {source.dataset!r}.",
            fixes=(source.select("COUNT(*)"),),
        )
    known = {table.name.casefold(), table.alias.casefold()} - {""}
    for column in tree.find_all(exp.Column):
        if column.table.casefold() in known and column.db.casefold() in ("", table.db.casefold()):
            column.set("table", None)
            column.set("db", None)


@final
@dataclass(frozen=True)
class _Select:
    """The clauses of one SELECT, read together."""

    tree: exp.Expr
    source: SelectContext

    @classmethod
    def of(cls, tree: exp.Expr, source: SelectContext) -> _Select:
        """With one cut for each column by which rows are grouped in several ways: by year and by month."""
        alone = cls(tree, source)
        return cls(tree, replace(source, cuts=tuple(alone._common_cuts())))

    def form(self) -> QuestionForm:
        subtotals = self._marginals()
        if subtotals is not None:
            return subtotals
        keys = self._keys()
        written = tuple(map(key_text, keys))
        return replace(self, source=replace(self.source, keys=written))._of_groups(keys)

    def _of_groups(self, keys: list[ColumnForm]) -> QuestionForm:
        """What is asked of every group, or of all rows."""
        items = [item for item in self.tree.expressions if not is_key(item.unalias())]
        if not keys and any(is_key(item) for item in self._items):
            raise self._ungrouped(bool(items))
        refuse_extremes([item.unalias() for item in items], self.source)
        quantile = self._quantile(items, keys)
        if quantile is not None:
            return quantile
        self._check_selected(keys)
        running = self._running(items, keys)
        if running is not None:
            return running
        released = ReleasedSums(self.source, self._named)
        show = _named_apart(self._shown(item, released) for item in items)
        arrangement = self._arrangement(show, keys, released)
        try:
            some = released.of_some(list(map(key_text, keys)))
            conditions = released.conditions() if some is None else None
        except UnsupportedSql:
            form = self._beside(released, keys, arrangement)
            if form is None:
                raise
            return form
        if some is not None:
            return self._where(some[0])._of_measures(some[1], keys, arrangement)
        if conditions is not None and len(conditions) > 1:
            return self._conditional(conditions, keys, arrangement)
        if conditions is not None:  # the rows of which it is true are all that is asked about
            ((_, holds),) = conditions
            return self._where(holds)._of_measures((Measure("count"),), keys, arrangement)
        return self._of_measures(released.measures, keys, arrangement)

    def _beside(
        self, released: ReleasedSums, keys: list[ColumnForm], arrangement: Arrangement
    ) -> QuestionForm | None:
        """Aggregates of different rows, from groups beside each other; None if it cannot be."""
        laid = released.beside([column.name for column in keys])
        if laid is None:
            return None
        if not keys:
            arrangement = Arrangement(self._single(arrangement, laid.measures).show or arrangement.show)
        try:
            arrangement = arrangement.of_groups(laid.numbers, tuple(column.name for column in laid.columns))
        except InvalidWorkload:
            return None
        columns = [*keys, *laid.columns]
        if laid.measures == (Measure("count"),):
            form = QuestionForm("histogram", tuple(columns), self.source.where)
        else:
            form = self._aggregated(laid.measures, columns)
        return replace(form, arrangement=arrangement)

    def _running(self, items: list[exp.Expr], keys: list[ColumnForm]) -> QuestionForm | None:
        """``SUM(COUNT(*)) OVER (PARTITION BY region ORDER BY age)``, how many are in a group or below.

        None for anything else.
        """
        over = items[0].unalias() if len(items) == 1 else None
        if over is None or not is_running_total(over) or self.tree.args.get("having"):
            return None
        (along,) = over.args["order"].expressions
        order = getattr(self.tree.args.get("order"), "expressions", [])
        apart = [self._meant(each) for each in over.args.get("partition_by") or []]
        wanted = [self._meant(each.this) for each in (along, *order)]
        if along.args.get("desc") or not all(map(is_key, (*wanted, *apart))):
            return None
        column, groups = key(wanted[0], self.source), [key(each, self.source) for each in apart]
        attribute = self.source.domain[column.name]
        if not attribute.ordered or attribute.has_missing_cell or column.groups or column.part:
            return None
        if column in groups or len(groups) != len(keys) - 1 or not all(k in (column, *groups) for k in keys):
            return None
        arrangement = self._arrangement((), [column, *groups], ReleasedSums(self.source, self._named))
        by = tuple(each for each in keys if each != column)
        return QuestionForm("cumulative", (column,), self.source.where, by=by, arrangement=arrangement)

    def _where(self, holds: Predicate) -> _Select:
        """The same of the rows for which something holds, too."""
        return replace(self, source=self.source.only(holds))

    def selected(self, form: QuestionForm) -> tuple[Selected, ...]:
        """The columns of the result: the groups by their expressions, and the numbers in their order."""
        columns: list[Selected] = []
        released = ReleasedSums(self.source, self._named)
        numbers = 0
        for item in self.tree.expressions:
            node = item.unalias()
            if is_key(node):
                place = form.grouped.index(key(node, self.source))
                columns.append(group_column(item, place, form.grouped[place], self.source.domain))
                continue
            asked = quantiles(node, self.source)
            several = 1 if asked is None else len(asked.shares)
            counts = form.kind == "marginals"
            counts |= form.kind == "cumulative"
            if form.kind not in ("quantiles", "marginals", "cumulative"):
                counts = self._counts(released.number(node), released)
            columns.append(number_column(item, numbers, several, counts=counts))
            numbers += several
        return tuple(columns)

    def _counts(self, number: Number, released: ReleasedSums) -> bool:
        """Whether it is a number of rows as it is released."""
        told = released.numbers[number.index] if isinstance(number, Told) else None
        told = told.measure if isinstance(told, OfSome) else told
        return told is not None and (not isinstance(told, Measure) or told.of == "count")

    def _shown(self, item: exp.Expr, released: ReleasedSums) -> tuple[str, Number]:
        """A number of the select list by its name; a count of some rows is called like it."""
        name, number = item.alias or shown(item), released.number(item.unalias())
        if item.alias and isinstance(number, Told):
            released.names[number.index] = item.alias
        return name, number

    def _conditional(
        self, conditions: Conditions, keys: list[ColumnForm], arrangement: Arrangement
    ) -> QuestionForm:
        """Several counts of some rows, in one release."""
        if not keys:
            single = self._single(arrangement, (Measure("count"),))
            arrangement = replace(single, show=arrangement.show)
        arrangement = arrangement.showing(len(conditions))
        return QuestionForm(
            "counts", tuple(keys), self.source.where, conditions=conditions, arrangement=arrangement
        )

    def _of_measures(
        self, measures: tuple[Measure, ...], keys: list[ColumnForm], arrangement: Arrangement
    ) -> QuestionForm:
        if not measures:
            return self._uncounted(keys)
        if not keys:
            return replace(self._of_all_rows(measures), arrangement=self._single(arrangement, measures))
        if measures != (Measure("count"),):
            arrangement = arrangement.showing(len(measures))
            return replace(self._aggregated(measures, keys), arrangement=arrangement)
        return self._counted(keys, arrangement.showing(1))

    @property
    def _items(self) -> list[exp.Expr]:
        return [item.unalias() for item in self.tree.expressions]

    # --- aggregates -----------------------------------------------------------------------------------

    def _aggregated(self, measures: tuple[Measure, ...], keys: list[ColumnForm]) -> QuestionForm:
        """``AVG(salary), COUNT(*) … GROUP BY region``; every group comes, in the declared order."""
        columns = list(dict.fromkeys(each.column for each in measures if each.column is not None))
        everyone, domain = Measure("count"), self.source.domain
        leaving = next((name for name in columns if domain[name].may_drop), None)
        if leaving is not None and len(columns) > 1:
            apart = (tuple(each for each in measures if each.column == name) for name in columns)
            raise self.source.refuse(
                f"Rows without a value of {name_text(leaving)} are left out: other columns are not told too.",
                *(self._statement(each, keys) for each in apart),
            )
        if leaving is not None and everyone in measures:
            named = Measure("count", leaving)
            counted = dict.fromkeys(named if each == everyone else each for each in measures)
            raise self.source.refuse(
                f"Rows without a value of {name_text(leaving)} are left out: COUNT(*) is not told too.",
                self._statement(tuple(counted), keys),
            )
        return QuestionForm("aggregates", tuple(keys), self.source.where, measures=measures)

    def _statement(self, measures: tuple[Measure, ...], keys: list[ColumnForm]) -> str:
        """Some aggregates in these groups, as a statement."""
        written = list(map(key_text, keys))
        tail = f" GROUP BY {', '.join(written)}" if written else ""
        return self.source.select(", ".join([*written, *map(measure_text, measures)]), tail)

    # --- without GROUP BY -------------------------------------------------------------------------

    def _ungrouped(self, asked: bool) -> UnsupportedSql:
        """The refusal of columns that are not grouped."""
        columns = [key(item, self.source) for item in self._items if is_key(item)]
        keys = [key_text(c) if c.cut else self.source.key(c.name) for c in columns]
        reason = "needs GROUP BY" if asked else "would show the rows; they can be counted"
        many = len(keys) > _TOGETHER  # more of them have more combinations than anybody counts
        name = name_text(columns[0].name)
        fix = self.source.counted(*(keys[:1] if many else keys))
        return self.source.refuse(f"{name} in the select list {reason}.", fix)

    def _of_all_rows(self, measures: tuple[Measure, ...]) -> QuestionForm:
        """One number has a question of its own, several are aggregates."""
        (first, *more) = measures
        if more or first.of in SPREADS:
            return self._aggregated(measures, [])
        columns = () if first.column is None else (ColumnForm(first.column),)
        return QuestionForm(first.of, columns, self.source.where)

    def _single(self, arrangement: Arrangement, measures: tuple[Measure, ...]) -> Arrangement:
        """One row is in order, and a LIMIT of one or more keeps it."""
        cut = arrangement.offset > 0 or arrangement.limit == 0
        if arrangement.having is not None or cut:
            clause = "HAVING" if arrangement.having is not None else "LIMIT 0 and no OFFSET"
            raise self.source.refuse(f"A single row has no {clause}.", self._statement(measures, []))
        return Arrangement(arrangement.show).showing(len(measures))

    def _quantile(self, items: list[exp.Expr], keys: list[ColumnForm]) -> QuestionForm | None:
        """A question for quantiles of one column, in groups or not; None where none is asked for."""
        nodes = [node for item in items for node in item.walk()]
        if not any(quantiles_of_some(node, self.source) is not None for node in nodes):
            return None
        self._check_selected(keys)
        try:
            released = ReleasedQuantiles(self.source, self._named)
            show = tuple(each for item in items for each in released.shown(item))
            arrangement = self._arrangement(show, keys, released)
            if not keys:
                arrangement = Arrangement(self._single(arrangement, ()).show or arrangement.show)
            columns: tuple[ColumnForm, ...] = ()
            if released.holds is None:
                columns, numbers = released.beside([column.name for column in keys])
                arrangement = arrangement.of_groups(numbers, tuple(column.name for column in columns))
            else:
                arrangement = arrangement.showing(len(released.shares))
        except NotAlone as error:
            raise self.source.refuse(str(error), *self._apart(items, keys)) from None
        return QuestionForm(
            "quantiles",
            (released.column,),
            (self.source if released.holds is None else self.source.only(released.holds)).where,
            shares=released.shares,
            by=(*keys, *columns),
            arrangement=arrangement,
        )

    def _apart(self, items: list[exp.Expr], keys: list[ColumnForm]) -> list[str]:
        """What is asked for beside each other as statements of their own: of one column, of the same rows."""
        nodes = [node for item in items for node in item.walk()]
        some = {id(inner) for node in nodes if isinstance(node, exp.Filter) for inner in node.this.walk()}
        found = [
            each
            for node in nodes
            if id(node) not in some and (each := quantiles_of_some(node, self.source)) is not None
        ]
        apart: list[tuple[str, SelectContext]] = []
        for columns, holds in dict.fromkeys((form.columns, holds) for form, holds in found):
            alike = [form for form, rows in found if form.columns == columns and rows == holds]
            shares = dict.fromkeys(share for form in alike for share in form.shares)
            asked = aggregate_text(replace(alike[0], shares=tuple(shares)))
            apart.append((asked, self.source.only(holds)))
        alone = [node for node in nodes if id(node) not in some and not isinstance(node, exp.Filter)]
        measures = dict.fromkeys(m for node in alone if (m := measure_in(node, self.source)) is not None)
        if measures:
            apart.append((", ".join(map(measure_text, measures)), self.source))
        written = list(map(key_text, keys))
        tail = f" GROUP BY {', '.join(written)}" if written else ""
        statements = [source.select(", ".join([*written, each]), tail) for each, source in apart]
        return [each for each in statements if _answered_text(each, self.source)]

    # --- with GROUP BY ----------------------------------------------------------------------------

    def _keys(self) -> list[ColumnForm]:
        group = self.tree.args.get("group")
        if group is None:
            return []
        if group.args.get("all") and not group.expressions:
            return _different(key(item, self.source) for item in self._items if is_key(item))
        extra = [name for name, value in group.args.items() if value and name != "expressions"]
        sums = list(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets))
        if sums or extra or not group.expressions:
            raise self._subtotals(group)
        return _different(self._key(node) for node in group.expressions)

    def _common_cuts(self) -> Iterator[ColumnForm]:
        group = self.tree.args.get("group")
        ways: dict[str, list[exp.Expr]] = {}
        for node in map(self._meant, [] if group is None else group.expressions):
            if is_key(node) and not isinstance(node, exp.Anonymous | exp.Case) and not is_condition(node):
                ways.setdefault(self.source.first_column(node), []).append(node)
        for name, nodes in ways.items():
            cut = together(nodes, name, self.source.domain) if len(nodes) > 1 else None
            if cut is not None:
                yield cut

    def _marginals(self) -> QuestionForm | None:
        """``GROUP BY ROLLUP (a, b)``, ``CUBE``, ``GROUPING SETS`` of counts: tables with their subtotals.

        None where there are none, or where they are of something else.
        """
        group = self.tree.args.get("group")
        sets = None if group is None else grouping_sets(group)
        items = [item for item in self._items if not is_key(item)]
        if sets is None or len(items) != 1 or not is_count(items[0]):
            return None
        named = [[key(self._meant(node), self.source) for node in each] for each in sets]
        columns = tuple(_different(column for each in named for column in each))
        if len({column.name for column in columns}) < len(columns) or not columns:
            return None
        self._check_selected(list(columns))
        tables = tuple(dict.fromkeys(tuple(dict.fromkeys(column.name for column in each)) for each in named))
        released = ReleasedSums(self.source, self._named)
        rows = released.number(items[0])
        arrangement = self._arrangement((), list(columns), released)
        if any(number.told - rows.told for number in arrangement.numbers):
            return None
        return QuestionForm("marginals", columns, self.source.where, sets=tables, arrangement=arrangement)

    def _subtotals(self, group: exp.Expr) -> UnsupportedSql:
        """ROLLUP, CUBE, GROUPING SETS: the finest groups, and all rows, as statements of their own."""
        columns = list(dict.fromkeys(map(self._meant, group.find_all(exp.Column))))
        fine, whole = self.tree.copy(), self.tree.copy()
        fine.set("group", exp.Group(expressions=[column.copy() for column in columns]))
        for clause in ("group", "order", "having", "limit", "offset"):
            whole.set(clause, None)
        whole.set("expressions", [item for item in whole.expressions if not is_key(item.unalias())])
        apart = [_answered(each, self.source) for each in (fine, whole)]
        fixes = [each for each in apart if each is not None] or [self._counted_first(group)]
        return self.source.refuse(
            "GROUP BY lists columns and BIN(column, width), nothing else; subtotals are asked for apart.",
            *fixes,
        )

    def _key(self, node: exp.Expr) -> ColumnForm:
        node = self._meant(node)
        if is_key(node):
            return key(node, self.source)
        fix = self._counted_first(node)
        raise self.source.refuse(f"{shown(node)}: groups are columns or BIN(column, width).", fix)

    def _meant(self, node: exp.Expr) -> exp.Expr:
        """The expression of the select list that a position or an alias stands for."""
        items = self._items
        if isinstance(node, exp.Literal) and not node.is_string:
            position = number_from(node.this)
            if not isinstance(position, int) or not 1 <= position <= len(items):
                fix = self._counted_first(self.tree)
                raise InvalidQuestion(f"There is no column {shown(node)} in the select list.", fixes=(fix,))
            return items[position - 1]
        return self._named(node)

    def _named(self, node: exp.Expr) -> exp.Expr:
        """The expression of the select list that an alias stands for."""
        if isinstance(node, exp.Column) and not node.table and node.name not in self.source.domain:
            for item in self.tree.expressions:
                if isinstance(item, exp.Alias) and item.alias.casefold() == node.name.casefold():
                    return item.unalias()
        return node

    def _counted_first(self, node: exp.Expr) -> str:
        return self.source.counted(self.source.key(self.source.first_column(node)))

    def _check_selected(self, keys: list[ColumnForm]) -> None:
        for item in self._items:
            if is_key(item) and (chosen := key(item, self.source)) not in keys:
                fix = self.source.counted(*map(key_text, _merged(keys, chosen)))
                raise self.source.refuse(f"{shown(item)} is selected but not grouped.", fix)

    # --- how it is shown ---------------------------------------------------------------------------

    def _arrangement(
        self,
        show: tuple[tuple[str, Number], ...],
        keys: list[ColumnForm],
        released: Released,
    ) -> Arrangement:
        """HAVING, ORDER BY, LIMIT and OFFSET never reach the database: what is released is arranged."""
        args = self.tree.args
        having, order = args.get("having"), args.get("order")
        chosen = None if having is None else released.having(having.this, list(map(key_text, keys)))
        ordered = (
            [] if order is None else [self._order_key(each, keys, released) for each in order.expressions]
        )
        numbers = how_many(args.get("limit"), args.get("offset"))
        if numbers is None:
            raise self.source.refuse(
                "LIMIT and OFFSET are whole numbers.",
                self.source.counted(*map(key_text, keys), tail=" LIMIT 3")
                if keys
                else self.source.select("COUNT(*)"),
            )
        if order is not None:
            meant = [self._meant(each.this) for each in order.expressions]
            self._check_order([each for each in meant if not self._is_of_numbers(each)], keys)
        ordered = list(dict.fromkeys(ordered))
        sets = any(self.tree.find_all(exp.Rollup, exp.Cube, exp.GroupingSets))
        order_keys = () if not sets and self._as_declared(ordered, keys) else tuple(ordered)
        return Arrangement(show, chosen, order_keys, *numbers)

    def _check_order(self, wanted: list[exp.Expr], keys: list[ColumnForm]) -> None:
        """Groups by year and month are in the order of years first."""
        grouped = [self._meant(node) for node in getattr(self.tree.args.get("group"), "expressions", ())]
        for cut in self.source.cuts:
            ways = [node for node in grouped if self._is_of(node, cut)]
            asked = [node for node in wanted if self._is_of(node, cut)]
            if asked and asked != ways[: len(asked)] and asked != ways:
                written = list(map(key_text, keys))
                fix = self.source.counted(*written, tail=f" ORDER BY {name_text(cut.name)}")
                raise self.source.refuse(f"{shown(asked[0])}: groups of one column have one order.", fix)

    def _is_of(self, node: exp.Expr, cut: ColumnForm) -> bool:
        return is_key(node) and self.source.first_column(node) == cut.name

    def _order_key(self, node: exp.Expr, keys: list[ColumnForm], released: Released) -> OrderKey:
        wanted = self._meant(node.this)
        if not is_key(wanted) or self._is_of_numbers(wanted):
            return order_key(node, released.number(wanted))
        column = key(wanted, self.source)
        if column not in keys:
            written = list(map(key_text, keys))
            fix = (
                self.source.counted(*written, tail=f" ORDER BY {written[0]}")
                if keys
                else self.source.select("COUNT(*)")
            )
            raise self.source.refuse(f"{shown(wanted)}: groups are ordered by what they are of.", fix)
        return order_key(node, column.name, self._names(wanted, column))

    def _is_of_numbers(self, node: exp.Expr) -> bool:
        """Whether it is computed from numbers of the select list by their names: ``f - m``."""
        meant = [(each, self._named(each)) for each in node.find_all(exp.Column)]
        return bool(meant) and all(item is not each and not is_key(item) for each, item in meant)

    def _names(self, node: exp.Expr, column: ColumnForm) -> tuple[str, ...]:
        """What a statement calls its groups, in whose order they come; nothing where they are not named."""
        domain = self.source.domain
        axis, attribute = column.axis(domain), domain[column.name]
        unknown = missing_name(node, attribute)
        if unknown is not None:  # which is a name among others
            return () if attribute.ordered else (*axis.labels()[: axis.value_bins], unknown)
        starts = [attribute.lower(int(axis.bins.first(bin_))) for bin_ in range(axis.value_bins)]
        if is_condition(node):
            holds, last = condition_of(node, domain), missing_truth(node, attribute, domain)
            if last is None and column.groups is not None:
                return ()  # which are called so anyway
            told = [holds.matches({column.name: start}, domain) for start in starts]
            return tuple(str(each).lower() for each in (told if last is None else [*told, last]))
        if column.part is not None and column.groups is None and is_computed(node):
            called = labels_in_order([value_of(node, start) for start in starts])
            return () if called is None or called == sorted(called) else tuple(called)
        if isinstance(node, exp.Case) and column.groups is None and column.edges is not None:
            return tuple(case_labels(node, column, starts, domain))
        return ()

    def _as_declared(self, order: list[OrderKey], keys: list[ColumnForm]) -> bool:
        """Whether groups come in this order anyway."""
        if len(order) > len(keys):
            return False
        return all(
            one.by == column.name
            and not one.descending
            and not one.missing_first
            and not one.names
            and column.groups is None
            and self.source.domain[column.name].ordered
            for one, column in zip(order, keys, strict=False)
        )

    def _counted(self, keys: list[ColumnForm], arrangement: Arrangement) -> QuestionForm:
        """Counts of groups; the fullest of one column, and those above a number, have their own promise."""
        columns, where = tuple(keys), self.source.where
        listed = QuestionForm("histogram", columns, where, arrangement=arrangement)
        if len(keys) > 1 or arrangement.show or arrangement.offset:
            return listed
        rows = Told(0)
        order = tuple(
            replace(each, missing_first=False) for each in arrangement.order
        )  # counts are all there
        if order == (OrderKey(rows, descending=True),) and arrangement.having is None:
            most = arrangement.limit
            everything = most is None or most >= columns[0].axis(self.source.domain).bins.count
            return listed if everything else QuestionForm("top", columns, where, count=most)
        above = _above(arrangement.having)
        alone = not arrangement.order and arrangement.limit is None
        return QuestionForm("above", columns, where, limit=above) if above is not None and alone else listed

    def _uncounted(self, keys: list[ColumnForm]) -> NoReturn:
        """Groups without a number of them."""
        if not keys:
            raise InvalidQuestion("The select list is empty.", fixes=(self.source.select("COUNT(*)"),))
        raise self.source.refuse(
            "Values without their counts would show which occur in the data.",
            self.source.counted(*map(key_text, keys)),
        )


def _named_apart(shown: Iterable[tuple[str, Number]]) -> tuple[tuple[str, Number], ...]:
    """Numbers of one name, which SQL allows, by names of their own."""
    named: dict[str, Number] = {}
    for typed, number in shown:
        name = typed
        while name in named:
            name += "'"
        named[name] = number
    return tuple(named.items())


def _different(keys: Iterable[ColumnForm]) -> list[ColumnForm]:
    """Each once, in the order in which they come first."""
    listed: list[ColumnForm] = []
    listed.extend(column for column in keys if column not in listed)
    return listed


def _merged(keys: list[ColumnForm], more: ColumnForm) -> list[ColumnForm]:
    """The groups with one more, which takes the place of another cut of the same column."""
    if any(key.name == more.name for key in keys):
        return [more if key.name == more.name else key for key in keys]
    return [*keys, more]


def _above(having: Having | None) -> int | float | None:
    """``COUNT(*) > 5000``."""
    match having:
        case Compared(">", Told(0), Constant(limit)) | Compared("<", Constant(limit), Told(0)):
            return int(limit) if limit.denominator == 1 else float(limit)
    return None
