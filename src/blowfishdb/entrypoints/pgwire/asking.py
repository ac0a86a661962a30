"""A SELECT about a dataset as a private question: on which terms, for how much, and what is said with it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Final, final

from blowfishdb.adapters.tokens import Role
from blowfishdb.adapters.wire_passwords import WirePasswords
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.errors import (
    BlowfishError,
    BudgetExhausted,
    MaxCostExceeded,
    NoGuarantee,
    NotCounted,
    UnknownDataset,
    UnsupportedSql,
)
from blowfishdb.entrypoints.pgwire import types
from blowfishdb.entrypoints.pgwire.defaults import caps, of_account, of_dataset
from blowfishdb.entrypoints.pgwire.errors import NOT_ALLOWED, NOT_SUPPORTED, Refusal, hint_of, notice
from blowfishdb.entrypoints.pgwire.hints import advised, for_statements
from blowfishdb.entrypoints.pgwire.results import Column, Table, columns_for, rows_of
from blowfishdb.entrypoints.pgwire.settings import Settings
from blowfishdb.entrypoints.pgwire.spending import Purse, limit_words, not_allowed
from blowfishdb.entrypoints.pgwire.stated import check_says_something, stated
from blowfishdb.entrypoints.pgwire.statements import without_max_cost
from blowfishdb.entrypoints.server.access import Caller
from blowfishdb.language.select import SqlQuestion, dataset_of
from blowfishdb.language.selected import Selected
from blowfishdb.language.text import name_text
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.questions import Terms
from blowfishdb.show.words import loss, moment
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset

_ROWS_SHOWN: Final = ("rows are never shown", "would show the rows")
_PLAN: Final = "QUERY PLAN"
_WIDTH: Final = 100


@final
@dataclass(frozen=True, eq=False)
class Question:
    """A SELECT as it was read: of which dataset, what it selects, and what it allows to be spent."""

    dataset: Dataset
    parsed: SqlQuestion
    selected: tuple[Selected, ...]
    allowed: str | None

    def columns(self, *, intervals: bool) -> tuple[Column, ...]:
        """What its result looks like, before anything is asked."""
        return columns_for(self.selected, intervals=intervals)


@final
@dataclass(frozen=True, eq=False)
class Asker:
    """Asks questions in the name of whoever is connected."""

    caller: Caller
    passwords: WirePasswords
    settings: Settings
    purse: Purse

    # --- reading --------------------------------------------------------------------------------

    def read(self, text: str) -> Question:
        """The question that a SELECT stands for; nothing is read or spent."""
        statement, allowed = without_max_cost(text)
        self.caller.account.check_role(Role.ANALYST, Role.CURATOR)
        dataset = self.dataset(dataset_of(statement))
        try:
            parsed = dataset.select(statement)
            return Question(dataset, parsed, parsed.columns, allowed)
        except UnsupportedSql as error:
            rows = any(words in error.message.casefold() for words in _ROWS_SHOWN)
            code = NOT_ALLOWED if rows else NOT_SUPPORTED
            detail = (
                "Nothing was charged. Every answer is a count or an aggregate with noise." if rows else ""
            )
            raise Refusal(code, error.message, hint=hint_of(error.fixes), detail=detail) from None

    def dataset(self, typed: str) -> Dataset:
        """The dataset that a name means: as written, in other letter case, or with its schema."""
        known = self.caller.gateway.counted()
        same = [typed] if typed in known else _meant(typed.casefold(), known)
        if len(same) != 1:
            near = get_close_matches(typed.casefold(), [name.casefold() for name in known], n=1, cutoff=0.5)
            meant = next((name for name in known if near and name.casefold() == near[0]), None)
            named = () if meant is None else (f"SELECT COUNT(*) FROM {name_text(meant)}",)  # noqa: S608
            fixes = (*named, "\\d, which lists them")
            raise UnknownDataset(
                f'relation "{typed[:60]}" does not exist: there is no such dataset.', fixes=fixes
            )
        return self.caller.gateway[same[0]]

    def usual(self, dataset: str) -> dict[str, str]:
        """What questions about a dataset begin with."""
        return self.passwords.defaults(of_dataset(dataset))

    @property
    def intervals(self) -> bool:
        """Whether noise intervals are columns."""
        return self.settings.ours("intervals", {}) == "on"

    def terms(self, question: Question) -> Terms | None:
        """What the statement says, or else what the settings say; None if neither does."""
        parsed, usual = question.parsed, self.usual(question.dataset.name)
        if parsed.accuracy is not None or parsed.epsilon is not None:
            return Terms(parsed.accuracy, parsed.epsilon)
        error, epsilon = self.settings.ours("error", usual), self.settings.ours("epsilon", usual)
        if epsilon and (not error or self.settings.nearer("epsilon", "error")):
            return Terms(epsilon=positive(epsilon))
        if not error:
            return None
        beta = 1 - float(self.settings.ours("confidence", usual))
        each = self.settings.ours("each", usual) == "on"
        return Terms(
            Accuracy(
                stated(error, question.parsed.form, question.dataset), round(beta, 12), simultaneous=not each
            )
        )

    # --- asking ---------------------------------------------------------------------------------

    def ask(self, question: Question, cancel: Cancellation) -> Table:
        """The answer as rows, with what it cost beside it; refused if nothing allows what it costs."""
        terms = self.terms(question)
        usual = self.usual(question.dataset.name)
        with self.caller.server.underway.question(cancel), advised(terms):
            if terms is None:
                answer, spent = self._for_nothing(question, cancel), Epsilon(0)
            else:
                answer, spent = self._answered(question, terms, usual, cancel)
        form, domain = question.parsed.form, question.dataset.schema
        rows = rows_of(answer, question.selected, form, domain, intervals=self.intervals)
        columns = question.columns(intervals=self.intervals)
        said = self._said(answer, spent, question.dataset.name)
        return Table(columns, rows, notices=(said,), cost=spent.nano)

    def asking(self, question: Question) -> Asking:
        """The question on its terms."""
        terms = self.terms(question)
        if terms is None:
            raise _unsaid()
        return replace(question.dataset.question(question.parsed.form), terms=terms)

    def _for_nothing(self, question: Question, cancel: Cancellation) -> Answer:
        """What is exact and free needs no terms: how many rows there are, say, where that is public."""
        asking = question.dataset.question(question.parsed.form).spend(1)
        try:
            if not asking.quote(more=False, cancel=cancel).most:
                answer = asking.ask(max_cost=0, cancel=cancel)
                if bool(answer.exact.all()):
                    return answer
        except (MaxCostExceeded, NotCounted):
            pass
        raise _unsaid()

    def _answered(
        self, question: Question, terms: Terms, usual: dict[str, str], cancel: Cancellation
    ) -> tuple[Answer, Epsilon]:
        asking = replace(question.dataset.question(question.parsed.form), terms=terms)
        allowed = self.purse.allowed(question.allowed, usual)
        try:
            return asking.ask(max_cost=0, cancel=cancel), Epsilon(0)
        except (MaxCostExceeded, NoGuarantee) as error:
            if question.parsed.accuracy is None and terms.accuracy is not None:
                check_says_something(terms.accuracy.alpha, question.parsed.form, question.dataset.schema)
            if isinstance(error, NoGuarantee):
                raise
            price = Epsilon(error.cost or "0")
        left = self.caller.gateway.left(asking.dataset)
        if price > left:
            raise self._exhausted(asking, price, left)
        if allowed is None or price > allowed:
            raise not_allowed(price, allowed)
        account = caps(self.passwords, of_account(self.caller.account.user))  # as they are by now
        self.purse.hold(price, [*account, *filter(None, [usual.get("daily_cap")])])
        spent = Epsilon(0)
        try:
            answer = asking.ask(max_cost=price, cancel=cancel)
            spent = answer.receipt.debit
        except BaseException as error:
            refused = isinstance(error, BlowfishError) and not error.charged
            spent = Epsilon(0) if refused else price  # what nobody foresaw may have come after the charge
            raise
        finally:
            self.purse.give_back(price - min(spent, price))
        return answer, spent

    def _exhausted(self, asking: Asking, price: Epsilon, left: Epsilon) -> BudgetExhausted:
        fits = tuple(
            fit.words if fit.error is None else f"the statement WITH ERROR {fit.error:g}"
            for fit in asking.quote().fits
        )
        fits = for_statements(fits, None)
        return BudgetExhausted(
            f"The budget of '{asking.dataset}' does not reach: this answer needs {price}, {left} left. "
            "Nothing was charged. Answers that are out already stay free.",
            needed=price,
            left=left,
            fixes=fits or ("a larger error", "ask the curator for more"),
        )

    def _said(self, answer: Answer, spent: Epsilon, dataset: str) -> bytes:
        left = self.caller.gateway.left(dataset)
        receipt = f"receipt {answer.number}"
        if spent:
            cost = (
                f"This cost ε {loss(spent)} ({receipt}); ε {loss(left)} is left of the budget of {dataset}."
            )
        else:
            since = f"as of {moment(answer.receipt.settled)}"
            cost = (
                f"This cost nothing ({receipt}, {since}); ε {loss(left)} is left of the budget of {dataset}."
            )
        return notice(answer.promise, detail=" ".join((cost, *answer.notes)))

    # --- without asking -------------------------------------------------------------------------

    def explain(self, question: Question, *, as_json: bool) -> Table:
        """The price and the plan; free."""
        asking = self.asking(question)
        with advised(asking.terms):
            quote = asking.quote()
            plan = question.dataset.explain(asking)
        allowed = self.purse.allowed(question.allowed, self.usual(question.dataset.name))
        if as_json:
            told: Mapping[str, Any] = {
                "Quote": quote.to_plain(),
                "Plan": plan.to_plain(),
                "Max Cost": None if allowed is None else str(allowed),
            }
            return Table((Column(_PLAN, types.JSON),), [(json.dumps([told], indent=2),)], "EXPLAIN")
        lines = [*str(plan).splitlines(), f"Promise      {quote.promise}"]
        if quote.owned or not quote.most:
            lines.append("Price        nothing: it is answered already, or public")
        else:
            lines.append(f"Left         ε {loss(quote.remaining)} of the budget of {quote.dataset}")
            lines.append(f"Max cost     {limit_words(quote.most, allowed)}")
        wrapped = [part for line in lines for part in _wrapped(line)]
        return Table((Column(_PLAN, types.TEXT),), [(line,) for line in wrapped], "EXPLAIN")


def _wrapped(line: str) -> list[str]:
    """A line of a plan in lines that fit a terminal, below what it says."""
    word = line.split(" ", 1)[0]
    indent = " " * (len(line) - len(line.removeprefix(word).lstrip())) if line != word else ""
    return textwrap.wrap(line, _WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [line]


def _meant(typed: str, known: Sequence[str]) -> list[str]:
    """The datasets that a name may mean: in other letter case, with its schema, or one of their tables."""
    schema, _, view = typed.rpartition(".")
    for wanted in (typed, view if schema == view else ""):
        if found := [name for name in known if name.casefold() == wanted]:
            return found
    return [] if schema else [name for name in known if name.casefold().endswith(f".{typed}")]


def _unsaid() -> Refusal:
    return Refusal(
        "22023",
        "This question does not say how accurate the answer must be.",
        detail="Nothing was charged.",
        hint="Try: the statement WITH ERROR 50 CONFIDENCE 0.95\n"
        "  or: SET blowfishdb.error = '50'; for all statements of this connection\n"
        "  or: SET blowfishdb.error = '1%'; of all rows, or of the declared range",
    )
