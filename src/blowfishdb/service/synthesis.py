"""A question for a synthetic table with its plan and its price, and what is kept of it.

One charge for all of it: the whole ε is reserved before anything is read, tables are then read one statement
at a time through a port, as the rounds of clusters are, and what was measured is kept with what every part of
it lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final, final

import numpy as np

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.domain.domain import CellQuery
from blowfishdb.core.errors import InvalidInput, NoGuarantee
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.synthesis import SyntheticProblem
from blowfishdb.core.secret import Secret
from blowfishdb.mechanisms.losses import ByDistance, Kernel, Tightest
from blowfishdb.mechanisms.reuse.stored import plain_axes
from blowfishdb.mechanisms.synthesis import (
    Collected,
    Synthesis,
    SynthesisPlan,
    release,
)
from blowfishdb.mechanisms.synthesis.junction_tree import Group
from blowfishdb.mechanisms.synthesis.tables import every_value, within
from blowfishdb.messages.answers import Answer, Receipt
from blowfishdb.messages.questions import Request
from blowfishdb.messages.quotes import Quote
from blowfishdb.messages.synthesis import MeasuredTable, QuotedTable, SynthesisQuote
from blowfishdb.messages.synthetic_table import KEPT, labels_of
from blowfishdb.service.standing import Standing
from blowfishdb.service.tasks import Outcome, PlannedTask, Statement

_BETA: Final = 0.05


@final
@dataclass(frozen=True, eq=False)
class TablePort:
    """The tables of a database, one statement for each; no row leaves it."""

    prepared: Mapping[Group, Prepared]
    cancel: Cancellation | None
    kept: Prepared | None = None

    def counts(self, columns: Group) -> Secret[IntArray]:
        """How many rows are in each box of these columns."""
        return self.prepared[columns].count(self.cancel)

    def kinds(self, columns: Group) -> Secret[IntArray]:
        """What rows have in kept columns, and how many have it."""
        assert self.kept is not None
        return self.kept.count(self.cancel)


@final
@dataclass(frozen=True, eq=False)
class SynthesisTask(PlannedTask):
    """A question for a synthetic table."""

    request: Request
    problem: SyntheticProblem
    plan: SynthesisPlan
    cost: Epsilon
    """What one person loses."""
    policies: tuple[Policy, ...]
    """Everything that is promised: under none of these more is lost."""
    promise: None = None

    @property
    def free(self) -> bool:
        return self.plan.free

    def kernel(self, policy: Policy, rows_per_person: int) -> Kernel:
        """Before it is made: at most the stated ε under each of the promises it is planned for."""
        return Tightest(tuple(ByDistance(one, self.cost) for one in self.policies))

    def prepare(self, backend: Backend) -> Statement:
        layout = self.plan.layout
        _ = [axis.labels() for axis in layout.axes]
        prepared = {columns: backend.prepare(CellQuery(layout.chosen(columns))) for columns in self._read}
        kept = None
        if self.plan.kept:
            axes = (every_value(axis) for axis in layout.chosen(self.plan.kept))
            kept = backend.prepare_kinds(CellQuery(tuple(axes)))
        first, *more = prepared.values()
        words = f"\n-- and {len(more)} more of this form, for other columns and pairs of them" if more else ""
        rows = "" if kept is None else f"\n-- and the rows of kept columns\n{kept.sql}"
        return Statement(f"{first.sql}{words}{rows}", partial(self.count, prepared, kept))

    @property
    def _read(self) -> list[Group]:
        """Every table that may be counted."""
        plan = self.plan
        alone: list[Group] = [(column,) for column in range(len(plan.layout.axes))]
        return alone if plan.way == "one by one" else [*alone, *plan.candidates, *plan.public_pairs]

    def count(self, prepared: Mapping[Group, Prepared], kept: Prepared | None, noise: Noise) -> Outcome:
        """Steps 5 and 6: table by table, and noise."""
        port = TablePort(prepared, self.request.cancel, kept)
        made = release(self.plan, port, noise=noise, progress=self.request.progress)
        stored = kept_of(made, self.problem)
        return Outcome(partial(answer_of, self.request, self.problem, made), None, {KEPT: stored})


def price_synthesis(problem: SyntheticProblem, request: Request, standing: Standing) -> SynthesisTask:
    """How a synthetic table is made under everything that is promised, and its price."""
    if request.terms.epsilon is None:
        raise NoGuarantee(
            "How far off synthetic rows are depends on the data, so no accuracy is promised.",
            fixes=("state an ε instead of an error",),
        )
    if request.terms.mechanism is not None:
        raise InvalidInput("Synthetic tables are made in one way.", fixes=("leave out the mechanism",))
    per_row = positive(Epsilon.from_nano(request.terms.epsilon.nano // standing.rows_per_person))
    plan = SynthesisPlan.under(
        standing.policies,
        problem.axes,
        rows=problem.rows,
        epsilon=per_row,
        target=problem.target,
        keep=problem.keep,
    )
    cost = plan.spent * standing.rows_per_person
    return SynthesisTask(request, problem, plan, cost, standing.policies)


def from_answers(request: Request, problem: SyntheticProblem, found: Collected) -> Outcome:
    """A synthetic table of stored releases: nothing is read, and nothing is lost."""
    made = found.synthesis(problem.rows)
    kept = kept_of(made, problem, found.numbers)
    return Outcome(partial(answer_of, request, problem, made), None, {KEPT: kept})


# --- what is kept and shown -------------------------------------------------------------------------------


def kept_of(made: Synthesis, problem: SyntheticProblem, answers: Sequence[int] = ()) -> dict[str, Any]:
    """Tables, choices and model as plain data: the release, from which rows can be drawn again."""
    weights = dict(zip(made.used, made.model.plain_weights().weights, strict=True))
    names = tuple(axis.column for axis in made.layout.axes)
    tables = tuple(
        MeasuredTable(
            tuple(names[column] for column in table.columns),
            table.stored(made.layout).to_plain(),
            table.round,
            tuple(weights[at].tolist()) if at in weights else None,
        )
        for at, table in enumerate(made.tables)
    )
    choices = [
        {"columns": [names[column] for column in choice.columns], "nano_epsilon": choice.nano}
        for choice in made.choices
    ]
    released = [[*table.columns, table.release] for table in tables]
    return {
        "columns": list(names),
        "axes": plain_axes(made.layout.axes),
        "total": made.total,
        "tables": [table.to_plain() for table in tables],
        "choices": choices,
        "answers": list(answers),
        "rows": made.total,
        "seed": int(codec.digest(released)[:12], 16),
        "notes": list(problem.notes),
        **({"kept": made.kept.to_plain()} if made.kept is not None else {}),
    }


def answer_of(request: Request, problem: SyntheticProblem, made: Synthesis, receipt: Receipt) -> Answer:
    """What was measured of single columns, as an answer like others; pairs are in the synthetic table."""
    alone = [table for table in made.tables if len(table.columns) == 1]
    names = [made.layout.axes[table.columns[0]].column for table in alone]
    tables = [name for name, table in zip(names, alone, strict=True) for _ in range(table.values.size)]
    bins = [label for table in alone for label in labels_of(table, made.layout)]
    bands = [(table.values - table.margin, table.values + table.margin) for table in alone]
    raw = np.concatenate([table.values.astype(np.float64) for table in alone] or [np.zeros(0)])
    low, high = (np.array([end for band in bands for end in band[side]], dtype=np.float64) for side in (0, 1))
    return Answer(
        labels=(tuple(tables), tuple(bins)),
        axes=("column", "values"),
        kind="synthetic",
        values=np.clip(raw, 0, made.total),
        raw=raw,
        low=np.clip(low, 0, made.total),
        high=np.clip(high, 0, made.total),
        exact=np.concatenate(
            [np.full(table.values.size, table.exact) for table in alone] or [np.zeros(0, bool)]
        ),
        alpha=None,
        beta=_BETA,
        simultaneous=False,
        form=request.form.to_plain(),
        receipt=receipt,
        notes=problem.notes,
        listed=True,
    )


# --- quotes ---------------------------------------------------------------------------------------------


def quoted(task: SynthesisTask, quote: Quote) -> SynthesisQuote:
    """What is going to be measured, and how closely; of pairs only at the usual step."""
    plan, size = task.plan, max(1, task.plan.total)
    tables = []
    for planned in plan.one_ways:
        (column,) = planned.columns
        scale = planned.scale
        cumulative = planned.rows.count < plan.layout.bins[column]
        mean = float(scale) if scale else 0.0
        off = mean / size if cumulative else mean * planned.rows.count / 2 / size
        margin = float(within(scale)) if scale else 0.0
        name = plan.layout.axes[column].column
        tables.append(QuotedTable(name, planned.rows.count, cumulative, margin, min(1.0, off)))
    return SynthesisQuote(
        quote=quote,
        rows=plan.total,
        way=plan.way,
        tables=tuple(tables),
        pairs=0 if plan.way == "one by one" else len(plan.candidates),
        rounds=plan.rounds,
        pair_margin=_pair_margin(plan),
        seconds=_seconds(plan),
    )


def _pair_margin(plan: SynthesisPlan) -> float | None:
    if plan.way == "all pairs" and plan.pair_rate:
        return float(within(Fraction(10**9) / plan.pair_rate))
    if plan.way == "in rounds":
        step = (1 - plan.alone_share) * plan.epsilon.nano / max(1, plan.rounds)
        nano = math.floor(step * (1 - plan.choosing_share))
        return float(within(Fraction(2 * 10**9, nano))) if nano else None
    return None


def _seconds(plan: SynthesisPlan) -> float:
    """About how long it takes: reading, and fitting after every round."""
    read = 0.02 * (len(plan.candidates) + len(plan.one_ways))
    return math.ceil(2 + read + 0.4 * (plan.rounds or (6 if plan.way == "all pairs" else 0)))
