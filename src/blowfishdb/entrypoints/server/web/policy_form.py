"""The sentence as the control: what a form says about each column, and the policy that it means.

The state is in the address, so going back undoes a change. What a form cannot hold (an area over several
columns, a list of ten thousand pairs, what everyone knows already) is kept as it was drafted.

The curator's question: a column, a shape, bins and an accuracy, for the policy and trade-off pages.

What the world already knows, as the policy page shows it and as its form is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, final

from starlette.datastructures import FormData

from blowfishdb.core.constraints import Constraints, Reading
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.policy.columns import Hides, current, grouped, ungrouped, values_graph, with_point
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.words import effect, known_things
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.core.questions.projection import project
from blowfishdb.core.sensitivity import sensitivity
from blowfishdb.entrypoints.server.web.frame import text, texts
from blowfishdb.language.columns import EXAMPLES, read_rule, written_rule
from blowfishdb.language.known import read_known, read_table
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset

KEPT: Final = "kept"
OPERANDS: Final = ("within", "width", "groups", "pairs")
"""The choices that come with something to type, under a field of the same name."""

_LONGEST: Final = 2_000  # of a list in an address; a longer one is kept instead of shown

TOGETHER: Final = "together"
SINGLE: Final = "single"


@final
@dataclass(frozen=True)
class ColumnRuleForm:
    """What is said about one column, as it was typed; ``kept`` describes what the form cannot hold."""

    column: str
    hides: str
    ordered: bool
    typed: Mapping[str, str]
    kept: str = ""

    @classmethod
    def of(cls, policy: Policy, column: str) -> ColumnRuleForm:
        """The form that says what a policy says about a column."""
        rule, ordered = current(policy, column, most=_LONGEST), policy.domain[column].ordered
        text = None if rule.said is None else written_rule(rule)
        if text is None or len(text) > _LONGEST:
            return cls(column, KEPT, ordered, {}, f"{rule.entries or 0:,} entries")
        hides = rule.hides.name.lower()
        return cls(column, hides, ordered, {hides: _set_apart(text)})

    @property
    def choices(self) -> list[tuple[str, str]]:
        """What can follow “when they are”, in the order from much to little."""
        offered = [("everything", "different at all")]
        if self.ordered:
            offered += [("within", "within"), ("width", "in the same group of")]
        offered += [("groups", "in the same listed group"), ("pairs", "a listed pair")]
        if self.kept:
            offered.append((KEPT, f"as drafted ({self.kept})"))
        return [*offered, ("nothing", "never: hide nothing")]

    @property
    def in_short(self) -> str:
        """What is hidden, as a few words beside the name of the column."""
        typed = _set_apart(self.typed.get(self.hides, ""), 4)
        lines = len([line for line in typed.splitlines() if line.strip()])
        return {
            "everything": "hidden entirely",
            "nothing": "not hidden",
            "within": f"hidden within {typed}",
            "width": f"hidden in groups of {typed}",
            "groups": f"hidden in {lines} group{'' if lines == 1 else 's'}",
            "pairs": f"{lines} pair{'' if lines == 1 else 's'} hidden",
        }.get(self.hides, f"as drafted ({self.kept})")

    def changed(self, fields: Mapping[str, str]) -> ColumnRuleForm:
        """The form after someone filled it in; a choice that was not offered hides everything."""
        hides = fields.get(f"hide.{self.column}", self.hides)
        sent = {name: fields.get(f"{name}.{self.column}") for name in OPERANDS}
        typed = {**self.typed, **{name: text.strip() for name, text in sent.items() if text is not None}}
        return replace(self, hides=hides if hides in dict(self.choices) else "everything", typed=typed)

    @property
    def example(self) -> str:
        """What can be typed for the choice."""
        return EXAMPLES[Hides[self.hides.upper()]]

    def graph(self, draft: Policy) -> PolicyGraph:
        """The graph that was meant."""
        if self.hides == KEPT:
            return values_graph(draft, self.column)[0]
        typed = self.typed.get(self.hides, "")
        meant = with_point(typed) if self.hides in ("within", "width") else typed
        rule = read_rule(self.column, Hides[self.hides.upper()], meant)
        return rule.graph(draft.domain[self.column])


def _set_apart(text: str, digits: int = 5) -> str:
    """A number of so many digits or more with its thousands set apart; anything else as it is."""
    return grouped(Fraction(text)) if text.isascii() and text.isdecimal() and len(text) >= digits else text


@final
@dataclass(frozen=True)
class PolicyForm:
    """What is said about all columns. ``whole``: the draft has no words here and is kept as it is."""

    columns: tuple[ColumnRuleForm, ...]
    records: str
    presence: bool
    whole: bool = False

    @classmethod
    def of(cls, policy: Policy) -> PolicyForm:
        """The form that says what a policy says."""
        columns = tuple(ColumnRuleForm.of(policy, name) for name in policy.domain.names)
        records = TOGETHER if policy.joint else SINGLE
        return cls(columns, records, policy.hides_presence, whole=not policy.separable)

    def changed(self, fields: Mapping[str, str]) -> PolicyForm:
        """The form after someone filled it in; what was not sent stays."""
        if "records" not in fields:
            return self
        columns = tuple(column.changed(fields) for column in self.columns)
        records = SINGLE if fields["records"] == SINGLE else TOGETHER
        whole = self.whole and fields["records"] == KEPT
        return replace(self, columns=columns, records=records, presence="presence" in fields, whole=whole)

    def policy(self, draft: Policy) -> tuple[Policy | None, dict[str, BlowfishError]]:
        """The policy, or what is wrong about which column."""
        if self.whole:
            return draft, {}
        graphs: dict[str, PolicyGraph] = {}
        wrong: dict[str, BlowfishError] = {}
        for column in self.columns:
            try:
                graphs[column.column] = column.graph(draft)
            except BlowfishError as error:
                wrong[column.column] = error
        if wrong:
            return None, wrong
        joint = self.records == TOGETHER
        policy = draft.edited(graphs, joint=joint, hide_presence=self.presence)
        whole = joint and all(column.hides == "everything" for column in self.columns)
        return policy.hiding_records() if whole else policy, {}

    def query(self) -> dict[str, str]:
        """The form as it stands in an address: only what matters."""
        if self.whole:
            return {"records": KEPT}
        query = {"records": self.records}
        for column in self.columns:
            query[f"hide.{column.column}"] = column.hides
            if column.hides in OPERANDS:
                query[f"{column.hides}.{column.column}"] = column.typed.get(column.hides, "")
        return {**query, "presence": "1"} if self.presence else query


SHAPES: Final = (
    ("cumulative", "cumulative"),
    ("histogram", "histogram"),
    ("quantiles", "quartiles"),
    ("own", "my own …"),
)
_OF_AN_ORDER: Final = ("cumulative", "quantiles")
"""What only a column whose values have an order can be asked; another one is asked for its bars."""
_BINS: Final = 20
_QUARTILES: Final = (0.25, 0.5, 0.75)
_FIELDS: Final = ("column", "second", "ask", "bins", "own", "terms", "error", "confidence", "each", "epsilon")


@final
@dataclass(frozen=True)
class TemplateForm:
    """A question as it was typed; everything is text until it is asked."""

    column: str
    second: str = ""
    ask: str = "cumulative"
    bins: str = str(_BINS)
    own: str = ""
    terms: str = "accuracy"
    error: str = "50"
    confidence: str = "95"
    each: str = ""
    epsilon: str = "0.1"

    @classmethod
    def of(cls, domain: Domain, fields: Mapping[str, str]) -> TemplateForm:
        """What was sent, or a question about the column with the most values that have an order."""
        ordered = [name for name, attribute in domain.columns if attribute.ordered]
        usual = max(ordered or list(domain.names), key=lambda name: domain[name].value_count)
        given = {name: fields[name].strip() for name in _FIELDS if fields.get(name, "").strip()}
        if "ask" in fields and "bins" in fields:
            given["bins"] = fields["bins"].strip()  # emptied on purpose: every value alone
        if given.get("column") not in domain.names:
            given["column"] = usual
        if given.get("second") not in domain.names or given.get("second") == given["column"]:
            given.pop("second", None)
        if given.get("ask", "cumulative") in _OF_AN_ORDER and not domain[given["column"]].ordered:
            given["ask"] = "histogram"
        return cls(**given)

    def asking(self, dataset: Dataset) -> Asking:
        """The question on its terms."""
        question = dataset.question(self.own if self.ask == "own" else self.form(dataset.schema))
        if self.terms == "epsilon":
            return question.spend(self.epsilon)
        share = _number(self.confidence, "The share of the time", "95") / 100
        return question.accurate_to(
            _number(self.error, "The error", "50"), confidence=round(share, 9), each=bool(self.each)
        )

    def query(self) -> dict[str, str]:
        """The question as it stands in an address."""
        return {name: getattr(self, name) for name in _FIELDS if getattr(self, name) or name == "bins"}

    def form(self, domain: Domain) -> QuestionForm:
        """What is asked, without the terms."""
        if self.ask == "own" or self.ask not in dict(SHAPES):
            raise InvalidInput(
                "Write the question, or choose a shape.", fixes=("cumulative(salary, bins=20)",)
            )
        names = [self.column] + ([self.second] if self.second and self.ask == "histogram" else [])
        columns = tuple(self._cut(name, domain[name]) for name in names)
        shares = _QUARTILES if self.ask == "quantiles" else ()
        return QuestionForm(self.ask, columns, shares=shares)

    def _cut(self, name: str, attribute: Attribute) -> ColumnForm:
        """The column in its bins; each value alone where it has no order, or no more values than bins."""
        if not self.bins:
            return ColumnForm(name)
        try:
            bins = int(self.bins.replace(",", ""))
        except ValueError:
            raise InvalidInput(
                "The number of bins is a whole number.", fixes=("20", "nothing: each value by itself")
            ) from None
        alone = not attribute.ordered or bins >= attribute.value_count
        return ColumnForm(name, None if alone else bins)


def _number(typed: str, what: str, example: str) -> float:
    try:
        return float(ungrouped(with_point(typed)))
    except ValueError:
        raise InvalidInput(f"{what} is a number.", fixes=(example,)) from None


COUNT: Final = "count"
TABLE: Final = "table"
PASTED: Final = "pasted"
READING: Final = "reading"
CHECK: Final = "check"
_TYPED: Final = ("where", "answer", "csv")
_LONGEST_FILE: Final = 900_000


@final
@dataclass(frozen=True)
class KnownInput:
    """What was typed to add to what is known, to be shown again; or what was found when it was checked."""

    typed: Mapping[str, str] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    checked: tuple[str, ...] = ()

    @classmethod
    def of(cls, form: FormData) -> KnownInput:
        """Everything that was typed, so that nothing of it is lost."""
        return cls({name: text(form, name) for name in _TYPED}, frozenset(texts(form, "columns")))


@final
@dataclass(frozen=True)
class KnownForm:
    """The list of what is known, what it does, and what was typed to add to it."""

    things: tuple[str, ...]
    effects: tuple[str, ...]
    reading: str
    input: KnownInput


def known_form(policy: Policy, typed: KnownInput, asking: Asking | None) -> KnownForm:
    """What is known under ``policy``, and what that does to the question on the page."""
    reading = Reading.LITERAL if policy.constraints is None else policy.constraints.reading
    effects = () if policy.constraints is None else (effect(policy), *_on_noise(policy, asking))
    return KnownForm(known_things(policy), effects, reading.value, typed)


def _on_noise(policy: Policy, asking: Asking | None) -> tuple[str, ...]:
    """What the noise of a question has to cover, with and without what is known."""
    if asking is None:
        return ()
    try:
        problem = project(asking.request().counts, policy)
        if problem.refined is None:
            return ()
        tied = problem.refined.sensitivity(problem.workload)
        alone = sensitivity(problem.workload, problem.graph)
    except BlowfishError:
        return ()
    if tied == alone:
        return (f"For the question below, noise has to cover {tied}, as it would without them.",)
    return (
        "Because these counts are public, one person's move may force others to move: for the question "
        f"below, noise has to cover {tied} instead of {alone}.",
    )


def changed(before: Constraints, form: FormData, domain: Domain) -> Constraints:
    """What is known after someone added to it, took something back or chose the other reading."""
    if number := text(form, "remove"):
        return before.without(int(number) if number.isdecimal() and len(number) < 9 else -1)
    do = text(form, "do")
    if do == READING:
        return before.read_as(text(form, "reading"))
    if do == PASTED:
        return before.plus(Constraints(marginals=[read_table(text(form, "csv")[:_LONGEST_FILE], domain)]))
    return before.plus(read_known(_section(do, form), domain))


def _section(do: str, form: FormData) -> dict[str, Any]:
    """What was typed, as a policy file says it."""
    if do == TABLE:
        columns = texts(form, "columns")
        if not columns:
            raise InvalidInput("Tick the columns of the table.", fixes=("one column, or several together",))
        return {"tables": [{"columns": columns}]}
    where, answer = text(form, "where"), text(form, "answer")
    if not where:
        raise InvalidInput("Say which rows are counted.", fixes=("age >= 65",))
    return {"counts": [{"where": where, **({"count": answer} if answer else {})}]}
