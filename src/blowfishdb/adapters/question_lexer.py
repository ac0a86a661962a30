"""The words of the short form: names, texts, numbers, dates, ``..`` and brackets.

Neither SQL's nor Python's tokenizer can read ``0..9999`` or ``2024-01-01..2024-12-31``, so the short form
has its own, in one table. It is lazy: what follows ``where`` is SQL and never comes here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

from blowfishdb.adapters.sql_text import LONGEST
from blowfishdb.core.errors import InvalidQuestion

_KINDS = {
    "moment": r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?",
    "date": r"\d{4}-\d{2}-\d{2}",
    "number": r"(?:\d[\d_]*(?:\.(?!\.)\d*)?|\.\d+)(?:[eE][+-]?\d+)?",
    "name": r"[^\W\d]\w*",
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

    def takes(self, mark: str) -> bool:
        """Whether the next word is ``mark``; if so it is taken."""
        found = self.next.kind == "mark" and self.next.text == mark
        if found:
            self.take()
        return found

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
        found = _WORD.match(self.typed, start)
        if found is None or found.lastgroup == "name":
            found = _NAME.match(self.typed, start) or found
        if found is None:
            return Word("unknown", self.typed[start], start, start + 1)
        kind = "name" if found.re is _NAME else str(found.lastgroup)
        return Word(kind, _unquoted(kind, found.group()), start, found.end())


def _unquoted(kind: str, written: str) -> str:
    if kind not in ("quoted", "text"):
        return written
    mark = written[0]
    return written[1:-1].replace(2 * mark, mark)
