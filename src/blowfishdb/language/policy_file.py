"""Policies as files: YAML that a curator can read, keep under version control and review line by line.

JSON is YAML, so the same reader takes both. docs/policy-files.md describes the format; policy_schema.json is
its JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from blowfishdb.core.constraints.declared import Constraints
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidGraph, InvalidInput
from blowfishdb.core.graphs import Full, Grid, PolicyGraph
from blowfishdb.core.policy.columns import (
    Groups,
    Hides,
    column_graph,
    current,
    typed_distance,
    written_distance,
)
from blowfishdb.core.policy.policy import Part, Policy, combined, parts_of, with_missing
from blowfishdb.core.policy.words import area_unit, known_sentences, sentence, sentences
from blowfishdb.language.known import known_document, known_lines, read_known
from blowfishdb.language.yaml import Document, check, read_yaml, written_text

FORMAT = "policy/1"
MOST_LISTED = 50_000
"""How many groups or pairs of one column a file may list."""

_RULES = {
    "hide within": Hides.WITHIN,
    "hide within groups": Hides.GROUPS,
    "hide within groups of": Hides.WIDTH,
    "hide between": Hides.PAIRS,
}
_WHOLE, _TOGETHER, _ONE_BY_ONE = "whole record", "columns together", "columns one by one"


# --- reading ------------------------------------------------------------------------------------


def read_policy(text: str, domain: Domain, *, dataset: str | None = None) -> Policy:
    """The policy that a file describes for the columns of ``domain``.

    With ``dataset``, a file for another dataset is refused.
    """
    document = read_yaml(text)
    check(document)
    content: dict[str, Any] = document.content
    if dataset is not None and content.get("dataset", dataset) != dataset:
        raise InvalidInput(
            f"{document.where(('dataset',))}: this is for '{content['dataset']}', not for '{dataset}'.",
            fixes=(f"dataset: {dataset}",),
        )
    columns, areas = content.get("columns") or {}, content.get("areas") or []
    how = content.get("hide", _TOGETHER if columns or areas else _WHOLE)
    hide_presence = content.get("presence", "public") == "hidden"
    known: Constraints | None = None
    if content.get("known"):
        with _at(document, ("known",)):
            known = read_known(content["known"], domain)
            known.check(domain)
    if how == _WHOLE:
        if columns or areas:
            raise InvalidInput(
                f"{document.where(('hide',))}: 'whole record' hides everything, so no columns are listed.",
                fixes=("hide: columns together", "leave out columns and areas"),
            )
        factors: tuple[PolicyGraph, ...] = (Full(domain.size),)
    else:
        factors = _factors(document, domain, columns, areas)
    graph = combined(factors, joint=how == _TOGETHER, hide_presence=hide_presence)
    return Policy(domain, graph, known)


def _factors(
    document: Document, domain: Domain, columns: Mapping[str, Any], areas: list[Any]
) -> tuple[PolicyGraph, ...]:
    """One graph for each column or area, in the order of the domain."""
    for name in columns:
        with _at(document, ("columns", name)):
            _ = domain[name]
    starts: dict[str, tuple[tuple[str, ...], PolicyGraph]] = {}
    taken: set[str] = set(columns)
    for at, area in enumerate(areas):
        with _at(document, ("areas", at)):
            names = _area_columns(domain, area["columns"], taken)
            starts[names[0]] = names, _area_graph(domain, names, area)
            taken |= set(names)
    within = {name for names, _ in starts.values() for name in names}
    factors = []
    for name in domain.names:
        if name in starts:
            factors.append(starts[name][1])
        elif name not in within:
            with _at(document, ("columns", name)):
                factors.append(_column(domain[name], columns.get(name, {"hide": "everything"})))
    return tuple(factors)


def _column(attribute: Attribute, rule: Mapping[str, Any]) -> PolicyGraph:
    ((word, value),) = rule.items()
    graph = column_graph(attribute, **{value if word == "hide" else _RULES[word].value: value})
    return with_missing(attribute, graph)


def _area_columns(domain: Domain, listed: list[str], taken: set[str]) -> tuple[str, ...]:
    names = tuple(listed)
    for name in names:
        if domain[name].has_missing_cell or not domain[name].ordered:
            raise InvalidGraph(
                f"'{name}' cannot be part of an area: its values lie on no line, or some are missing.",
                fixes=("declare missing='clamp' or 'drop'", "hide each column by itself"),
            )
    if taken & set(names) or len(set(names)) < len(names):
        raise InvalidGraph("A column can be in one area only, and then not under columns.")
    first = domain.names.index(names[0])
    if domain.names[first : first + len(names)] != names:
        raise InvalidGraph(
            "The columns of an area must be next to each other and in the order in which they are declared: "
            f"{', '.join(domain.names)}."
        )
    return names


def _area_graph(domain: Domain, names: tuple[str, ...], area: Mapping[str, Any]) -> Grid:
    shape = [domain[name].size for name in names]
    if "hide within cells" in area:
        cells = str(area["hide within cells"])
        if not cells.isdecimal() or len(cells) > 18:
            raise InvalidGraph("A number of cells is a whole number.", fixes=("hide within cells: 3",))
        return Grid(shape, int(cells))
    if not area_unit(domain, names):
        raise InvalidGraph(
            "The cells of these columns are not equally wide, so their distances do not add up.",
            fixes=("hide within cells: 3",),
        )
    attribute = domain[names[0]]
    return Grid(shape, attribute.threshold(typed_distance(attribute, area["hide within"])))


@contextmanager
def _at(document: Document, path: tuple[str | int, ...]) -> Iterator[None]:
    """Puts the place in the file in front of what a column says is wrong."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{document.where(path)}: {error.message}", fixes=error.fixes) from None


def read_groups(text: str) -> Groups:
    """The groups of values in a file that holds nothing else: named or listed."""
    groups = read_yaml(text).content
    if not isinstance(groups, dict | list):
        raise InvalidInput(
            "A file of groups holds lists of values, named or not.", fixes=("north: [a, b]", "- [a, b]")
        )
    return groups


# --- writing ------------------------------------------------------------------------------------


def policy_document(policy: Policy, *, dataset: str) -> dict[str, Any]:
    """The policy as the data that a file holds; ``read_policy`` undone."""
    parts = parts_of(policy)
    document: dict[str, Any] = {"blowfishdb": FORMAT, "dataset": dataset}
    document["hide"] = _WHOLE if parts.whole_record else _TOGETHER if parts.joint else _ONE_BY_ONE
    document["presence"] = "hidden" if parts.hides_presence else "public"
    if known := known_document(policy):
        document["known"] = known
    if parts.whole_record:
        return document
    single = [part for part in parts.parts if len(part.columns) == 1]
    if columns := {part.columns[0]: _rule(policy, part.columns[0]) for part in single}:
        document["columns"] = columns
    if areas := [_area(policy, part) for part in parts.parts if len(part.columns) > 1]:
        document["areas"] = areas
    return document


def _rule(policy: Policy, column: str) -> dict[str, Any]:
    rule = current(policy, column, most=MOST_LISTED)
    if rule.said is None or rule.missing != (policy.domain[column].missing == "value"):
        raise InvalidGraph(
            f"What is hidden about '{column}' cannot be written in a file: it has too many pairs, or treats "
            "missing values in its own way.",
            fixes=("hide within a distance, or within groups",),
        )
    word = next((word for word, hides in _RULES.items() if hides is rule.hides), None)
    return {"hide": rule.hides.value} if word is None else {word: rule.said}


def _area(policy: Policy, part: Part) -> dict[str, Any]:
    graph, names = part.graph, list(part.columns)
    shape = tuple(policy.domain[name].size for name in names)
    if not isinstance(graph, Grid) or graph.shape != shape or set(graph.widths) != {1}:
        raise InvalidGraph(
            "This policy cannot be written in a file: it joins combinations of several columns one by one.",
            fixes=("build it with Policy.by_column",),
        )
    if not area_unit(policy.domain, part.columns):
        return {"columns": names, "hide within cells": str(graph.theta)}
    return {"columns": names, "hide within": written_distance(policy.domain[names[0]], graph.theta)}


def write_policy(policy: Policy, *, dataset: str) -> str:
    """The policy as a file, with each rule in words above it."""
    return "\n".join(_lines(policy, policy_document(policy, dataset=dataset))) + "\n"


def _lines(policy: Policy, document: Mapping[str, Any]) -> Iterator[str]:
    for key in ("blowfishdb", "dataset", "hide", "presence"):
        yield f"{key}: {written_text(document[key])}"
    if document["hide"] == _WHOLE:
        yield _comment(sentences(policy)[0])
    if "columns" in document:
        yield "columns:"
        for name, rule in document["columns"].items():
            yield "  " + _comment(sentence(policy, name))
            ((word, value),) = rule.items()
            if isinstance(value, str):
                yield f"  {written_text(name)}: {{{word}: {written_text(value)}}}"
            else:
                yield f"  {written_text(name)}:"
                yield f"    {word}:"
                yield from (f"      - {_flow(entry)}" for entry in value)
    if "areas" in document:
        yield "areas:"
        for area in document["areas"]:
            yield "  " + _comment(sentence(policy, area["columns"][0]))
            rest = ", ".join(f"{k}: {written_text(v)}" for k, v in area.items() if k != "columns")
            yield f"  - {{columns: {_flow(area['columns'])}, {rest}}}"
    if "known" in document:
        yield from (_comment(words) for words in known_sentences(policy))
        yield from known_lines(document["known"])


def _flow(texts: list[str]) -> str:
    return f"[{', '.join(written_text(text) for text in texts)}]"


def _comment(words: str) -> str:
    """On one line, whatever a column is called."""
    return "# " + " ".join("".join(c if c.isprintable() else " " for c in words).split())
