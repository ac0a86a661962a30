"""A SELECT as a question: counts, sums, means, quantiles, histograms, the fullest bins, icebergs.

One SELECT is one question. What cannot be answered privately is refused with the reason and with the nearest
statement that can.

What a private SELECT says beyond SQL: ``EXPLAIN`` in front, ``WITH ERROR …`` or ``WITH EPSILON …`` behind.

They are split off by words before the rest is parsed, so the rest is plain SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import chain, combinations, pairwise, product
from typing import NoReturn, final

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
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
    OfSome,
    Released,
    ReleasedQuantiles,
    SelectContext,
    aggregate_text,
    is_count,
    is_key,
    key,
    key_text,
    measure_in,
    measure_text,
    quantiles,
    refuse_clauses,
    refuse_shape,
    refuse_statement,
)
from blowfishdb.language.arrangement import how_many
from blowfishdb.language.condition import condition_of
from blowfishdb.language.flattened import flattened, plainer
from blowfishdb.language.joins import without_joins
from blowfishdb.language.selected import Selected, group_column, number_column
from blowfishdb.language.text import (
    TypedSql,
    name_text,
    number_from,
    shown,
    sql_tokens,
    sql_tree,
    with_full_names,
)

_CONFIDENCE = Decimal("0.95")
_ABOUT = "SELECT COUNT(*) FROM salaries"
_EXAMPLES = ("WITH ERROR 50 CONFIDENCE 0.95", "WITH EPSILON 0.1")


@final
@dataclass(frozen=True)
class Extended:
    """A statement in three parts: the plain SELECT, and what it may cost or how accurate it must be."""

    select: str
    accuracy: Accuracy | None = None
    epsilon: Epsilon | None = None
    explain: bool = False
    group_size: int | None = None

    def __post_init__(self) -> None:
        if self.accuracy is not None and self.epsilon is not None:
            raise InvalidQuestion("An error or an epsilon can be given, not both.", fixes=_EXAMPLES)


def split_extensions(typed: str) -> Extended:
    """The parts of a statement."""
    tokens = sql_tokens(typed)
    explain = bool(tokens) and tokens[0].text.upper() == "EXPLAIN"
    if explain:
        typed = typed[tokens[0].end + 1 :]
        tokens = sql_tokens(typed)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    starts = [at for at in range(1, len(tokens) - 1) if _begins(tokens, at)]
    stop = tokens[starts[0]].start if starts else (tokens[-1].end + 1 if tokens else 0)
    accuracy: Accuracy | None = None
    epsilon: Epsilon | None = None
    size: int | None = None
    for start, end in pairwise([*starts, len(tokens)]):
        words = _Words(tokens[start + 1 : end])
        if words.takes("ERROR"):
            accuracy, size = _accuracy(words) if accuracy is None else words.wrong()
        elif words.takes("EPSILON"):
            epsilon = positive(words.number()) if epsilon is None else words.wrong()
        words.end()
    return Extended(typed[:stop], accuracy, epsilon, explain, size)


def _begins(tokens: list[Token], at: int) -> bool:
    here, after = tokens[at], tokens[at + 1]
    named = after.token_type == TokenType.VAR and after.text.upper() in ("ERROR", "EPSILON")
    return here.token_type == TokenType.WITH and named


def _accuracy(words: _Words) -> tuple[Accuracy, int | None]:
    """``50 [FOR GROUPS OF 1000] [CONFIDENCE 0.95] [EACH | ON EACH | ON ALL] [FOR GROUPS OF 1000]``."""
    alpha, confidence = float(words.number()), _CONFIDENCE
    size = _size(words)
    if words.takes("CONFIDENCE"):
        confidence = words.number()
        if not 0 < confidence < 1:
            raise InvalidQuestion("A confidence lies between 0 and 1, such as 0.95.", fixes=(_EXAMPLES[0],))
    on = words.takes("ON")
    each = words.takes("EACH")
    if on and not each and not words.takes("ALL"):
        words.wrong()
    size = _size(words) if size is None else size
    return Accuracy(alpha, float(1 - confidence), simultaneous=not each), size


def _size(words: _Words) -> int | None:
    """``FOR GROUPS OF 1000``."""
    if not words.takes("FOR"):
        return None
    if not words.takes("GROUPS") or not words.takes("OF"):
        words.wrong()
    rows = words.number()
    return int(rows) if rows == int(rows) else words.wrong()


@final
class _Words:
    """A cursor over the words of one extension."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = list(tokens)

    def takes(self, word: str) -> bool:
        taken = bool(self._tokens) and self._tokens[0].text.upper() == word
        if taken:
            self._tokens.pop(0)
        return taken

    def number(self) -> Decimal:
        """A number, or a percentage as the share that it is."""
        if not self._tokens or self._tokens[0].token_type not in (TokenType.NUMBER, TokenType.DOT):
            self.wrong()
        digits = self._tokens.pop(0).text
        if digits == "." and self._tokens and self._tokens[0].token_type == TokenType.NUMBER:
            digits += self._tokens.pop(0).text
        number = Decimal(str(number_from(digits)))
        return number / 100 if self.takes("%") else number

    def end(self) -> None:
        if self._tokens:
            self.wrong()

    def wrong(self) -> NoReturn:
        word = repr(self._tokens[0].text[:40]) if self._tokens else "the end"
        raise InvalidQuestion(
            "After WITH comes once ERROR, a number and a confidence (of means, FOR GROUPS OF and a number), "
            f"or EPSILON and a number; found {word}.",
            fixes=_EXAMPLES,
        )


_USUAL = ("", "main", "public", "dbo")
"""Schemas that tables are in where nobody says another."""
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
    tree = sql_tree(parts.select, None, source.select("COUNT(*)"))
    if keys or "." in dataset:
        tree = without_joins(tree, source, keys)
    tree = plainer(flattened(with_full_names(tree, domain)))
    if isinstance(tree, exp.SetOperation):
        raise _several(tree, source)
    refuse_shape(tree, source)
    _check_table(tree, source)
    if (where := tree.args.get("where")) is not None:
        source = replace(source, where=condition_of(where.this, domain))
    refuse_clauses(tree, source)
    select = _Select(tree, source)
    form = _sized(select.form(), parts.group_size, source)
    _check_form(form, source)
    return SqlQuestion(form, parts.accuracy, parts.epsilon, parts.explain, partial(select.selected, form))


def dataset_of(text: str) -> str:
    """The one name behind FROM, of a statement that says itself what it is about."""
    tree = sql_tree(split_extensions(text).select, None, _ABOUT)
    steps = {step.alias.casefold() for step in tree.find_all(exp.CTE)}
    origin = tree.args.get("from_")
    tables = [origin.this] if tree.args.get("joins") and origin is not None else tree.find_all(exp.Table)
    names = {_full(table) for table in tables if table.name.casefold() not in steps} - {""}
    if len(names) != 1:
        raise InvalidQuestion("FROM names one dataset.", fixes=(_ABOUT,))
    return names.pop()


def _full(table: exp.Expr) -> str:
    """A name behind FROM, with the schema if it is not a usual one: ``shop.orders``."""
    if not isinstance(table, exp.Table):
        return ""
    return table.name if table.db.casefold() in _USUAL else f"{table.db}.{table.name}"


def _several(tree: exp.SetOperation, source: SelectContext) -> UnsupportedSql:
    """The refusal of several SELECTs at once, with each of them that is answered."""
    parts = [node for node in tree.walk() if isinstance(node, exp.Select) and node.parent_select is None]
    fixes = dict.fromkeys(fix for part in parts if (fix := _answered(part, source)))
    return source.refuse(
        "One SELECT at a time: UNION, INTERSECT and EXCEPT combine several, and each has a price.", *fixes
    )


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
    whole = _full(table).casefold() == source.dataset.casefold()
    elsewhere = table.catalog or table.db.casefold() not in _USUAL
    if not whole and (elsewhere or table.name.casefold() != source.dataset.casefold()):
        raise UnknownDataset(
            f"{shown(table)}: this question is asked of {source.dataset!r}.",
            fixes=(source.select("COUNT(*)"),),
        )
    known = {table.name.casefold(), table.alias.casefold()} - {""}
    for column in tree.find_all(exp.Column):
        if column.table and column.table.casefold() in known and not column.args.get("db"):
            column.set("table", None)


@final
@dataclass(frozen=True)
class _Select:
    """The clauses of one SELECT, read together."""

    tree: exp.Expr
    source: SelectContext

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
        quantile = self._quantile(items, keys)
        if quantile is not None:
            return quantile
        self._check_selected(keys)
        released = Released(self.source, self._named)
        show = tuple(self._shown(item, released) for item in items)
        arrangement = self._arrangement(show, keys, released)
        some = released.of_some(list(map(key_text, keys)))
        if some is not None:
            return self._where(some[0])._of_measures(some[1], keys, arrangement)
        conditions = released.conditions()
        if conditions is not None and len(conditions) > 1:
            return self._conditional(conditions, keys, arrangement)
        if conditions is not None:  # the rows of which it is true are all that is asked about
            ((_, holds),) = conditions
            return self._where(holds)._of_measures((Measure("count"),), keys, arrangement)
        return self._of_measures(released.measures, keys, arrangement)

    def _where(self, holds: Predicate) -> _Select:
        """The same of the rows for which something holds, too."""
        everything = isinstance(self.source.where, Everything)
        where = holds if everything else self.source.where & holds
        return replace(self, source=replace(self.source, where=where))

    def selected(self, form: QuestionForm) -> tuple[Selected, ...]:
        """The columns of the result: the groups by their expressions, and the numbers in their order."""
        columns: list[Selected] = []
        released = Released(self.source, self._named)
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
            if form.kind not in ("quantiles", "marginals"):
                counts = self._counts(released.number(node), released)
            columns.append(number_column(item, numbers, several, counts=counts))
            numbers += several
        return tuple(columns)

    def _counts(self, number: Number, released: Released) -> bool:
        """Whether it is a number of rows as it is released."""
        told = released.numbers[number.index] if isinstance(number, Told) else None
        told = told.measure if isinstance(told, OfSome) else told
        return told is not None and (not isinstance(told, Measure) or told.of == "count")

    def _shown(self, item: exp.Expr, released: Released) -> tuple[str, Number]:
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
        name = name_text(columns[0].name)
        return self.source.refuse(f"{name} in the select list {reason}.", self.source.counted(*keys))

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
        if not any(quantiles(node, self.source) is not None for item in items for node in item.walk()):
            return None
        self._check_selected(keys)
        try:
            released = ReleasedQuantiles(self.source, self._named)
            show = tuple(each for item in items for each in released.shown(item))
            arrangement = self._arrangement(show, keys, released)
        except NotAlone as error:
            raise self.source.refuse(str(error), *self._apart(items, keys)) from None
        if not keys:
            single = self._single(arrangement, ())
            arrangement = replace(single, show=arrangement.show)
        return QuestionForm(
            "quantiles",
            (released.column,),
            self.source.where,
            shares=tuple(released.shares),
            by=tuple(keys),
            arrangement=arrangement.showing(len(released.shares)),
        )

    def _apart(self, items: list[exp.Expr], keys: list[ColumnForm]) -> list[str]:
        """What is asked for beside each other as statements of their own, one for each column."""
        nodes = [node for item in items for node in item.walk()]
        forms = [form for node in nodes if (form := quantiles(node, self.source)) is not None]
        apart = []
        for columns in dict.fromkeys(form.columns for form in forms):
            alike = [form for form in forms if form.columns == columns]
            shares = dict.fromkeys(share for form in alike for share in form.shares)
            apart.append(aggregate_text(replace(alike[0], shares=tuple(shares))))
        measures = dict.fromkeys(m for node in nodes if (m := measure_in(node, self.source)) is not None)
        if measures:
            apart.append(", ".join(map(measure_text, measures)))
        written = list(map(key_text, keys))
        tail = f" GROUP BY {', '.join(written)}" if written else ""
        statements = [self.source.select(", ".join([*written, each]), tail) for each in apart]
        return [each for each in statements if _answered_text(each, self.source)]

    # --- with GROUP BY ----------------------------------------------------------------------------

    def _keys(self) -> list[ColumnForm]:
        group = self.tree.args.get("group")
        if group is None:
            return []
        if group.args.get("all") and not group.expressions:
            return [key(item, self.source) for item in self._items if is_key(item)]
        extra = [name for name, value in group.args.items() if value and name != "expressions"]
        sums = list(group.find_all(exp.Rollup, exp.Cube, exp.GroupingSets))
        if sums or extra or not group.expressions:
            raise self._subtotals(group)
        return [self._key(node) for node in group.expressions]

    def _marginals(self) -> QuestionForm | None:
        """``GROUP BY ROLLUP (a, b)``, ``CUBE``, ``GROUPING SETS`` of counts: tables with their subtotals.

        None where there are none, or where they are of something else.
        """
        group, args = self.tree.args.get("group"), self.tree.args
        sets = None if group is None else _grouping_sets(group)
        items = [item for item in self._items if not is_key(item)]
        plain = not any(args.get(clause) for clause in ("having", "limit", "offset"))
        if sets is None or len(items) != 1 or not is_count(items[0]) or not plain:
            return None
        named = [[key(self._meant(node), self.source) for node in each] for each in sets]
        columns = tuple(dict.fromkeys(column for each in named for column in each))
        ordered = [self._meant(each.this) for each in getattr(args.get("order"), "expressions", ())]
        known = {column.name for column in columns}
        if len(known) < len(columns) or not columns or not all(map(is_key, ordered)):
            return None
        if any(each.args.get("desc") for each in getattr(args.get("order"), "expressions", ())):
            return None
        self._check_selected(list(columns))
        tables = tuple(dict.fromkeys(tuple(dict.fromkeys(column.name for column in each)) for each in named))
        return QuestionForm("marginals", columns, self.source.where, sets=tables)

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
        released: Released | ReleasedQuantiles,
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
        order_keys = () if self._as_declared(ordered, keys) else tuple(ordered)
        return Arrangement(show, chosen, order_keys, *numbers)

    def _order_key(
        self, node: exp.Expr, keys: list[ColumnForm], released: Released | ReleasedQuantiles
    ) -> OrderKey:
        wanted, descending = self._meant(node.this), bool(node.args.get("desc"))
        if not is_key(wanted):
            return OrderKey(released.number(wanted), descending)
        column = key(wanted, self.source)
        if isinstance(wanted, exp.Case) and column.groups is None:
            fix = self.source.counted(*map(key_text, keys), tail=" ORDER BY COUNT(*) DESC")
            raise self.source.refuse("Intervals of many values are not ordered by their names.", fix)
        if column not in keys:
            written = list(map(key_text, keys))
            fix = (
                self.source.counted(*written, tail=f" ORDER BY {written[0]}")
                if keys
                else self.source.select("COUNT(*)")
            )
            raise self.source.refuse(f"{shown(wanted)}: groups are ordered by what they are of.", fix)
        return OrderKey(column.name, descending)

    def _as_declared(self, order: list[OrderKey], keys: list[ColumnForm]) -> bool:
        """Whether groups come in this order anyway."""
        if len(order) > len(keys):
            return False
        return all(
            one.by == column.name
            and not one.descending
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
        if arrangement.order == (OrderKey(rows, descending=True),) and arrangement.having is None:
            return (
                listed
                if arrangement.limit is None
                else QuestionForm("top", columns, where, count=arrangement.limit)
            )
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


def _grouping_sets(group: exp.Expr) -> list[list[exp.Expr]] | None:
    """Which columns each table of a GROUP BY has; None where there is only one table."""
    clauses: list[list[list[exp.Expr]]] = []
    more = _subtotal_clauses(group)
    behind = [each for each in more if not each.expressions]  # WITH ROLLUP is about all that stands before it
    for node in behind or [*group.args.get("expressions", ()), *more]:
        parts = [_listed(each) for each in (node.expressions or group.expressions)]
        match node:
            case exp.Rollup():
                clauses.append([_joined(parts[:stop]) for stop in range(len(parts), -1, -1)])
            case exp.Cube():
                chosen = (
                    subset for size in range(len(parts), -1, -1) for subset in combinations(parts, size)
                )
                clauses.append([_joined(subset) for subset in chosen])
            case exp.GroupingSets():
                clauses.append(parts)
            case _:
                clauses.append([[node]])
    if all(len(clause) == 1 for clause in clauses) or group.args.get("totals") or group.args.get("all"):
        return None
    return [_joined(choice) for choice in product(*clauses)]


def _joined(parts: Iterable[list[exp.Expr]]) -> list[exp.Expr]:
    return list(chain.from_iterable(parts))


def _subtotal_clauses(group: exp.Expr) -> list[exp.Expr]:
    return [each for name in ("rollup", "cube", "grouping_sets") for each in group.args.get(name) or ()]


def _listed(node: exp.Expr) -> list[exp.Expr]:
    """``(a, b)``, ``(a)`` or ``a``."""
    if isinstance(node, exp.Paren):
        return [node.this]
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


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
