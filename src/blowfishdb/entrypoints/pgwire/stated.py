"""How far from the truth an answer may be, where a setting says it and the statement does not."""

from __future__ import annotations

from blowfishdb.core.domain.attributes import Integer, Real
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.entrypoints.pgwire.settings import relative
from blowfishdb.workspace.datasets import Dataset


def stated(written: str, form: QuestionForm, dataset: Dataset) -> float:
    """An error in its own units; a share is one of all rows for counts, of the range for means."""
    number, share = relative(written)
    if not share:
        return number
    measures = {measure.of for measure in form.measures}
    if form.kind == "sum" or measures - {"mean", "count"}:
        one = form.kind == "sum" or measures == {"sum"}
        told = ("the statement WITH ERROR and a number",) if one else ()
        raise InvalidInput(
            "A share is one of all rows or of a declared range; the error of this answer is neither.",
            fixes=(*told, "the statement WITH EPSILON 0.1"),
        )
    averaged = _averaged(form)
    if averaged:
        return number * _range(dataset.schema, averaged[0])
    rows = _rows(dataset)
    if rows is None:
        raise InvalidInput(
            "How many rows there are is hidden, so an error cannot be a share of them.",
            fixes=("WITH ERROR and a number", "SET blowfishdb.error = '50'"),
        )
    return max(number * rows, 1.0)


def check_says_something(error: float, form: QuestionForm, domain: Domain) -> None:
    """What is set for numbers of people may be more than everything that is declared of a mean."""
    for column in _averaged(form):
        whole = _range(domain, column)
        if error >= whole > 0:
            raise InvalidInput(
                f"±{error:g} is all that is declared of {column} or more, so a mean within it says nothing.",
                fixes=(f"the statement WITH ERROR {whole / 100:g}", "SET blowfishdb.error = '1%'"),
            )


def _averaged(form: QuestionForm) -> list[str]:
    """The columns whose mean is asked for."""
    named = [measure.column for measure in form.measures if measure.of == "mean"]
    named += [column.name for column in form.columns] if form.kind == "mean" else []
    return [name for name in named if name is not None]


def _range(domain: Domain, column: str) -> float:
    """How far the largest declared value is from the smallest."""
    attribute = domain[column]
    assert isinstance(attribute, Integer | Real)
    return float(attribute.at(attribute.ticks - 1)) - float(attribute.at(0))


def _rows(dataset: Dataset) -> float | None:
    """How many rows there are; None where that is hidden."""
    whole = dataset.count().spend(1)
    if whole.quote(more=False).most:
        return None
    answer = whole.ask(max_cost=0)
    return float(answer.values[0]) if bool(answer.exact.all()) else None
