"""synthesize: rows that look like those of a dataset, in a file; one charge, or none from answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blowfishdb.adapters.copies import private_file
from blowfishdb.core.errors import InvalidInput, MaxCostExceeded, NotCounted, SourceError
from blowfishdb.entrypoints.cli import session
from blowfishdb.entrypoints.cli.session import ANALYST, CURATOR, Commands, Session

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
    keep: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Public columns whose rows stay as they are, if confirmed."),
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
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="With --again: which of many draws; 1 by default.")
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
    """Rows that look like those of a dataset, marked as synthetic; no hidden value is a person's."""
    from blowfishdb.messages.synthetic_table import rows_wanted

    if out is not None:
        _check_out(out)
    if seed is not None and again is None:
        raise InvalidInput(
            "--seed says which rows are drawn from a table made before.", fixes=("--again ID",)
        )
    if again is not None:
        drawn = rows_wanted(gateway.synthetic(again), rows, 1 if seed is None else seed)
        _told(here, drawn, out, report, again=True)
        return
    if yes and max_cost is None:
        raise InvalidInput(
            "--yes spends without asking, so it needs a limit.", fixes=(f"--max-cost {epsilon or 0}",)
        )
    wanted = gateway[data].synthesize(
        epsilon,
        columns=None if columns is None else _named(columns),
        rows=rows,
        target=target,
        keep=() if keep is None else _named(keep),
        from_answers=from_answers,
    )
    priced = _priced(wanted)
    if quote:
        here.say(priced.to_plain(), *_quoted(priced))
        return
    _made(here, wanted, priced, max_cost, yes=yes, out=out, report=report)


curating = Commands(CURATOR)


@curating("blowfishdb keep-rows people --columns age,region", "blowfishdb keep-rows people --columns ''")
def keep_rows(
    here: Session,
    gateway: Datasets,
    data: Annotated[str, typer.Argument(metavar="DATA", help="The name of a dataset.", show_default=False)],
    columns: Annotated[
        str, typer.Option(metavar="A,B,…", help="Columns that nothing hides; '' takes it back.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Confirm without asking back.")] = False,
) -> None:
    """Let synthetic tables keep rows of public columns: real rows of real people. On record."""
    dataset, named = gateway[data], _named(columns)
    if not yes:
        for sentence in dataset.keep_rows(named).sentences:
            here.console(stderr=True).print(sentence)
        session.confirm("Confirm that?", otherwise="--yes")
    confirmed = dataset.keep_rows(named, confirm=True)
    here.say(confirmed.to_plain(), *(confirmed.sentences if yes else confirmed.sentences[-1:]))


@curating("blowfishdb compare-synthetic people 12")
def compare_synthetic(
    here: Session,
    gateway: Datasets,
    data: Annotated[str, typer.Argument(metavar="DATA", help="The name of a dataset.", show_default=False)],
    number: Annotated[int, typer.Argument(metavar="ID", help="Of a synthetic table.", show_default=False)],
) -> None:
    """CURATOR VIEW, TRUE DATA: true counts beside those of a synthetic table. On record."""
    from blowfishdb.show.terminal import grid

    told = gateway[data].compare_synthetic(number)
    table = grid("columns", "known", "rows out of place", right=(2,))
    for one in (*told.columns, *told.pairs):
        table.add_row(" × ".join(one.columns), one.known, f"{100 * one.off:.2f} %")
    here.say(told.to_plain(), told.watermark, *told.sentences, table)


def _named(columns: str) -> list[str]:
    return [name.strip() for name in columns.split(",") if name.strip()]


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
    from blowfishdb.show.words import enough, loss

    if max_cost is not None and priced.epsilon > Epsilon(max_cost):
        raise MaxCostExceeded(
            f"This costs ε {loss(priced.epsilon)}, more than --max-cost {max_cost}. Nothing was charged.",
            fixes=(f"--max-cost {enough(priced.epsilon)}", "a smaller --epsilon"),
        )
    if not here.json:
        for part in _quoted(priced):
            here.console().print(part)
    if priced.epsilon and not yes and priced.quote.affordable:
        session.confirm(
            f"Spend {loss(priced.epsilon)} and make it?", otherwise=f"--yes --max-cost {priced.epsilon}"
        )
    with here.progress("Synthesizing") as advance:
        table = wanted.ask(max_cost=priced.epsilon, progress=advance)
    _told(here, table, out, report)


def _told(
    here: Session, table: SyntheticTable, out: Path | None, report: bool, *, again: bool = False
) -> None:
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
    lines += [*worth.sentences, *([_report(worth)] if report else [])]
    if again:
        lines.append("Drawn again from what was paid for then: nothing is charged.")
    else:
        lines.append(receipt_line(table.receipt))
    lines += [f"Written to {path}." for path in written]
    if not again:
        more = f"blowfishdb synthesize {table.receipt.dataset} --again {table.number}"
        lines.append(f"Other rows for nothing: {more} --rows 10000 --out more.csv")
    here.say(plain, *lines)


def _quoted(quote: SynthesisQuote) -> list[Any]:
    from blowfishdb.show.terminal import grid

    table = grid("column", "numbers", "each within", "off", right=(1, 2, 3))
    for one in quote.tables:
        near = f"±{one.margin:,g}" if one.margin else "exact"
        table.add_row(one.column, one.counted, near, f"{100 * one.off:.2f} %")
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
