"""The question of an answer as it would be typed: in Python, on the command line, and in SQL."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from blowfishdb.core.domain.predicates import Everything
from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.language.condition import condition_text
from blowfishdb.language.short import column_text, question_text
from blowfishdb.language.text import name_text

if TYPE_CHECKING:
    from blowfishdb.core.domain.domain import Domain
    from blowfishdb.language.select import SqlQuestion
    from blowfishdb.messages.answers import Answer


def typed(answer: Answer, domain: Domain, select: Callable[[str], SqlQuestion]) -> dict[str, str]:
    """Each way to ask the same again, by the name of its language; ``select`` reads SQL, to check it."""
    if not answer.form:
        return {}
    form = QuestionForm.from_plain(answer.form).whole
    name, short = answer.receipt.dataset, question_text(form)
    cost = str(answer.receipt.epsilon)
    if answer.alpha and answer.beta is not None:
        often = f"{1 - answer.beta:.6g}"
        each = "" if answer.simultaneous else ", each=True"
        terms = f".accurate_to({answer.alpha:.12g}, confidence={often}{each})"
        options = (
            f"--error {answer.alpha:.12g} --confidence {often}{'' if answer.simultaneous else ' --each'}"
        )
        tail = f" WITH ERROR {answer.alpha:.12g} CONFIDENCE {often}"
    else:
        terms, options, tail = f'.spend("{cost}")', f"--epsilon {cost}", ""
    ways = {
        "Python": f"ws[{name!r}].question({short!r}){terms}.ask(max_cost={cost!r})",
        "Command line": f"blowfishdb ask {shlex.join((name, short))} {options} --max-cost {cost}",
    }
    statement = _statement(form, name, domain)
    if statement and tail and answer.simultaneous and _says(statement, form, domain, select):
        ways["SQL"] = statement + tail
    return ways


def _statement(form: QuestionForm, dataset: str, domain: Domain) -> str:
    """A SELECT that counts the same; empty where none is known to."""
    if form.kind not in ("histogram", "count") or any(c.edges or c.groups or c.part for c in form.columns):
        return ""
    where = "" if isinstance(form.where, Everything) else f" WHERE {condition_text(form.where)}"
    rows = f" FROM {name_text(dataset)}{where}"
    if form.kind == "count":
        return f"SELECT COUNT(*){rows}"
    keys = [_key(column.name, column_text(column), domain) for column in form.columns]
    return f"SELECT {', '.join(keys)}, COUNT(*){rows} GROUP BY {', '.join(keys)}"


def _key(name: str, written: str, domain: Domain) -> str:
    cut = written[len(name_text(name)) :].strip("()")
    if not cut:
        return name_text(name)
    kind, _, size = cut.partition("=")
    if kind == "bins":
        attribute = domain[name]
        cells = -(-attribute.value_count // int(size))
        size = f"{float(cells / attribute.in_cells(1)):.12g}"
    return f"BIN({name_text(name)}, {size})"


def _says(statement: str, form: QuestionForm, domain: Domain, select: Callable[[str], SqlQuestion]) -> bool:
    """Whether the statement asks the same."""
    try:
        read = select(statement).form.whole.question(domain)
        return read.describe() == form.question(domain).describe()
    except (BlowfishError, ValueError):
        return False
