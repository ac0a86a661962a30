"""A question as the form of the ask page holds it: texts, as they were typed, in the address of the page.

Nothing is lost when a part is changed: what does not belong to the chosen shape stays where it is, unread.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final, Self, final
from urllib.parse import urlencode

from blowfishdb.core.domain.attributes import Integer, Real
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything
from blowfishdb.core.errors import InvalidAlpha, InvalidBeta, InvalidBins, InvalidQuestion, UnknownColumn
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.core.questions.kinds import Question
from blowfishdb.core.questions.round_bins import round_bins
from blowfishdb.entrypoints.server.api.questions import QuestionBody
from blowfishdb.language.aggregates import SelectContext
from blowfishdb.language.condition import condition_text
from blowfishdb.language.select import SqlQuestion, parse_select
from blowfishdb.language.short import column_text, value_text
from blowfishdb.language.text import name_text
from blowfishdb.mechanisms import CLUSTERING, DATA_DEPENDENT, NAMED
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.quotes import Fit

SHAPES: Final = (
    ("histogram", "histogram"),
    ("cumulative", "cumulative histogram"),
    ("two", "2-D histogram (two columns)"),
    ("ranges", "ranges"),
    ("quantiles", "quantiles"),
    ("top", "fullest bars (top-k)"),
    ("above", "bars above a limit"),
    ("clusters", "clusters (k-means)"),
    ("mean", "mean"),
    ("sum", "sum"),
    ("stddev", "standard deviation"),
    ("count", "count"),
)
CUTS: Final = (
    ("round", "round bins, at most"),
    ("bins", "number of bins"),
    ("width", "bins of width"),
    ("edges", "bins that begin at"),
    ("groups", "named groups"),
    ("values", "each value alone"),
)
WAYS: Final = (("best", "what is expected closer"), *((name, name) for name in CLUSTERING))
MECHANISMS: Final = tuple(name for name in (*NAMED, *DATA_DEPENDENT) if name not in ("best", "adaptive"))
_DETAILS: Final = {"ranges": "ranges", "quantiles": "shares", "top": "most", "above": "limit"}
_ALONG: Final = ("cumulative", "ranges", "quantiles", "clusters", "mean", "sum", "stddev")
_UNCUT: Final = ("ranges", "clusters", "mean", "sum", "stddev", "count")
_GROUPED: Final = ("mean", "sum", "stddev", "count")
_UNPROMISED: Final = ("clusters", "stddev")
_BRACKETS: Final = {"edges": ("[", "]"), "groups": ("{", "}")}
_LONGEST: Final = 20_000
_MOST_BINS: Final = 10_000
_CLAUSES: Final = re.compile(r" (FROM|GROUP BY|WITH ERROR) ")
_EXPLAIN: Final = re.compile(r"\s*explain\s+", re.IGNORECASE)


@final
@dataclass(frozen=True)
class Draft:
    """Every field of the form, as typed."""

    mode: str = "form"
    column: str = ""
    shape: str = "cumulative"
    second: str = ""
    cut: str = "round"
    size: str = "20"
    cut2: str = "round"
    size2: str = "10"
    ranges: str = ""
    shares: str = "0.25, 0.5, 0.75"
    most: str = "3"
    limit: str = "100"
    per: str = ""
    least: str = ""
    more: str = ""
    k: str = "4"
    iterations: str = "5"
    way: str = "best"
    where: str = ""
    by: str = "error"
    error: str = "50"
    every: str = "all"
    confidence: str = "95"
    epsilon: str = "0.1"
    mechanism: str = "best"
    sql: str = ""
    explain: str = ""

    @classmethod
    def read(cls, typed: Mapping[str, str], domain: Domain) -> Self:
        """What the address of the page says; the rest is a question that can be asked of these columns."""
        texts = {
            field.name: typed.get(field.name, "").strip()[:_LONGEST] for field in dataclasses.fields(cls)
        }
        given = replace(cls(), **{name: text for name, text in texts.items() if name in typed})
        for cut, size in (("cut", "size"), ("cut2", "size2")):
            if size in typed and cut not in typed:  # a number alone is one of bins
                given = replace(given, **{cut: "bins"})
        return replace(given, **given._missing(domain))

    def _missing(self, domain: Domain) -> dict[str, str]:
        filled: dict[str, str] = {}
        if not self.column:
            filled["column"] = _largest(domain)
            if not domain[filled["column"]].ordered:
                filled["shape"] = "histogram"
        column = filled.get("column", self.column)
        if not self.second:
            filled["second"] = next((name for name in domain.names if name != column), column)
        return filled

    def address(self, **changes: str) -> str:
        """The query of the page with some fields changed; what is not said there is as it is by default."""
        asked = replace(self, **changes)
        usual = Draft()
        query = {
            field.name: getattr(asked, field.name)
            for field in dataclasses.fields(self)
            if getattr(asked, field.name) != getattr(usual, field.name)
        }
        for cut, size in (("cut", "size"), ("cut2", "size2")):
            if size in query:
                query[cut] = getattr(asked, cut)
        return "?" + urlencode(query)

    def fitted(self, fit: Fit) -> str | None:
        """The query with what the budget still allows; None where that is no question of this form."""
        if fit.error is not None:
            return self.address(by="error", error=f"{fit.error:.12g}")
        if fit.bins is not None and self.mode == "form":
            return self.address(cut="bins", size=str(fit.bins))
        return None if fit.epsilon is None else self.address(by="epsilon", epsilon=str(fit.epsilon))

    @property
    def single(self) -> bool:
        """Whether the answer is one number."""
        return self.mode != "sql" and self.shape in _GROUPED and not self.per

    @property
    def spends(self) -> bool:
        """Whether an ε is stated instead of an error; none is promised of clusters and of spreads."""
        return self.by == "epsilon" or (self.mode != "sql" and self.shape in _UNPROMISED)

    def unordered_in(self, columns: Iterable[tuple[str, bool, str]]) -> bool:
        """Whether the shape needs an order that the column does not have."""
        loose = any(name == self.column and not ordered for name, ordered, _ in columns)
        return self.mode != "sql" and loose and self.shape in _ALONG

    # --- from texts to a question ---------------------------------------------------------------

    def asked(
        self, domain: Domain, dataset: str, select: Callable[[str], SqlQuestion] | None = None
    ) -> tuple[QuestionBody, bool]:
        """What is sent to the interface, and whether an explanation is wanted.

        ``select`` reads a statement and checks what its refusals suggest.
        """
        if self.mode != "sql":
            return QuestionBody(question=self.question(domain), **self._terms()), bool(self.explain)
        typed = self.sql or example_sql(domain, dataset)
        statement = _EXPLAIN.sub("", typed, count=1) if _EXPLAIN.match(typed) else typed
        read = select or partial(parse_select, domain=domain, dataset=dataset)
        parsed = read(statement)
        stated = parsed.accuracy is not None or parsed.epsilon is not None
        explaining = bool(self.explain) or statement != typed
        return QuestionBody(sql=statement, **({} if stated else self._terms())), explaining

    def question(self, domain: Domain) -> str:
        """The short form of the question."""
        columns = [self._cut_column(domain, self.column, self.cut, self.size)]
        kind = self.shape
        if self.shape == "two":
            if self.second == self.column:
                raise InvalidQuestion(
                    "Two columns are needed, and they are the same.", fixes=("another one",)
                )
            columns.append(self._cut_column(domain, self.second, self.cut2, self.size2))
            kind = "histogram"
        if self.shape == "clusters":
            numbers = (f"k={_plain(self.k)}", f"iterations={_plain(self.iterations)}")
            columns += [*filter(None, [self.more.strip(", ")]), *numbers]
        detail = _DETAILS.get(self.shape)
        if detail is not None:
            columns.append(self._detail(detail, domain))
        groups = f" by {self.per}" if self.per and self.shape in _GROUPED else ""
        if self.least and self.shape == "mean" and not self.spends:
            groups += f" for groups of {_plain(self.least)}"
        where = f" where {self.where}" if self.where else ""
        return f"{kind}({', '.join(columns)}){groups}{where}"

    def _detail(self, name: str, domain: Domain) -> str:
        typed = str(getattr(self, name))
        if name == "ranges" and not typed:
            raise InvalidQuestion("Say which ranges to count.", fixes=(example_ranges(domain, self.column),))
        return _plain(typed) if name in ("most", "limit") else typed

    def _cut_column(self, domain: Domain, name: str, cut: str, size: str) -> str:
        if name not in domain.names:
            raise UnknownColumn(f"There is no column '{name}' here.", fixes=domain.names)
        shown = name_text(name)
        loose = not domain[name].ordered and cut != "groups"
        if self.shape in _UNCUT or cut == "values" or loose:
            return shown
        if not size:
            raise InvalidBins("Say how the column is cut into bins.", fixes=("20 bins",))
        if cut == "round":
            return column_text(round_bins(name, domain[name], _most(size)))
        opened, closed = _BRACKETS.get(cut, ("", ""))
        inside = _inside(cut, size) if opened else _plain(size)
        return f"{shown}({cut}={opened}{inside}{closed})"

    def _terms(self) -> dict[str, Any]:
        if self.spends:
            name = self.way if self.mode != "sql" and self.shape == "clusters" else self.mechanism
            chosen = {} if name == "best" else {"mechanism": name}
            return {"epsilon": _plain(self.epsilon) or "0", **chosen}
        confidence = _number(self.confidence.rstrip("% "), "A confidence is a percentage.", "95", InvalidBeta)
        return {
            "error": float(_number(self.error.lstrip("±"), "An error is a number.", "50", InvalidAlpha)),
            "confidence": float(confidence / 100),
            "each": self.every == "each",
        }

    # --- and back -------------------------------------------------------------------------------

    @classmethod
    def again(cls, answer: Answer, domain: Domain) -> Self | None:
        """The question of an answer with half its error; None where the form cannot hold it.

        Nor where no ε may reach that: in a cell of several values a sum stays as far off as it is wide.
        """
        form = QuestionForm.from_plain(answer.form) if answer.form else None
        if form is not None and form.measures:
            return cls._grouped_again(form, answer)
        if form is None or not 1 <= len(form.columns) <= 2 or not answer.alpha or answer.beta is None:
            return None
        if form.conditions:
            return None
        question = form.question(domain)
        if form.kind in ("sum", "mean") and isinstance(question, Question) and not question.told_by_counts:
            return None
        two = len(form.columns) == 2
        if two and form.kind != "histogram":
            return None
        filled: dict[str, str] = {"column": form.columns[0].name, "shape": "two" if two else form.kind}
        filled |= _cut_fields(form.columns[0], "cut", "size")
        if two:
            filled |= {"second": form.columns[1].name, **_cut_fields(form.columns[1], "cut2", "size2")}
        if not isinstance(form.where, Everything):
            filled["where"] = condition_text(form.where)
        return replace(cls(), **filled, **_closer(answer), **_detail_fields(form))

    @classmethod
    def of(cls, answer: Answer, domain: Domain) -> Self | None:
        """The question of an answer as it was asked; None where the form cannot hold it."""
        halved = cls.again(answer, domain)
        return None if halved is None or not answer.alpha else replace(halved, error=f"{answer.alpha:.6g}")

    def split(self, column: str) -> Self | None:
        """The same, told apart by another column too; None where the form has no place for it."""
        if self.shape == "histogram":
            return replace(self, shape="two", second=column, cut2="round", size2="10")
        if self.shape in _GROUPED and not self.per:
            return replace(self, per=name_text(column))
        return None

    @classmethod
    def _grouped_again(cls, form: QuestionForm, answer: Answer) -> Self | None:
        """A mean or a sum in groups."""
        measure = form.measures[0]
        if len(form.measures) > 1 or not answer.alpha or answer.beta is None or measure.column is None:
            return None
        filled = {
            "column": measure.column,
            "shape": measure.of,
            "per": ", ".join(map(column_text, form.columns)),
        }
        if form.group_size is not None:
            filled["least"] = str(form.group_size)
        if not isinstance(form.where, Everything):
            filled["where"] = condition_text(form.where)
        return replace(cls(), **filled, **_closer(answer))


def _closer(answer: Answer) -> dict[str, str]:
    """Half the error of an answer, as it was promised."""
    assert answer.alpha is not None and answer.beta is not None
    every = "all" if answer.simultaneous else "each"
    confidence = f"{100 * (1 - answer.beta):.6g}"
    return {"error": f"{answer.alpha / 2:.6g}", "confidence": confidence, "every": every}


def example_ranges(domain: Domain, column: str) -> str:
    """The lower and the upper half of a column."""
    attribute = domain[column if column in domain.names else domain.names[0]]
    last = attribute.value_count - 1
    middle = last // 2
    parts = ((0, middle), (min(middle + 1, last), last))
    return ", ".join(
        f"{value_text(attribute.lower(low))}..{value_text(attribute.upper(high))}" for low, high in parts
    )


def example_per(domain: Domain, column: str) -> str:
    """Groups by a column of few values, or by bins of another."""
    others = [name for name in domain.names if name != column] or list(domain.names)
    few = min(others, key=lambda name: domain[name].ordered)
    return name_text(few) if not domain[few].ordered else f"{name_text(few)}(bins=5)"


def example_more(domain: Domain, column: str) -> str:
    """Other columns of numbers that clusters can be about too."""
    numbers = [name for name, attribute in domain.columns if isinstance(attribute, Integer | Real)]
    return ", ".join(name_text(name) for name in numbers if name != column)


def example_sql(domain: Domain, dataset: str) -> str:
    """A SELECT that can be asked of these columns."""
    source = SelectContext(domain, dataset)
    statement = f"{source.counted(source.key(_largest(domain)))} WITH ERROR 50 CONFIDENCE 0.95"
    return _CLAUSES.sub(r"\n\1 ", statement)


def _largest(domain: Domain) -> str:
    """The column with the most values that have an order; the first one if none has."""
    ordered = [name for name, attribute in domain.columns if attribute.ordered]
    return max(ordered, key=lambda name: domain[name].value_count, default=domain.names[0])


def _cut_fields(column: ColumnForm, cut: str, size: str) -> dict[str, str]:
    written = column_text(column)[len(name_text(column.name)) :].removeprefix("(").removesuffix(")")
    kind, _, text = written.partition("=")
    return {cut: kind or "values", size: _inside(kind, text)}


def _inside(cut: str, typed: str) -> str:
    """Edges and groups with or without the brackets around them."""
    opened, closed = _BRACKETS.get(cut, ("", ""))
    return typed.removeprefix(opened).removesuffix(closed) if typed.startswith(opened) else typed


def _detail_fields(form: QuestionForm) -> dict[str, str]:
    fields: dict[str, str] = {}
    if form.bounds:
        fields["ranges"] = ", ".join(f"{value_text(lo)}..{value_text(hi)}" for lo, hi in form.bounds)
    if form.shares:
        fields["shares"] = ", ".join(map(value_text, form.shares))
    if form.count is not None:
        fields["most"] = str(form.count)
    if form.limit is not None:
        fields["limit"] = value_text(form.limit)
    return fields


def _most(typed: str) -> int:
    """How many bins at most."""
    number = _plain(typed)
    if not number.isdecimal() or not 1 <= int(number) <= _MOST_BINS:
        raise InvalidBins("The number of bins is a whole number.", fixes=("20",))
    return int(number)


def _plain(typed: str) -> str:
    """``$10,000`` as a number is written."""
    return typed.replace(",", "").replace("$", "").strip()


def _number(typed: str, words: str, example: str, error: type[InvalidAlpha | InvalidBeta]) -> Decimal:
    try:
        number = Decimal(_plain(typed))
    except InvalidOperation:
        raise error(f"{words} It cannot be read.", fixes=(example,)) from None
    if not number.is_finite() or not math.isfinite(float(number)):
        raise error(f"{words} It must be finite.", fixes=(example,))
    return number
