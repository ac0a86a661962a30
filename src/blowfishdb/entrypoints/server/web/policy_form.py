"""The sentence as the control: what a form says about each column, and the policy that it means.

The state is in the address, so going back undoes a change. What a form cannot hold (an area over several
columns, a list of ten thousand pairs, what everyone knows already) is kept as it was drafted.

The curator's question: a column, a shape, bins and an accuracy, for the policy and trade-off pages.

What the world already knows, as the policy page shows it and as its form is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

from starlette.datastructures import FormData

from blowfishdb.core.constraints import Constraints, Reading
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidGraph, InvalidInput, InvalidThreshold
from blowfishdb.core.graphs import Full, PolicyGraph
from blowfishdb.core.policy.columns import ColumnPolicy, Hides, column_graph, current, values_graph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.words import effect, known_things
from blowfishdb.core.questions.form import ColumnForm as QuestionColumn
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.core.questions.projection import project
from blowfishdb.core.sensitivity import sensitivity
from blowfishdb.entrypoints.server.web.frame import text, texts
from blowfishdb.language.known import read_known, read_table
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset

EVERYTHING: Final = "everything"
WITHIN: Final = "within"
WIDTH: Final = "width"
GROUPS: Final = "groups"
PAIRS: Final = "pairs"
NOTHING: Final = "nothing"
KEPT: Final = "kept"
OPERANDS: Final = (WITHIN, WIDTH, GROUPS, PAIRS)
"""The choices that come with something to type, under a field of the same name."""

_LONGEST: Final = 2_000  # of a list in an address; a longer one is kept instead of shown
_BETWEEN: Final = re.compile(r";|,\s|,(?!\d{3}(?!\d))")  # not the comma inside 10,000
_PAIR: Final = re.compile(r"\s+(?:and|or|–|-)\s+|;|,\s|,(?!\d{3}(?!\d))")

TOGETHER: Final = "together"
SINGLE: Final = "single"


@final
@dataclass(frozen=True)
class ColumnForm:
    """What is said about one column, as it was typed; ``kept`` describes what the form cannot hold."""

    column: str
    hides: str
    ordered: bool
    typed: Mapping[str, str]
    kept: str = ""

    @property
    def choices(self) -> list[tuple[str, str]]:
        """What can follow “when they are”, in the order from much to little."""
        offered = [(EVERYTHING, "different at all")]
        if self.ordered:
            offered += [(WITHIN, "within"), (WIDTH, "in the same group of")]
        offered += [(GROUPS, "in the same listed group"), (PAIRS, "a listed pair")]
        if self.kept:
            offered.append((KEPT, f"as drafted ({self.kept})"))
        return [*offered, (NOTHING, "never: hide nothing")]

    def graph(self, attribute: Attribute, draft: Policy) -> PolicyGraph:
        """The graph that was meant."""
        typed = self.typed.get(self.hides, "")
        if self.hides in OPERANDS and not typed:
            raise InvalidThreshold(_UNSAID[self.hides], fixes=(EXAMPLES[self.hides],))
        if self.hides == WITHIN:
            return column_graph(attribute, hide_within=typed)
        if self.hides == WIDTH:
            return column_graph(attribute, groups_of=typed)
        if self.hides == GROUPS:
            return column_graph(attribute, groups=[_parts(line, _BETWEEN) for line in _lines(typed)])
        if self.hides == PAIRS:
            return column_graph(attribute, between=[_pair(line) for line in _lines(typed)])
        if self.hides == KEPT:
            return values_graph(draft, self.column)[0]
        return column_graph(attribute, everything=self.hides == EVERYTHING, nothing=self.hides != EVERYTHING)


_UNSAID: Final = {
    WITHIN: "Say within which distance values are hidden.",
    WIDTH: "Say how wide the groups are.",
    GROUPS: "List the groups, one on each line.",
    PAIRS: "List the pairs, one on each line.",
}
EXAMPLES: Final = {
    WITHIN: "a positive number in the units of the column, such as 1,000",
    WIDTH: "a positive number in the units of the column, such as 1,000",
    GROUPS: "values of one group on each line, with commas between them",
    PAIRS: "two values on each line, with “and” between them",
}


@final
@dataclass(frozen=True)
class PolicyForm:
    """What is said about all columns. ``whole``: the draft has no words here and is kept as it is."""

    columns: tuple[ColumnForm, ...]
    records: str
    presence: bool
    whole: bool = False

    @classmethod
    def of(cls, policy: Policy) -> PolicyForm:
        """The form that says what a policy says."""
        columns = tuple(_described(policy, name) for name in policy.domain.names)
        records = TOGETHER if policy.joint else SINGLE
        return cls(columns, records, policy.hides_presence, whole=not policy.separable)

    def changed(self, said: Mapping[str, str]) -> PolicyForm:
        """The form after someone filled it in; what was not sent stays."""
        if "records" not in said:
            return self
        columns = tuple(_changed(column, said) for column in self.columns)
        records = SINGLE if said["records"] == SINGLE else TOGETHER
        whole = self.whole and said["records"] == KEPT
        return replace(self, columns=columns, records=records, presence="presence" in said, whole=whole)

    def policy(self, domain: Domain, draft: Policy) -> tuple[Policy | None, dict[str, BlowfishError]]:
        """The policy, or what is wrong about which column."""
        if self.whole:
            return draft, {}
        graphs: dict[str, PolicyGraph] = {}
        wrong: dict[str, BlowfishError] = {}
        for column in self.columns:
            try:
                graphs[column.column] = column.graph(domain[column.column], draft)
            except BlowfishError as error:
                wrong[column.column] = error
        if wrong:
            return None, wrong
        joint = self.records == TOGETHER
        if joint and all(column.hides == EVERYTHING for column in self.columns):
            record = Full(domain.size)
            return Policy(domain, record.hide_presence() if self.presence else record, draft.constraints), {}
        policy = Policy.by_column(domain, graphs, joint=joint, hide_presence=self.presence)
        return policy.knowing(draft.constraints), {}

    def query(self) -> dict[str, str]:
        """The form as it stands in an address: only what matters."""
        if self.whole:
            return {"records": KEPT}
        said = {"records": self.records}
        for column in self.columns:
            said[f"hide.{column.column}"] = column.hides
            if column.hides in OPERANDS:
                said[f"{column.hides}.{column.column}"] = column.typed.get(column.hides, "")
        return {**said, "presence": "1"} if self.presence else said


def _described(policy: Policy, name: str) -> ColumnForm:
    words, ordered = current(policy, name, most=_LONGEST), policy.domain[name].ordered
    form = ColumnForm(name, _CHOICES[words.hides], ordered, {})
    if words.within is not None:
        return replace(form, typed={WITHIN: words.within})
    if words.groups_of is not None:
        return replace(form, hides=WIDTH, typed={WIDTH: words.groups_of})
    listed = _listed(words)
    if listed is not None and len(listed) > _LONGEST:
        return replace(form, hides=KEPT, kept=f"{words.entries or 0:,} entries")
    return form if listed is None else replace(form, typed={form.hides: listed})


_CHOICES: Final = {
    Hides.EVERYTHING: EVERYTHING,
    Hides.WITHIN: WITHIN,
    Hides.GROUPS: GROUPS,
    Hides.BETWEEN: PAIRS,
    Hides.NOTHING: NOTHING,
}


def _listed(words: ColumnPolicy) -> str | None:
    """Groups or pairs as they are typed; too long where they cannot all be listed; None if there are none."""
    if not words.listed:
        return " " * (_LONGEST + 1)
    if words.groups is not None:
        return "\n".join("; ".join(group) for group in words.groups)
    if words.between is not None:
        return "\n".join(" and ".join(pair) for pair in words.between)
    return None


def _changed(column: ColumnForm, said: Mapping[str, str]) -> ColumnForm:
    hides = said.get(f"hide.{column.column}", column.hides)
    known = {choice for choice, _ in column.choices}
    sent = {name: said.get(f"{name}.{column.column}") for name in OPERANDS}
    typed = {**column.typed, **{name: text.strip() for name, text in sent.items() if text is not None}}
    return replace(column, hides=hides if hides in known else EVERYTHING, typed=typed)


def _lines(typed: str) -> list[str]:
    return [line.strip() for line in typed.splitlines() if line.strip()]


def _parts(line: str, between: re.Pattern[str]) -> list[str]:
    return [part.strip() for part in between.split(line) if part.strip()]


def _pair(line: str) -> tuple[str, str]:
    parts = _parts(line, _PAIR)
    if len(parts) != 2:
        raise InvalidGraph("A pair to hide is two values on one line.", fixes=(EXAMPLES[PAIRS],))
    return parts[0], parts[1]


SHAPES: Final = (
    ("cumulative", "cumulative"),
    ("histogram", "histogram"),
    ("quantiles", "quartiles"),
    ("own", "my own …"),
)
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
    def of(cls, domain: Domain, said: Mapping[str, str]) -> TemplateForm:
        """What was sent, or a question about the column with the most values that have an order."""
        ordered = [name for name, attribute in domain.columns if attribute.ordered]
        usual = max(ordered or list(domain.names), key=lambda name: domain[name].value_count)
        given = {name: said[name].strip() for name in _FIELDS if said.get(name, "").strip()}
        if "ask" in said and "bins" in said:
            given["bins"] = said["bins"].strip()  # emptied on purpose: every value alone
        if given.get("column") not in domain.names:
            given["column"] = usual
        if given.get("second") not in domain.names or given.get("second") == given["column"]:
            given.pop("second", None)
        if "ask" not in given and not domain[given["column"]].ordered:
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

    def _cut(self, name: str, attribute: Attribute) -> QuestionColumn:
        """The column in its bins; each value alone where it has no order, or no more values than bins."""
        if not self.bins:
            return QuestionColumn(name)
        try:
            bins = int(self.bins.replace(",", ""))
        except ValueError:
            raise InvalidInput(
                "The number of bins is a whole number.", fixes=("20", "nothing: each value by itself")
            ) from None
        alone = not attribute.ordered or bins >= attribute.value_count
        return QuestionColumn(name, None if alone else bins)


def _number(typed: str, what: str, example: str) -> float:
    try:
        return float(typed.replace(",", ""))
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
class KnownForm:
    """The list of what is known, what it does, and what was typed to add to it."""

    things: tuple[str, ...]
    effects: tuple[str, ...]
    reading: str
    typed: Mapping[str, str] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    problem: dict[str, Any] | None = None
    checked: tuple[str, ...] = ()

    @property
    def open(self) -> bool:
        """Whether there is something to see without asking for it."""
        return bool(self.things or self.problem or self.checked)


@final
@dataclass(frozen=True)
class Said:
    """What a form said: to be shown again where something is wrong with it, or beside what was found."""

    typed: Mapping[str, str] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    problem: dict[str, Any] | None = None
    checked: tuple[str, ...] = ()

    @classmethod
    def of(cls, form: FormData, problem: dict[str, Any]) -> Said:
        """Everything that was typed, so that nothing of it is lost."""
        typed = {name: text(form, name) for name in _TYPED}
        return cls(typed, frozenset(texts(form, "columns")), problem)


def known_form(policy: Policy, said: Said, asking: Asking | None) -> KnownForm:
    """What is known under ``policy``, and what that does to the question on the page."""
    reading = Reading.LITERAL if policy.constraints is None else policy.constraints.reading
    effects = () if policy.constraints is None else (effect(policy), *_on_noise(policy, asking))
    return KnownForm(
        known_things(policy), effects, reading.value, said.typed, said.columns, said.problem, said.checked
    )


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
    if place := text(form, "remove"):
        return before.without(int(place) if place.isdecimal() and len(place) < 9 else -1)
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
