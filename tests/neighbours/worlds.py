"""A small world: columns, a source, policies, two databases, and what happens to them in turn.

Every part is drawn by itself, so that all of them meet each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.neighbours.columns import Column, columns
from tests.neighbours.promises import Promise, promises
from tests.neighbours.questions import REACH, SPEND, Question, Terms, questions
from tests.neighbours.rows import People, Rows, neighbour, rows
from tests.neighbours.sources import Place


@dataclass(frozen=True)
class Ask:
    """One question; ``lose``: the answer does not come out; ``meanwhile``: this policy is published then."""

    question: Question
    lose: bool = False
    meanwhile: int | None = None


@dataclass(frozen=True)
class Batch:
    """Questions that are settled on together."""

    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Publish:
    """Another policy, by its number."""

    which: int
    confirm: bool = True
    withdraw: bool = False


@dataclass(frozen=True)
class Withdraw:
    """The oldest promise that is kept is taken back."""


@dataclass(frozen=True)
class SetBudget:
    """Another total."""

    total: str


@dataclass(frozen=True)
class Refresh:
    """The rows are said to be new."""


Step = Ask | Batch | Publish | Withdraw | SetBudget | Refresh


@dataclass(frozen=True)
class World:
    """Everything that is needed to live through it twice."""

    columns: tuple[Column, ...]
    place: Place
    people: People | None
    promises: tuple[Promise, ...]
    one: Rows
    other: Rows
    budget: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Scope:
    """What worlds are made of."""

    columns: tuple[str, ...] = ("integer", "category", "wide", "real", "boolean", "date", "ordered")
    places: tuple[Place, ...] = (Place("sqlite"),)
    people: tuple[People | None, ...] = (None, None, People(2, keyed=True), People(2, keyed=False))
    terms: tuple[Terms, ...] = SPEND
    policies: int = 2
    steps: int = 4
    kinds: tuple[str, ...] = ("ask", "ask", "ask", "ask", "batch", "batch", "budget", "refresh")
    """What happens, beside changes of the policy."""


PLACES: Sequence[Place] = (
    *[Place("sqlite")] * 5,
    Place("sqlite", collation="NOCASE"),
    *[Place("duckdb")] * 2,
    Place("duckdb", texts=True),
    Place("csv"),
    Place("parquet"),
)
EVERYTHING = Scope(places=tuple(PLACES), terms=(*SPEND, *REACH))


@st.composite
def worlds(draw: st.DrawFn, scope: Scope = EVERYTHING) -> World:
    """A world and a neighbour of its database under one of its policies."""
    declared = draw(columns(scope.columns))
    place = draw(st.sampled_from(scope.places))
    people = draw(st.sampled_from(scope.people))
    promised = tuple(draw(promises(declared)) for _ in range(draw(st.integers(1, max(1, scope.policies)))))
    one = draw(rows(declared, people, texts=place.holds_texts))
    under = draw(st.sampled_from(promised))
    other = draw(neighbour(under, declared, one, people, texts=place.holds_texts))
    if draw(st.booleans()):
        one, other = other, one
    steps = tuple(draw(st.lists(_steps(declared, scope, len(promised)), min_size=1, max_size=scope.steps)))
    return World(declared, place, people, promised, one, other, draw(st.sampled_from(("9", "2"))), steps)


@st.composite
def _steps(draw: st.DrawFn, declared: tuple[Column, ...], scope: Scope, policies: int) -> Step:
    changes = ("publish", "publish", "publish", "withdraw") if policies > 1 else ()
    kinds = (*scope.kinds, *changes)
    kind = draw(st.sampled_from(kinds))
    asked = questions(declared, terms=scope.terms)
    if kind == "ask":
        fate = draw(st.sampled_from(("answered", "answered", "answered", "lost", "overtaken")))
        meanwhile = draw(st.sampled_from(range(policies))) if fate == "overtaken" else None
        return Ask(draw(asked), lose=fate == "lost", meanwhile=meanwhile)
    if kind == "batch":
        return Batch(tuple(draw(st.lists(asked, min_size=2, max_size=3))))
    if kind == "publish":
        which = draw(st.sampled_from(range(policies)))
        return Publish(
            which, draw(st.sampled_from((True, True, False))), draw(st.sampled_from((False, True)))
        )
    if kind == "budget":
        return SetBudget(draw(st.sampled_from(("30", "4", "1"))))
    return Withdraw() if kind == "withdraw" else Refresh()
