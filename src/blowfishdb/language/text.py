"""Names and values as text, and text as a syntax tree: what every reader of typed questions shares.

Nothing is ever evaluated. Length and nesting are bounded before the parser sees the text.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

import sqlglot
from sqlglot import ErrorLevel, Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parser import Parser

from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.values import plain, text
from blowfishdb.core.errors import InvalidInput, InvalidQuestion, UnknownColumn

LONGEST = 20_000
"""Characters; longer texts are not typed by people."""

DEEPEST = 16
"""Levels of parentheses; the parser needs some 25 frames for each."""

_LARGEST_EXPONENT = 400
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
UNITS = {"week": 604_800, "day": 86_400, "hour": 3600, "minute": 60, "second": 1}
"""Lengths of time that can be written, in seconds, the longest first."""


@final
class TypedSql(sqlglot.Dialect):
    """SQL as people type it: also ``region ~ 'pattern'`` and ``hours // 10``; what is missing is last."""

    NULL_ORDERING = "nulls_are_last"

    class Tokenizer(sqlglot.Tokenizer):
        """The words of it."""

        KEYWORDS = {**sqlglot.Tokenizer.KEYWORDS, "//": TokenType.DIV}  # noqa: RUF012 - as sqlglot has it
        SINGLE_TOKENS = {**sqlglot.Tokenizer.SINGLE_TOKENS, "~": TokenType.RLIKE}  # noqa: RUF012 - as sqlglot has it


# --- reading ------------------------------------------------------------------------------------


def sql_tokens(typed: str) -> list[Token]:
    """The words of a SQL text; refused if too long, too deep or with an open quote."""
    if not isinstance(typed, str):
        raise InvalidQuestion(f"SQL is a text, not {type(typed).__name__}.")
    if len(typed) > LONGEST:
        raise InvalidQuestion(f"The text has {len(typed):,} characters; at most {LONGEST:,} are read.")
    try:
        tokens = sqlglot.tokenize(typed, TypedSql)
    except SqlglotError:
        raise InvalidQuestion(
            "A quote or a comment is opened but not closed.",
            fixes=("'text' for values", '"name" for columns'),
        ) from None
    depth = deepest = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise InvalidQuestion(f"More than {DEEPEST} levels of parentheses are not read.", fixes=("fewer",))
    return tokens


def parenthesised(typed: str) -> tuple[str, int]:
    """What stands in the parentheses with which a text begins, and where they end."""
    depth = 0
    for token in sql_tokens(typed):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0:
            return typed[1 : token.start], token.end + 1
    raise InvalidQuestion("A parenthesis is opened but not closed.")


def sql_tree(typed: str, into: type[exp.Expr] | None, example: str) -> exp.Expr:
    """One statement, or ``into`` one kind of expression, as a tree; ``example`` is shown if it cannot be."""
    if not sql_tokens(typed):
        raise InvalidQuestion("There is nothing to read.", fixes=(example,))
    try:
        dialect = TypedSql()
        trees = dialect.parse(typed) if into is None else dialect.parse_into(into, typed)
    except ParseError as error:
        raise InvalidQuestion(_what_is_wrong(error), fixes=(example,)) from None
    except RecursionError:
        raise InvalidQuestion("The text is nested too deeply to be read.", fixes=(example,)) from None
    except Exception:  # the parser is not ours: whatever it trips over, the text could not be read
        raise InvalidQuestion("This is not SQL that can be read.", fixes=(example,)) from None
    if len(trees) != 1 or trees[0] is None:
        raise InvalidQuestion("One statement at a time, please.", fixes=(example,))
    return trees[0]


def _what_is_wrong(error: ParseError) -> str:
    """The parser's complaint without its colours."""
    first = error.errors[0].get("errors", error.errors)[0] if error.errors else {}
    near = str(first.get("highlight") or "").strip()[:40]
    return "This is not SQL that can be read" + (f": it goes wrong at {near!r}." if near else ".")


def shown(node: exp.Expr) -> str:
    """A part of the user's own text, shortened, for a message."""
    try:
        words = node.sql(unsupported_level=ErrorLevel.IGNORE, comments=False)
    except Exception:  # as above: a message must not fail
        words = node.key
    return words if len(words) <= 60 else words[:57] + "…"


def column_name(typed: str, domain: Domain, *, quoted: bool) -> str:
    """The declared column that a name means: as written or, without quotes, in other letter case."""
    if typed in domain or quoted:
        domain[typed]  # an unknown name is refused with the nearest one
        return typed
    same = [known for known in domain.names if known.casefold() == typed.casefold()]
    if not same and "." not in typed:
        same = [known for known in domain.names if known.casefold().partition(".")[2] == typed.casefold()]
    if len(same) > 1:
        choices = tuple(quoted_name(known) for known in same)
        raise UnknownColumn(f"{typed!r} could be {' or '.join(same)}.", fixes=choices)
    if not same:
        domain[typed]
    return same[0]


def with_full_names(tree: exp.Expr, domain: Domain) -> exp.Expr:
    """The tree with ``orders.amount`` as one name where a column is called so, and ``amount`` as well where
    no other is; what is named in the statement itself stays."""
    folded = {name.casefold(): name for name in domain.names}
    if not any("." in name for name in folded):
        return tree
    aliases = {alias.alias.casefold() for alias in tree.find_all(exp.Alias)}
    for column in tree.find_all(exp.Column):
        if not isinstance(column.this, exp.Identifier) or column.args.get("db"):
            continue
        name = column.name.casefold()
        full = folded.get(f"{column.table}.{name}".casefold())
        meant = [] if full is None else [full]
        if not column.table and name not in folded and name not in aliases:
            meant = [full for each, full in folded.items() if each.partition(".")[2] == name]
            if len(meant) > 1:
                raise UnknownColumn(f"{column.name!r} could be {' or '.join(meant)}.", fixes=tuple(meant))
        if meant:
            column.set("this", exp.to_identifier(meant[0], quoted=True))
            column.set("table", None)
    return tree


def number_from(typed: str) -> int | float | Decimal:
    """A number as it was typed: a float where its decimal text says the same."""
    digits = typed.replace("_", "")
    try:
        exact = Decimal(digits)
    except InvalidOperation:
        raise InvalidQuestion(f"{typed[:40]!r} is not a number.", fixes=("50000", "0.5")) from None
    if not exact.is_finite() or (exact and abs(exact.adjusted()) > _LARGEST_EXPONENT):
        raise InvalidQuestion(f"{typed[:40]!r} is not a number of a size that can be used.")
    if digits.isdecimal():
        return int(digits)
    nearest = float(exact)
    return nearest if Decimal(repr(nearest)) == exact else exact


# --- writing ------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def name_text(name: str) -> str:
    """A column's name, in double quotes where it could be read as something else."""
    table, dot, column = name.partition(".")
    if dot and not any(part.startswith('"') for part in (name_text(table), name_text(column))):
        return name
    if name.isascii() and name.isidentifier() and name.upper() not in Parser.NO_PAREN_FUNCTION_PARSERS:
        tokens = sqlglot.tokenize(name)
        if len(tokens) == 1 and tokens[0].token_type == TokenType.VAR:
            return name
    return quoted_name(name)


def quoted_name(name: str) -> str:
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(value: str) -> str:
    """A text in single quotes."""
    return "'" + value.replace("'", "''") + "'"


def number_text(value: object) -> str | None:
    """A number so that it reads back; None if it is not one."""
    if isinstance(value, Fraction):
        return text(value)
    return str(value) if isinstance(value, int | float | Decimal) else None


def sql_value(value: object) -> str:
    """A constant as SQL."""
    plain_value: Any = plain(value)
    if isinstance(plain_value, bool):
        return "TRUE" if plain_value else "FALSE"
    if isinstance(plain_value, str):
        return quoted_text(plain_value)
    if isinstance(plain_value, datetime):
        return f"TIMESTAMP '{plain_value.isoformat(sep=' ')}'"
    if isinstance(plain_value, date):
        return f"DATE '{plain_value.isoformat()}'"
    number = number_text(plain_value)
    if number is None:
        raise InvalidInput(f"A {type(value).__name__} cannot be written in SQL.")
    return number


def duration(amount: int | float | Decimal | Fraction, unit: str) -> timedelta | None:
    """``7 days`` as a length of time; None if there is no such unit."""
    seconds = UNITS.get(unit.casefold().removesuffix("s"))
    if seconds is None:
        return None
    microseconds = Fraction(str(amount)) * seconds * 10**6
    try:
        return timedelta(microseconds=int(microseconds))
    except OverflowError:
        raise InvalidQuestion(f"{amount} {unit} is longer than any column of dates.") from None


def duration_text(length: timedelta) -> str:
    """A length of time in the longest unit that divides it."""
    micro = length // timedelta.resolution
    unit, seconds = next(((u, s) for u, s in UNITS.items() if micro % (s * 10**6) == 0), ("second", 1))
    amount = Fraction(micro, seconds * 10**6)
    return f"{text(amount)} {unit}{'' if amount == 1 else 's'}"
