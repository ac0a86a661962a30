"""What a condition may compute from one column: no row is looked at for it.

``hours * 52 > 2000`` is a comparison of ``hours`` with another number, and ``UPPER(region) LIKE 'N%'`` a list
of declared values. A division of whole numbers is not computed: databases do not agree on what it is.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, final

from sqlglot import exp

from blowfishdb.core.domain.attributes import Category, Integer, Real
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.language.text import number_from

_WHOLE: Final = {exp.DataType.Type.INT, exp.DataType.Type.BIGINT}
_NUMBERS: Final = {
    *_WHOLE,
    exp.DataType.Type.DOUBLE,
    exp.DataType.Type.FLOAT,
    exp.DataType.Type.DECIMAL,
}
_TEXTS: Final = {exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR}
_LONGEST_PATTERN: Final = 200
_MOST_REPEATED: Final = 3


def bare(node: exp.Expr, domain: Domain) -> exp.Expr:
    """The node without parentheses, and without a cast or a COALESCE that changes nothing and cannot fail."""
    while (
        isinstance(node, exp.Paren)
        or (isinstance(node, exp.Cast) and _idle(node, domain))
        or (isinstance(node, exp.Coalesce) and never_needed(node, domain))
    ):
        node = node.this
    return node


def never_needed(node: exp.Coalesce, domain: Domain) -> bool:
    """Whether a COALESCE is its column, which is declared to have no missing values."""
    column, constants = node.this, node.expressions
    named = isinstance(column, exp.Column) and column.name in domain and domain[column.name].missing == "none"
    return named and bool(constants) and all(isinstance(each, exp.Literal | exp.Neg) for each in constants)


def _idle(cast: exp.Cast, domain: Domain) -> bool:
    named = isinstance(cast.this, exp.Column) and cast.this.name in domain
    column = domain[cast.this.name] if named else None
    kind, plain = cast.to.this, not cast.to.expressions
    match column:
        case Integer():
            return plain and kind in _NUMBERS
        case Real():
            return plain and kind == exp.DataType.Type.DOUBLE
        case Category():
            return plain and kind in _TEXTS
        case Date():
            return plain and kind == exp.DataType.Type.DATE and column.ticks == column.value_count
    return False


@final
@dataclass(frozen=True)
class Linear:
    """``times``·column + ``plus``; a number where there is no column."""

    times: Fraction
    plus: Fraction
    column: exp.Column | None = None

    @classmethod
    def of(cls, node: exp.Expr) -> Linear | None:
        """What a sum or a multiple of one column is; None for anything else."""
        match node:
            case exp.Paren():
                return cls.of(node.this)
            case exp.Column():
                return cls(Fraction(1), Fraction(0), node)
            case exp.Literal() if not node.is_string:
                return cls(Fraction(0), Fraction(str(number_from(node.this))))
            case exp.Neg():
                inner = cls.of(node.this)
                return None if inner is None else inner._scaled(Fraction(-1))
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                left, right = cls.of(node.this), cls.of(node.expression)
                return None if left is None or right is None else left._with(right, node)
        return None

    def _scaled(self, factor: Fraction) -> Linear:
        return Linear(self.times * factor, self.plus * factor, self.column)

    def _with(self, other: Linear, node: exp.Expr) -> Linear | None:
        match node:
            case exp.Add() | exp.Sub():
                if self.column is not None and other.column is not None:
                    return None
                more = other if isinstance(node, exp.Add) else other._scaled(Fraction(-1))
                column = self.column or other.column
                return Linear(self.times + more.times, self.plus + more.plus, column)
            case exp.Mul():
                if self.column is None:
                    return other._scaled(self.plus)
                return self._scaled(other.plus) if other.column is None else None
            case exp.Div():
                exact = isinstance(node.expression, exp.Literal) and "." in str(node.expression.this)
                known = other.column is None and other.plus and (exact or self.column is None)
                return self._scaled(1 / other.plus) if known else None
        return None


def like(pattern: str, *, folded: bool, escape: str = "") -> re.Pattern[str] | None:
    """What a LIKE matches: % for any text, _ for any letter; None where there are too many of them.

    Behind ``escape`` a letter is itself.
    """
    if len(pattern) > _LONGEST_PATTERN or pattern.count("%") > 4 or len(escape) > 1:
        return None
    if "\\" in pattern and escape != "\\":
        return None  # databases do not agree on whether it says that the next letter is meant itself
    written, letters = "", iter(pattern)
    for letter in letters:
        if letter == escape:
            following = next(letters, None)
            if following is None:
                return None
            written += re.escape(following)
        else:
            written += {"%": ".*", "_": "."}.get(letter, re.escape(letter))
    return re.compile(written, re.DOTALL | (re.IGNORECASE if folded else 0))


def pattern(typed: str, *, folded: bool) -> re.Pattern[str] | None:
    """A pattern that databases read alike, and that is quickly matched; None for any other.

    Letters, ``.``, ``[…]``, ``(…|…)``, ``^``, ``$`` and a few repetitions of single letters; no backslash but
    before a mark.
    """
    if len(typed) > _LONGEST_PATTERN or re.search(r"\\\w|\(\?|\[[.:=]|\[\[|&&|--|~~|\d{3,}[,}]", typed):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            made = re.compile(typed, re.DOTALL | (re.IGNORECASE if folded else 0))
    except (re.error, FutureWarning, RecursionError, OverflowError):
        return None
    marks = re.sub(r"\\.|\[\^?\]?[^]]*\]", "x", typed)
    slow = re.search(r"\)[*+{]|[*+?}][*+?{]", marks) is not None  # what repeats repetitions takes for ever
    return None if slow or len(re.findall(r"[*+{]", marks)) > _MOST_REPEATED else made


def similar(typed: str) -> re.Pattern[str] | None:
    """What SIMILAR TO matches: a pattern of the whole text, with % and _."""
    if re.search(r"[\\.^$]", typed) or typed.count("%") > _MOST_REPEATED:
        return None
    inside = pattern(typed.replace("%", "").replace("_", "x"), folded=False)
    if inside is None or re.search(r"\[[^]]*[%_]", typed):
        return None
    return re.compile(typed.replace("%", ".*").replace("_", "."), re.DOTALL)


def matches(node: exp.Expr, typed: str) -> list[Callable[[str], bool]]:
    """Every way in which a database may read a pattern; none where it is not read here."""
    if isinstance(node, exp.SimilarTo):
        whole = similar(typed)
        return [] if whole is None else [lambda text: whole.fullmatch(text) is not None]
    exactly, folded = pattern(typed, folded=False), pattern(typed, folded=True)
    if exactly is None or folded is None:
        return []
    full = [lambda text: exactly.fullmatch(text) is not None, lambda text: folded.fullmatch(text) is not None]
    part = [lambda text: exactly.search(text) is not None, lambda text: folded.search(text) is not None]
    match node:
        case exp.RegexpFullMatch():
            return full[:1]
        case exp.Anonymous():
            return part[:1]
        case exp.RegexpILike():
            return [part[1], full[1]]
    return [*part, *full]


def spelt_out(tree: exp.Expr) -> exp.Expr:
    """``YEAR(day) IN (2020, 2021)`` and BETWEEN as comparisons, wherever in a condition they stand."""
    if not any(_of_a_column(node) for node in tree.find_all(exp.In, exp.Between)):
        return tree
    whole = exp.Paren(this=tree.copy())
    for node in list(whole.find_all(exp.In, exp.Between)):
        left, listed = node.this, node.args.get("expressions")
        if not _of_a_column(node) or node.args.get("symmetric"):
            continue
        if isinstance(node, exp.Between):
            low, high = (node.args[name].copy() for name in ("low", "high"))
            both = (exp.GTE(this=left.copy(), expression=low), exp.LTE(this=left.copy(), expression=high))
            node.replace(exp.paren(exp.and_(*both)))
        elif listed:
            same = [exp.EQ(this=left.copy(), expression=each.copy()) for each in listed]
            node.replace(exp.paren(exp.or_(*same)))
    return whole


def _of_a_column(node: exp.Expr) -> bool:
    """Whether what is looked for is computed from a column."""
    left = node.this.unnest()
    return not isinstance(left, exp.Column | exp.Cast | exp.Literal) and left.find(exp.Column) is not None


def number_in(text: str) -> int | float | Decimal | None:
    """The number that a text is; None if it is none."""
    try:
        return number_from(text.strip())
    except InvalidInput:
        return None
