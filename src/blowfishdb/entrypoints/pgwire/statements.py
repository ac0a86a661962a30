"""What clients send, taken apart: statements one by one, what each is about, and what fills its parameters.

Nothing is decided by patterns in a text: a tokenizer says where a statement ends and which words it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

from sqlglot import Token, TokenType
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError

from blowfishdb.entrypoints.pgwire.errors import NOT_SUPPORTED, SYNTAX, Refusal
from blowfishdb.language.text import LONGEST

MOST_STATEMENTS: Final = 100
_READING: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "("})
_SAID: Final = ("ERROR", "EPSILON", "MAX_COST")
"""What a ``WITH`` behind a statement begins with."""
_OPEN, _CLOSE = frozenset("(["), frozenset(")]")


@final
@dataclass(frozen=True)
class Statement:
    """One statement: its text, and its words in capitals."""

    text: str
    words: tuple[str, ...]
    parameters: int = 0
    """The highest number of a parameter in it."""

    @property
    def verb(self) -> str:
        """The first word; empty if there is none."""
        return self.words[0] if self.words else ""

    @property
    def reads(self) -> bool:
        """Whether it asks for rows."""
        return self.verb in _READING

    def after(self, count: int) -> str:
        """The text behind so many words."""
        return self.text[tokens_of(self.text)[count].start :] if len(self.words) > count else ""


@final
class _Words(Postgres.Tokenizer):
    """PostgreSQL's words; what follows EXPLAIN, say, is taken apart as well."""

    COMMANDS = set()  # noqa: RUF012 - as sqlglot has it


@lru_cache(maxsize=512)
def tokens_of(text: str) -> tuple[Token, ...]:
    """The words of a text; refused if it is too long, or a quote stays open."""
    if len(text) > LONGEST:
        raise Refusal(SYNTAX, f"The text has {len(text):,} characters; at most {LONGEST:,} are read.")
    try:
        return tuple(_Words().tokenize(text))
    except SqlglotError:
        raise Refusal(SYNTAX, "A quote or a comment is opened but not closed.") from None


@lru_cache(maxsize=512)
def split(text: str) -> tuple[Statement, ...]:
    """The statements of a text, without those that say nothing."""
    found: list[list[Token]] = [[]]
    for token in tokens_of(text):
        if token.token_type == TokenType.SEMICOLON:
            found.append([])
        else:
            found[-1].append(token)
    statements = [_statement(text, tokens) for tokens in found if tokens]
    if len(statements) > MOST_STATEMENTS:
        raise Refusal(SYNTAX, f"At most {MOST_STATEMENTS} statements are read at once.")
    return tuple(statements)


def _statement(text: str, tokens: list[Token]) -> Statement:
    words = tuple(token.text.upper() for token in tokens)
    own = words[0] != "PREPARE"  # whose parameters are filled in when it is executed
    numbers = [int(tokens[at + 1].text) for at in _parameters(tokens)] if own else []
    return Statement(text[tokens[0].start : tokens[-1].end + 1], words, max(numbers, default=0))


def identifiers(statement: Statement) -> tuple[str, ...]:
    """The words of a statement as names: in small letters, unless they are quoted."""
    return tuple(
        token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower()
        for token in tokens_of(statement.text)
    )


def _parameters(tokens: Sequence[Token]) -> list[int]:
    """Where the parameters are: ``$`` and a number behind it."""
    return [
        at
        for at in range(len(tokens) - 1)
        if tokens[at].token_type == TokenType.PARAMETER
        and tokens[at].text == "$"
        and tokens[at + 1].text.isdecimal()
        and tokens[at + 1].start == tokens[at].end + 1
        and len(tokens[at + 1].text) < 6
    ]


def filled(text: str, values: Mapping[int, str], *, casts: bool = False) -> str:
    """The statement with a literal in the place of each parameter; what one is cast to is left out.

    With ``casts`` it stays.
    """
    tokens = tokens_of(text)
    pieces, last = [], 0
    for at in _parameters(tokens):
        number = int(tokens[at + 1].text)
        pieces += [text[last : tokens[at].start], values[number]]
        end = tokens[at + 1].end + 1
        last = end if casts else _behind_cast(tokens, at + 2, end)
    return "".join((*pieces, text[last:]))


def _behind_cast(tokens: Sequence[Token], at: int, end: int) -> int:
    """Where a parameter ends whose type is said behind it: ``$1::VARCHAR``, ``$1::double precision``."""
    while at < len(tokens) and tokens[at].token_type == TokenType.DCOLON:
        at += 1
        while at + 1 < len(tokens) and tokens[at + 1].token_type == TokenType.DOT:
            at += 2
        end, at = tokens[at].end + 1 if at < len(tokens) else end, at + 1
        while at < len(tokens) and tokens[at].text.upper() in ("VARYING", "PRECISION"):
            end, at = tokens[at].end + 1, at + 1
        zone = [token.text.upper() for token in tokens[at : at + 3]]
        if zone in (["WITHOUT", "TIME", "ZONE"], ["WITH", "TIME", "ZONE"]):
            end, at = tokens[at + 2].end + 1, at + 3
        while at < len(tokens) and tokens[at].text in _OPEN:
            depth = 0
            while at < len(tokens):
                depth += (tokens[at].text in _OPEN) - (tokens[at].text in _CLOSE)
                end, at = tokens[at].end + 1, at + 1
                if depth == 0:
                    break
    return end


def without_max_cost(text: str) -> tuple[str, str | None]:
    """A statement without its ``MAX_COST 0.2``, and what that allows.

    It stands behind a ``WITH`` of its own, or behind what another one says.
    """
    tokens = tokens_of(text)
    words = [token.text.upper() for token in tokens]
    withs = [at for at, token in enumerate(tokens) if at and token.token_type == TokenType.WITH]
    behind = next((at for at in withs if words[at + 1 : at + 2] and words[at + 1] in _SAID), None)
    if behind is None or "MAX_COST" not in words[behind:]:
        return text, None
    at = words.index("MAX_COST", behind)
    stop = at + (3 if words[at + 1 : at + 2] == ["."] else 2)
    if len(tokens) < stop:
        return text, None
    value = "".join(words[at + 1 : stop])
    alone = words[at - 1] == "WITH" and words[stop : stop + 1] not in ([word] for word in _SAID)
    start = tokens[at - 1 if alone else at].start
    return text[:start] + text[tokens[stop - 1].end + 1 :], value


def explained_by(text: str) -> tuple[bool, str]:
    """Whether JSON is wanted, and the statement that is to be explained."""
    tokens = tokens_of(text)
    at, as_json = 1, False
    if len(tokens) > 1 and tokens[1].text == "(":
        while at < len(tokens) and tokens[at].text != ")":
            word = tokens[at].text.upper()
            if word == "ANALYZE" and tokens[at + 1].text.upper() not in ("OFF", "FALSE", "0"):
                raise _analyze()
            as_json |= word == "JSON"
            at += 1
        at += 1
    while at < len(tokens) and tokens[at].text.upper() in ("VERBOSE", "ANALYZE"):
        if tokens[at].text.upper() == "ANALYZE":
            raise _analyze()
        at += 1
    return as_json, text[tokens[at].start :] if at < len(tokens) else ""


def _analyze() -> Refusal:
    return Refusal(
        NOT_SUPPORTED,
        "EXPLAIN ANALYZE would ask the question; EXPLAIN gives its price and its plan, for nothing.",
        hint="Try: EXPLAIN SELECT …",
    )
