"""The sentence as the control: what a form says about each column, and the policy that it means.

The state is in the address, so going back undoes a change. What a form cannot hold (an area over several
columns, a list of ten thousand pairs, what everyone knows already) is kept as it was drafted.

The curator's question: a column, a shape, bins and an accuracy, for the policy and trade-off pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Final, final

import numpy as np

from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Category
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.policy.columns import (
    Hides,
    current,
    grouped,
    shown_cell,
    ungrouped,
    values_graph,
    with_point,
)
from blowfishdb.core.policy.policy import Policy, combined
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.core.questions.round_bins import round_bins
from blowfishdb.entrypoints.server.web.ask_draft import usual_column
from blowfishdb.entrypoints.server.web.place_form import PlaceForm
from blowfishdb.entrypoints.server.web.typed import most_bins
from blowfishdb.language.columns import EXAMPLES, read_rule, written_rule
from blowfishdb.language.text import name_text
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset

KEPT: Final = "kept"
OPERANDS: Final = ("within", "width", "groups", "pairs")
"""The choices that come with something to type, under a field of the same name."""

_LONGEST: Final = 2_000  # of a list in an address; a longer one is kept instead of shown
_FEW: Final = 60  # values that are put into groups one by one
_LISTED: Final = 4  # groups that are named
_SEVERAL: Final = re.compile(r"[;,]|\.\.")

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
    values: tuple[str, ...] = ()
    """Those of a short list, which can be put into groups one by one."""

    @classmethod
    def of(cls, policy: Policy, column: str) -> ColumnRuleForm:
        """The form that says what a policy says about a column."""
        attribute = policy.domain[column]
        rule, values = current(policy, column, most=_LONGEST), _few_values(attribute)
        typed = {"groups": "; ".join(values)} if values else {}  # all in one group, to begin with
        text = None if rule.said is None else written_rule(rule)
        if text is None or len(text) > _LONGEST:
            return cls(column, KEPT, attribute.ordered, typed, f"{rule.entries or 0:,} entries", values)
        hides = rule.hides.name.lower()
        return cls(column, hides, attribute.ordered, {**typed, hides: _set_apart(text)}, values=values)

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
        typed = _set_apart(self.typed.get(self.hides, ""))
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


def _few_values(attribute: Attribute) -> tuple[str, ...]:
    """The values of a list that is short, none of which could be read as two or as a range."""
    if not isinstance(attribute, Category) or attribute.value_count > _FEW:
        return ()
    values = tuple(map(str, attribute.values))
    plain = all(value and value == value.strip() and not _SEVERAL.search(value) for value in values)
    return values if plain else ()


def bounds(attribute: Attribute, graph: PolicyGraph) -> str:
    """Where groups of equally many numbers begin and end, in words; empty where there are none."""
    parts = graph.cliques
    if parts is None or not attribute.ordered or isinstance(attribute, Category):
        return ""
    firsts = [int(first) for first in parts.first(np.arange(parts.count))]
    ends = list(pairwise([*firsts, attribute.value_count]))
    if len(ends) < 2 or len({last - first for first, last in ends[:-1]}) > 1:
        return ""
    named = [f"{shown_cell(attribute, first)} to {shown_cell(attribute, last - 1)}" for first, last in ends]
    listed = named if len(named) <= _LISTED else [*named[: _LISTED - 1], "…", named[-1]]
    begin = f"They begin at {shown_cell(attribute, 0)}, the lowest value"
    shorter = ends[-1][1] - ends[-1][0] < ends[0][1] - ends[0][0]
    end = ", and the last one is shorter." if shorter else "."
    return f"{len(named):,} groups: {'; '.join(listed)}. {begin}{end}"


def _set_apart(text: str) -> str:
    """A number with its thousands set apart, as it is everywhere else; anything else as it is."""
    return grouped(Fraction(text)) if text.isascii() and text.isdecimal() else text


@final
@dataclass(frozen=True)
class PolicyForm:
    """What is said about all columns. ``whole``: the draft has no words here and is kept as it is."""

    columns: tuple[ColumnRuleForm, ...]
    records: str
    presence: bool
    place: PlaceForm
    whole: bool = False

    @classmethod
    def of(cls, policy: Policy) -> PolicyForm:
        """The form that says what a policy says."""
        columns = tuple(ColumnRuleForm.of(policy, name) for name in policy.domain.names)
        records = TOGETHER if policy.joint else SINGLE
        place = PlaceForm.of(policy)
        whole = not policy.separable and not place.columns
        return cls(columns, records, policy.hides_presence, place, whole=whole)

    def changed(self, fields: Mapping[str, str]) -> PolicyForm:
        """The form after someone filled it in; what was not sent stays."""
        if "records" not in fields:
            return self
        columns = tuple(column.changed(fields) for column in self.columns)
        records = SINGLE if fields["records"] == SINGLE else TOGETHER
        whole = self.whole and fields["records"] == KEPT
        return replace(
            self,
            columns=columns,
            records=records,
            presence="presence" in fields,
            place=self.place.changed(fields),
            whole=whole,
        )

    def policy(self, draft: Policy) -> tuple[Policy | None, dict[str, BlowfishError]]:
        """The policy, or what is wrong about which column."""
        if self.whole:
            return draft, {}
        graphs: dict[str, PolicyGraph] = {}
        wrong: dict[str, BlowfishError] = {}
        for column in self.columns:
            try:
                if column.column not in self.place.columns:
                    graphs[column.column] = column.graph(draft)
                elif column.column == self.place.columns[0]:
                    graphs[column.column] = self.place.graph(draft.domain)
            except BlowfishError as error:
                wrong[column.column] = error
        if wrong:
            return None, wrong
        joint = self.records == TOGETHER
        if self.place.columns:
            graph = combined(tuple(graphs.values()), joint=joint, hide_presence=self.presence)
            return Policy(draft.domain, graph, draft.constraints), {}
        policy = draft.edited(graphs, joint=joint, hide_presence=self.presence)
        whole = joint and all(column.hides == "everything" for column in self.columns)
        return policy.hiding_records() if whole else policy, {}

    def query(self) -> dict[str, str]:
        """The form as it stands in an address: only what matters."""
        if self.whole:
            return {"records": KEPT}
        query = {"records": self.records, **self.place.query()}
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
_READABLE: Final = {"bins": str(_BINS), "error": "50", "confidence": "95", "epsilon": "0.1"}
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
        """What was sent, or a question about the column that is usually asked about."""
        given = {name: fields[name].strip() for name in _FIELDS if fields.get(name, "").strip()}
        if "ask" in fields and "bins" in fields:
            given["bins"] = fields["bins"].strip()  # emptied on purpose: every value alone
        if given.get("column") not in domain.names:
            given["column"] = usual_column(domain)
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

    def mistakes(self, dataset: Dataset) -> dict[str, BlowfishError]:
        """Each field that cannot be read as it was typed, where others that cannot have an example."""
        if self._wrong(dataset) is None:
            return {}
        readable = replace(self, **_READABLE, own=f"histogram({name_text(self.column)})")
        found = {
            name: replace(readable, **{name: getattr(self, name)})._wrong(dataset)
            for name in (*_READABLE, "own")
        }
        return {name: error for name, error in found.items() if error is not None}

    def _wrong(self, dataset: Dataset) -> BlowfishError | None:
        try:
            self.asking(dataset)
        except BlowfishError as error:
            return error
        return None

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
        """The column in round bins; each value alone where nothing is said."""
        return round_bins(name, attribute, most_bins(self.bins)) if self.bins else ColumnForm(name)


def _number(typed: str, what: str, example: str) -> float:
    try:
        return float(ungrouped(with_point(typed)))
    except ValueError:
        raise InvalidInput(f"{what} is a number.", fixes=(example,)) from None
