"""Synthetic tables over HTTP: quote, one charge, rows as files, report. Drawing rows costs nothing."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Annotated, Any, Final

from fastapi import BackgroundTasks, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from blowfishdb.adapters.store.values import RequestKey
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.questions.form import SYNTHETIC, QuestionForm
from blowfishdb.entrypoints.server import once, problems
from blowfishdb.entrypoints.server.access import Asker, Caller, Curator, SignedIn
from blowfishdb.entrypoints.server.api.questions import Amount, Prefer, QuestionBody
from blowfishdb.entrypoints.server.api.requests import Body, Plain
from blowfishdb.entrypoints.server.once import Key, Reply, answered_once
from blowfishdb.entrypoints.server.problems import read
from blowfishdb.entrypoints.server.routing import PREFIX, Router
from blowfishdb.messages.synthetic_table import MOST_ROWS, SyntheticTable, rows_wanted
from blowfishdb.show.synthetic import FORMS, file_of
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.synthesizing import Synthesizing

JOBS: Final = f"{PREFIX}/synthetic/jobs/"
router: Final = Router(PREFIX, tags=["Synthetic tables"])

RowsForm = Enum("RowsForm", {name: name for name in FORMS}, type=str)  # type: ignore[misc]
Rows = Annotated[int | None, Query(ge=0, le=MOST_ROWS, description="How many; as many as the data has.")]
Seed = Annotated[int | None, Query(ge=0, le=2**53, description="Which; a public number.")]


class SynthesisBody(Body):
    """Which columns, with which bins, and what it may cost; or from answers, for nothing."""

    columns: list[str | Plain] = Field(
        default=[], max_length=200, description="Names, or objects with name and bins; all if there are none."
    )
    epsilon: Amount | None = Field(default=None, description="What to spend, once.")
    target: str | None = Field(
        default=None, max_length=255, description="The column whose relations to others matter most."
    )
    keep: list[str] = Field(
        default=[], max_length=200, description="Public columns whose rows stay as they are, if confirmed."
    )
    from_answers: bool = Field(default=False, description="Made from what is out already, and free.")
    max_cost: Amount | None = None

    def wanted(self, dataset: Dataset) -> Synthesizing:
        """The question, checked against the declared columns."""
        if (self.epsilon is None) != self.from_answers:
            raise InvalidInput(
                "Send an epsilon or from_answers, one of the two.", fixes=('"epsilon": "0.5"',)
            )
        source = "answers" if self.from_answers else None
        plain = {
            "kind": SYNTHETIC,
            "columns": self.columns,
            "target": self.target,
            "source": source,
            "keep": self.keep,
        }
        form = read("columns", lambda: QuestionForm.from_plain(plain))
        return Synthesizing(dataset.question(form).spend(1 if self.epsilon is None else self.epsilon))


@router.post("/datasets/{dataset}/synthetic/quotes", summary="What a synthetic table would cost")
def quote(dataset: str, body: QuestionBody, caller: Asker) -> dict[str, Any]:
    """What it costs and what would be measured for it, for a question of kind ``synthetic``. Free."""
    asking = body.asking(caller.gateway[dataset])
    if asking.form.kind != SYNTHETIC:
        raise InvalidInput("This is not a question for a synthetic table.", fixes=("POST …/quotes",))
    return Synthesizing(asking).quote().to_plain()


@router.post(
    "/datasets/{dataset}/synthetic",
    summary="Make a synthetic table",
    responses={
        202: {"description": "Under way; Location says where to ask for the job."},
        **problems.documented(402),
    },
)
def make(
    dataset: str,
    body: SynthesisBody,
    caller: Asker,
    request: Request,
    tasks: BackgroundTasks,
    prefer: Prefer = None,
    key: Key = None,
) -> Response:
    """One charge for all of it; then rows and report are free. A refusal comes before any row is read."""
    wanted = body.wanted(caller.gateway[dataset])
    if "respond-async" in (prefer or ""):
        return once.started(lambda progress: made(wanted, body, caller, progress, key), caller, tasks, JOBS)

    def answer(cancel: Cancellation | None, sent: RequestKey | None) -> Reply:
        table = wanted.ask(max_cost=body.max_cost, cancel=cancel, key=sent)
        return Reply(200, summary(table, caller))

    sent = {"dataset": dataset, **body.model_dump(mode="json")}
    return answered_once(caller, request, key, sent, answer).response()


def made(
    wanted: Synthesizing,
    body: SynthesisBody,
    caller: Caller,
    progress: Progress | None,
    key: str | None = None,
) -> dict[str, Any]:
    """The table that was asked for, as a job tells it; under a ``key`` it is charged once for ever."""
    return summary(wanted.ask(max_cost=body.max_cost, progress=progress, key=key), caller)


@router.get("/synthetic/{number:int}", summary="A synthetic table: tables and model")
def table(number: int, caller: SignedIn) -> dict[str, Any]:
    """Everything from which rows are drawn: measured tables with their noise, and the model."""
    return told(caller.gateway.synthetic(number), caller).to_plain()


@router.get("/synthetic/{number:int}/report", summary="What a synthetic table is worth")
def report(number: int, caller: SignedIn) -> dict[str, Any]:
    """Synthetic rows beside what was measured; pairs that were not are named. No true number is in it."""
    return caller.gateway.synthetic(number).report().to_plain()


@router.get("/synthetic/{number:int}/marks", summary="What files of a synthetic table say about themselves")
def marks(number: int, caller: SignedIn, rows: Rows = None, seed: Seed = None) -> dict[str, str]:
    """The marks that Parquet and Arrow files carry, for the side of a CSV file."""
    return rows_wanted(caller.gateway.synthetic(number), rows, seed).marks()


@router.get(
    "/synthetic/{number:int}/rows.{form}",
    summary="Synthetic rows as a file",
    response_class=Response,
    responses={200: {"content": {"text/csv": {}, "application/vnd.apache.parquet": {}}}},
)
def rows(number: int, form: RowsForm, caller: SignedIn, rows: Rows = None, seed: Seed = None) -> Response:
    """So many rows, marked as synthetic. Free, however often; the same seed brings the same rows."""
    file = file_of(rows_wanted(caller.gateway.synthetic(number), rows, seed), form.value)
    headers = {
        "Content-Disposition": f'attachment; filename="{file.filename}"',
        "Cache-Control": "private, no-store",
        "Link": f'<{PREFIX}/synthetic/{number}/marks>; rel="describedby"',
    }
    return Response(file.body, media_type=file.media_type, headers=headers)


class KeptRowsBody(Body):
    """Of which columns rows may be kept, and whether that is confirmed."""

    columns: list[str] = Field(default=[], max_length=200, description="None takes it back.")
    confirm: bool = Field(default=False, description="Without it, only what that would mean is said.")


@router.post("/datasets/{dataset}/kept-rows", summary="Let synthetic tables keep rows of public columns")
def keep_rows(dataset: str, body: KeptRowsBody, caller: Curator) -> dict[str, Any]:
    """CURATOR VIEW, TRUE DATA: what that gives away. That someone looked is written into the ledger, and so
    is what is confirmed."""
    return caller.gateway.keep_rows(dataset, body.columns, confirm=body.confirm).to_plain()


@router.post("/datasets/{dataset}/synthetic/{number:int}/comparison", summary="True beside synthetic counts")
def compare(dataset: str, number: int, caller: Curator) -> dict[str, Any]:
    """CURATOR VIEW, TRUE DATA. Nothing is charged; that someone looked is written into the ledger."""
    return caller.gateway.compare_synthetic(dataset, number).to_plain()


@router.get("/synthetic/jobs/{job}", summary="How far a synthetic table is")
def job(job: str, caller: Asker) -> JSONResponse:
    """How far a synthetic table of yours is; its summary once it is done, the problem if it failed."""
    return once.told(job, caller)


def told(table: SyntheticTable, caller: Caller) -> SyntheticTable:
    """The table without what the caller may not see."""
    if not caller.analyst:
        return table
    own = table.receipt.user == caller.name
    shown = replace(table.receipt, sql="", user=table.receipt.user if own else "")
    return replace(table, receipt=shown)


def summary(table: SyntheticTable, caller: Caller) -> dict[str, Any]:
    """A synthetic table in short: its number, what it cost, and where everything about it is."""
    shown = told(table, caller)
    here = f"{PREFIX}/synthetic/{table.number}"
    return {
        "id": table.number,
        "columns": list(table.columns),
        "kept": list(table.kept_columns),
        "total": table.total,
        "receipt": shown.receipt.to_plain(),
        "words": list(table.words),
        "digest": table.digest,
        "links": {
            "table": here,
            "report": f"{here}/report",
            "marks": f"{here}/marks",
            **{form: f"{here}/rows.{form}" for form in FORMS},
        },
    }
