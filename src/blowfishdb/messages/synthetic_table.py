"""Synthetic tables: what was measured, the model that follows from it, and rows drawn from that.

Everything here is computed from released numbers, so it costs nothing, however often rows are drawn. Rows are
drawn where they are asked for, from a public seed; noise never has one. Bins become values of the declared
grid, each as likely as any other inside its bin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.domain.values import Value
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.plain import Message
from blowfishdb.core.policy import codec
from blowfishdb.core.questions.promise import significant
from blowfishdb.core.questions.synthesis import listed
from blowfishdb.mechanisms.reuse import StoredRelease
from blowfishdb.mechanisms.synthesis import Choice, GivenRows, KeptRows, Layout, Model, Table, kernels
from blowfishdb.mechanisms.synthesis.tables import every_value
from blowfishdb.messages.answers import Receipt
from blowfishdb.messages.synthesis import (
    EMPTY,
    GOOD_FOR,
    INSIDE_BINS,
    NOT_FOR,
    MeasuredTable,
    ReportedPair,
    ReportedTable,
    SynthesisReport,
)

if TYPE_CHECKING:
    from blowfishdb.mechanisms.losses import Kernel

MOST_ROWS: Final = 1_000_000
KEPT: Final = "synthesis"
"""Under which name it is stored beside its answer."""


@final
@dataclass(frozen=True)
class SyntheticTable(Message):
    """Rows that look like those of a dataset, of which none is a person's.

    >>> table = people.synthesize(epsilon="0.5", columns=["age", "region", "salary"]).ask()
    >>> table.to_arrow().num_rows == table.total, table.sample(10).to_arrow().column_names
    (True, ['age', 'salary', 'region'])
    >>> table.receipt.epsilon
    Epsilon('0.5')
    """

    _said = ("digest", "words")

    receipt: Receipt
    columns: tuple[str, ...]
    axes: tuple[dict[str, Any], ...]
    """Columns, declarations and bins, as plain data."""
    total: int
    """How many rows the data has: public, and how many are drawn unless others are asked for."""
    tables: tuple[MeasuredTable, ...]
    choices: tuple[dict[str, Any], ...] = ()
    """Between which columns a table was chosen, and what choosing lost."""
    answers: tuple[int, ...] = ()
    """The stored answers that it was made from; none where it was measured."""
    rows: int = 0
    seed: int = 0
    """Which rows are drawn: a public number, and no secret."""
    notes: tuple[str, ...] = ()
    kept: dict[str, Any] | None = None
    """Columns whose rows are as they are in the data, and these rows; None where all columns are drawn."""

    @property
    def number(self) -> int:
        """The number under which it is stored."""
        return int(self.receipt.charge) if self.receipt.charge.isdecimal() else 0

    def sample(self, rows: int, seed: int | None = None) -> SyntheticTable:
        """Another table of so many rows from the same model; free, and without new information."""
        if isinstance(rows, bool) or not isinstance(rows, int) or not 0 <= rows <= MOST_ROWS:
            raise InvalidInput(f"A synthetic table has at most {MOST_ROWS:,} rows.", fixes=(f"{self.total}",))
        return replace(self, rows=rows, seed=self.seed + 1 if seed is None else int(seed))

    @property
    def words(self) -> tuple[str, ...]:
        """What it is, and what it is and is not for."""
        made = f"Made from {len(self.answers):,} stored answers, at no cost." if self.answers else self._made
        dropping = any(
            "drop" in (axis["attribute"].get("missing"), axis["attribute"].get("outside"))
            for axis in self.axes
        )
        more = (EMPTY,) if dropping else ()
        return (f"{self._whose} {made}", INSIDE_BINS, *more, GOOD_FOR, NOT_FOR)

    @property
    def kept_columns(self) -> tuple[str, ...]:
        """Columns whose rows are those of real people."""
        return () if self.kept is None else tuple(self.columns[at] for at in self.kept["columns"])

    @property
    def _made(self) -> str:
        exact = sum(table.exact for table in self.measured)
        noisy = len(self.tables) - exact
        told = f"{exact:,} exact table{'s' * (exact != 1)}"
        if not noisy:
            return f"Made from {told}, at no cost."
        cost = f"{noisy:,} noisy table{'s' * (noisy != 1)} that cost ε {self.receipt.epsilon} together"
        return f"Made from {cost}{f', and {told}' if exact else ''}."

    @property
    def _whose(self) -> str:
        if self.kept is None:
            return "Synthetic rows: none is a person's."
        drawn = [name for name in self.columns if name not in self.kept_columns]
        return (
            f"Values of {listed(drawn)} are synthetic: none is a person's. {listed(self.kept_columns)} are "
            "kept: real rows of real people, as they are, for no promise hides these columns."
        )

    # --- rows -----------------------------------------------------------------------------------------

    def to_arrow(self) -> Any:
        """A pyarrow table, marked as synthetic."""
        return _arrow_table(self)

    def to_pandas(self) -> Any:
        """A pandas data frame (pandas has to be installed)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A Polars data frame (polars has to be installed)."""
        import polars as pl

        return pl.from_arrow(self.to_arrow())

    def marks(self) -> dict[str, str]:
        """What every file of these rows says about itself."""
        return _marks(self)

    def drawn_bins(self) -> IntArray:
        """As many rows as the data has, in bins: what reports compare with."""
        return self.model.drawn(max(1, self.total), _stream_of(self))

    def report(self) -> SynthesisReport:
        """How the synthetic rows compare with what was measured; pairs that were not measured are named."""
        return _report(self)

    @cached_property
    def layout(self) -> Layout:
        """The columns in their bins."""
        return Layout(
            tuple(
                Axis(axis["column"], codec.attribute(axis["attribute"]), codec.partition(axis["bins"]))
                for axis in self.axes
            )
        )

    @cached_property
    def measured(self) -> tuple[Table, ...]:
        """The tables as they came out."""
        found = []
        for table in self.tables:
            release = StoredRelease.from_plain({**table.release, "number": 0})
            columns = tuple(self.columns.index(name) for name in table.columns)
            found.append(Table(columns, release.rows, release.distinct[0], release.values, table.round))
        return tuple(found)

    @cached_property
    def model(self) -> Model | GivenRows:
        """The distribution that rows are drawn from."""
        used = [
            (t, told) for t, told in zip(self.measured, self.tables, strict=True) if told.weights is not None
        ]
        counted = tuple(table.counted(self.layout) for table, _ in used)
        weights = tuple(np.array(told.weights, dtype=np.float64) for _, told in used)
        if self.kept is None:
            return Model(self.layout.sizes, self.total, counted, weights)
        rows = KeptRows.from_plain(self.kept)
        return GivenRows(self.layout, rows, self.total).weighted(counted, weights)

    def kernels(self, rows_per_person: int) -> tuple[Kernel, ...]:
        """What it lost between any two values: its tables, and every choice among them; none from answers."""
        if self.answers:
            return ()
        choices = [
            Choice(tuple(map(self.columns.index, choice["columns"])), choice["nano_epsilon"])
            for choice in self.choices
        ]
        kept = () if self.kept is None else tuple(self.kept["columns"])
        return kernels(self.layout, self.measured, choices, rows_per_person, kept)

    @property
    def digest(self) -> str:
        """A name for what was released, whatever rows are drawn from it."""
        released: list[Any] = [[*table.columns, table.release] for table in self.tables]
        return codec.digest([*released, *([self.kept] if self.kept is not None else [])])

    def __repr__(self) -> str:
        return f"<SyntheticTable of {self.receipt.dataset}: {self.rows:,} rows of {', '.join(self.columns)}>"


def rows_wanted(table: SyntheticTable, rows: int | None, seed: int | None = None) -> SyntheticTable:
    """The table with as many rows as were asked for: as it is stored where nothing was."""
    if rows is None and seed is None:
        return table
    return table.sample(table.total if rows is None else rows, seed)


def stored_synthesis(body: Mapping[str, Any]) -> SyntheticTable | None:
    """The synthetic table that is stored beside an answer; None beside any other."""
    kept = body.get(KEPT)
    return None if kept is None else SyntheticTable.from_plain({**kept, "receipt": body["answer"]["receipt"]})


# --- rows -----------------------------------------------------------------------------------------------


def _stream_of(table: SyntheticTable) -> np.random.Generator:
    """The public numbers that decide which rows are drawn."""
    return np.random.Generator(np.random.Philox(key=table.seed % 2**64))


def _arrow_table(table: SyntheticTable) -> Any:
    """The rows as an Arrow table that says what it is."""
    import pyarrow as pa

    stream = _stream_of(table)
    axes, model = list(table.layout.axes), table.model
    if isinstance(model, GivenRows):
        bins, cells = model.drawn_rows(table.rows, stream)
        for place, at in enumerate(model.kept.columns):
            axes[at], bins[:, at] = every_value(axes[at]), cells[:, place]
    else:
        bins = model.drawn(table.rows, stream)
    columns = {axis.column: _values(axis, bins[:, at], stream) for at, axis in enumerate(axes)}
    made = pa.table(columns)
    return made.replace_schema_metadata({f"blowfishdb.{name}": text for name, text in _marks(table).items()})


def _values(axis: Axis, bins: IntArray, stream: np.random.Generator) -> Any:
    """Values of a column, spread evenly inside their bins; none where the cell is one of missing values."""
    import pyarrow as pa

    attribute, count = axis.attribute, axis.bins.count
    share = stream.random(bins.size)
    ticks = np.full(bins.size, -1, dtype=np.int64)
    for number in np.unique(bins[bins < count]):
        some = bins == number
        cells = axis.bins.members(int(number)) if not axis.bins.contiguous else None
        if cells is None:
            first, last = int(axis.bins.first(int(number))), int(axis.bins.last(int(number)))
            last = min(last, attribute.value_count - 1)
            if first > last:  # the cell of missing values
                continue
            start = first * attribute.ticks_per_cell
            stop = min((last + 1) * attribute.ticks_per_cell, attribute.ticks)
            ticks[some] = start + np.floor(share[some] * (stop - start)).astype(np.int64)
        else:
            known = cells[cells < attribute.value_count]
            if known.size:
                chosen = known[np.floor(share[some] * known.size).astype(np.int64)]
                ticks[some] = chosen * attribute.ticks_per_cell
    distinct, place = np.unique(ticks, return_inverse=True)
    values = pa.array([None if tick < 0 else _told(attribute.at(int(tick))) for tick in distinct])
    return values.take(pa.array(place))


def _told(value: Value) -> Any:
    return float(value) if isinstance(value, Fraction) else value


def _marks(table: SyntheticTable) -> dict[str, str]:
    """What a file of synthetic rows says about itself."""
    receipt = table.receipt
    return {
        "synthetic": "true",
        "dataset": receipt.dataset,
        "answer": receipt.charge,
        "policy_version": str(receipt.policy_version),
        "snapshot": str(receipt.snapshot),
        "epsilon": str(receipt.epsilon),
        "mechanism": receipt.mechanism,
        "settled": receipt.settled,
        "rows": str(table.rows),
        "seed": str(table.seed),
        "tables": json.dumps([list(one.columns) for one in table.tables]),
        "answers": json.dumps(list(table.answers)),
        **({"kept": json.dumps(list(table.kept_columns))} if table.kept is not None else {}),
        "digest": table.digest,
        "words": " ".join(table.words),
    }


# --- the report ------------------------------------------------------------------------------------------


def _report(table: SyntheticTable) -> SynthesisReport:
    """Measured tables beside the rows that this table has; nothing but released numbers is looked at."""
    rows = table.drawn_bins()
    told = [
        _compared(one, released.used, rows, table)
        for one, released in zip(table.measured, table.tables, strict=True)
    ]
    pairs = tuple(_pairs(table))
    measured = sum(pair.known == "measured" for pair in pairs)
    near = [one for one in told if one.used]
    typical = sum(one.off for one in near) / len(near) if near else 0.0
    sentences = (
        *table.words,
        f"{measured:,} of {len(pairs):,} pairs of columns were measured. Where a table is in the "
        f"model, synthetic "
        f"rows differ from what was measured by {significant(100 * typical, 3)} % of the rows on average.",
        "An interval belongs to a measured number, never to a count in synthetic rows.",
    )
    return SynthesisReport(table.receipt.question, table.rows, tuple(told), pairs, sentences)


def _compared(one: Table, used: bool, rows: IntArray, table: SyntheticTable) -> ReportedTable:
    layout = table.layout
    drawn = layout.tabulated(rows, one.columns)[layout.inside(one.columns)]
    synthetic = np.asarray(one.rows.sparse() @ drawn)
    apart = np.abs(one.values - synthetic)
    at = int(np.argmax(apart)) if apart.size else 0
    size = max(1, table.total)
    off = float(apart.mean() / size) if one.cumulative else float(apart.sum() / 2 / size)
    worst = ""
    if apart.size:
        near = "" if one.exact else f" ± {one.margin:,}"
        measured = f"measured {int(one.values[at]):,}{near}"
        worst = f"{labels_of(one, layout)[at]}: {measured}, synthetic {int(synthetic[at]):,}"
    names = tuple(table.columns[column] for column in one.columns)
    return ReportedTable(names, one.values.size, float(one.margin), one.cumulative, used, off, worst)


def labels_of(one: Table, layout: Layout) -> list[str]:
    """What each number of a measured table counts, in words."""
    axes = layout.chosen(one.columns)
    if one.cumulative:
        (axis,) = axes
        if one.rows.count == 1:  # up to the first bin is the first bin
            return [axis.labels()[0]]
        ends = axis.ends() if len(axis.ends()) >= one.rows.count else axis.labels()
        return (
            list(ends[: one.rows.count]) if axis.attribute.ordered else list(axis.labels()[: one.rows.count])
        )
    boxes = np.unravel_index(np.arange(one.rows.size), tuple(axis.bins.count for axis in axes))
    named = [
        " · ".join(axis.labels()[int(i)] for axis, i in zip(axes, box, strict=True))
        for box in zip(*boxes, strict=True)
    ]
    if one.rows.count == one.rows.size:
        return named
    sparse = one.rows.sparse()
    return [
        " + ".join(named[i] for i in sparse.indices[a:b][:3])
        for a, b in zip(sparse.indptr, sparse.indptr[1:], strict=False)
    ]


def _pairs(table: SyntheticTable) -> Iterator[ReportedPair]:
    """Every two columns, and through what the model relates them."""
    model, names = table.model, table.columns
    together = {tuple(sorted(one.columns)) for one in table.measured if len(one.columns) > 1}
    together = {pair for group in together for pair in _within(group)}
    for first, second in table.layout.pairs():
        pair = (names[first], names[second])
        between = f"{pair[0]} and {pair[1]}"
        if (first, second) in together:
            yield ReportedPair(pair, "measured", f"{between}: measured")
        elif isinstance(model, GivenRows) and {first, second} <= set(model.kept.columns):
            yield ReportedPair(pair, "kept", f"{between}: as they are")
        elif model.relates(first, second):
            yield ReportedPair(
                pair, "modelled", f"{between}: follow from other tables, not measured together"
            )
        else:
            given = [names[column] for column in model.between(first, second)]
            through = f" given {' and '.join(given)}" if given else ""
            yield ReportedPair(
                pair, "independent", f"{between}: never measured, assumed independent{through}"
            )


def _within(group: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(a, b) for i, a in enumerate(group) for b in group[i + 1 :]]
