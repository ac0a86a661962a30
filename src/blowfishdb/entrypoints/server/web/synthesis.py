"""Synthetic tables: free from what is out, or for an ε; and one of them with its report and its files."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final
from urllib.parse import urlencode

from fastapi import BackgroundTasks, Request, Response

from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidInput, NotCounted, NotProven
from blowfishdb.entrypoints.server import once
from blowfishdb.entrypoints.server.access import Caller, PageAsker, PageCurator, PageReader
from blowfishdb.entrypoints.server.api import synthesis as api
from blowfishdb.entrypoints.server.api.synthesis import JOBS, SynthesisBody
from blowfishdb.entrypoints.server.problems import Problem
from blowfishdb.entrypoints.server.problems import told as told_in_words
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web.frame import (
    Sent,
    dataset_address,
    redirect,
    render,
    shown_again,
    text,
    texts,
    ticked,
)
from blowfishdb.messages.curator import KeptColumns
from blowfishdb.messages.synthesis import GOOD_FOR, NOT_FOR, SynthesisQuote
from blowfishdb.messages.synthetic_table import MOST_ROWS
from blowfishdb.show.synthetic import FORMS

router: Final = Router(include_in_schema=False)

_USUAL: Final = "0.5"
_MORE: Final = 10_000


@router.get("/datasets/{dataset}/synthetic")
def synthetic_page(request: Request, dataset: str, caller: PageAsker) -> Response:
    """The free one first, then the form with its price; both are in the address."""
    return _page(request, dataset, caller)


@router.post("/datasets/{dataset}/synthetic/count")
def count_rows(dataset: str, form: Sent, caller: PageAsker) -> Response:
    """Ask for the number of rows, which is public and free, and go back to the price."""
    caller.gateway[dataset].count().spend(1).ask(max_cost=0)
    return redirect(dataset_address(dataset, "/synthetic") + _Wanted.of(form).address)


@router.post("/datasets/{dataset}/synthetic")
def make(request: Request, dataset: str, form: Sent, caller: PageAsker) -> Response:
    """Make it, once for each form that was shown, and go to it."""
    wanted = _Wanted.of(form)
    shown_again(request, lambda problem: _page(request, dataset, caller, wanted, problem=problem))
    source = caller.gateway[dataset]
    body = wanted.body(source.schema)
    with caller.server.underway.question() as cancel:
        table = body.wanted(source).ask(max_cost=body.max_cost, cancel=cancel, key=text(form, "key") or None)
    return redirect(dataset_address(dataset, f"/synthetic/{table.number}"))


@router.post("/datasets/{dataset}/synthetic/job")
def make_job(dataset: str, form: Sent, caller: PageAsker, tasks: BackgroundTasks) -> Response:
    """The same in the background, for a bar that shows how far it is."""
    wanted, source = _Wanted.of(form), caller.gateway[dataset]
    body = wanted.body(source.schema)
    asked, key = body.wanted(source), text(form, "key") or None
    return once.started(lambda progress: api.made(asked, body, caller, progress, key), caller, tasks, JOBS)


@router.get("/datasets/{dataset}/synthetic/{number:int}")
def table_page(request: Request, dataset: str, number: int, caller: PageReader) -> Response:
    """One synthetic table: what it is for, its files, its report and its receipt."""
    table = api.told(caller.gateway.synthetic(number), caller)
    report = table.report()
    return render(
        request,
        "analyst/synthetic_table.html",
        caller=caller,
        dataset=table.receipt.dataset,
        table=table,
        report=report,
        tables=[
            (
                " × ".join(one.columns),
                f"{one.numbers:,}",
                f"±{one.margin:,g}" if one.margin else "exact",
                f"{100 * one.off:.2f} %",
                one.worst,
                "yes" if one.used else "no",
            )
            for one in report.tables
        ],
        unknown=[pair.words for pair in report.pairs if pair.known == "independent"],
        modelled=[pair.words for pair in report.pairs if pair.known == "modelled"],
        forms=FORMS,
        more=_MORE,
        most=MOST_ROWS,
        seed=table.seed + 1,
    )


@router.get("/datasets/{dataset}/synthetic/kept")
def kept_page(request: Request, dataset: str, caller: PageCurator) -> Response:
    """Columns whose rows could be kept, and those that are confirmed; nothing is read for it."""
    return _kept_page(request, dataset, caller, None)


@router.post("/datasets/{dataset}/synthetic/kept")
def keep(request: Request, dataset: str, form: Sent, caller: PageCurator) -> Response:
    """Say what keeping rows of these columns means, and confirm it once that was read."""
    shown_again(request, lambda problem: _kept_page(request, dataset, caller, None, problem=problem))
    columns, confirm = texts(form, "column"), ticked(form, "confirm")
    told = caller.gateway.keep_rows(dataset, columns, confirm=confirm or not columns)
    if told.confirmed:
        return redirect(dataset_address(dataset, "/synthetic/kept"))
    return _kept_page(request, dataset, caller, told)


def _kept_page(
    request: Request,
    dataset: str,
    caller: Caller,
    told: KeptColumns | None,
    *,
    problem: Problem | None = None,
) -> Response:
    facts = caller.gateway.facts(dataset)
    try:
        public, refused = caller.gateway.keepable(dataset), None
    except NotProven as error:
        public, refused = (), error
    return render(
        request,
        "curator/kept_rows.html",
        caller=caller,
        dataset=dataset,
        problem=problem,
        refused=None if refused is None else told_in_words(request, refused),
        public=public,
        others=[name for name in facts.domain.names if name not in public],
        confirmed=[name for name in facts.may_keep if name in public],
        chosen=facts.may_keep if told is None else told.columns,
        told=told,
    )


@router.post("/datasets/{dataset}/synthetic/{number:int}/comparison")
def comparison(request: Request, dataset: str, number: int, caller: PageCurator) -> Response:
    """CURATOR VIEW, TRUE DATA: true counts beside synthetic ones; that somebody looked is on record."""
    shown = caller.gateway.compare_synthetic(dataset, number)
    return render(
        request,
        "curator/comparison.html",
        caller=caller,
        dataset=dataset,
        shown=shown,
        columns=[
            (
                one.columns[0],
                one.known,
                f"{100 * one.off:.2f} %",
                [
                    (label, f"{true:,}", f"{drawn:,}")
                    for label, true, drawn in zip(one.labels, one.true, one.synthetic, strict=True)
                ],
            )
            for one in shown.columns
        ],
        pairs=[
            (" × ".join(one.columns), one.known, f"{100 * one.off:.2f} %")
            for one in sorted(shown.pairs, key=lambda pair: -pair.off)
        ],
    )


@final
@dataclass(frozen=True)
class _Wanted:
    """What stands in the form."""

    columns: tuple[str, ...] = ()
    epsilon: str = _USUAL
    target: str = ""
    free: bool = False
    keep: tuple[str, ...] = ()

    @classmethod
    def of(cls, typed: Any) -> _Wanted:
        columns = tuple(str(name) for name in typed.getlist("column"))
        epsilon = str(typed.get("epsilon", "") or _USUAL)[:40]
        keep = tuple(str(name) for name in typed.getlist("keep"))
        return cls(columns, epsilon, str(typed.get("target", ""))[:255], typed.get("free") == "1", keep)

    @property
    def address(self) -> str:
        """The same form in an address."""
        named = [("column", name) for name in self.columns] + [("keep", name) for name in self.keep]
        return "?" + urlencode([*named, ("epsilon", self.epsilon), ("target", self.target)])

    def body(self, domain: Domain) -> SynthesisBody:
        """The same as the interface takes it."""
        if self.free:
            return SynthesisBody(from_answers=True)
        unknown = [name for name in self.columns if name not in domain]
        if unknown:
            raise InvalidInput(f"There is no column '{unknown[0]}'.", fixes=domain.names)
        return SynthesisBody(
            columns=list(self.columns),
            epsilon=self.epsilon,
            target=self.target or None,
            keep=list(self.keep),
            max_cost=self.epsilon,
        )


def _page(
    request: Request,
    dataset: str,
    caller: Caller,
    wanted: _Wanted | None = None,
    *,
    problem: Problem | None = None,
) -> Response:
    wanted = wanted or _Wanted.of(request.query_params)
    facts = caller.gateway.facts(dataset)
    names = facts.domain.names
    priced = _priced(request, dataset, caller, wanted)
    return render(
        request,
        "analyst/synthetic.html",
        caller=caller,
        dataset=dataset,
        problem=problem,
        wanted=wanted,
        chosen=wanted.columns or names,
        names=names,
        may_keep=facts.may_keep,
        good_for=GOOD_FOR,
        not_for=NOT_FOR,
        key=str(uuid.uuid4()),
        **priced,
    )


def _priced(request: Request, dataset: str, caller: Caller, wanted: _Wanted) -> Mapping[str, Any]:
    """Both offers, each with what is wrong with it if it cannot be made."""
    source = caller.gateway[dataset]

    def attempt(body: SynthesisBody) -> tuple[SynthesisQuote | None, Problem | None, bool]:
        try:
            return body.wanted(source).quote(), None, False
        except NotCounted as error:
            return None, told_in_words(request, error), True
        except BlowfishError as error:
            return None, told_in_words(request, error), False

    free, unfree, uncounted = attempt(SynthesisBody(from_answers=True))
    try:
        quote, wrong, _ = attempt(wanted.body(source.schema))
    except BlowfishError as error:
        quote, wrong = None, told_in_words(request, error)
    tables = () if quote is None else quote.tables
    rows = [
        (
            one.column,
            one.counted,
            f"±{one.margin:,g}" if one.margin else "exact",
            f"{100 * one.off:.2f} %",
        )
        for one in tables
    ]
    return {
        "free": free,
        "unfree": unfree,
        "uncounted": uncounted,
        "quote": quote,
        "wrong": wrong,
        "rows": rows,
        "payable": quote is not None and (not quote.epsilon or bool(quote.quote.affordable)),
    }
