"""The log of all answers, and one answer: picture, table, receipt, files.

Two answers beside each other, and where they differ by more than their noise allows.
"""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from blowfishdb.core.errors import BlowfishError, InvalidInput, NotFound, UnknownDataset
from blowfishdb.core.policy.words import sentences
from blowfishdb.core.questions.form import SYNTHETIC, QuestionForm
from blowfishdb.entrypoints.server.access import Caller, PageReader, shown_to, summary_body
from blowfishdb.entrypoints.server.problems import Problem, told
from blowfishdb.entrypoints.server.routing import Router
from blowfishdb.entrypoints.server.web.ask_draft import Draft
from blowfishdb.entrypoints.server.web.figures import Figure, figure
from blowfishdb.entrypoints.server.web.frame import dataset_address, meter, redirect, render, shown_again
from blowfishdb.messages.answers import Answer, Comparison, compare
from blowfishdb.messages.arranged import arranged
from blowfishdb.show.asking import typed
from blowfishdb.show.charts import Backdrop, answer_chart, comparison_chart
from blowfishdb.show.exports import FORMATS, export
from blowfishdb.show.tables import answer_names, answer_table, comparison_table, one_number, thumbnail

router: Final = Router(include_in_schema=False)

_ON_A_PAGE: Final = 50
_LOOKED_THROUGH: Final = 500  # answers, by one request
_WIDTH: Final = 680
_LONGEST: Final = 20_000
_MOST_EXPORTED: Final = 100
_SORTS: Final = (("new", "the newest first"), ("old", "the oldest first"), ("dear", "the dearest first"))
_INTERVALS: Final = {
    "fresh": "fresh noise",
    "planned": "computed from stored answers, as was planned with them; no data was read",
    "any": "computed from stored answers; it holds whatever made you ask; no data was read",
}
Picked = Annotated[list[int] | None, Query(alias="pick")]


@router.get("/answers")
def log_page(
    request: Request,
    caller: PageReader,
    q: Annotated[str, Query(max_length=200)] = "",
    dataset: str = "",
    page: Annotated[int, Query(ge=1, le=10**6)] = 1,
    before: Annotated[int, Query(ge=0, le=2**53)] = 0,
    sort: Annotated[str, Query(max_length=10)] = "new",
) -> Response:
    """Every earlier answer, the newest first unless ``sort`` says otherwise; any two can be compared.

    Words are looked for in some hundred answers at a time, in those ``before`` a number.
    """
    return _log(request, caller, q=q, dataset=dataset, page=page, before=before, sort=sort)


def log_page_again(request: Request, caller: Caller, problem: Problem, ticked: list[int]) -> Response:
    """The log with what was ticked, and what cannot be done with it."""
    return _log(request, caller, problem=problem, ticked=frozenset(ticked))


def _log(
    request: Request,
    caller: Caller,
    *,
    q: str = "",
    dataset: str = "",
    page: int = 1,
    before: int = 0,
    sort: str = "new",
    problem: Problem | None = None,
    ticked: frozenset[int] = frozenset(),
) -> Response:
    if dataset:
        caller.gateway.facts(dataset)
    known, words = caller.gateway.pages.answered(dataset or None).count, q.casefold().split()
    listed, further = (
        _matching(caller, dataset, words, before) if words else (_listed(caller, dataset, page, sort), None)
    )
    names = caller.gateway.datasets()
    return render(
        request,
        "analyst/answers.html",
        caller=caller,
        answers=listed,
        found=len(listed) if words else known,
        known=known,
        further=further,
        before=before,
        names=names,
        meters=[meter(caller, name) for name in ([dataset] if dataset else names)],
        chosen=dataset,
        q=q,
        page=page,
        pages=1 if words else -(-known // _ON_A_PAGE),
        formats=tuple(FORMATS),
        sorts=_SORTS,
        sort=sort if sort in dict(_SORTS) and not words else "new",
        named=not caller.analyst,
        asks=not caller.auditor,
        problem=problem,
        ticked=ticked,
    )


@router.get("/answers/export")
def export_picked(request: Request, caller: PageReader, pick: Picked = None, form: str = "csv") -> Response:
    """The ticked answers as one file, or as an archive of several."""
    numbers = list(dict.fromkeys(pick or []))
    shown_again(request, lambda problem: log_page_again(request, caller, problem, numbers))
    if not 1 <= len(numbers) <= _MOST_EXPORTED:
        raise InvalidInput(f"Tick the answers to export, at most {_MOST_EXPORTED}.", fixes=("tick one",))
    files = [export(shown_to(caller.gateway.answer(number), caller), form) for number in numbers]
    if len(files) == 1:
        return _file(files[0].body, files[0].media_type, files[0].filename)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(file.filename, file.body)
    return _file(packed.getvalue(), "application/zip", f"answers-{form}.zip")


@router.get("/answers/{number:int}")
def answer_page(
    request: Request,
    number: int,
    caller: PageReader,
    raw: bool = False,
    asked: Annotated[str, Query(max_length=_LONGEST)] = "",
) -> Response:
    """One answer with its noise intervals, in words, as a picture and as a table, and its receipt.

    ``asked``: as it is to be shown; what is stored is whole.
    """
    return _answer(request, number, caller, raw=raw, asked=asked)


def answer_page_again(
    request: Request, number: int, caller: Caller, problem: Problem, typed: tuple[str, str]
) -> Response:
    """An answer with a name and a note that cannot be kept."""
    return _answer(request, number, caller, problem=problem, typed=typed)


def _answer(
    request: Request,
    number: int,
    caller: Caller,
    *,
    raw: bool = False,
    asked: str = "",
    problem: Problem | None = None,
    typed: tuple[str, str] | None = None,
) -> Response:
    whole = shown_to(caller.gateway.answer(number), caller)
    if whole.kind == SYNTHETIC:
        return redirect(dataset_address(whole.receipt.dataset, f"/synthetic/{number}"))
    answer = _as_asked(caller, whole, asked) if asked else whole
    again = None if caller.auditor else _again(caller, whole)
    under, raw = _under(caller, answer), raw and answer.places is None
    newest, label = caller.gateway.answers(limit=_ON_A_PAGE)[::-1], caller.gateway.desk.label(number)
    others = [other for other in newest if other.number != number]
    return render(
        request,
        "analyst/answer.html",
        caller=caller,
        dataset=answer.receipt.dataset,
        answer=answer,
        figure=answer_figure(answer, raw=raw, under=under, elsewhere=f"/api/v1/answers/{number}.svg"),
        words=_accuracy(answer),
        policy=_policy(caller, answer),
        interval=_interval(answer),
        raw=raw,
        raw_fits=1 < len(answer.raw) == len(answer.values) and answer.places is None and not answer.measures,
        formats=tuple(FORMATS),
        again=None if again is None else dataset_address(answer.receipt.dataset, "/ask") + again.address(),
        closer=None if again is None else _closer(caller, whole),
        asks=not caller.auditor,
        others=others,
        comparable={other.number for other in others if _comparable(other, whole)},
        label=label,
        naming=typed or (label.name, label.note),
        problem=problem,
        labels=caller.gateway.desk.labels(),
        names_it=caller.curator or whole.receipt.user == caller.name,
        cards=caller.gateway.desk.cards_allowed(answer.receipt.dataset),
        **_further(caller, whole),
    )


def _interval(answer: Answer) -> str:
    """How far off it is, and which noise that is; exact numbers have none."""
    if answer.band is None:
        return "none is promised"
    return answer.brief if answer.brief == "exact" else f"{answer.brief}; {_INTERVALS[answer.interval]}"


def _further(caller: Caller, answer: Answer) -> dict[str, Any]:
    """Where the question can be edited or split by another column, and how it is typed elsewhere."""
    try:
        source = caller.gateway[answer.receipt.dataset]
    except UnknownDataset:
        return {"edit": None, "splits": [], "typed": {}}
    draft, there = Draft.of(answer), dataset_address(answer.receipt.dataset, "/ask")
    if draft is None or caller.auditor:
        return {"edit": None, "splits": [], "typed": typed(answer, source.schema, source.select)}
    used = {draft.column, draft.second if draft.shape in ("two", "boxes") else ""}
    parts = [(name, draft.split(name)) for name in source.schema.names if name not in used]
    splits = [(name, there + part.address()) for name, part in parts if part is not None]
    ways = typed(answer, source.schema, source.select)
    return {"edit": there + draft.address(), "splits": splits, "typed": ways}


def shown_as(form: Mapping[str, Any]) -> str:
    """The query of a page on which an answer is shown as it was asked; empty where it is whole."""
    return f"?{urlencode({'asked': json.dumps(form)})}" if form.get("arrangement") else ""


def _as_asked(caller: Caller, whole: Answer, asked: str) -> Answer:
    """The answer as a question about the same shows it."""
    try:
        form = QuestionForm.from_plain(json.loads(asked))
    except ValueError:
        raise InvalidInput("How this answer is shown cannot be read.", fixes=("the whole answer",)) from None
    if form.whole.to_plain() != whole.form:  # it is the answer to another question
        return whole
    return arranged(whole, form, caller.gateway.facts(whole.receipt.dataset).domain)


def answer_figure(
    answer: Answer,
    *,
    raw: bool = False,
    under: Backdrop | None = None,
    elsewhere: str | None = None,
    id: str = "answer",  # noqa: A002
    width: int = _WIDTH,
) -> Figure:
    """The picture of an answer, with its table."""
    return figure(
        lambda width: answer_chart(answer, raw=raw, under=under, width=width),
        answer_table(answer, raw=raw),
        id=id,
        width=width,
        headed=False,
        elsewhere=elsewhere,
        number=one_number(answer),
    )


# --- words ----------------------------------------------------------------------------------------


def _accuracy(answer: Answer) -> str:
    """What the interval promises."""
    exact = bool(answer.exact.all()) and len(answer.exact)
    return answer.promise if exact else f"{answer.promise} Sampling error is not included."


def _policy(caller: Caller, answer: Answer) -> tuple[str, ...]:
    """The policy that the answer followed, in words; it may have been published anew since."""
    receipt = answer.receipt
    policy = caller.gateway.policy_at(receipt.dataset, receipt.policy_version)
    return (receipt.policy,) if policy is None else sentences(policy)


def _line(answer: Answer, caller: Caller) -> dict[str, Any]:
    """A row of the log, and the text that a filter looks through."""
    row = summary_body(answer, caller)
    accuracy = answer.brief.replace(" ", "\u00a0").replace(",\u00a0", ", ")
    label = caller.gateway.desk.label(answer.number)
    about = f"{row['question']} {row['kind']} {accuracy} {row['user'] or ''} {label.name} {label.note}"
    return {
        **row,
        "accuracy": accuracy,
        "searched": f"#{row['id']} {row['dataset']} {about}".casefold(),
        "at": row["settled"][:16],
        "day": row["settled"][:10],
        "name": label.name,
        "thumbnail": thumbnail(answer),
        "number": one_number(answer),
    }


def _listed(caller: Caller, dataset: str, page: int, sort: str) -> list[dict[str, Any]]:
    """The answers on a page of the log."""
    skip = (page - 1) * _ON_A_PAGE
    numbers = caller.gateway.pages.numbers(dataset or None, order=sort, limit=_ON_A_PAGE, skip=skip)
    return [_line(answer, caller) for answer in caller.gateway.answers_at(numbers)]


def _matching(
    caller: Caller, dataset: str, words: list[str], before: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Answers that have all the words, and before which number to look on; None if that was everything."""
    matching: list[dict[str, Any]] = []
    looked_at = caller.gateway.newest(dataset or None, before=before or None)
    for count, answer in enumerate(looked_at, start=1):
        line = _line(answer, caller)
        if all(word in line["searched"] for word in words):
            matching.append(line)
        if len(matching) == _ON_A_PAGE or count == _LOOKED_THROUGH:
            return matching, answer.number if next(looked_at, None) is not None else None
    return matching, None


def _comparable(other: Answer, answer: Answer) -> bool:
    """Whether both are of the same kind about the same bins; clusters cannot be compared."""
    same = (other.kind, other.axes, other.labels) == (answer.kind, answer.axes, answer.labels)
    return same and answer.places is None


def _again(caller: Caller, answer: Answer) -> Draft | None:
    """The same question more accurately, if that can still be asked."""
    try:
        return Draft.again(answer, caller.gateway.facts(answer.receipt.dataset).domain)
    except UnknownDataset:
        return None


def _closer(caller: Caller, answer: Answer) -> str:
    """What half the error would cost, as an offer; without a price where it has none."""
    assert answer.alpha is not None
    asking = caller.gateway[answer.receipt.dataset].sharper(answer)
    with suppress(BlowfishError):
        if asking is not None:
            return asking.quote(more=False).closer
    return f"Ask again within ±{answer.alpha / 2:,.4g}"


def _under(caller: Caller, answer: Answer) -> Backdrop | None:
    """The newest stored histogram of the columns and rows of clusters, to draw them over."""
    if answer.places is None:
        return None
    name = answer.receipt.dataset
    domain = caller.gateway.facts(name).domain
    stored = itertools.islice(caller.gateway.newest(name), _LOOKED_THROUGH)
    backdrops = (Backdrop.of(other, answer, domain) for other in stored)
    return next((backdrop for backdrop in backdrops if backdrop is not None), None)


def _file(body: bytes, media_type: str, name: str) -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "private, no-store",
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
    return Response(body, media_type=media_type, headers=headers)


comparing: Final = Router(include_in_schema=False)

_MOST_OFFERED: Final = 50


@comparing.get("/compare")
def compare_page(
    request: Request,
    caller: PageReader,
    a: Annotated[str, Query(max_length=20)] = "",
    b: Annotated[str, Query(max_length=20)] = "",
    pick: Annotated[list[str] | None, Query(max_length=1_000)] = None,
) -> Response:
    """The difference of answers ``a`` and ``b``, or of the two that were ticked in the log."""
    chosen = [number for number in ((a, b) if a or b else tuple(pick or ())) if number]
    problem: Problem | None = None
    comparison: Comparison | None = None
    picked: list[Answer] = []
    try:
        picked = _picked(caller, chosen)
        if len(picked) == 2:
            comparison = compare(*picked)
    except NotFound:
        raise
    except BlowfishError as error:
        problem = told(request, error)
    stored = caller.gateway.answers(limit=_MOST_OFFERED)
    return render(
        request,
        "analyst/compare.html",
        caller=caller,
        problem=problem,
        comparison=comparison,
        figure=None if comparison is None else _figure(comparison),
        beside=_beside(caller, picked) if comparison is None else [],
        compared=None if comparison is None else answer_names(comparison),
        stored=stored[::-1],
        chosen=[*chosen, "", ""][:2],
        meters=[meter(caller, name) for name in _datasets(comparison, stored)],
    )


def _beside(caller: Caller, picked: list[Answer]) -> list[tuple[Answer, Figure]]:
    """Two answers that have no difference are looked at side by side."""
    if len(picked) != 2:
        return []
    shown = [shown_to(each, caller) for each in picked]
    return [(each, answer_figure(each, id=f"beside-{at}", width=480)) for at, each in enumerate(shown)]


def _picked(caller: Caller, numbers: list[str]) -> list[Answer]:
    if len(numbers) > 2:
        raise InvalidInput(
            f"Two answers are compared, and {len(numbers):,} were ticked.", fixes=("choose two below",)
        )
    return [caller.gateway.answer(_number(text)) for text in numbers]


def _number(text: str) -> int:
    if not text.isdecimal():
        raise NotFound("Answers have numbers.", fixes=("choose two answers from the log",))
    return int(text)


def _figure(comparison: Comparison) -> Any:
    table = comparison_table(comparison)
    return figure(lambda width: comparison_chart(comparison, width=width), table, id="comparison")


def _datasets(comparison: Comparison | None, stored: list[Answer]) -> list[str]:
    shown = stored if comparison is None else [comparison.first, comparison.second]
    return list(dict.fromkeys(answer.receipt.dataset for answer in shown))
