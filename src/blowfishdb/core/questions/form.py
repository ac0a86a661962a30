"""Forms: a question as people type it, before anyone has looked up what its columns are.

``cumulative(salary, bins=20)`` on a command line, a SELECT, a JSON body and a chain of Python calls all
become one ``QuestionForm``. With the declared columns it becomes a ``Question``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from blowfishdb.core.arrays import BoolArray, FloatArray
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.dates import PARTS, Date, length_of_time
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.domain.values import plain
from blowfishdb.core.errors import InvalidBins, InvalidInput, InvalidWorkload, TooLarge
from blowfishdb.core.policy.codec import condition_from, plain_condition, plain_value, value_from
from blowfishdb.core.questions import kinds as questions
from blowfishdb.core.questions.aggregates import AggregateQuestion, Measure
from blowfishdb.core.questions.arrangement import Arrangement, places_along, possible_along
from blowfishdb.core.questions.clusters import USUAL_ITERATIONS, ClusterQuestion, cluster_axes
from blowfishdb.core.questions.conditions import (
    Conditions,
    Counts,
    Marginals,
    Sets,
    cells_of_sets,
    condition_axes,
)
from blowfishdb.core.questions.kinds import Kind, Question

if TYPE_CHECKING:
    from blowfishdb.core.questions.synthesis import SyntheticQuestion

SYNTHETIC: Final = "synthetic"
"""Questions for synthetic tables, which have a door of their own."""
KINDS = (
    "histogram",
    "cumulative",
    "ranges",
    "quantiles",
    "count",
    "sum",
    "mean",
    "top",
    "above",
    "partition",
    "clusters",
    "aggregates",
    "counts",
    "marginals",
)
"""The forms of question, in the order in which they are offered."""

_DETAILS = {
    "ranges": "bounds",
    "quantiles": "shares",
    "top": "count",
    "above": "limit",
    "partition": "count",
    "clusters": "k",
    "aggregates": "measures",
    "counts": "conditions",
    "marginals": "sets",
}
_ALSO = {
    "clusters": ("iterations",),
    "aggregates": ("group_size",),
    "mean": ("group_size",),
    "cumulative": ("by",),
    "ranges": ("by",),
    "quantiles": ("by",),
    SYNTHETIC: ("target", "source", "keep"),
}
_FIELDS = (
    "kind",
    "columns",
    "where",
    "bounds",
    "shares",
    "count",
    "limit",
    "k",
    "iterations",
    "measures",
    "group_size",
    "conditions",
    "by",
    "sets",
    "target",
    "source",
    "keep",
    "arrangement",
)
_UNCUT = ("count", "sum", "mean", "ranges", "clusters")  # these need no bins
_LISTED = (
    "histogram",
    "cumulative",
    "aggregates",
    "counts",
)  # these are lists of groups, in an order of one's own
_BESIDE = ("histogram", "aggregates", "counts", "quantiles")  # their groups may stand beside each other
_MOST_BESIDE = 1_000
_SHOWN = (*_LISTED, "count", "sum", "mean", "quantiles")  # others are computed from these


AnyQuestion: TypeAlias = "Question | ClusterQuestion | AggregateQuestion | SyntheticQuestion"
"""A question on declared columns."""


@final
@dataclass(frozen=True)
class ColumnForm:
    """One column, and at most one way to cut it into bins: each value alone if none is given."""

    name: str
    bins: int | None = None
    width: Any = None
    edges: tuple[Any, ...] | None = None
    groups: Mapping[str, tuple[Any, ...]] | None = None
    part: str | None = None
    """Of dates: a part of them that comes again, such as the month of every year; groups are of these."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidInput("A column is named by a text.")
        object.__setattr__(self, "width", length_of_time(self.width))
        edges: object = self.edges
        if edges is not None:
            if isinstance(edges, str) or not isinstance(edges, Iterable):
                raise InvalidBins("Edges are a list of values.", fixes=("edges=[18, 25, 35]",))
            object.__setattr__(self, "edges", tuple(edges))
        if self.groups is not None:
            object.__setattr__(self, "groups", _groups(self.groups))
        if self.part is not None and not isinstance(self.part, str):
            raise InvalidInput("A part of dates is named by a text.", fixes=tuple(PARTS))

    def axis(self, domain: Domain) -> Axis:
        """The column as it is declared, cut as it was asked."""
        attribute = domain[self.name]
        if self.part is not None:
            return Axis(self.name, attribute, self._parts(attribute, self.part))
        cut = attribute.bins(count=self.bins, width=self.width, edges=self.edges, groups=self.groups)
        return Axis(self.name, attribute, cut)

    def _parts(self, attribute: Attribute, part: str) -> Bins:
        if any(way is not None for way in (self.bins, self.width, self.edges)):
            raise InvalidBins("Bins are given by one of count, width, edges and part, not by several.")
        if not isinstance(attribute, Date):
            raise InvalidBins(f"Only dates have parts; {self.name} has none.", fixes=("use groups",))
        return attribute.parts(part, self.groups)

    @property
    def cut(self) -> bool:
        """Whether bins were asked for."""
        ways = (self.bins, self.width, self.edges, self.groups, self.part)
        return any(way is not None for way in ways)

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data, without what was not said."""
        fields: dict[str, Any] = {"name": self.name}
        if self.bins is not None:
            fields["bins"] = plain_value(self.bins)
        if self.width is not None:
            fields["width"] = plain_value(self.width)
        if self.edges is not None:
            fields["edges"] = [plain_value(edge) for edge in self.edges]
        if self.groups is not None:
            fields["groups"] = {
                name: [plain_value(v) for v in values] for name, values in self.groups.items()
            }
        return fields if self.part is None else {**fields, "part": self.part}

    @classmethod
    def from_plain(cls, stored: object) -> ColumnForm:
        """A column from its plain form; a text is a column without bins."""
        if isinstance(stored, str):
            return cls(stored)
        fields = _object(stored, "A column", ("name", "bins", "width", "edges", "groups", "part"))
        edges, groups = fields.get("edges"), fields.get("groups")
        if groups is not None and not isinstance(groups, Mapping):
            raise InvalidBins("Groups are an object: a name for each list of values.")
        return cls(
            name=fields.get("name", ""),
            bins=fields.get("bins"),
            width=value_from(fields.get("width")),
            edges=None if edges is None else _values(edges, "edges"),
            groups=None if groups is None else {k: _values(v, "groups") for k, v in groups.items()},
            part=fields.get("part"),
        )


@final
@dataclass(frozen=True)
class QuestionForm:
    """A question in the words of the person who asks."""

    kind: str
    columns: tuple[ColumnForm, ...]
    where: Predicate = field(default_factory=Everything)
    bounds: tuple[tuple[Any, ...], ...] = ()
    """Of ranges: a pair of ends; of several columns a pair for each."""
    shares: tuple[float, ...] = ()
    count: int | None = None
    limit: float | None = None
    k: int | None = None
    iterations: int | None = None
    """Of clusters: how many there are, and in how many rounds they are found; as usual if not said."""
    measures: tuple[Measure, ...] = ()
    """Of aggregates: which; the columns are those by which rows are grouped."""
    group_size: int | None = None
    """How many rows a group has at least for which the error of a mean is promised."""
    conditions: Conditions = ()
    """Of counts: which rows, by name; the columns are those by which rows are grouped."""
    by: tuple[ColumnForm, ...] = ()
    """Of cumulative counts, ranges and quantiles: the columns by which rows are grouped."""
    sets: Sets = ()
    """Of marginals: which of the columns are in each table."""
    target: str | None = None
    """Of synthetic tables: the column whose relations to others matter most."""
    source: str | None = None
    """Of synthetic tables: ``answers`` if they are made from what is out already."""
    keep: tuple[str, ...] = ()
    """Of synthetic tables: public columns whose rows stay as they are."""
    arrangement: Arrangement = field(default_factory=Arrangement)
    """How the answer is shown. It is no part of the question: all of it is asked and released."""

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, SYNTHETIC):
            raise InvalidInput(f"There is no question of kind {self.kind!r}.", fixes=KINDS)
        self._tidy()
        self._check_details()
        if not self.cut_into_bins and any(column.cut for column in self.columns):
            raise InvalidWorkload(f"A question for {self.kind} has no bins.", fixes=("leave them out",))
        if self.kind == "mean" and len(self.columns) != 1:
            raise InvalidWorkload("A mean is about one column.")
        self._check_arrangement()

    def _check_arrangement(self) -> None:
        """What is shown follows from what is released, and an order is one of groups."""
        arrangement = self.arrangement
        if arrangement.across and self.kind not in _BESIDE:
            raise InvalidWorkload(f"Groups of a question for {self.kind} do not stand beside each other.")
        if (arrangement.order or arrangement.chooses) and not self.listed:
            raise InvalidWorkload(
                f"A question for {self.kind} has no groups to order or to leave out.",
                fixes=("ask for a histogram",),
            )
        if arrangement.show and self.kind not in _SHOWN:
            raise InvalidWorkload(f"Nothing is computed from an answer to a question for {self.kind}.")
        most = _MOST_BESIDE if arrangement.across else 1
        arrangement.check([column.name for column in self.grouped], most * self.released)

    def _check_beside(self, domain: Domain) -> None:
        """Numbers of groups that stand beside each other are those of groups that are there."""
        across = [column for column in self.grouped if column.name in self.arrangement.across]
        groups = math.prod(column.axis(domain).bins.count for column in across)
        if groups > _MOST_BESIDE:
            raise TooLarge(f"At most {_MOST_BESIDE:,} groups stand beside each other.", fixes=("wider bins",))
        if any(told >= groups * self.released for each in self.arrangement.numbers for told in each.told):
            raise InvalidInput(f"So many groups do not stand beside each other; there are {groups}.")

    @property
    def listed(self) -> tuple[ColumnForm, ...]:
        """The columns along which the groups of the answer are listed, one below the other."""
        return tuple(
            column
            for column in (self.grouped if self.lists_groups else ())
            if column.name not in self.arrangement.across
        )

    @property
    def grouped(self) -> tuple[ColumnForm, ...]:
        """The columns by which rows are grouped."""
        return self.by if self.kind == "quantiles" else (*self.columns, *self.by)

    @property
    def quantiles_by_group(self) -> bool:
        """Whether it asks for quantiles of each group."""
        return self.kind == "quantiles" and bool(self.by)

    @property
    def lists_groups(self) -> bool:
        """Whether the answer is a list of groups, in an order of one's own."""
        return (self.kind in (*_LISTED, "marginals") and bool(self.columns)) or self.quantiles_by_group

    @property
    def released(self) -> int:
        """How many numbers are released of every group."""
        return len(self.measures) or len(self.conditions) or len(self.shares) or 1

    @property
    def mentioned(self) -> frozenset[str]:
        """The columns that it speaks of, in whichever part of it."""
        named = {column.name for column in (*self.columns, *self.by)}
        named |= {each.column for each in self.measures if each.column is not None}
        return self.where.columns().union(named, *(each.columns() for _, each in self.conditions))

    @property
    def whole(self) -> QuestionForm:
        """The question, whatever is shown of its answer."""
        return replace(self, arrangement=Arrangement()) if self.arrangement else self

    def places(self, domain: Domain) -> dict[str, FloatArray]:
        """Where each column by which groups are ordered puts its bins."""
        wanted = {key.by: key.names for key in self.arrangement.order if isinstance(key.by, str)}
        return {
            column.name: places_along(column.axis(domain), wanted[column.name] or tuple(column.groups or ()))
            for column in (*self.columns, *self.by)
            if column.name in wanted
        }

    def subtotals(self, domain: Domain) -> dict[str, dict[str, int]]:
        """Of marginals, every group by its name, with the bin of each column that it is of."""
        axes = [column.axis(domain) for column in self.columns]
        ordered = tuple(sorted(axes, key=lambda axis: domain.names.index(axis.column)))
        return dict(cells_of_sets(self.sets, ordered))

    def possible(self, domain: Domain) -> dict[str, BoolArray]:
        """Which bins of each column by which rows are grouped may have rows for which the condition holds.

        The declaration says so: no row is looked at.
        """
        return {
            column.name: possible_along(column.axis(domain), self.where, domain) for column in self.grouped
        }

    def _check_details(self) -> None:
        """Every detail that the kind needs, and no other."""
        wanted = _DETAILS.get(self.kind)
        details = (*_DETAILS.values(), "iterations", "group_size", "by", "target", "source", "keep")
        for name in details:
            value = getattr(self, name)
            present = value is not None and value != ()
            if present and name not in (wanted, *_ALSO.get(self.kind, ())):
                raise InvalidInput(f"A question for {self.kind} has no '{name}'.")
            if not present and name == wanted:
                raise InvalidInput(f"A question for {self.kind} needs '{name}'.")

    def _tidy(self) -> None:
        """Lists as tuples and NumPy's numbers as Python's, so that equal questions are equal."""
        columns, bounds, shares = (list(part) for part in (self.columns, self.bounds, self.shares))
        if not all(isinstance(column, ColumnForm) for column in columns):
            raise InvalidInput("A question is about columns.", fixes=("ColumnForm('age', width=5)",))
        if not isinstance(self.where, Predicate):
            raise InvalidInput("A question is about the rows that satisfy a condition.")
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "by", tuple(self.by))
        if not all(isinstance(column, ColumnForm) for column in self.by):
            raise InvalidInput("Rows are grouped by columns.", fixes=("ColumnForm('region')",))
        object.__setattr__(self, "sets", tuple(map(_set, self.sets)))
        ends = _pair if len(columns) == 1 else _pairs(len(columns))
        object.__setattr__(self, "bounds", tuple(map(ends, bounds)))
        object.__setattr__(self, "shares", tuple(map(_share, shares)))
        object.__setattr__(self, "measures", tuple(self.measures))
        if not all(isinstance(each, Measure) for each in self.measures):
            raise InvalidInput("Aggregates are listed.", fixes=("Measure('mean', 'salary')",))
        object.__setattr__(self, "conditions", tuple(map(_named_condition, self.conditions)))
        if self.source not in (None, "answers"):
            raise InvalidInput("A synthetic table is measured, or made from answers.", fixes=("answers",))
        object.__setattr__(self, "keep", _names(self.keep))
        if self.target is not None and not isinstance(self.target, str):
            raise InvalidInput("A column is named by a text.")
        for name in ("count", "limit", "k", "iterations", "group_size"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        if self.kind == "clusters" and self.iterations is None:
            object.__setattr__(self, "iterations", USUAL_ITERATIONS)

    def question(self, domain: Domain, *, rows: int | None = None) -> AnyQuestion:
        """The question on declared columns; a mean has a price only with the public number of ``rows``.

        So has a sum over cells of several values.
        """
        if self.arrangement.across:
            self._check_beside(domain)
        if self.kind == "aggregates":
            return self._aggregates(domain)
        if self.kind == SYNTHETIC:
            return self._synthetic(domain, rows)
        return self._clusters(domain) if self.kind == "clusters" else self._counts(domain, rows)

    def _aggregates(self, domain: Domain) -> AggregateQuestion:
        groups = tuple(column.axis(domain) for column in self.columns)
        return AggregateQuestion.of(self.measures, groups, domain, self.where, self.group_size)

    @property
    def in_groups(self) -> QuestionForm:
        """A mean or a sum as the one aggregate of all rows: it need not be known how many these are."""
        (column,) = self.columns
        measures = (Measure(self.kind, column.name),)
        return QuestionForm("aggregates", (), self.where, measures=measures, group_size=self.group_size)

    def _synthetic(self, domain: Domain, rows: int | None) -> SyntheticQuestion:
        """Of all columns where none is named, unless it is made from answers: they say of which."""
        from blowfishdb.core.questions.synthesis import SyntheticQuestion  # most questions are others

        released = self.source == "answers"
        columns = self.columns or (() if released else tuple(map(ColumnForm, domain.names)))
        axes = tuple(column.axis(domain) for column in columns)
        cut = frozenset(column.name for column in columns if column.cut)
        return SyntheticQuestion(axes, cut, self.target, released, rows, self.where, self.keep)

    def _clusters(self, domain: Domain) -> ClusterQuestion:
        assert self.k is not None and self.iterations is not None
        axes = cluster_axes(tuple(column.name for column in self.columns), domain)
        return ClusterQuestion(axes, self.k, self.iterations, self.where)

    def _counts(self, domain: Domain, rows: int | None) -> Question:
        if self.kind == "count":
            return self._total(domain)
        if self.kind == "partition":
            return self._partition(domain)
        if self.kind == "counts":
            groups = tuple(column.axis(domain) for column in self.columns)
            axes = condition_axes(self.conditions, groups, domain)
            return Question(Counts(self.conditions, groups), axes, self.where)
        by, named = (tuple(column.name for column in listed) for listed in (self.by, self.columns))
        kinds: dict[str, Callable[[], Kind]] = {
            "histogram": questions.Histogram,
            "cumulative": lambda: questions.Cumulative(by),
            "ranges": lambda: questions.Ranges(self.bounds, named if len(named) > 1 else (), by),
            "quantiles": lambda: questions.Quantiles(self.shares, by, named[0] if by and named else ""),
            "marginals": lambda: Marginals(self.sets),
            "sum": lambda: questions.Sum(rows),
            "mean": lambda: questions.Sum(rows, mean=True),
            "top": lambda: questions.Top(self.count or 0),
            "above": lambda: questions.Above(0.0 if self.limit is None else self.limit),
        }
        axes = tuple(column.axis(domain) for column in (*self.columns, *self.by))
        return Question(kinds[self.kind](), axes, self.where)

    def _partition(self, domain: Domain) -> Question:
        from blowfishdb.core.questions.partitions import Partition, usual_axis  # most questions are others

        columns = self.columns
        axes = tuple(
            each.axis(domain) if each.cut else usual_axis(each.name, domain[each.name], len(columns))
            for each in columns
        )
        return Question(Partition(self.count or 0), axes, self.where)

    def check(self, domain: Domain) -> None:
        """Whatever cannot be asked of these columns is refused; nothing is written out."""
        self.where.check(domain)
        question = self.question(domain)
        if isinstance(question, Question):
            question.kind.workload(question.axes)

    def _total(self, domain: Domain) -> Question:
        """How many rows have a value in the columns; if none is named, in one that drops no row."""
        keeping = (name for name, attribute in domain.columns if not attribute.may_drop)
        named = tuple(column.name for column in self.columns)
        along = named or (next(keeping, domain.names[0]),)
        axes = tuple(questions.Count.axis(name, domain[name], named=bool(named)) for name in along)
        return Question(questions.Count(named), axes, self.where)

    @property
    def cut_into_bins(self) -> bool:
        """Whether bins are part of this kind of question."""
        return self.kind not in _UNCUT

    def counting(self, domain: Domain) -> QuestionForm:
        """The number of rows that this question is about: those with a value, of each group."""
        if self.kind == SYNTHETIC:
            return QuestionForm("count", ())
        if self.measures:
            column = next((each.column for each in self.measures if each.column is not None), None)
            return replace(self.whole, measures=(Measure("count", column),), group_size=None)
        named = [column.name for column in self.columns]
        partial = [name for name in named if domain[name].may_drop or domain[name].has_missing_cell]
        return QuestionForm("count", tuple(map(ColumnForm, partial)), self.where)

    def only(self, condition: Predicate) -> QuestionForm:
        """The same question about the rows that also satisfy ``condition``."""
        if isinstance(condition, Everything):
            return self
        alone = isinstance(self.where, Everything)
        return replace(self, where=condition if alone else self.where & condition)

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data, without what was not said."""
        fields: dict[str, Any] = {"kind": self.kind, "columns": [c.to_plain() for c in self.columns]}
        if not isinstance(self.where, Everything):
            fields["where"] = plain_condition(self.where)
        if self.bounds:
            fields["bounds"] = [_plain_bounds(each) for each in self.bounds]
        if self.shares:
            fields["shares"] = list(self.shares)
        if self.count is not None:
            fields["count"] = plain_value(self.count)
        if self.limit is not None:
            fields["limit"] = plain_value(self.limit)
        if self.measures:
            fields["measures"] = [each.to_plain() for each in self.measures]
        if self.group_size is not None:
            fields["group_size"] = plain_value(self.group_size)
        if self.k is not None:
            fields |= {"k": plain_value(self.k), "iterations": plain_value(self.iterations)}
        if self.conditions:
            fields["conditions"] = {name: plain_condition(each) for name, each in self.conditions}
        if self.by:
            fields["by"] = [column.to_plain() for column in self.by]
        if self.sets:
            fields["sets"] = [list(each) for each in self.sets]
        said = {"target": self.target, "source": self.source, "keep": list(self.keep) or None}
        fields |= {name: value for name, value in said.items() if value is not None}
        if self.arrangement:
            fields["arrangement"] = self.arrangement.to_plain()
        return fields

    @classmethod
    def from_plain(cls, stored: object) -> QuestionForm:
        """A question from its plain form."""
        fields = _object(stored, "A question", _FIELDS)
        where = fields.get("where")
        return cls(
            kind=fields.get("kind", ""),
            columns=tuple(ColumnForm.from_plain(c) for c in _list(fields.get("columns", []), "columns")),
            where=Everything() if where is None else condition_from(where),
            bounds=tuple(_bounds_from(each) for each in _list(fields.get("bounds", []), "bounds")),
            shares=tuple(_list(fields.get("shares", []), "shares")),
            count=fields.get("count"),
            limit=fields.get("limit"),
            k=fields.get("k"),
            iterations=fields.get("iterations"),
            measures=tuple(map(Measure.from_plain, _list(fields.get("measures", []), "measures"))),
            group_size=fields.get("group_size"),
            conditions=_conditions(fields.get("conditions") or {}),
            by=tuple(ColumnForm.from_plain(c) for c in _list(fields.get("by") or [], "by")),
            sets=tuple(tuple(_list(each, "sets")) for each in _list(fields.get("sets") or [], "sets")),
            target=fields.get("target"),
            source=fields.get("source"),
            keep=tuple(_list(fields.get("keep") or [], "keep")),
            arrangement=Arrangement.from_plain(fields.get("arrangement") or {}),
        )


def _conditions(stored: object) -> Conditions:
    if not isinstance(stored, Mapping):
        raise InvalidInput("Conditions are an object: a name for each of them.")
    return tuple((str(name), condition_from(each)) for name, each in stored.items())


def _named_condition(said: object) -> tuple[str, Predicate]:
    match said:
        case (str() as name, Predicate() as condition) if name:
            return name, condition
    raise InvalidInput("A condition has a name.", fixes=("{'young': col('age') < 30}",))


def _object(stored: object, what: str, names: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(stored, Mapping):
        raise InvalidInput(f"{what} is an object with {', '.join(names)}.")
    unknown = [str(name) for name in stored if name not in names]
    if unknown:
        raise InvalidInput(f"{what} has no '{unknown[0]}'; it has {', '.join(names)}.")
    return stored


def _list(stored: object, what: str) -> list[Any]:
    if not isinstance(stored, list | tuple):
        raise InvalidInput(f"'{what}' is a list.")
    return list(stored)


def _values(stored: object, what: str) -> tuple[Any, ...]:
    return tuple(value_from(value) for value in _list(stored, what))


def _groups(groups: object) -> dict[str, tuple[Any, ...]]:
    named: dict[str, tuple[Any, ...]] = {}
    for name, values in groups.items() if isinstance(groups, Mapping) else ((None, None),):
        if not isinstance(name, str) or isinstance(values, str) or not isinstance(values, Iterable):
            raise InvalidBins("Groups are named lists of values.", fixes=("groups={'coast': ['west']}",))
        named[name] = tuple(values)
    return named


def _plain_bounds(bounds: tuple[Any, ...]) -> list[Any]:
    return [_plain_bounds(each) if isinstance(each, tuple) else plain_value(each) for each in bounds]


def _bounds_from(stored: object) -> tuple[Any, ...]:
    listed = _list(stored, "bounds")
    return tuple(_values(each, "bounds") if isinstance(each, list) else value_from(each) for each in listed)


def _pairs(columns: int) -> Callable[[object], tuple[Any, ...]]:
    """Reads the ends of a rectangle: a pair for each of so many columns."""

    def read(stored: object) -> tuple[Any, ...]:
        if isinstance(stored, str) or not isinstance(stored, Sequence) or len(stored) != columns:
            raise InvalidInput(
                f"Bounds of {columns} columns are a pair for each of them.", fixes=("((20, 29), (0, 9_999))",)
            )
        return tuple(map(_pair, stored))

    return read


def _names(stored: object) -> tuple[str, ...]:
    """Names of columns, each once and in one order, so that equal questions are equal."""
    if isinstance(stored, str) or not isinstance(stored, Iterable):
        raise InvalidInput("Columns are a list of names.", fixes=("keep=['age', 'region']",))
    listed = list(stored)
    if not all(isinstance(name, str) for name in listed):
        raise InvalidInput("A column is named by a text.")
    return tuple(sorted(set(listed)))


def _set(stored: object) -> tuple[str, ...]:
    if isinstance(stored, str) or not isinstance(stored, Sequence):
        raise InvalidInput("A marginal is of a list of columns.", fixes=("[['age', 'region'], ['age']]",))
    if not all(isinstance(name, str) for name in stored):
        raise InvalidInput("A column is named by a text.")
    return tuple(stored)


def _pair(stored: object) -> tuple[Any, Any]:
    if isinstance(stored, str) or not isinstance(stored, Sequence) or len(stored) != 2:
        raise InvalidInput("Bounds are pairs: the lowest and the highest value of each range.")
    if any(isinstance(end, list | tuple) for end in stored):
        raise InvalidInput("Bounds of one column are pairs of values.", fixes=("[(0, 9_999)]",))
    return stored[0], stored[1]


def _share(stored: object) -> float:
    scalar = plain(stored)
    if isinstance(scalar, bool) or not isinstance(scalar, int | float | Fraction | Decimal):
        raise InvalidInput("Shares are numbers between 0 and 1.")
    try:
        return float(scalar)
    except (OverflowError, ValueError):
        raise InvalidInput("Shares are numbers between 0 and 1.") from None
