"""A SELECT about a dataset as a private question: on which terms, for how much, and what is said with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

from blowfishdb.adapters.tokens import Role
from blowfishdb.adapters.wire_passwords import WirePasswords
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.domain.attributes import Integer, Real
from blowfishdb.core.errors import (
    BudgetExhausted,
    InvalidInput,
    MaxCostExceeded,
    NotCounted,
    UnknownDataset,
    UnsupportedSql,
)
from blowfishdb.entrypoints.pgwire import types
from blowfishdb.entrypoints.pgwire.errors import NOT_ALLOWED, NOT_SUPPORTED, Refusal, hint_of, notice
from blowfishdb.entrypoints.pgwire.results import Column, Table, columns_for, rows_of
from blowfishdb.entrypoints.pgwire.settings import Settings, relative
from blowfishdb.entrypoints.pgwire.spending import Purse, not_allowed
from blowfishdb.entrypoints.pgwire.statements import without_max_cost
from blowfishdb.entrypoints.server.access import Caller
from blowfishdb.language.select import SqlQuestion, dataset_of
from blowfishdb.language.selected import Selected
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.questions import Terms
from blowfishdb.show.words import loss, moment
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset

_ROWS_SHOWN: Final = ("rows are never shown", "would show the rows")
_PLAN: Final = "QUERY PLAN"


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
        """The dataset that a name means: as written, or in other letter case."""
        known = self.caller.gateway.counted()
        same = [typed] if typed in known else [name for name in known if name.casefold() == typed.casefold()]
        if len(same) != 1:
            fixes = ("\\d, which lists them",)
            raise UnknownDataset(
                f'relation "{typed[:60]}" does not exist: there is no such dataset.', fixes=fixes
            )
        return self.caller.gateway[same[0]]

    def usual(self, dataset: str) -> dict[str, str]:
        """What questions about a dataset begin with."""
        return self.passwords.defaults(f"dataset {dataset}")

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
        if epsilon and not self.settings.get("blowfishdb.error"):
            return Terms(epsilon=positive(epsilon))
        if not error:
            return None
        beta = 1 - float(self.settings.ours("confidence", usual))
        each = self.settings.ours("each", usual) == "on"
        return Terms(Accuracy(self._error(error, question), round(beta, 12), simultaneous=not each))

    def _error(self, written: str, question: Question) -> float:
        """An error in its own units; a share is one of all rows for counts, of the range for means."""
        number, share = relative(written)
        if not share:
            return number
        form, domain = question.parsed.form, question.dataset.schema
        columns = {m.column for m in form.measures if m.of == "mean" and m.column is not None}
        columns |= {c.name for c in form.columns} if form.kind == "mean" else set()
        measures = {measure.of for measure in form.measures}
        if form.kind in ("sum",) or measures - {"mean", "count"}:
            raise InvalidInput(
                "A share is one of all rows or of a declared range; the error of this answer is neither.",
                fixes=("WITH ERROR and a number", "SET blowfishdb.error = '50'"),
            )
        if columns:
            attribute = domain[columns.pop()]
            assert isinstance(attribute, Integer | Real)
            ends = attribute.at(attribute.ticks - 1), attribute.at(0)
            return number * (float(ends[0]) - float(ends[1]))
        whole = question.dataset.count().spend(1).quote(more=False)
        if whole.most or not whole.exact:
            raise InvalidInput(
                "How many rows there are is hidden, so an error cannot be a share of them.",
                fixes=("WITH ERROR and a number", "SET blowfishdb.error = '50'"),
            )
        rows = question.dataset.count().spend(1).ask(max_cost=0).values
        return max(number * float(rows[0]), 1.0)

    # --- asking ---------------------------------------------------------------------------------

    def ask(self, question: Question, cancel: Cancellation) -> Table:
        """The answer as rows, with what it cost beside it; refused if nothing allows what it costs."""
        terms = self.terms(question)
        usual = self.usual(question.dataset.name)
        with self.caller.server.underway.question(cancel):
            if terms is None:
                answer, spent = self._for_nothing(question, cancel), Epsilon(0)
            else:
                asking = replace(question.dataset.question(question.parsed.form), terms=terms)
                allowed = self.purse.allowed(question.allowed, usual)
                answer, spent = self._answered(asking, allowed, usual, cancel)
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
        self, asking: Asking, allowed: Epsilon | None, usual: dict[str, str], cancel: Cancellation
    ) -> tuple[Answer, Epsilon]:
        try:
            return asking.ask(max_cost=0, cancel=cancel), Epsilon(0)
        except MaxCostExceeded as error:
            price = Epsilon(error.cost or "0")
        left = self.caller.gateway.left(asking.dataset)
        if price > left:
            raise self._exhausted(asking, price, left)
        if allowed is None or price > allowed:
            raise not_allowed(price, allowed)
        self.purse.hold(price, usual)
        spent = Epsilon(0)
        try:
            answer = asking.ask(max_cost=price, cancel=cancel)
            spent = answer.receipt.cost
        except BaseException as error:
            spent = price if getattr(error, "charged", False) else Epsilon(0)
            raise
        finally:
            self.purse.give_back(price - min(spent, price))
        return answer, spent

    def _exhausted(self, asking: Asking, price: Epsilon, left: Epsilon) -> BudgetExhausted:
        fits = tuple(fit.words for fit in asking.quote().fits)
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
            enough = allowed is not None and quote.most <= allowed
            lines.append(
                f"Max cost     {'not set' if allowed is None else allowed}{'' if enough else ': too little'}"
            )
        return Table((Column(_PLAN, types.TEXT),), [(line,) for line in lines], "EXPLAIN")


def _unsaid() -> Refusal:
    return Refusal(
        "22023",
        "This question does not say how accurate the answer must be.",
        detail="Nothing was charged.",
        hint="Try: the statement WITH ERROR 50 CONFIDENCE 0.95\n"
        "  or: SET blowfishdb.error = '50'; for all statements of this connection\n"
        "  or: SET blowfishdb.error = '1%'; of all rows, or of the declared range",
    )
