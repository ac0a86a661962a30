"""The form of the ask page, read; or which of its fields cannot be, each with what is wrong in its own words.

A field is at fault if the question can be read with an example in its place, and not as it was typed. So
every mistake is found, not the first alone, and nothing here knows how a question is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, final

from blowfishdb.core.errors import BlowfishError, InvalidInput, InvalidQuestion
from blowfishdb.entrypoints.server.api.questions import QuestionBody
from blowfishdb.entrypoints.server.web.ask_draft import (
    Draft,
    example_boxes,
    example_conditions,
    example_per,
    example_ranges,
    example_told,
)
from blowfishdb.entrypoints.server.web.typed import is_number
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset

LABELS: Final = {
    "sql": "the SELECT",
    "size": "bins",
    "size2": "bins (second)",
    "ranges": "ranges",
    "boxes": "rectangles",
    "told": "aggregates",
    "conditions": "conditions",
    "others": "crossed with",
    "ways": "columns in each table",
    "shares": "shares",
    "most": "how many of the fullest bars",
    "limit": "more than this many people",
    "beside": "other columns",
    "parts": "how many parts",
    "per": "in groups of",
    "least": "groups of at least",
    "more": "other columns",
    "k": "how many clusters",
    "iterations": "rounds",
    "where": "only rows where",
    "error": "within ±",
    "confidence": "% of the time",
    "epsilon": "spend ε",
}
"""What fields are called where a sentence leads to them, in the order of the form."""

_PHRASES: Final = ("ranges", "boxes", "told", "conditions", "others", "beside", "per", "more", "where")
_COUNTS: Final = {
    "size": "number of bins",
    "size2": "number of bins",
    "ways": "number of columns",
    "most": "number of bars",
    "limit": "number of people",
    "parts": "number of parts",
    "least": "number of rows",
    "k": "number of clusters",
    "iterations": "number of rounds",
}
_WIDTHS: Final = {"size": "cut", "size2": "cut2"}
_THOUSANDS: Final = re.compile(r"(?<![\w,])(?<!\d\.)[1-9]\d{0,2}(?:[,'’ \u00a0\u202f]\d{3})+(?!\d|,\d)")
_DECIMALS: Final = re.compile(r"(?<![\w.,])\d+,\d+(?!\d|,\d)")
_CURRENCY: Final = re.compile(r"[$€£¥] ?(?=\d)|(?<=\d) ?[$€£¥]")


@final
@dataclass(frozen=True)
class ReadDraft:
    """A draft that can be asked: what is sent to the interface, and the question that it is."""

    body: QuestionBody
    asking: Asking
    explaining: bool


def read_draft(draft: Draft, source: Dataset) -> ReadDraft:
    """The question of a form: as typed, or with numbers as people write them, ``$10,000`` for 10000."""
    try:
        return _read(draft, source)
    except InvalidInput:
        plain = _plainly(draft)
        if plain != draft:
            with suppress(InvalidInput):
                return _read(plain, source)
        raise


def mistakes(draft: Draft, source: Dataset) -> Mapping[str, BlowfishError]:
    """What is wrong with each field that cannot be read; nothing where the fault is in none of them."""
    sound = replace(draft, **_examples(draft, source))
    if draft.mode != "sql":
        try:
            _read(sound, source)
        except BlowfishError:
            return {}
    found: dict[str, BlowfishError] = {}
    for name in LABELS:
        typed = {each: getattr(draft, each) for each in _PARTS.get(name, (name,))}
        tried = replace(sound, **typed)
        try:
            read_draft(tried, source)
        except BlowfishError as error:
            found[name] = _in_its_words(draft, name) or error
        else:
            sound = tried
    return found


def _in_its_words(draft: Draft, name: str) -> InvalidInput | None:
    """What a field needs that is a number and was filled in with something else."""
    typed = str(getattr(draft, name))
    cut = getattr(draft, _WIDTHS[name]) if name in _WIDTHS else ""
    what = "width" if cut == "width" else _COUNTS.get(name)
    if what is None or cut in ("edges", "groups", "part") or is_number(typed):
        return None
    return InvalidQuestion(f"“{typed[:40]}” is no {what}.", fixes=(getattr(Draft(), name) or "1000",))


_PARTS: Final = {"size": ("cut", "size"), "size2": ("cut2", "size2")}


def _read(draft: Draft, source: Dataset) -> ReadDraft:
    body, explaining = draft.asked(source.schema, source.name, source.select)
    return ReadDraft(body, body.asking(source), explaining)


def _examples(draft: Draft, source: Dataset) -> dict[str, str]:
    """Something that can be read, for every field."""
    domain, usual = source.schema, Draft()
    return {
        **{name: getattr(usual, name) for name in LABELS},
        "cut": usual.cut,
        "cut2": usual.cut2,
        "least": "1000",
        "parts": "2",
        "ranges": example_ranges(domain, draft.column),
        "boxes": example_boxes(domain, draft.column, draft.second),
        "told": example_told(domain),
        "conditions": example_conditions(domain).replace(", ", "\n"),
        "others": example_per(domain, draft.column),
    }


def _plainly(draft: Draft) -> Draft:
    """Numbers inside of phrases without currencies and thousands, and with decimal points."""
    return replace(draft, **{name: _plain_phrase(getattr(draft, name)) for name in _PHRASES})


def _plain_phrase(typed: str) -> str:
    bare = _THOUSANDS.sub(lambda found: re.sub(r"\D", "", found[0]), _CURRENCY.sub("", typed))
    return _DECIMALS.sub(lambda found: found[0].replace(",", "."), bare)
