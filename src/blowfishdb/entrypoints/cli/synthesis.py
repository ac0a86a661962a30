"""synthesize: rows that look like those of a dataset, in a file; one charge, or none from answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blowfishdb.adapters.copies import private_file
from blowfishdb.core.errors import InvalidInput, MaxCostExceeded, NotCounted, SourceError
from blowfishdb.entrypoints.cli import session
from blowfishdb.entrypoints.cli.session import ANALYST, Commands, Session

if TYPE_CHECKING:
    from rich.table import Table

    from blowfishdb.messages.synthesis import SynthesisQuote, SynthesisReport
    from blowfishdb.messages.synthetic_table import SyntheticTable
    from blowfishdb.workspace.datasets import Datasets
    from blowfishdb.workspace.synthesizing import Synthesizing

commands = Commands(ANALYST)


@commands(
    "blowfishdb synthesize people --epsilon 0.5 --columns age,salary,region --out people.parquet",
    "blowfishdb synthesize people --from-answers --out people.csv",
    "blowfishdb synthesize people --again 12 --rows 10000 --out more.csv",
)
def synthesize(
    here: Session,
    gateway: Datasets,
    data: Annotated[str, typer.Argument(metavar="DATA", help="The name of a dataset.", show_default=False)],
    epsilon: Annotated[str | None, typer.Option(metavar="E", help="What to spend on it, once.")] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,…", help="Which columns; all by default.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="A", help="The column whose relations to others matter most.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=0, help="How many rows to draw; as many as the data has by default.")
    ] = None,
    from_answers: Annotated[
        bool, typer.Option("--from-answers", help="Make it from answers that are out: free.")
    ] = False,
    again: Annotated[
        int | None, typer.Option(metavar="ID", help="Draw other rows from one that was made before: free.")
    ] = None,
    quote: Annotated[bool, typer.Option("--quote", help="Only say what it would cost.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Show what it is worth, table by table.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write: .csv, .parquet or .arrow.")
    ] = None,
    max_cost: Annotated[
        str | None, typer.Option(metavar="E", help="Refuse if it costs more than this.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Pay without asking back; needs --max-cost.")
    ] = False,
) -> None:
    """Rows that look like those of a dataset, marked as synthetic; none is a person's."""
    from blowfishdb.messages.synthetic_table import rows_wanted

    if out is not None:
        _check_out(out)
    if again is not None:
        _told(here, rows_wanted(gateway.synthetic(again), rows, 1 if rows is None else None), out, report)
        return
    if yes and max_cost is None:
        raise InvalidInput("--yes spends without asking, so it needs a limit.", fixes=("--max-cost 0.5",))
    named = None if columns is None else [name.strip() for name in columns.split(",")]
    wanted = gateway[data].synthesize(
        epsilon, columns=named, rows=rows, target=target, from_answers=from_answers
    )
    priced = _priced(wanted)
    if quote:
        here.say(priced.to_plain(), *_quoted(priced))
        return
    _made(here, wanted, priced, max_cost, yes=yes, out=out, report=report)


def _priced(wanted: Synthesizing) -> SynthesisQuote:
    try:
        return wanted.quote()
    except NotCounted:  # what is public and free is asked for without asking back
        wanted.asking.counting().ask(max_cost=0)
        return wanted.quote()


def _made(
    here: Session,
    wanted: Synthesizing,
    priced: SynthesisQuote,
    max_cost: str | None,
    *,
    yes: bool,
    out: Path | None,
    report: bool,
) -> None:
    from blowfishdb.core.budget import Epsilon
    from blowfishdb.show.words import loss

    if max_cost is not None and priced.epsilon > Epsilon(max_cost):
        raise MaxCostExceeded(
            f"This costs {priced.epsilon}, more than --max-cost {max_cost}. Nothing was charged.",
            fixes=(f"--max-cost {priced.epsilon}", "a smaller --epsilon"),
        )
    if not here.json:
        for part in _quoted(priced):
            here.console().print(part)
    if priced.epsilon and not yes and priced.quote.affordable:
        session.confirm(f"Spend {loss(priced.epsilon)} and make it?", otherwise="--yes --max-cost 0.5")
    with here.progress("Synthesizing") as advance:
        table = wanted.ask(max_cost=priced.epsilon, progress=advance)
    _told(here, table, out, report)


def _told(here: Session, table: SyntheticTable, out: Path | None, report: bool) -> None:
    from blowfishdb.show.synthetic import write
    from blowfishdb.show.terminal import receipt_line

    written: list[Path] = []
    if out is not None:
        try:
            private_file(out)
            written = write(table, out)
        except OSError as error:
            raise SourceError(
                f"'{out}' cannot be written ({error.strerror}); the table is stored and can be drawn again.",
                fixes=(f"blowfishdb synthesize {table.receipt.dataset} --again {table.number} --out PATH",),
            ) from None
    worth = table.report()
    plain: dict[str, Any] = {
        "id": table.number,
        "rows": table.rows,
        "columns": list(table.columns),
        "marks": table.marks(),
        "written": [str(path) for path in written],
        **({"report": worth.to_plain()} if report else {}),
    }
    lines: list[Any] = [f"Synthetic table {table.number}: {table.rows:,} rows of {', '.join(table.columns)}."]
    lines += worth.sentences
    here.say(
        plain,
        *lines,
        *([_report(worth)] if report else []),
        receipt_line(table.receipt),
        *(f"Written to {path}." for path in written),
        f"Other rows for nothing: blowfishdb synthesize {table.receipt.dataset} --again {table.number}",
    )


def _quoted(quote: SynthesisQuote) -> list[Any]:
    from blowfishdb.show.terminal import grid

    table = grid("column", "numbers", "each within", "off", right=(1, 2, 3))
    for one in quote.tables:
        kind = "up to a bin" if one.cumulative else "cells"
        near = f"±{one.margin:,g}" if one.margin else "exact"
        table.add_row(one.column, f"{one.numbers:,} {kind}", near, f"{100 * one.off:.2f} %")
    return [quote.quote.question, *quote.words, *([table] if quote.tables else [])]


def _report(report: SynthesisReport) -> Table:
    from blowfishdb.show.terminal import grid

    table = grid("table", "each within", "synthetic off", "where most", right=(1, 2), wrap=(0, 3))
    for one in report.tables:
        near = f"±{one.margin:,g}" if one.margin else "exact"
        table.add_row(" × ".join(one.columns), near, f"{100 * one.off:.2f} %", one.worst)
    for pair in report.pairs:
        if pair.known != "measured":
            table.add_row(" × ".join(pair.columns), "", "", pair.words.partition(": ")[2])
    return table


def _check_out(path: Path) -> None:
    from blowfishdb.show.synthetic import FORMS

    if path.suffix.lstrip(".").lower() not in FORMS:
        raise InvalidInput(
            f"Synthetic rows are not written as '{path.suffix}'.",
            fixes=tuple(f"rows.{form}" for form in FORMS),
        )
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder '{path.parent}'.")
