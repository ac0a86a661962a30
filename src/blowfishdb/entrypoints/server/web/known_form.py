"""What the world already knows, as the policy page shows it and as its form is read: picked, or typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from starlette.datastructures import FormData

from blowfishdb.core.constraints import Constraints, Reading
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.core.policy.columns import ungrouped, with_point
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.words import effect, known_things
from blowfishdb.core.questions.projection import project
from blowfishdb.core.sensitivity import sensitivity
from blowfishdb.entrypoints.server.web.frame import text, texts
from blowfishdb.language.known import read_known, read_table
from blowfishdb.workspace.asking import Asking

TABLE: Final = "table"
PASTED: Final = "pasted"
READING: Final = "reading"
CHECK: Final = "check"
_TYPED: Final = (
    *("where", "answer", "csv"),
    *(f"{part}-{at}" for at in range(2) for part in ("known", "sign", "value")),
)
SIGNS: Final = (
    ("=", "is"),
    ("<>", "is not"),
    (">=", "is at least"),
    ("<=", "is at most"),
    ("IN", "is one of"),
)
"""What can be picked between a column and a value."""
_LONGEST_FILE: Final = 900_000


@final
@dataclass(frozen=True)
class KnownInput:
    """What was typed to add to what is known, to be shown again; or what was found when it was checked."""

    typed: Mapping[str, str] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    checked: tuple[str, ...] = ()

    @classmethod
    def of(cls, form: FormData) -> KnownInput:
        """Everything that was typed, so that nothing of it is lost."""
        return cls({name: text(form, name) for name in _TYPED}, frozenset(texts(form, "columns")))


@final
@dataclass(frozen=True)
class KnownForm:
    """The list of what is known, what it does, and what was typed to add to it."""

    things: tuple[str, ...]
    effects: tuple[str, ...]
    reading: str
    input: KnownInput


def known_form(policy: Policy, typed: KnownInput, asking: Asking | None) -> KnownForm:
    """What is known under ``policy``, and what that does to the question on the page."""
    reading = Reading.LITERAL if policy.constraints is None else policy.constraints.reading
    effects = () if policy.constraints is None else (effect(policy), *_on_noise(policy, asking))
    return KnownForm(known_things(policy), effects, reading.value, typed)


def _on_noise(policy: Policy, asking: Asking | None) -> tuple[str, ...]:
    """What the noise of a question has to cover, with and without what is known."""
    if asking is None:
        return ()
    try:
        problem = project(asking.request().counts, policy)
        if problem.refined is None:
            return ()
        tied = problem.refined.sensitivity(problem.workload)
        alone = sensitivity(problem.workload, problem.graph)
    except BlowfishError:
        return ()
    if tied == alone:
        return (f"For the question below, noise has to cover {tied}, as it would without them.",)
    return (
        "Because these counts are public, one person's move may force others to move: for the question "
        f"below, noise has to cover {tied} instead of {alone}.",
    )


def changed(before: Constraints, form: FormData, domain: Domain) -> Constraints:
    """What is known after someone added to it, took something back or chose the other reading."""
    if number := text(form, "remove"):
        return before.without(int(number) if number.isdecimal() and len(number) < 9 else -1)
    do = text(form, "do")
    if do == READING:
        return before.read_as(text(form, "reading"))
    if do == PASTED:
        return before.plus(Constraints(marginals=[read_table(text(form, "csv")[:_LONGEST_FILE], domain)]))
    return before.plus(read_known(_section(do, form, domain), domain))


def _section(do: str, form: FormData, domain: Domain) -> dict[str, Any]:
    """What was typed, as a policy file says it."""
    if do == TABLE:
        columns = texts(form, "columns")
        if not columns:
            raise InvalidInput("Tick the columns of the table.", fixes=("one column, or several together",))
        return {"tables": [{"columns": columns}]}
    where, answer = text(form, "where") or _picked(form, domain), text(form, "answer")
    if not where:
        raise InvalidInput("Say which rows are counted.", fixes=("pick a column and a value", "age >= 65"))
    return {"counts": [{"where": where, **({"count": answer} if answer else {})}]}


def _picked(form: FormData, domain: Domain) -> str:
    """The condition that was picked, as it could have been typed; empty if nothing was."""
    said = []
    for at in range(2):
        name, sign, value = (text(form, f"{part}-{at}") for part in ("known", "sign", "value"))
        if not name or not value:
            continue
        if name not in domain.names or sign not in dict(SIGNS):
            raise InvalidInput("Pick one of the columns, and a sign.", fixes=domain.names[:3])
        quoted = '"' + name.replace('"', '""') + '"'
        if sign == "IN":
            listed = ", ".join(_literal(domain[name], part) for part in value.split(",") if part.strip())
            said.append(f"{quoted} IN ({listed})")
        else:
            said.append(f"{quoted} {sign} {_literal(domain[name], value)}")
    return " AND ".join(said)


def _literal(attribute: Attribute, typed: str) -> str:
    """A value as SQL writes it: numbers as they are, anything else in quotes."""
    value = typed.strip()
    if isinstance(attribute, Integer | Real):
        return ungrouped(with_point(value))
    if isinstance(attribute, Boolean):
        return value.lower()
    if isinstance(attribute, Category):
        known = (str(each) for each in attribute.values)
        value = next((each for each in known if each.lower() == value.lower()), value)
    return "'" + value.replace("'", "''") + "'"
