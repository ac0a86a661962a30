"""The short form of a question: ``cumulative(salary, bins=20) where age >= 30``, to a form and back.

The words of the short form: names, texts, numbers, dates, ``..`` and brackets.

Neither SQL's nor Python's tokenizer can read ``0..9999`` or ``2024-01-01..2024-12-31``, so the short form
has its own, in one table. It is lazy: what follows ``where`` is SQL and never comes here.

Writing a form as text in the short form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn, final

from blowfishdb.core.domain.attributes import Integer, Real
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.domain.values import moment, plain
from blowfishdb.core.errors import InvalidBins, InvalidInput, InvalidQuestion
from blowfishdb.core.questions.aggregates import MEASURES, SPREADS, Measure
from blowfishdb.core.questions.clusters import USUAL_ITERATIONS
from blowfishdb.core.questions.conditions import Sets, all_sets
from blowfishdb.core.questions.form import KINDS, ColumnForm, QuestionForm
from blowfishdb.language.arrangement import read_tail, short_measure_text, tail_of, tail_text
from blowfishdb.language.condition import condition, condition_text, named_conditions
from blowfishdb.language.text import (
    LONGEST,
    column_name,
    duration,
    duration_text,
    name_text,
    number_from,
    number_text,
    parenthesised,
    quoted_name,
    quoted_text,
)

_KINDS = {
    "moment": r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?",
    "date": r"\d{4}-\d{2}-\d{2}",
    "number": r"(?:\d[\d_]*(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?",
    "name": r"[^\W\d]\w*(?:\.[^\W\d]\w*)?",
    "quoted": r'"(?:[^"]|"")*"',
    "text": r"'(?:[^']|'')*'",
    "mark": r"\.\.|[()\[\]{},=:/-]",
}
_WORD = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()), re.ASCII)
_NAME = re.compile(_KINDS["name"])  # letters of any alphabet
_SPACE = re.compile(r"\s*")


@final
@dataclass(frozen=True)
class Word:
    """One word: its kind, what it says (without quotes), and where it begins and stops."""

    kind: str
    text: str
    start: int
    stop: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


@final
class Words:
    """A cursor over the words of a text; one word is looked at before it is taken."""

    def __init__(self, typed: str) -> None:
        if not isinstance(typed, str):
            raise InvalidQuestion(f"A question is a text, not {type(typed).__name__}.")
        if len(typed) > LONGEST:
            raise InvalidQuestion(f"The text has {len(typed):,} characters; at most {LONGEST:,} are read.")
        self.typed = typed
        self.next = self._read(0)

    def take(self) -> Word:
        """The next word, and on to the one after it."""
        word = self.next
        self.next = self._read(word.stop)
        return word

    def skip_to(self, at: int) -> None:
        """On to the first word from a place on."""
        self.next = self._read(at)

    def takes(self, mark: str) -> bool:
        """Whether the next word is ``mark``; if so it is taken."""
        taken = self.next.kind == "mark" and self.next.text == mark
        if taken:
            self.take()
        return taken

    def is_name(self, name: str) -> bool:
        """Whether the next word is a given bare name."""
        return self.next.kind == "name" and self.next.text.casefold() == name

    def rest(self) -> str:
        """The text behind the next word."""
        return self.typed[self.next.stop :]

    def _read(self, at: int) -> Word:
        space = _SPACE.match(self.typed, at)
        start = space.end() if space else at
        if start == len(self.typed):
            return Word("end", "", start, start)
        word = _WORD.match(self.typed, start)
        if word is None or word.lastgroup == "name":
            word = _NAME.match(self.typed, start) or word
        if word is None:
            return Word("unknown", self.typed[start], start, start + 1)
        kind = "name" if word.re is _NAME else str(word.lastgroup)
        return Word(kind, _unquoted(kind, word.group()), start, word.end())


def _unquoted(kind: str, written: str) -> str:
    if kind not in ("quoted", "text"):
        return written
    mark = written[0]
    return written[1:-1].replace(2 * mark, mark)


def aggregates_form(
    measures: tuple[Measure, ...], groups: tuple[ColumnForm, ...], where: Predicate, size: int | None
) -> QuestionForm:
    """Aggregates in groups; where rows are only counted that is a histogram."""
    if measures == (Measure("count"),) and groups and size is None:
        return QuestionForm("histogram", groups, where)
    return QuestionForm("aggregates", groups, where, measures=measures, group_size=size)


def question_text(form: QuestionForm) -> str:
    """The short form that reads back as ``form``."""
    if form.kind == "counts":
        listed = (f"{condition_text(each)} as {quoted_name(name)}" for name, each in form.conditions)
        return f"counts({', '.join(listed)}){_groups_words(form)}{_where_text(form)}{tail_text(form)}"
    if form.kind in ("aggregates", "mean"):
        return _aggregates_text(form)
    name = "median" if form.kind == "quantiles" and form.shares == (0.5,) else form.kind
    details = [bounds_text(each) for each in form.bounds]
    if name != "median":
        details += [value_text(share) for share in form.shares]
    details += [value_text(number) for number in (form.count, form.limit) if number is not None]
    details += [f"{name}={value_text(number)}" for name, number in _numbers(form)]
    details += _sets_text(form)
    if len(form.columns) == 1:
        (column,) = form.columns
        parts = [name_text(column.name), *details, *_cut_text(column)]
    else:
        parts = [*map(column_text, form.columns), *details]
    groups = f" by {', '.join(map(column_text, form.by))}" if form.by else ""
    return f"{name}({', '.join(parts)}){groups}{_where_text(form)}{tail_text(form)}"


def bounds_text(bounds: tuple[Any, ...]) -> str:
    """``0..9999``; of several columns ``(20..29, 0..9999)``."""
    if isinstance(bounds[0], tuple):
        return f"({', '.join(map(bounds_text, bounds))})"
    low, high = bounds
    return f"{value_text(low)}..{value_text(high)}"


def _sets_text(form: QuestionForm) -> list[str]:
    """How many columns each table has, if there is one of all that many; else which."""
    if not form.sets:
        return []
    ways = len(form.sets[0])
    if form.sets == all_sets(tuple(column.name for column in form.columns), ways):
        return [str(ways)]
    return [f"[{', '.join(map(name_text, each))}]" for each in form.sets]


def _where_text(form: QuestionForm) -> str:
    return "" if isinstance(form.where, Everything) else f" where {condition_text(form.where)}"


def _aggregates_text(form: QuestionForm) -> str:
    told = form.measures or (Measure(form.kind, form.columns[0].name),)
    listed = ", ".join(map(short_measure_text, told))
    groups = _groups_words(form) if form.measures else ""
    size = "" if form.group_size is None else f" for groups of {form.group_size}"
    return f"{listed}{groups}{size}{_where_text(form)}{tail_text(form)}"


def _groups_words(form: QuestionForm) -> str:
    return f" by {', '.join(map(column_text, form.columns))}" if form.columns else ""


def _numbers(form: QuestionForm) -> list[tuple[str, object]]:
    """What clusters need; how many rounds there are only where it is not as usual."""
    iterations = None if form.iterations == USUAL_ITERATIONS else form.iterations
    numbers = [("k", form.k), ("iterations", iterations)]
    return [(name, number) for name, number in numbers if number is not None]


def column_text(column: ColumnForm) -> str:
    """A column with its bins, as one of several."""
    cuts = _cut_text(column)
    return name_text(column.name) + (f"({', '.join(cuts)})" if cuts else "")


def _cut_text(column: ColumnForm) -> list[str]:
    parts: list[str] = []
    if column.bins is not None:
        parts.append(f"bins={value_text(column.bins)}")
    if column.width is not None:
        parts.append(f"width={value_text(column.width)}")
    if column.edges is not None:
        parts.append(f"edges={_list_text(column.edges)}")
    if column.groups is not None:
        parts.append(f"groups={_groups_text(column.groups)}")
    if column.part is not None:
        parts.append(f"part={column.part}")
    return parts


def _list_text(values: tuple[Any, ...]) -> str:
    return f"[{', '.join(map(value_text, values))}]"


def _groups_text(groups: Mapping[str, tuple[Any, ...]]) -> str:
    inside = (f"{quoted_text(name)}: {_list_text(tuple(values))}" for name, values in groups.items())
    return "{" + ", ".join(inside) + "}"


def value_text(value: object) -> str:
    """A value as it is typed."""
    match plain(value):
        case bool() as answer:
            return "true" if answer else "false"
        case str() as text:
            return quoted_text(text)
        case date() as day:
            return day.isoformat()
        case timedelta() as duration:
            return duration_text(duration)
        case other:
            written = number_text(other)
    if written is None:
        raise InvalidInput(f"A {type(value).__name__} cannot be written in a question.")
    return written


_NAMES = (*KINDS[:4], "median", *KINDS[4:-3], *SPREADS, "counts", "marginals")
_BY = ("cumulative", "ranges", "quantiles", "median")
_CUTS = ("bins", "width", "edges", "groups", "part")
_NUMBERED = ("k", "iterations")
_SHAPES = {
    "ranges": "{column}, {low}..{high}",
    "quantiles": "{column}, 0.25, 0.5",
    "top": "{column}, 3",
    "partition": "{column}, 2",
    "above": "{column}, 100",
    "clusters": "{column}, k=4",
    "marginals": "{column}, 1",
    "count": "",
    "counts": "{column} = {low}",
}
_ANY_COLUMN = ("histogram", "top", "above", "count", "counts", "marginals")
_AFTER_COLUMN = {
    "ranges": "ranges such as 0..9999",
    "quantiles": "shares such as 0.25, 0.5",
    "top": "the number of bins",
    "partition": "the number of parts",
    "above": "the number of rows",
    "marginals": "how many of them each table has",
}


def parse_question(text: str, domain: Domain) -> QuestionForm:
    """The form of a question in short form, checked against the declared columns.

    One that was read lately is not read again: people try one error after another.
    """
    of, form = _lately.get((id(domain), text), (None, None))
    if form is None or of is not domain:
        form = _Reader(Words(text), domain).question()
        form.check(domain)
        if len(text) <= _LONGEST_KEPT:
            if len(_lately) >= _MOST_KEPT:
                _lately.clear()
            _lately[id(domain), text] = (domain, form)
    return form


_LONGEST_KEPT, _MOST_KEPT = 500, 500
_lately: dict[tuple[int, str], tuple[Domain, QuestionForm]] = {}
"""With the columns that it was read for, which can be no others while they are here."""


# --- reading ------------------------------------------------------------------------------------


@final
@dataclass
class _Arguments:
    """What stood between the parentheses."""

    columns: list[ColumnForm] = field(default_factory=list)
    plain: list[Any] = field(default_factory=list)
    ranges: list[tuple[Any, ...]] = field(default_factory=list)
    sets: list[tuple[str, ...]] = field(default_factory=list)
    cuts: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)


@final
@dataclass(frozen=True)
class _Reader:
    """Recursive descent over the words of one question."""

    words: Words
    domain: Domain

    def question(self) -> QuestionForm:
        word = self.words.take()
        name = word.text.casefold()
        if word.kind != "name" or name not in _NAMES:
            raise InvalidQuestion(
                f"A question begins with one of {', '.join(_NAMES)}; found {word}.",
                fixes=(_example("histogram", self.domain),),
            )
        if name == "counts":
            return self._conditional()
        arguments = self._arguments(name)
        told = [(name, arguments)] if name in MEASURES else []
        while told and self.words.takes(","):
            told.append(self._next_measure())
        grouped = bool(told) or name in _BY
        groups, size = self._groups_of(name) if grouped else ((), None)
        where, tail = self._rows_and_tail(name, in_groups=grouped)
        if len(told) > 1 or (told and groups) or name in SPREADS:
            form = aggregates_form(tuple(self._measure(*each) for each in told), groups, where, size)
            return read_tail(tail, form, self.domain)
        form = self._form(name, arguments, where, groups)
        if size is not None and name != "mean":
            raise InvalidQuestion(
                "Groups of a size are said of means.", fixes=(_example("mean", self.domain),)
            )
        return read_tail(tail, form if size is None else replace(form, group_size=size), self.domain)

    def _rows_and_tail(self, name: str, *, in_groups: bool) -> tuple[Predicate, str]:
        """Which rows, and how the answer is shown: both are SQL."""
        words = self.words
        if words.is_name("where"):
            typed, tail = tail_of(words.rest())
            return condition(typed, self.domain), tail
        if any(map(words.is_name, ("across", "show", "having", "order", "limit", "offset"))):
            return Everything(), words.typed[words.next.start :]
        if words.next.kind != "end":
            self._wrong(name, "'by', 'where' or the end" if in_groups else "'where' or the end")
        return Everything(), ""

    def _conditional(self) -> QuestionForm:
        """``counts(age < 30 as young, salary > 50000 as rich) by region``; conditions are SQL."""
        if self.words.next.text != "(":
            self._wrong("counts", "'('")
        start = self.words.next.start
        inside, stop = parenthesised(self.words.typed[start:])
        conditions = named_conditions(inside, self.domain)
        self.words.skip_to(start + stop)
        groups, size = self._groups_of("count")
        if size is not None:
            raise InvalidQuestion("Groups of a size are said of means.")
        where, tail = self._rows_and_tail("counts", in_groups=True)
        return read_tail(tail, QuestionForm("counts", groups, where, conditions=conditions), self.domain)

    # --- aggregates -------------------------------------------------------------------------------

    def _next_measure(self) -> tuple[str, _Arguments]:
        """``, count()``: one more aggregate of the same rows."""
        word = self.words.take()
        name = word.text.casefold()
        if word.kind != "name" or name not in MEASURES:
            raise InvalidQuestion(
                f"Several questions at once are {', '.join(MEASURES)}; found {word}.",
                fixes=(_example("mean", self.domain),),
            )
        return name, self._arguments(name)

    def _measure(self, name: str, arguments: _Arguments) -> Measure:
        plain_columns = [column for column in arguments.columns if not column.cut]
        extra = arguments.plain or arguments.ranges or arguments.cuts or arguments.numbers
        if extra or len(plain_columns) != len(arguments.columns) or len(plain_columns) > 1:
            raise InvalidQuestion(f"{name}(…) takes one column.", fixes=(_example(name, self.domain),))
        if not plain_columns and name != "count":
            raise InvalidQuestion(f"{name}(…) needs a column.", fixes=(_example(name, self.domain),))
        return Measure(name, plain_columns[0].name if plain_columns else None)

    def _groups_of(self, name: str) -> tuple[tuple[ColumnForm, ...], int | None]:
        """``by region, age(width=10) for groups of 1000``."""
        groups: list[ColumnForm] = []
        if self.words.is_name("by"):
            self.words.take()
            while not groups or self.words.takes(","):
                word = self.words.take()
                if word.kind not in ("name", "quoted"):
                    raise InvalidQuestion(
                        f"Groups are columns; found {word}.", fixes=(_example(name, self.domain),)
                    )
                column = column_name(word.text, self.domain, quoted=word.kind == "quoted")
                groups.append(ColumnForm(column, **self._own_cuts(name)))
        if not self.words.is_name("for"):
            return tuple(groups), None
        for expected in ("for", "groups", "of"):
            if not self.words.is_name(expected):
                self._wrong(name, f"{expected!r}")
            self.words.take()
        size = self._value(name)
        if not isinstance(size, int):
            self._wrong(name, "a whole number of rows")
        return tuple(groups), size

    def _arguments(self, kind: str) -> _Arguments:
        arguments = _Arguments()
        self._expect("(", kind)
        while not self.words.takes(")"):
            self._argument(kind, arguments)
            if self.words.next.text != ")" and not self.words.takes(","):
                self._wrong(kind, "',' or ')'")
        return arguments

    def _argument(self, kind: str, arguments: _Arguments) -> None:
        if self.words.next.kind in ("name", "quoted"):
            word = self.words.take()
            if word.kind == "name" and self.words.takes("="):
                if kind == "clusters":
                    self._numbered(kind, word.text, arguments.numbers)
                else:
                    self._cut(kind, word.text, arguments.cuts)
            elif word.kind == "name" and word.text.casefold() in ("true", "false"):
                self._constant_argument(kind, arguments, word.text.casefold() == "true")
            else:
                name = column_name(word.text, self.domain, quoted=word.kind == "quoted")
                arguments.columns.append(ColumnForm(name, **self._own_cuts(kind)))
        elif kind == "ranges" and self.words.takes("("):
            arguments.ranges.append(self._rectangle(kind))
        elif kind == "marginals" and self.words.takes("["):
            arguments.sets.append(self._set(kind))
        else:
            self._constant_argument(kind, arguments, self._value(kind))

    def _rectangle(self, kind: str) -> tuple[Any, ...]:
        """``(20..29, 0..9999)``: a range of each of several columns."""
        pairs: list[tuple[Any, Any]] = []
        while not self.words.takes(")"):
            low = self._value(kind)
            self._expect("..", kind)
            pairs.append((low, self._value(kind)))
            if self.words.next.text != ")" and not self.words.takes(","):
                self._wrong(kind, "',' or ')'")
        return tuple(pairs)

    def _set(self, kind: str) -> tuple[str, ...]:
        """``[age, region]``: the columns of one table."""
        names: list[str] = []
        while not self.words.takes("]"):
            word = self.words.take()
            if word.kind not in ("name", "quoted"):
                self._wrong(kind, "a column")
            names.append(column_name(word.text, self.domain, quoted=word.kind == "quoted"))
            if self.words.next.text != "]" and not self.words.takes(","):
                self._wrong(kind, "',' or ']'")
        return tuple(names)

    def _constant_argument(self, kind: str, arguments: _Arguments, low: Any) -> None:
        if self.words.takes(".."):
            arguments.ranges.append((low, self._value(kind)))
        else:
            arguments.plain.append(low)

    def _own_cuts(self, kind: str) -> dict[str, Any]:
        """``age(width=10)``: bins of one column among several."""
        cuts: dict[str, Any] = {}
        if not self.words.takes("("):
            return cuts
        while not self.words.takes(")"):
            word = self.words.take()
            if word.kind != "name" or not self.words.takes("="):
                self._wrong(kind, "bins=, width=, edges=, groups= or part=")
            self._cut(kind, word.text, cuts)
            if self.words.next.text != ")" and not self.words.takes(","):
                self._wrong(kind, "',' or ')'")
        return cuts

    def _cut(self, kind: str, name: str, cuts: dict[str, Any]) -> None:
        if name not in _CUTS:
            raise InvalidQuestion(
                f"In {kind}(…): there is no '{name}='; bins are given by {', '.join(_CUTS)}.",
                fixes=(_example(kind, self.domain),),
            )
        if cuts and {name, *cuts} != {"groups", "part"}:
            raise InvalidBins(f"In {kind}(…): bins are given once, not by '{next(iter(cuts))}' and '{name}'.")
        if name == "groups":
            cuts[name] = self._groups(kind)
        elif name == "part":
            cuts[name] = self.words.take().text
        else:
            cuts[name] = self._list(kind) if name == "edges" else self._value(kind)

    def _numbered(self, kind: str, name: str, numbers: dict[str, Any]) -> None:
        """``k=4``: what clusters need besides their columns."""
        if name not in _NUMBERED or name in numbers:
            wrong = f"there is no '{name}='" if name not in _NUMBERED else f"'{name}=' is given twice"
            raise InvalidQuestion(
                f"In {kind}(…): {wrong}; it takes columns, k= and iterations=.",
                fixes=(_example(kind, self.domain),),
            )
        numbers[name] = self._value(kind)

    def _list(self, kind: str) -> tuple[Any, ...]:
        self._expect("[", kind)
        values: list[Any] = []
        while not self.words.takes("]"):
            values.append(self._value(kind))
            if self.words.next.text != "]" and not self.words.takes(","):
                self._wrong(kind, "',' or ']'")
        return tuple(values)

    def _groups(self, kind: str) -> dict[str, tuple[Any, ...]]:
        self._expect("{", kind)
        groups: dict[str, tuple[Any, ...]] = {}
        while not self.words.takes("}"):
            word = self.words.take()
            if word.kind not in ("name", "text", "quoted"):
                self._wrong(kind, "a group such as 'coast': ['west', 'south']")
            self._expect(":", kind)
            if word.text in groups:
                raise InvalidBins(f"The group {word.text!r} is named twice.")
            groups[word.text] = self._list(kind)
            if self.words.next.text != "}" and not self.words.takes(","):
                self._wrong(kind, "',' or '}'")
        return groups

    def _value(self, kind: str) -> Any:
        sign = -1 if self.words.takes("-") else 1
        word = self.words.next
        if word.kind == "number":
            return self._number(kind, sign)
        if sign < 0 or word.kind not in ("text", "date", "moment", "name"):
            self._wrong(kind, "a value")
        self.words.take()
        if word.kind in ("date", "moment"):
            return moment(word.text, f"In {kind}(…): {word.text}", InvalidQuestion)
        if word.kind == "text":
            return word.text
        if word.text.casefold() not in ("true", "false"):
            raise InvalidQuestion(
                f"In {kind}(…): {word.text} is not a value; texts stand in single quotes.",
                fixes=(quoted_text(word.text),),
            )
        return word.text.casefold() == "true"

    def _number(self, kind: str, sign: int) -> Any:
        """``50_000``, ``0.5``, ``1/3``, ``7 days``."""
        number: Any = number_from(self.words.take().text)
        if self.words.takes("/"):
            below = number_from(self.words.take().text) if self.words.next.kind == "number" else 0
            if not isinstance(number, int) or not isinstance(below, int) or below == 0:
                self._wrong(kind, "a fraction of two whole numbers such as 1/3")
            number = Fraction(number, below)
        number = number.copy_negate() if sign < 0 and isinstance(number, Decimal) else sign * number
        if self.words.next.kind == "name":
            length = duration(number, self.words.next.text)
            if length is not None:
                self.words.take()
                return length
        return number

    # --- from what was said to a form -------------------------------------------------------------

    def _form(
        self, name: str, arguments: _Arguments, where: Predicate, groups: tuple[ColumnForm, ...]
    ) -> QuestionForm:
        kind = "quantiles" if name == "median" else name
        if not arguments.columns and kind != "count":
            raise InvalidQuestion(f"{name}(…) needs a column.", fixes=(_example(name, self.domain),))
        self._check_details(name, arguments)
        shares = (
            (0.5,) if name == "median" else tuple(float(v) for v in arguments.plain if kind == "quantiles")
        )
        return QuestionForm(
            kind,
            self._cut_columns(name, arguments),
            where,
            bounds=tuple(arguments.ranges),
            shares=shares,
            count=arguments.plain[0] if kind in ("top", "partition") else None,
            limit=arguments.plain[0] if kind == "above" else None,
            by=groups,
            sets=self._sets(arguments) if kind == "marginals" else (),
            **arguments.numbers,
        )

    def _sets(self, arguments: _Arguments) -> Sets:
        if arguments.sets:
            return tuple(arguments.sets)
        return all_sets(tuple(column.name for column in arguments.columns), arguments.plain[0])

    def _check_details(self, name: str, arguments: _Arguments) -> None:
        wanted = _AFTER_COLUMN.get(name)
        given: list[Any] = arguments.ranges if name == "ranges" else arguments.plain or arguments.sets
        stray = arguments.plain if name == "ranges" else arguments.ranges
        numbers = name == "ranges" or all(_is_number(value) for value in arguments.plain)
        single = name not in ("top", "above", "partition", "marginals") or len(arguments.plain or given) == 1
        if name == "marginals" and arguments.sets:
            single = not arguments.plain
        whole = name != "clusters" or "k" in arguments.numbers
        if bool(given) == bool(wanted) and not stray and numbers and single and whole:
            return
        need = f"needs {wanted} after the column" if wanted else "takes only columns and bins"
        if name == "clusters":
            need = "takes columns, k= and perhaps iterations="
        example = _example(name, self.domain, arguments.columns[0].name if arguments.columns else None)
        raise InvalidQuestion(f"{name}(…) {need}.", fixes=(example,))

    def _cut_columns(self, name: str, arguments: _Arguments) -> tuple[ColumnForm, ...]:
        if not arguments.cuts:
            return tuple(arguments.columns)
        if len(arguments.columns) != 1:
            columns = [ColumnForm(c.name, **arguments.cuts) for c in arguments.columns[:1] if not c.cut]
            parts = [column_text(column) for column in (*columns, *arguments.columns[len(columns) :])]
            example = f"{name}({', '.join(parts)})" if parts else _example(name, self.domain)
            raise InvalidQuestion(
                f"In {name}(…): '{next(iter(arguments.cuts))}=' does not say which column it is about.",
                fixes=(example,),
            )
        (column,) = arguments.columns
        if column.cut:
            raise InvalidBins(f"In {name}(…): the bins of {column.name} are given twice.")
        return (ColumnForm(column.name, **arguments.cuts),)

    def _expect(self, mark: str, kind: str) -> None:
        if not self.words.takes(mark):
            self._wrong(kind, repr(mark))

    def _wrong(self, kind: str, wanted: str) -> NoReturn:
        word, typed = self.words.next, self.words.typed
        before = typed[max(0, word.start - 30) : word.start]
        if word.kind == "unknown" and word.text in "'\"":
            raise InvalidQuestion(f"The quote after {before!r} is not closed.")
        raise InvalidQuestion(
            f"Expected {wanted} but found {word} after {before!r}.", fixes=(_example(kind, self.domain),)
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Fraction | Decimal) and not isinstance(value, bool)


def _example(kind: str, domain: Domain, column: str | None = None) -> str:
    """A question of this kind that works, about ``column`` if it can be, else about one that can."""
    numeric = [name for name, attribute in domain.columns if isinstance(attribute, Integer | Real)]
    ordered = [name for name, attribute in domain.columns if attribute.ordered]
    every = list(domain.names)
    able = {"cumulative": ordered, "ranges": ordered, "partition": ordered}.get(
        kind, every if kind in _ANY_COLUMN else numeric
    )
    chosen = column if column in able else (able or every)[0]
    attribute = domain[chosen]
    low, high = (value_text(end) for end in (attribute.lower(0), attribute.upper(attribute.value_count - 1)))
    shape = _SHAPES.get(kind, "{column}") if able else _SHAPES["count"]
    return f"{kind if able else 'count'}({shape.format(column=name_text(chosen), low=low, high=high)})"
