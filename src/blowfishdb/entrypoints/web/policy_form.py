"""The sentence as the control: what a form says about each column, and the policy that it means.

The state is in the address, so going back undoes a change. What a form cannot hold (an area over several
columns, a list of ten thousand pairs, what everyone knows already) is kept as it was drafted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

from blowfishdb.core.attribute import Attribute
from blowfishdb.core.column_policies import ColumnPolicy, Hides, column_graph, current, values_graph
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidGraph, InvalidThreshold
from blowfishdb.core.graphs import Full, PolicyGraph
from blowfishdb.core.policy import Policy

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
