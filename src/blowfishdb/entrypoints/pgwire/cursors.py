"""PREPARE and EXECUTE, DECLARE, FETCH and MOVE: what they say, and where a cursor is afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from sqlglot import exp

from blowfishdb.entrypoints.pgwire.commands import refused
from blowfishdb.entrypoints.pgwire.errors import NOT_SUPPORTED, SYNTAX, Refusal
from blowfishdb.entrypoints.pgwire.parameters import stated_type
from blowfishdb.entrypoints.pgwire.reader import parsed
from blowfishdb.entrypoints.pgwire.statements import Statement, identifiers, split, tokens_of

Way = Literal["on", "backwards", "absolute", "relative"]
_OPTIONS: Final = frozenset({"BINARY", "INSENSITIVE", "ASENSITIVE", "NO", "SCROLL"})


class Kept(NamedTuple):
    """A statement that is to be kept under a name, and the types that were said of its parameters."""

    name: str
    oids: list[int]
    statement: Statement


class Declared(NamedTuple):
    """A cursor: its name, its statement, and how it is read."""

    name: str
    statement: Statement
    held: bool
    scrolls: bool
    binary: bool


class Fetched(NamedTuple):
    """Which rows of a cursor are wanted: so many on from where it is, or the one at a place."""

    name: str
    rows: int | None
    """None for all that are left; negative ones are behind."""
    way: Way

    def goes_back(self, at: int) -> bool:
        """Whether this leads back from a place, as far as that is known without knowing the rows."""
        if self.way == "absolute":
            return self.rows is not None and 0 <= self.rows < at
        return self.way == "backwards" or (self.rows or 0) < 0


# --- statements that are kept -----------------------------------------------------------------------


def prepared_by(statement: Statement) -> Kept:
    """``PREPARE name (types) AS statement``."""
    words = statement.words
    at = _behind(words, 2) if words[2:3] == ("(",) else 2
    if len(words) <= at + 1 or words[at] != "AS":
        raise Refusal(SYNTAX, "PREPARE is written with a name and a statement.", hint=_PREPARE)
    kinds = [stated_type(kind).oid for kind in _types(words[3 : at - 1])]
    return Kept(identifiers(statement)[1], kinds, _read(statement.after(at + 1)))


def executed_by(statement: Statement) -> tuple[str, list[str | None]]:
    """``EXECUTE name (values)``: the name, and the values as texts."""
    if len(statement.words) < 2:
        raise Refusal(SYNTAX, "EXECUTE is written with the name of a statement.", hint=_PREPARE)
    name, rest = identifiers(statement)[1], statement.words[2:]
    if not rest or rest == ("(", ")"):
        return name, []
    if rest[0] != "(" or rest[-1] != ")":
        raise Refusal(SYNTAX, "EXECUTE is written with values in brackets.", hint=_PREPARE)
    tokens = tokens_of(statement.text)
    inside = statement.text[tokens[2].end + 1 : tokens[-1].start]
    tree = parsed(f"SELECT {inside}")
    if not isinstance(tree, exp.Select) or {name for name, said in tree.args.items() if said} - _PLAIN:
        raise _no_value()
    return name, [_text(value) for value in tree.expressions]


def declared_by(statement: Statement) -> Declared:
    """``DECLARE name [NO SCROLL] CURSOR [WITH HOLD] FOR statement``."""
    words = statement.words
    cursor = words.index("CURSOR", 2) if "CURSOR" in words[2:] else 0
    said = words[2:cursor]
    behind = words[cursor + 1 : cursor + 3]
    holding = behind in (("WITH", "HOLD"), ("WITHOUT", "HOLD"))
    at = cursor + 3 if holding else cursor + 1
    if not cursor or set(said) - _OPTIONS or words[at : at + 1] != ("FOR",) or len(words) < at + 2:
        raise Refusal(SYNTAX, "DECLARE is written with a name and a SELECT.", hint=_DECLARE)
    return Declared(
        identifiers(statement)[1],
        _read(statement.after(at + 1)),
        held=behind == ("WITH", "HOLD"),
        scrolls="NO" not in said,
        binary="BINARY" in said,
    )


def _read(text: str) -> Statement:
    """The statement that is kept: only what asks for rows is."""
    (statement,) = split(text)
    if (refusal := refused(statement)) is not None:
        raise refusal
    if not statement.reads:
        raise Refusal(SYNTAX, f"A question begins with SELECT, not with {statement.verb[:40]!r}.")
    return statement


def _types(words: Sequence[str]) -> list[str]:
    """Types between commas, without what they say in brackets."""
    found, depth = [""], 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == "," and not depth:
            found.append("")
        elif not depth and word != ")":
            found[-1] = f"{found[-1]} {word}".strip()
    return [kind.lower() for kind in found] if words else []


def _behind(words: Sequence[str], at: int) -> int:
    """Behind the bracket that is opened there."""
    depth = 0
    for place in range(at, len(words)):
        depth += (words[place] == "(") - (words[place] == ")")
        if not depth:
            return place + 1
    return len(words)


_PLAIN: Final = frozenset({"expressions", "kind"})
_PREPARE: Final = "Try: PREPARE q (int) AS SELECT COUNT(*) FROM dataset WHERE age >= $1; EXECUTE q (30);"
_DECLARE: Final = "Try: DECLARE c CURSOR FOR SELECT …; FETCH 10 FROM c;"


def _text(value: exp.Expr) -> str | None:
    """A value that is written down: a number, a text, a date, a truth value or NULL."""
    match value:
        case exp.Null():
            return None
        case exp.Literal():
            return str(value.this)
        case exp.Boolean():
            return str(value.this).lower()
        case exp.Neg(this=exp.Literal() as number):
            return f"-{number.this}"
        case exp.Paren() | exp.Cast():
            return _text(value.this)
    raise _no_value()


def _no_value() -> Refusal:
    return Refusal(NOT_SUPPORTED, "EXECUTE takes values that are written down, and computes none.")


# --- rows of a cursor -------------------------------------------------------------------------------


def fetched_by(statement: Statement) -> Fetched:
    """``FETCH`` or ``MOVE``, with a direction before the name of the cursor."""
    words, name = list(statement.words[1:-1]), identifiers(statement)[-1]
    if len(statement.words) < 2:
        raise Refusal(SYNTAX, f"{statement.verb} is written with the name of a cursor.", hint=_DECLARE)
    if words[-1:] in (["FROM"], ["IN"]):
        words.pop()
    named = {"NEXT": 1, "PRIOR": -1}
    match words:
        case []:
            return Fetched(name, 1, "on")
        case ["NEXT" | "PRIOR"]:
            return Fetched(name, named[words[0]], "on")
        case ["FIRST" | "LAST"]:
            return Fetched(name, 1 if words[0] == "FIRST" else -1, "absolute")
        case ["ABSOLUTE", *number]:
            return Fetched(name, _whole(number), "absolute")
        case ["RELATIVE", *number]:
            return Fetched(name, _whole(number), "relative")
        case ["ALL"] | ["FORWARD", "ALL"]:
            return Fetched(name, None, "on")
        case ["BACKWARD", "ALL"]:
            return Fetched(name, None, "backwards")
        case ["FORWARD", *number]:
            return Fetched(name, _whole(number) if number else 1, "on")
        case ["BACKWARD", *number]:
            return Fetched(name, -(_whole(number) if number else 1), "on")
    return Fetched(name, _whole(words), "on")


def _whole(words: list[str]) -> int:
    sign, digits = (words[0], words[1:]) if words[:1] in (["-"], ["+"]) else ("", words)
    if len(digits) != 1 or not digits[0].isdecimal() or len(digits[0]) > 18:
        raise Refusal(SYNTAX, "How many rows are wanted is a whole number.", hint=_DECLARE)
    return -int(digits[0]) if sign == "-" else int(digits[0])


def moved(fetched: Fetched, at: int, total: int) -> tuple[range, int]:
    """The rows that are wanted, counted from 1, and the place afterwards: 0 is before all of them."""
    count = fetched.rows
    if fetched.way in ("absolute", "relative"):
        assert count is not None
        place = at + count if fetched.way == "relative" else count if count >= 0 else total + 1 + count
        place = min(max(place, 0), total + 1)
        return (range(place, place + 1) if 1 <= place <= total else range(0)), place
    if count is None:
        count = total + 1 if fetched.way == "on" else -(total + 2)
    if count == 0:
        return (range(at, at + 1) if 1 <= at <= total else range(0)), at
    place = min(max(at + count, 0), total + 1)
    if count > 0:
        return range(at + 1, min(place, total) + 1), place
    return range(at - 1, max(place, 1) - 1, -1), place
