"""log, show, compare, export: answers that are stored. Reading them costs nothing.

Answers as files.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blowfishdb.adapters.copies import private_file
from blowfishdb.core.errors import InvalidInput, SourceError
from blowfishdb.entrypoints.cli.session import ANALYST, Commands, Session

if TYPE_CHECKING:
    from rich.table import Table

    from blowfishdb.messages.answers import Answer
    from blowfishdb.workspace.datasets import Datasets


Number = Annotated[int, typer.Argument(metavar="ID", help="The number of an answer.", show_default=False)]
_MANY = 50


commands = Commands(ANALYST)


@commands("blowfishdb log --dataset people --mine")
def log(
    here: Session,
    gateway: Datasets,
    dataset: Annotated[str | None, typer.Option(help="Only answers about this dataset.")] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only your own.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = _MANY,
) -> None:
    """Every answer so far, the newest last."""
    from blowfishdb.messages.answers import answer_summary

    if dataset is not None:
        gateway.facts(dataset)
    wanted = (answer for answer in gateway.newest(dataset) if not mine or answer.receipt.user == gateway.user)
    answers = list(itertools.islice(wanted, limit))[::-1]
    plain = {"answers": [answer_summary(answer) for answer in answers]}
    here.say(
        plain, _table(answers) if answers else "No answers yet: blowfishdb quote DATA QUESTION --error 50"
    )


def _table(answers: list[Answer]) -> Table:
    from blowfishdb.show.terminal import grid
    from blowfishdb.show.words import loss

    table = grid("id", "dataset", "question", "accuracy", "ε", "policy", "settled", right=(0, 4), wrap=(2, 3))
    for answer in answers:
        receipt = answer.receipt
        table.add_row(
            f"{answer.number}",
            receipt.dataset,
            receipt.question,
            answer.brief,
            loss(receipt.epsilon),
            f"v{receipt.policy_version}",
            receipt.settled[:10],
        )
    return table


@commands("blowfishdb show 12")
def show(here: Session, gateway: Datasets, number: Number) -> None:
    """One answer with its noise intervals and its receipt."""
    from blowfishdb.show.terminal import answer_chart, receipt_table

    answer = gateway.answer(number)
    here.say(answer.to_plain(), answer_chart(answer), "", receipt_table(answer))


@commands("blowfishdb compare 12 15")
def compare(
    here: Session,
    gateway: Datasets,
    first: Annotated[int, typer.Argument(metavar="A", help="The number of an answer.", show_default=False)],
    second: Annotated[int, typer.Argument(metavar="B", help="The number of another.", show_default=False)],
) -> None:
    """Two answers about the same bins: where they differ by more than the noise allows."""
    from blowfishdb.messages.answers import compare as compared
    from blowfishdb.show.terminal import comparison_table

    comparison = compared(gateway.answer(first), gateway.answer(second))
    here.say(comparison.to_plain(), comparison_table(comparison))


@commands("blowfishdb export 12 --format csv", "blowfishdb export 12 -o picture.svg")
def export(
    here: Session,
    number: Number,
    form: Annotated[
        str | None,
        typer.Option("--format", metavar="FORMAT", help="csv, parquet, arrow, json, html, svg or png."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; answer-ID.FORMAT by default.")
    ] = None,
) -> None:
    """Write an answer to a file: a table, a picture or a page."""
    if form is None and output is None:
        raise InvalidInput("Say in which format.", fixes=("--format csv", "-o answer.parquet"))
    with here.gateway() as gateway:
        answer = gateway.answer(number)
        chosen = check_output(output) if form is None and output is not None else check_format(form or "")
        path = output or Path(f"answer-{number}.{chosen}")
        write(answer, path, chosen)
        here.say({"id": number, "format": chosen, "path": str(path)}, f"Written to {path}.")


def write(answer: Answer, path: Path, form: str) -> None:
    """Write an answer to a file in one of the formats."""
    from blowfishdb.show.exports import export

    try:
        private_file(path)
        path.write_bytes(export(answer, form).body)
    except OSError as error:
        raise SourceError(
            f"'{path}' cannot be written ({error.strerror}); the answer is stored and can be exported.",
            fixes=(f"blowfishdb export {answer.number} --format csv -o PATH",),
        ) from None


def check_output(path: Path) -> str:
    """The format that a file name stands for; known before anything is paid for."""
    form = check_format(path.suffix.removeprefix(".").lower())
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder '{path.parent}'.")
    return form


def check_format(form: str) -> str:
    """A format that can be written."""
    from blowfishdb.show.exports import FORMATS

    if form not in FORMATS:
        raise InvalidInput(f"An answer is not written as '{form}'.", fixes=tuple(FORMATS))
    return form
