"""What the world already knows, as the policy page shows it and as its form is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from starlette.datastructures import FormData

from blowfishdb.adapters.known_tables import read_table
from blowfishdb.adapters.policy_known import read_known
from blowfishdb.asking import Asking
from blowfishdb.core.constraints import Constraints, Reading
from blowfishdb.core.constraints.words import effect, known_things
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import BlowfishError, InvalidInput
from blowfishdb.core.policy import Policy
from blowfishdb.core.projection import project
from blowfishdb.core.sensitivity import sensitivity
from blowfishdb.entrypoints.web.forms import text, texts

COUNT: Final = "count"
TABLE: Final = "table"
PASTED: Final = "pasted"
READING: Final = "reading"
CHECK: Final = "check"
_TYPED: Final = ("where", "answer", "csv")
_LONGEST: Final = 900_000


@final
@dataclass(frozen=True)
class KnownForm:
    """The list of what is known, what it does, and what was typed to add to it."""

    things: tuple[str, ...]
    effects: tuple[str, ...]
    reading: str
    typed: Mapping[str, str] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    problem: dict[str, Any] | None = None
    checked: tuple[str, ...] = ()

    @property
    def open(self) -> bool:
        """Whether there is something to see without asking for it."""
        return bool(self.things or self.problem or self.checked)


@final
@dataclass(frozen=True)
class Said:
    """What a form said: to be shown again where something is wrong with it, or beside what was found."""

    typed: Mapping[str, str] = field(default_factory=dict)
    columns: frozenset[str] = frozenset()
    problem: dict[str, Any] | None = None
    checked: tuple[str, ...] = ()

    @classmethod
    def of(cls, form: FormData, problem: dict[str, Any]) -> Said:
        """Everything that was typed, so that nothing of it is lost."""
        typed = {name: text(form, name) for name in _TYPED}
        return cls(typed, frozenset(texts(form, "columns")), problem)


def known_form(policy: Policy, said: Said, asking: Asking | None) -> KnownForm:
    """What is known under ``policy``, and what that does to the question on the page."""
    reading = Reading.LITERAL if policy.constraints is None else policy.constraints.reading
    effects = () if policy.constraints is None else (effect(policy), *_on_noise(policy, asking))
    return KnownForm(
        known_things(policy), effects, reading.value, said.typed, said.columns, said.problem, said.checked
    )


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
    if place := text(form, "remove"):
        return before.without(int(place) if place.isdecimal() and len(place) < 9 else -1)
    do = text(form, "do")
    if do == READING:
        return before.read_as(text(form, "reading"))
    if do == PASTED:
        return before.plus(Constraints(marginals=[read_table(text(form, "csv")[:_LONGEST], domain)]))
    return before.plus(read_known(_section(do, form), domain))


def _section(do: str, form: FormData) -> dict[str, Any]:
    """What was typed, as a policy file says it."""
    if do == TABLE:
        columns = texts(form, "columns")
        if not columns:
            raise InvalidInput("Tick the columns of the table.", fixes=("one column, or several together",))
        return {"tables": [{"columns": columns}]}
    where, answer = text(form, "where"), text(form, "answer")
    if not where:
        raise InvalidInput("Say which rows are counted.", fixes=("age >= 65",))
    return {"counts": [{"where": where, **({"count": answer} if answer else {})}]}
