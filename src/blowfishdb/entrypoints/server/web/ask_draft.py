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
from typing import Any, Final, NoReturn, Self, final
from urllib.parse import urlencode

from blowfishdb.core.domain.attributes import Integer, Real
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything
from blowfishdb.core.errors import InvalidAlpha, InvalidBeta, InvalidBins, InvalidQuestion, UnknownColumn
from blowfishdb.core.questions.conditions import all_sets
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.core.questions.kinds import Question
from blowfishdb.core.questions.round_bins import round_bins
from blowfishdb.entrypoints.server.api.questions import QuestionBody
from blowfishdb.entrypoints.server.web.typed import loss_text, most_bins, number_text
from blowfishdb.language.aggregates import SelectContext
from blowfishdb.language.arrangement import short_measure_text
from blowfishdb.language.condition import condition_text, example_condition
from blowfishdb.language.select import SqlQuestion, parse_select
from blowfishdb.language.short import bounds_text, column_text, value_text
from blowfishdb.language.text import name_text, quoted_name
from blowfishdb.mechanisms import CLUSTERING, DATA_DEPENDENT, NAMED
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.quotes import Fit

SHAPES: Final = (
    ("histogram", "histogram"),
    ("cumulative", "cumulative histogram"),
    ("two", "2-D histogram (two columns)"),
    ("ranges", "ranges"),
    ("boxes", "rectangles (ranges of two columns)"),
    ("quantiles", "quantiles (medians)"),
    ("top", "fullest bars (top-k)"),
    ("above", "bars above a limit"),
    ("partition", "parts of as many people each (k-d tree)"),
    ("clusters", "clusters (k-means)"),
    ("mean", "mean"),
    ("sum", "sum"),
    ("stddev", "standard deviation"),
    ("count", "count"),
    ("aggregates", "several aggregates"),
    ("counts", "list of conditions"),
    ("marginals", "tables of several columns (marginals)"),
)
CUTS: Final = (
    ("round", "round bins, at most"),
    ("bins", "number of bins"),
    ("width", "bins of width"),
    ("edges", "bins that begin at"),
    ("groups", "named groups"),
    ("part", "parts of dates"),
    ("values", "each value alone"),
)
WAYS: Final = (("best", "what is expected closer"), *((name, name) for name in CLUSTERING))
MECHANISMS: Final = tuple(name for name in (*NAMED, *DATA_DEPENDENT) if name not in ("best", "adaptive"))
_DETAILS: Final = {
    "ranges": "ranges",
    "boxes": "boxes",
    "quantiles": "shares",
    "top": "most",
    "partition": "parts",
    "above": "limit",
    "marginals": "ways",
}
_BARS: Final = 20
ALONG: Final = (
    "cumulative",
    "ranges",
    "boxes",
    "partition",
    "quantiles",
    "clusters",
    "mean",
    "sum",
    "stddev",
)
_UNCUT: Final = ("ranges", "boxes", "clusters", "mean", "sum", "stddev", "count")
_NUMBERS: Final = ("mean", "sum", "stddev", "count")
_GROUPED: Final = (*_NUMBERS, "cumulative", "ranges", "boxes", "quantiles", "aggregates", "counts")
_KINDS: Final = {"two": "histogram", "boxes": "ranges"}
_UNPROMISED: Final = ("clusters", "stddev")
_BRACKETS: Final = {"edges": ("[", "]"), "groups": ("{", "}")}
_LONGEST: Final = 20_000
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
    boxes: str = ""
    told: str = ""
    conditions: str = ""
    others: str = ""
    ways: str = "2"
    shares: str = "0.25, 0.5, 0.75"
    most: str = "3"
    limit: str = "100"
    parts: str = "8"
    beside: str = ""
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
        missing = given._missing(domain)
        column = missing.get("column", given.column)
        if "shape" not in typed and column in domain.names and not domain[column].ordered:
            missing["shape"] = "histogram"
        return replace(given, **missing)

    def _missing(self, domain: Domain) -> dict[str, str]:
        filled: dict[str, str] = {}
        if not self.column:
            filled["column"] = usual_column(domain)
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
        return self.mode != "sql" and self.shape in _NUMBERS and not self.per

    @property
    def unit(self) -> str:
        """What an error is counted in."""
        if self.mode == "sql" or self.shape not in ("mean", "sum", "aggregates"):
            return "people"
        return "the column’s own units" if self.shape == "aggregates" else f"units of {self.column}"

    @property
    def spends(self) -> bool:
        """Whether an ε is stated instead of an error; none is promised of clusters and of spreads."""
        return self.by == "epsilon" or (self.mode != "sql" and self.shape in _UNPROMISED)

    def unordered_in(self, columns: Iterable[tuple[str, bool, str]]) -> bool:
        """Whether the shape needs an order that the column does not have."""
        loose = any(name == self.column and not ordered for name, ordered, _ in columns)
        return self.mode != "sql" and loose and self.shape in ALONG

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
        groups = f" by {self.per}" if self.per and self.shape in _GROUPED else ""
        if self.least and self.shape in ("mean", "aggregates") and not self.spends:
            groups += f" for groups of {number_text(self.least)}"
        where = f" where {self.where}" if self.where else ""
        return f"{self._asked_for(domain)}{groups}{where}"

    def _asked_for(self, domain: Domain) -> str:
        """The question without its groups and its condition."""
        if self.shape == "aggregates":
            return self.told or _unsaid("Say which aggregates", example_told(domain))
        if self.shape == "counts":
            listed = [line.strip().rstrip(",") for line in self.conditions.splitlines() if line.strip()]
            return (
                f"counts({', '.join(listed)})"
                if listed
                else _unsaid("Say which conditions", example_conditions(domain))
            )
        columns = [self._cut_column(domain, self.column, self.cut, self.size)]
        if self.shape in ("two", "boxes"):
            if self.second == self.column:
                raise InvalidQuestion(
                    "Two columns are needed, and they are the same.", fixes=("another one",)
                )
            columns.append(self._cut_column(domain, self.second, self.cut2, self.size2))
        if self.shape == "marginals":
            columns.append(
                self.others.strip(", ")
                or _unsaid("Say which other columns", example_per(domain, self.column))
            )
        if self.shape == "partition":
            columns += filter(None, [self.beside.strip(", ")])
        if self.shape == "clusters":
            numbers = (f"k={number_text(self.k)}", f"iterations={number_text(self.iterations)}")
            columns += [*filter(None, [self.more.strip(", ")]), *numbers]
        detail = _DETAILS.get(self.shape)
        if detail is not None:
            columns.append(self._detail(detail, domain))
        return f"{_KINDS.get(self.shape, self.shape)}({', '.join(columns)})"

    def _detail(self, name: str, domain: Domain) -> str:
        typed = str(getattr(self, name))
        if name == "ranges" and not typed:
            _unsaid("Say which ranges to count", example_ranges(domain, self.column))
        if name == "boxes" and not typed:
            _unsaid("Say which rectangles to count", example_boxes(domain, self.column, self.second))
        return number_text(typed) if name in ("most", "limit", "ways", "parts") else typed

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
            return column_text(round_bins(name, domain[name], most_bins(size)))
        opened, closed = _BRACKETS.get(cut, ("", ""))
        inside = _inside(cut, size) if opened or cut == "part" else number_text(size)
        return f"{shown}({cut}={opened}{inside}{closed})"

    def _terms(self) -> dict[str, Any]:
        if self.spends:
            name = self.way if self.mode != "sql" and self.shape == "clusters" else self.mechanism
            chosen = {} if name == "best" else {"mechanism": name}
            return {"epsilon": loss_text(self.epsilon) or "0", **chosen}
        how_often = "how often it is within that, in per cent"
        confidence = _number(self.confidence.rstrip("% "), how_often, "95", InvalidBeta)
        if not 0 < confidence < 100:
            raise InvalidBeta(f"Say {how_often}, more than 0 and less than 100.", fixes=("95", "99.9"))
        return {
            "error": float(_number(self.error, f"how far off it may be, in {self.unit}", "50", InvalidAlpha)),
            "confidence": float(confidence / 100),
            "each": self.every == "each",
        }

    # --- and back -------------------------------------------------------------------------------

    @classmethod
    def again(cls, answer: Answer, domain: Domain) -> Self | None:
        """The question of an answer with half its error; None where the form cannot hold it.

        Nor where no ε may reach that: in a cell of several values a sum stays as far off as it is wide.
        """
        asked = cls.of(answer)
        if asked is None or not answer.alpha or answer.beta is None:
            return None
        form = QuestionForm.from_plain(answer.form)
        question = form.question(domain)
        if form.kind in ("sum", "mean") and isinstance(question, Question) and not question.told_by_counts:
            return None
        return replace(asked, error=f"{answer.alpha / 2:.6g}")

    @classmethod
    def of(cls, answer: Answer) -> Self | None:
        """The question of an answer as it was asked; None where the form cannot hold it."""
        form = QuestionForm.from_plain(answer.form) if answer.form else None
        filled = None if form is None else _shape_fields(form)
        if form is None or filled is None:
            return None
        if not isinstance(form.where, Everything):
            filled["where"] = condition_text(form.where)
        return replace(cls(), **filled, **_stated(answer))

    def split(self, column: str) -> Self | None:
        """The same, told apart by another column too; None where the form has no place for it."""
        if self.shape == "histogram":
            return replace(self, shape="two", second=column, cut2="round", size2="10")
        if self.shape in _GROUPED and not self.per:
            return replace(self, per=name_text(column))
        return None


def _stated(answer: Answer) -> dict[str, str]:
    """The error of an answer, as it was promised, or else the ε that it cost; nothing of an exact one."""
    if answer.alpha and answer.beta is not None:
        every = "all" if answer.simultaneous else "each"
        confidence = f"{100 * (1 - answer.beta):.6g}"
        return {"error": f"{answer.alpha:.6g}", "confidence": confidence, "every": every}
    if not answer.receipt.epsilon:
        return {}
    promised = answer.beta is not None
    named = {} if promised else {"mechanism": "adaptive"}
    return {"by": "epsilon", "epsilon": str(answer.receipt.epsilon), **named}


def example_ranges(domain: Domain, column: str) -> str:
    """The lower and the upper half of a column."""
    attribute = domain[column if column in domain.names else domain.names[0]]
    last = attribute.value_count - 1
    middle = last // 2
    parts = ((0, middle), (min(middle + 1, last), last))
    return ", ".join(
        f"{value_text(attribute.lower(low))}..{value_text(attribute.upper(high))}" for low, high in parts
    )


def example_boxes(domain: Domain, column: str, second: str) -> str:
    """The lower halves of two columns, and the upper ones."""
    halves = (example_ranges(domain, name).split(", ") for name in (column, second))
    return ", ".join(f"({low}, {high})" for low, high in zip(*halves, strict=True))


def example_told(domain: Domain) -> str:
    """What can be asked of all rows at once."""
    numbers = [name for name, attribute in domain.columns if isinstance(attribute, Integer | Real)]
    return f"mean({name_text(numbers[0])}), count()" if numbers else f"count({name_text(domain.names[0])})"


def example_conditions(domain: Domain) -> str:
    """A condition on each of the first two columns, by a name."""
    named = zip(("one", "other"), domain.names[:2], strict=False)
    return ", ".join(f"{example_condition(domain, column)} as {name}" for name, column in named)


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
    statement = f"{source.counted(source.key(usual_column(domain)))} WITH ERROR 50 CONFIDENCE 0.95"
    return _CLAUSES.sub(r"\n\1 ", statement)


def usual_column(domain: Domain) -> str:
    """What is asked about if nobody says: the first column with an order and more values than bars, as common
    questions have it; else the first with an order; else the first."""
    ordered = [name for name, attribute in domain.columns if attribute.ordered]
    wide = (name for name in ordered if domain[name].value_count > _BARS)
    return next(wide, next(iter(ordered), domain.names[0]))


def _cut_fields(column: ColumnForm, cut: str, size: str) -> dict[str, str]:
    written = column_text(column)[len(name_text(column.name)) :].removeprefix("(").removesuffix(")")
    kind, _, text = written.partition("=")
    return {cut: kind or "values", size: _inside(kind, text)}


def _inside(cut: str, typed: str) -> str:
    """Edges and groups with or without the brackets around them."""
    opened, closed = _BRACKETS.get(cut, ("", ""))
    return typed.removeprefix(opened).removesuffix(closed) if typed.startswith(opened) else typed


def _shape_fields(form: QuestionForm) -> dict[str, str] | None:
    """Which shape holds a question, with what; None where none does."""
    per = {"per": ", ".join(map(column_text, form.by))} if form.by else {}
    if form.measures:
        return _measure_fields(form)
    if form.conditions:
        listed = (f"{condition_text(each)} as {quoted_name(name)}" for name, each in form.conditions)
        grouped = ", ".join(map(column_text, form.columns))
        return {"shape": "counts", "conditions": "\n".join(listed), "per": grouped}
    if form.kind == "count" and not form.columns:
        return {"shape": "aggregates", "told": "count()"}
    if not form.columns or form.kind == "clusters":
        return None
    first, *others = form.columns
    filled = {"column": first.name, **_cut_fields(first, "cut", "size"), **_detail_fields(form), **per}
    if form.sets:
        ways = len(form.sets[0])
        joined = ", ".join(map(column_text, others))
        whole = bool(others) and form.sets == all_sets(tuple(each.name for each in form.columns), ways)
        return {**filled, "shape": "marginals", "others": joined, "ways": str(ways)} if whole else None
    if form.kind == "partition":
        return {**filled, "shape": form.kind, "beside": ", ".join(map(column_text, others))}
    if not others:
        return {**filled, "shape": form.kind}
    shape = {"histogram": "two", "ranges": "boxes"}.get(form.kind)
    if shape is None or len(others) > 1:
        return None
    return {**filled, "shape": shape, "second": others[0].name, **_cut_fields(others[0], "cut2", "size2")}


def _measure_fields(form: QuestionForm) -> dict[str, str]:
    """One aggregate of a column has a shape of its own."""
    filled = {"per": ", ".join(map(column_text, form.columns))}
    if form.group_size is not None:
        filled["least"] = str(form.group_size)
    measure = form.measures[0]
    if len(form.measures) == 1 and measure.column is not None and measure.of in _NUMBERS:
        return {**filled, "column": measure.column, "shape": measure.of}
    return {**filled, "shape": "aggregates", "told": ", ".join(map(short_measure_text, form.measures))}


def _detail_fields(form: QuestionForm) -> dict[str, str]:
    fields: dict[str, str] = {}
    if form.bounds:
        fields["ranges" if len(form.columns) == 1 else "boxes"] = ", ".join(map(bounds_text, form.bounds))
    if form.shares:
        fields["shares"] = ", ".join(map(value_text, form.shares))
    if form.count is not None:
        fields["parts" if form.kind == "partition" else "most"] = str(form.count)
    if form.limit is not None:
        fields["limit"] = value_text(form.limit)
    return fields


def _unsaid(words: str, example: str) -> NoReturn:
    raise InvalidQuestion(f"{words}.", fixes=(example,))


def _number(typed: str, what: str, example: str, error: type[InvalidAlpha | InvalidBeta]) -> Decimal:
    try:
        number = Decimal(number_text(typed))
    except InvalidOperation:
        raise error(
            f"{f'“{typed[:40]}” is no number' if typed else 'Nothing is typed here'}: say {what}.",
            fixes=(example,),
        ) from None
    if not number.is_finite() or not math.isfinite(float(number)):
        raise error(f"Say {what}, as a finite number.", fixes=(example,))
    return number
