"""A synthetic table about to be made: what it would cost, and making it.

q = ws["people"].synthesize(epsilon="0.5", columns=["age", "salary"], target="salary")
q.quote()            # free
table = q.ask()      # charged once; table.sample(10_000) and everything else about it is free
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from blowfishdb.adapters.store.values import RequestKey
from blowfishdb.core.budget import AnyEpsilon
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.questions.form import SYNTHETIC, ColumnForm, QuestionForm
from blowfishdb.messages.synthesis import SynthesisQuote
from blowfishdb.messages.synthetic_table import SyntheticTable, rows_wanted
from blowfishdb.workspace.asking import Asking

AnyColumn = str | ColumnForm | tuple[str, Mapping[str, Any]]
"""A column, or one with its bins: ``("age", {"width": 5})``."""


@final
@dataclass(frozen=True, eq=False)
class Synthesizing:
    """A question for a synthetic table, and how many rows of it are wanted.

    >>> rows = people.count().spend(1).ask()  # public and free; a quote needs it
    >>> wanted = people.synthesize(epsilon="0.5", columns=["age", "region"])
    >>> wanted.quote().epsilon
    Epsilon('0.5')
    """

    asking: Asking
    rows: int | None = None

    def quote(self) -> SynthesisQuote:
        """What it costs, what is measured for it, and how closely; free. Further rows cost nothing."""
        return self.asking.answering.quote_synthesis(self.asking.request())

    def ask(
        self,
        *,
        max_cost: AnyEpsilon | None = None,
        cancel: Cancellation | None = None,
        progress: Progress | None = None,
        key: str | RequestKey | None = None,
    ) -> SyntheticTable:
        """The synthetic table, charged once; asked for again it is the same one."""
        answer = self.asking.ask(max_cost=max_cost, cancel=cancel, progress=progress, key=key)
        table = self.asking.answering.synthetic(answer.number)
        return rows_wanted(replace(table, receipt=answer.receipt), self.rows)


def synthetic_form(
    columns: Iterable[AnyColumn] | None, target: str | None, keep: Iterable[str] = (), *, from_answers: bool
) -> QuestionForm:
    """A question for a synthetic table, as it was typed."""
    if isinstance(columns, str):
        raise InvalidInput("Columns are a list of names.", fixes=(f"columns=[{columns!r}]",))
    listed = tuple(_column(each) for each in columns or ())
    if isinstance(keep, str):
        raise InvalidInput("Columns are a list of names.", fixes=(f"keep=[{keep!r}]",))
    source = "answers" if from_answers else None
    return QuestionForm(SYNTHETIC, listed, target=target, source=source, keep=tuple(keep))


def _column(said: AnyColumn) -> ColumnForm:
    if isinstance(said, ColumnForm):
        return said
    if isinstance(said, str):
        return ColumnForm(said)
    if isinstance(said, tuple | list) and len(said) == 2 and isinstance(said[1], Mapping):
        return ColumnForm.from_plain({"name": said[0], **said[1]})
    raise InvalidInput("A column is a name, or a name with its bins.", fixes=("('age', {'width': 5})",))
