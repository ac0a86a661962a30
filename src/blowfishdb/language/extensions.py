"""What a private SELECT says beyond SQL: ``EXPLAIN`` in front, ``WITH ERROR …`` or ``WITH EPSILON …`` behind.

They are split off by words before the rest is parsed, so the rest is plain SQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import NoReturn, final

from sqlglot import Token, TokenType

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.errors import InvalidQuestion
from blowfishdb.language.text import number_from, sql_tokens

_CONFIDENCE = Decimal("0.95")
_EXAMPLES = ("WITH ERROR 50 CONFIDENCE 0.95", "WITH EPSILON 0.1")


@final
@dataclass(frozen=True)
class Extended:
    """A statement in three parts: the plain SELECT, and what it may cost or how accurate it must be."""

    select: str
    accuracy: Accuracy | None = None
    epsilon: Epsilon | None = None
    explain: bool = False
    group_size: int | None = None

    def __post_init__(self) -> None:
        if self.accuracy is not None and self.epsilon is not None:
            raise InvalidQuestion("An error or an epsilon can be given, not both.", fixes=_EXAMPLES)


def split_extensions(typed: str) -> Extended:
    """The parts of a statement."""
    tokens = sql_tokens(typed)
    explain = bool(tokens) and tokens[0].text.upper() == "EXPLAIN"
    if explain:
        typed = typed[tokens[0].end + 1 :]
        tokens = sql_tokens(typed)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    starts = [at for at in range(1, len(tokens) - 1) if _begins(tokens, at)]
    stop = tokens[starts[0]].start if starts else (tokens[-1].end + 1 if tokens else 0)
    accuracy: Accuracy | None = None
    epsilon: Epsilon | None = None
    size: int | None = None
    for start, end in pairwise([*starts, len(tokens)]):
        words = _Words(tokens[start + 1 : end])
        if words.takes("ERROR"):
            accuracy, size = _accuracy(words) if accuracy is None else words.wrong()
        elif words.takes("EPSILON"):
            epsilon = positive(words.number()) if epsilon is None else words.wrong()
        words.end()
    return Extended(typed[:stop], accuracy, epsilon, explain, size)


def _begins(tokens: list[Token], at: int) -> bool:
    here, after = tokens[at], tokens[at + 1]
    named = after.token_type == TokenType.VAR and after.text.upper() in ("ERROR", "EPSILON")
    return here.token_type == TokenType.WITH and named


def _accuracy(words: _Words) -> tuple[Accuracy, int | None]:
    """``50 [FOR GROUPS OF 1000] [CONFIDENCE 0.95] [EACH | ON EACH | ON ALL] [FOR GROUPS OF 1000]``."""
    alpha, confidence = float(words.number(share=False)), _CONFIDENCE
    size = _size(words)
    if words.takes("CONFIDENCE"):
        confidence = words.number()
        if not 0 < confidence < 1:
            raise InvalidQuestion("A confidence lies between 0 and 1, such as 0.95.", fixes=(_EXAMPLES[0],))
    on = words.takes("ON")
    each = words.takes("EACH")
    if on and not each and not words.takes("ALL"):
        words.wrong()
    size = _size(words) if size is None else size
    return Accuracy(alpha, float(1 - confidence), simultaneous=not each), size


def _size(words: _Words) -> int | None:
    """``FOR GROUPS OF 1000``."""
    if not words.takes("FOR"):
        return None
    if not words.takes("GROUPS") or not words.takes("OF"):
        words.wrong()
    rows = words.number()
    return int(rows) if rows == int(rows) else words.wrong()


@final
class _Words:
    """A cursor over the words of one extension."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = list(tokens)

    def takes(self, word: str) -> bool:
        taken = bool(self._tokens) and self._tokens[0].text.upper() == word
        if taken:
            self._tokens.pop(0)
        return taken

    def number(self, *, share: bool = True) -> Decimal:
        """A number, or a percentage as the ``share`` that it is, where one is meant."""
        if not self._tokens or self._tokens[0].token_type not in (TokenType.NUMBER, TokenType.DOT):
            self.wrong()
        digits = self._tokens.pop(0).text
        if digits == "." and self._tokens and self._tokens[0].token_type == TokenType.NUMBER:
            digits += self._tokens.pop(0).text
        number = Decimal(str(number_from(digits)))
        if not self.takes("%"):
            return number
        if not share:
            raise InvalidQuestion(
                f"An error is a number, in people or in units of what is asked, and {digits} % is a share.",
                fixes=_EXAMPLES[:1],
            )
        return number / 100

    def end(self) -> None:
        if self._tokens:
            self.wrong()

    def wrong(self) -> NoReturn:
        word = repr(self._tokens[0].text[:40]) if self._tokens else "the end"
        raise InvalidQuestion(
            "After WITH comes once ERROR, a number and a confidence (of means, FOR GROUPS OF and a number), "
            f"or EPSILON and a number; found {word}.",
            fixes=_EXAMPLES,
        )
