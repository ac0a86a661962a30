"""How answers are shown, as people type it: ``HAVING``, ``ORDER BY``, ``LIMIT``, and computed numbers.

Whatever stands there is read to an arrangement of what is released, and written again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, final

import numpy as np
from sqlglot import Token, TokenType, exp

from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, InvalidQuestion
from blowfishdb.core.questions.aggregates import Measure
from blowfishdb.core.questions.arrangement import Compared, Having, Joined, OrderKey
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.core.questions.numbers import Computed, Constant, Number, Rounded, Told, Total
from blowfishdb.language.text import (
    column_name,
    name_text,
    number_from,
    number_text,
    quoted_name,
    shown,
    sql_tokens,
    sql_tree,
    with_full_names,
)

SIGNS: Final[dict[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_COMPARES: Final[dict[type[exp.Expr], str]] = {
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "=",
    exp.NEQ: "<>",
}
_CLAUSES: Final = (TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET)
_TAILS: Final = (TokenType.SHOW, *_CLAUSES)
_ACROSS: Final = "across"
_MOST: Final = 10**9

Meant = Callable[[exp.Expr], exp.Expr]
"""What an alias or a position stands for."""


@final
@dataclass(frozen=True)
class NumberReader:
    """Reads numbers that are computed from released ones; ``told`` says what an aggregate stands for."""

    told: Callable[[exp.Expr], Number | None]
    meant: Meant = lambda node: node

    def number(self, typed: exp.Expr) -> Number | None:
        """The number; None for what is none."""
        node = self.meant(typed)
        told = self.told(node)
        if told is not None:
            return told
        match node:
            case exp.Paren():
                return self.number(node.this)
            case exp.Literal() if not node.is_string:
                return Constant(Fraction(str(number_from(node.this))))
            case exp.Neg():
                inner = self.number(node.this)
                return None if inner is None else Computed("-", Constant(Fraction(0)), inner)
            case exp.Window() | exp.Anonymous():
                return self._total(node)
            case exp.Round():
                return self._rounded(node)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                left, right = self.number(node.this), self._divisor(node)
                if left is None or right is None:
                    return None
                return Computed(SIGNS[type(node)], left, right)
            case exp.Cast():
                return self._cast(node)
        return None

    def _cast(self, node: exp.Cast) -> Number | None:
        """A number of another type: rounded where that has no digits, or so many."""
        inner, kind, said = self.number(node.this), node.to.this, node.to.expressions
        if inner is None or kind not in (*_EXACT, *_WHOLE):
            return None
        if kind in _WHOLE or (len(said) == 1 and kind == exp.DataType.Type.DECIMAL):
            return Rounded(inner)
        if not said:
            return inner
        places = said[-1].this
        return Rounded(inner, int(str(places.this))) if isinstance(places, exp.Literal) else None

    def _divisor(self, node: exp.Expr) -> Number | None:
        """``NULLIF(x, 0)`` is x: what is divided by zero is not told anyway."""
        right = node.expression
        if isinstance(node, exp.Div) and isinstance(right, exp.Nullif) and right.expression == _ZERO:
            right = right.this
        return self.number(right)

    def _total(self, node: exp.Expr) -> Number | None:
        """``SUM(COUNT(*)) OVER ()``, ``total(count())``."""
        inner = None
        if isinstance(node, exp.Window) and isinstance(node.this, exp.Sum):
            extra = [name for name, value in node.args.items() if value and name not in ("this", "over")]
            inner = None if extra else node.this.this
        elif isinstance(node, exp.Anonymous) and str(node.this).casefold() == "total":
            inner = node.expressions[0] if len(node.expressions) == 1 else None
        told = None if inner is None else self.told(inner)
        return Total(told.index) if isinstance(told, Told) else None

    def _rounded(self, node: exp.Round) -> Number | None:
        inner, digits = self.number(node.this), node.args.get("decimals")
        if inner is None or any(node.args.get(name) for name in ("truncate", "casts_non_integer_decimals")):
            return None
        if digits is None:
            return Rounded(inner)
        places = NumberReader(lambda _: None).number(digits)
        if places is None:
            return None
        value = places.quotient().above.fixed
        return None if value is None or value.denominator != 1 else Rounded(inner, int(value))

    def having(self, node: exp.Expr) -> Having | None:
        """A condition on numbers; None for what is none."""
        match node:
            case exp.Paren():
                return self.having(node.this)
            case exp.And() | exp.Or():
                both = self.having(node.this), self.having(node.expression)
                if both[0] is None or both[1] is None:
                    return None
                return Joined("and" if isinstance(node, exp.And) else "or", (both[0], both[1]))
            case exp.Not():
                inner = self.having(node.this)
                return None if inner is None else Joined("not", (inner,))
            case exp.Between() if not node.args.get("symmetric"):
                middle, low, high = (self.number(node.args[name]) for name in ("this", "low", "high"))
                if middle is None or low is None or high is None:
                    return None
                return Joined("and", (Compared(">=", middle, low), Compared("<=", middle, high)))
        sign = _COMPARES.get(type(node))
        if sign is None:
            return None
        left, right = self.number(node.this), self.number(node.expression)
        return None if left is None or right is None else Compared(sign, left, right)


_ZERO: Final = exp.Literal.number(0)
_EXACT: Final = {exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT, exp.DataType.Type.DECIMAL}


_WHOLE: Final = {exp.DataType.Type.INT, exp.DataType.Type.BIGINT, exp.DataType.Type.SMALLINT}


def how_many(limit: exp.Expr | None, offset: exp.Expr | None) -> tuple[int | None, int] | None:
    """LIMIT or FETCH FIRST, and OFFSET; None where they say something else."""
    most: int | None = None
    if isinstance(limit, exp.Limit):
        if limit.expressions or limit.args.get("limit_options"):
            return None
        most = _whole(limit.expression)
    elif isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        ties = options is not None and (options.args.get("percent") or options.args.get("with_ties"))
        most = None if ties else _whole(limit.args.get("count"))
    if limit is not None and most is None:
        return None
    skipped = 0 if offset is None else _whole(offset.expression)
    return None if skipped is None else (most, skipped)


def _whole(node: exp.Expr | None) -> int | None:
    number = number_from(node.this) if isinstance(node, exp.Literal) and not node.is_string else None
    return min(number, _MOST) if isinstance(number, int) else None


# --- the short form ---------------------------------------------------------------------------------

_MEASURES: Final = {"mean": "mean", "avg": "mean"}


def tail_of(text: str) -> tuple[str, str]:
    """A text in two: before ``show``, ``having``, ``order by``, ``limit`` or ``offset``, and from there."""
    return _parted(text, _TAILS)


def _parted(text: str, words: tuple[TokenType, ...]) -> tuple[str, str]:
    depth, tokens = 0, sql_tokens(text)
    for at, token in enumerate(tokens):
        depth += token.text in ("(", "[", "{")
        depth -= token.text in (")", "]", "}")
        if depth == 0 and (token.token_type in words or (words is _TAILS and _begins_across(tokens, at))):
            return text[: token.start], text[token.start :]
    return text, ""


def _begins_across(tokens: Sequence[Token], at: int) -> bool:
    """Whether ``across`` is no column of that name: behind a question, and before a column."""
    before, after = tokens[max(at - 1, 0)].text.casefold(), tokens[at + 1 : at + 2]
    named = bool(after) and (after[0].text[:1].isalpha() or after[0].token_type == TokenType.IDENTIFIER)
    comes = at > 0 and before not in ("by", ",", "where", "and", "or", "not")
    begins = tokens[at].text.casefold() == _ACROSS and comes and named
    return begins and after[0].text.casefold() not in _COMPARING


_COMPARING: Final = ("in", "between", "is", "and", "or", "not", "like", "ilike", "where", "for", "similar")
"""Words that come behind a column of a condition, or of groups."""


def read_tail(typed: str, form: QuestionForm, domain: Domain) -> QuestionForm:
    """``across sex show mean(pay)[1] as m having count()[1] > 9 order by m desc limit 3``."""
    if not typed.strip():
        return form
    example = "order by count() desc limit 3"
    word, _, behind = typed.strip().partition(" ")
    if word.casefold() == _ACROSS:
        listed, rest = _parted(behind, _TAILS)
        tree = sql_tree(f"SELECT {listed} FROM t", None, "across region")  # noqa: S608 - parsed, never run
        columns = with_full_names(tree, domain).expressions
        if not all(isinstance(each, exp.Column) for each in columns):
            raise InvalidQuestion("Groups stand beside each other by columns.", fixes=("across region",))
        quoted = [bool(each.this.args.get("quoted")) for each in columns]
        across = tuple(
            column_name(each.name, domain, quoted=how) for each, how in zip(columns, quoted, strict=True)
        )
        form = replace(form, arrangement=replace(form.arrangement, across=across))
        return read_tail(rest, form, domain)
    word, _, behind = typed.strip().partition(" ")
    shows = word.casefold() == "show"
    listed, rest = _parted(behind, _CLAUSES) if shows else ("1", typed)
    tree = sql_tree(f"SELECT {listed} FROM t {rest}", None, example)  # noqa: S608 - parsed, never run
    tree = with_full_names(tree, domain)
    known = {"expressions", "from_", "having", "order", "limit", "offset"}
    if not isinstance(tree, exp.Select) or any(v for name, v in tree.args.items() if name not in known):
        raise InvalidQuestion(
            "Behind a question comes show, having, order by, limit and offset.", fixes=(example,)
        )
    having, order, limit, offset = (tree.args.get(name) for name in ("having", "order", "limit", "offset"))
    arrangement = form.arrangement
    if shows:
        reader = _reader(form, domain)
        show = tuple(
            (each.alias or shown(each), _read(reader, each.unalias(), form)) for each in tree.expressions
        )
        arrangement = replace(arrangement, show=show)
    reader = _reader(form, domain, dict(arrangement.show))
    if having is not None:
        chosen = reader.having(having.this)
        if chosen is None:
            raise InvalidQuestion(
                f"{shown(having.this)}: groups are chosen by released numbers.",
                fixes=(f"{released_text(form, 0)} > 100",),
            )
        arrangement = replace(arrangement, having=chosen)
    if order is not None:
        keys = tuple(_order_key(each, form, domain, reader) for each in order.expressions)
        arrangement = replace(arrangement, order=keys)
    numbers = how_many(limit, offset)
    if numbers is None:
        raise InvalidQuestion("limit and offset are whole numbers.", fixes=(example,))
    if limit is not None or offset is not None:
        arrangement = replace(arrangement, limit=numbers[0], offset=numbers[1])
    return replace(form, arrangement=arrangement)


def _read(reader: NumberReader, node: exp.Expr, form: QuestionForm) -> Number:
    number = reader.number(node)
    if number is None:
        raise InvalidQuestion(
            f"{shown(node)} is not computed from released numbers.", fixes=(released_text(form, 0),)
        )
    return number


def _order_key(node: exp.Expr, form: QuestionForm, domain: Domain, reader: NumberReader) -> OrderKey:
    by: str | Number | None = reader.number(node.this)
    if by is None and isinstance(node.this, exp.Column) and isinstance(node.this.this, exp.Identifier):
        quoted = bool(node.this.this.args.get("quoted"))
        by = column_name(node.this.name, domain, quoted=quoted)
    return order_key(node, _read(reader, node.this, form) if by is None else by)


def order_key(node: exp.Expr, by: str | Number, names: tuple[str, ...] = ()) -> OrderKey:
    """``… DESC NULLS FIRST``; what is missing is last, unless it is said to be first."""
    return OrderKey(by, bool(node.args.get("desc")), names, bool(node.args.get("nulls_first")))


def _reader(form: QuestionForm, domain: Domain, named: Mapping[str, Number] | None = None) -> NumberReader:
    """Reads what is computed from the numbers of a question; some may have names of their own."""
    measures = released_measures(form)
    names: dict[str, Number] = {name: Told(at) for at, (name, _) in enumerate(form.conditions)} | dict(
        named or {}
    )

    across = [column for column in form.grouped if column.name in form.arrangement.across]
    order = form.arrangement.across
    labels = [c.axis(domain).labels() for c in sorted(across, key=lambda column: order.index(column.name))]

    def told(node: exp.Expr) -> Number | None:
        if isinstance(node, exp.Bracket) and across:
            of = one(node.this)
            if of is None:
                return None
            assert isinstance(of, Told)
            return Told(_group(node, labels) * form.released + of.index)
        number = one(node)
        if across and isinstance(number, Told) and number not in [*(named or {}).values()]:
            fix = f"{released_names(form)[number.index]}[1]"
            raise InvalidQuestion(f"{shown(node)}: say of which group, in brackets.", fixes=(fix,))
        return number

    def one(node: exp.Expr) -> Number | None:
        if isinstance(node, exp.Column) and not node.table:
            return names.get(node.name)
        if form.kind == "quantiles":
            return _short_quantile(node, form, domain)
        measure = None if form.conditions else _short_measure(node, domain)
        if measure is None:
            return None
        if measure not in measures:
            raise InvalidQuestion(
                f"{shown(node)} is not asked for.", fixes=tuple(map(short_measure_text, measures))
            )
        return Told(measures.index(measure))

    return NumberReader(told)


def _group(node: exp.Bracket, labels: Sequence[Sequence[str]]) -> int:
    """Which of the groups beside each other is meant: ``[1]`` the first, ``['F']``, ``['F', 'north']``."""
    said = node.expressions
    if len(said) == 1 and isinstance(said[0], exp.Literal) and not said[0].is_string:
        place = number_from(said[0].this)
        if isinstance(place, int) and 1 <= place <= math.prod(map(len, labels)):
            return place - 1
    texts = [str(each.this) for each in said if isinstance(each, exp.Literal) and each.is_string]
    matched = [_label(text, each) for text, each in zip(texts, labels, strict=False)]
    places = [place for place in matched if place is not None]
    if not len(places) == len(labels) == len(said):
        fixes = tuple(", ".join(f"'{each[at]}'" for each in labels) for at in range(min(map(len, labels))))
        raise InvalidQuestion(f"{shown(node)}: there is no such group.", fixes=("1", *fixes[:3]))
    return int(np.ravel_multi_index(tuple(places), tuple(map(len, labels))))


def _label(text: str, labels: Sequence[str]) -> int | None:
    """Where a label is, as it is written, or in whatever letter case if that is the only one."""
    alike = [at for at, label in enumerate(labels) if label.casefold() == text.casefold()]
    exact = [at for at in alike if labels[at] == text]
    return next(iter(exact or (alike if len(alike) == 1 else [])), None)


def _short_quantile(node: exp.Expr, form: QuestionForm, domain: Domain) -> Told | None:
    """``median(salary)``, ``quantile(salary, 0.9)``, of those that are asked for."""
    share = node.args.get("quantile") if isinstance(node, exp.Quantile) else None
    if not isinstance(node, exp.Median | exp.Quantile) or not isinstance(node.this, exp.Column):
        return None
    quoted = bool(node.this.this.args.get("quoted"))
    wanted = 0.5 if share is None else float(number_from(share.this))
    name = column_name(node.this.name, domain, quoted=quoted)
    if name != form.columns[0].name or wanted not in form.shares:
        raise InvalidQuestion(f"{shown(node)} is not asked for.", fixes=tuple(released_names(form)))
    return Told(form.shares.index(wanted))


def released_measures(form: QuestionForm) -> tuple[Measure, ...]:
    """What is released of every group."""
    if form.measures:
        return form.measures
    if form.kind in ("sum", "mean"):
        return (Measure(form.kind, form.columns[0].name),)
    named = form.columns[0].name if form.kind == "count" and form.columns else None
    return (Measure("count", named),)


def _short_measure(node: exp.Expr, domain: Domain) -> Measure | None:
    """``mean(salary)``, ``count()``, also as SQL writes them."""
    match node:
        case exp.Count() if node.this is None or isinstance(node.this, exp.Star | exp.Literal):
            return Measure("count")
        case exp.Anonymous() if len(node.expressions) == 1:
            of, inner = _MEASURES.get(str(node.this).casefold()), node.expressions[0]
        case exp.Count() | exp.Sum() | exp.Avg() | exp.Variance() | exp.Stddev():
            of, inner = "mean" if isinstance(node, exp.Avg) else node.key, node.this
        case _:
            return None
    if of is None or not isinstance(inner, exp.Column) or not isinstance(inner.this, exp.Identifier):
        return None
    quoted = bool(inner.this.args.get("quoted"))
    return Measure(of, column_name(inner.name, domain, quoted=quoted))


# --- and back ---------------------------------------------------------------------------------------


def short_measure_text(measure: Measure) -> str:
    """An aggregate in the short form."""
    return f"{measure.of}({'' if measure.column is None else name_text(measure.column)})"


def released_text(form: QuestionForm, index: int) -> str:
    """A released number in the short form."""
    return released_names(form)[index]


def released_names(form: QuestionForm) -> list[str]:
    """All of them: aggregates, quantiles, or conditions by their names."""
    if form.kind == "quantiles":
        return [quantile_text(form.columns[0].name, share) for share in form.shares]
    named = [quoted_name(name) for name, _ in form.conditions]
    return named or [short_measure_text(each) for each in released_measures(form)]


def quantile_text(column: str, share: float) -> str:
    """A quantile in the short form."""
    return f"median({name_text(column)})" if share == 0.5 else f"quantile({name_text(column)}, {share!r})"


def tail_text(form: QuestionForm) -> str:
    """The arrangement in the short form, with a space before it; nothing where there is none."""
    arrangement, names = form.arrangement, released_names(form)
    parts = []
    if arrangement.across:
        parts.append(f"across {', '.join(map(name_text, arrangement.across))}")
        most = max((told for number in arrangement.numbers for told in number.told), default=-1) + 1
        names = [f"{names[at % len(names)]}[{at // len(names) + 1}]" for at in range(most)]
    if arrangement.show:
        numbers = (f"{number_words(each, names)} as {quoted_name(name)}" for name, each in arrangement.show)
        parts.append(f"show {', '.join(numbers)}")
    if arrangement.having is not None:
        parts.append(f"having {having_text(arrangement.having, names)}")
    if arrangement.order:
        keys = ", ".join(
            (name_text(key.by) if isinstance(key.by, str) else number_words(key.by, names))
            + (" desc" if key.descending else "")
            + (" nulls first" if key.missing_first else "")
            for key in arrangement.order
        )
        parts.append(f"order by {keys}")
    if arrangement.limit is not None:
        parts.append(f"limit {arrangement.limit}")
    if arrangement.offset:
        parts.append(f"offset {arrangement.offset}")
    return "".join(f" {part}" for part in parts)


def having_text(having: Having, names: Sequence[str]) -> str:
    """A condition on groups, by the words for released numbers."""
    if isinstance(having, Compared):
        return f"{number_words(having.left, names)} {having.sign} {number_words(having.right, names)}"
    assert isinstance(having, Joined)
    parts = [f"({having_text(part, names)})" for part in having.parts]
    return f"not {parts[0]}" if having.word == "not" else f" {having.word} ".join(parts)


def number_words(number: Number, names: Sequence[str]) -> str:
    """A number, by the words for released ones."""
    match number:
        case Told(index):
            return names[index]
        case Total(index):
            return f"total({names[index]})"
        case Constant(value):
            written = str(number_text(int(value) if value.denominator == 1 else value))
            return f"({written})" if "/" in written or value < 0 else written
        case Rounded(inner, digits):
            return f"round({number_words(inner, names)}, {digits})"
        case Computed(sign, left, right):
            parts = (
                f"({number_words(part, names)})" if isinstance(part, Computed) else number_words(part, names)
                for part in (left, right)
            )
            return f" {sign} ".join(parts)
    raise InvalidInput("This number cannot be written.")
