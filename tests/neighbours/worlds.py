"""A small world: columns, a source, policies, two databases, and what happens to them in turn.

Every part is drawn by itself, so that all of them meet each other.
"""

from __future__ import annotations

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


Acts = tuple[tuple[str, ...], ...]
AT_ONCE: Acts = (("ask",), ("ask", "ask"), ("batch",), ("batch",), ("ask", "batch"), ("lost", "ask", "batch"))
"""What happens under one policy."""
IN_TIME: Acts = (
    ("ask", "publish"),
    ("ask", "publish", "ask"),
    ("batch", "publish", "ask"),
    ("ask", "publish", "batch"),
    ("ask", "ask", "publish", "ask"),
    ("lost", "publish", "ask"),
    ("overtaken", "ask"),
    ("overtaken", "publish", "ask"),
    ("ask", "publish", "withdraw", "ask"),
    ("ask", "budget", "publish", "budget", "ask"),
    ("ask", "publish", "budget", "ask"),
    ("ask", "refresh", "publish", "ask"),
    ("ask", "publish", "ask", "publish", "ask"),
)
"""What happens when policies change."""


@dataclass(frozen=True)
class Scope:
    """What worlds are made of."""

    acts: Acts = AT_ONCE + IN_TIME
    columns: tuple[str, ...] = ("integer", "category", "wide", "real", "boolean", "date", "ordered")
    places: tuple[Place, ...] = (Place("sqlite"),)
    people: tuple[People | None, ...] = (None, None, People(2, keyed=True), People(2, keyed=False))
    terms: tuple[Terms, ...] = SPEND
    members: int = 3
    """The most questions of a batch."""


PLACES: tuple[Place, ...] = (
    *[Place("sqlite")] * 7,
    Place("sqlite", collation="NOCASE"),
    *[Place("duckdb")] * 2,
    Place("duckdb", texts=True),
    Place("csv"),
    Place("parquet"),
)
TERMS = (*SPEND, *SPEND, *REACH)
EVERYTHING = Scope(places=PLACES, terms=TERMS)


@st.composite
def worlds(draw: st.DrawFn, scope: Scope = EVERYTHING) -> World:
    """A world and a neighbour of its database under one of its policies."""
    acts = draw(st.sampled_from(scope.acts))
    declared = draw(columns(scope.columns))
    place = draw(st.sampled_from(scope.places))
    people = draw(st.sampled_from(scope.people))
    changes = acts.count("publish") + acts.count("overtaken")
    promised = tuple(draw(promises(declared)) for _ in range(1 + changes))
    one = draw(rows(declared, people, texts=place.holds_texts))
    under = draw(st.sampled_from(promised))
    other = draw(neighbour(under, declared, one, people, texts=place.holds_texts))
    if draw(st.booleans()):
        one, other = other, one
    steps, next_policy = [], 1
    for act in acts:
        steps.append(draw(_steps(act, declared, scope, next_policy)))
        next_policy += act in ("publish", "overtaken")
    budget = draw(st.sampled_from(("9", "2")))
    return World(declared, place, people, promised, one, other, budget, tuple(steps))


@st.composite
def _steps(draw: st.DrawFn, act: str, declared: tuple[Column, ...], scope: Scope, policy: int) -> Step:
    asked = questions(declared, terms=scope.terms)
    if act in ("ask", "lost", "overtaken"):
        return Ask(draw(asked), lose=act == "lost", meanwhile=policy if act == "overtaken" else None)
    if act == "batch":
        return Batch(tuple(draw(st.lists(asked, min_size=scope.members - 1, max_size=scope.members))))
    if act == "publish":
        which = draw(st.sampled_from((policy, policy, policy, 0)))
        confirm = draw(st.sampled_from((True, True, False)))
        return Publish(which, confirm, withdraw=draw(st.booleans()))
    if act == "budget":
        return SetBudget(draw(st.sampled_from(("30", "4", "1"))))
    return Withdraw() if act == "withdraw" else Refresh()
