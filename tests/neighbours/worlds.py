"""A small world: columns, a source, policies, two databases, and what happens to them in turn.

Every part is drawn by itself, so that all of them meet each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.neighbours.columns import MISSING, OUTSIDE, Column, columns
from tests.neighbours.promises import Promise, promises
from tests.neighbours.questions import REACH, SPEND, Question, Terms, questions
from tests.neighbours.rows import People, Rows, in_view, neighbour, record, rows
from tests.neighbours.sources import FILTERED, Place, full_names


@dataclass(frozen=True)
class Ask:
    """One question; ``lose``: the answer does not come out; ``meanwhile``: this policy is published then.

    ``by``: the number of who asks it.
    """

    question: Question
    lose: bool = False
    meanwhile: int | None = None
    by: int = 0


@dataclass(frozen=True)
class Batch:
    """Questions that are settled on together; ``lose``: the number of the answer that does not come out."""

    questions: tuple[Question, ...]
    lose: int | None = None
    by: int = 0


@dataclass(frozen=True)
class Synthesize:
    """A synthetic table of all columns, of which some are kept as they are where that is allowed."""

    epsilon: str
    keep: tuple[int, ...] = ()
    target: int | None = None
    by: int = 0


@dataclass(frozen=True)
class Grant:
    """Somebody may spend so much; whoever has no grant may not spend anything from then on."""

    to: int
    amount: str


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


@dataclass(frozen=True)
class Again:
    """The same rows are declared under another name; ``confirm``: it is said that the promises add up."""

    confirm: bool


Step = Ask | Batch | Synthesize | Publish | Withdraw | SetBudget | Refresh | Again | Grant


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

    @property
    def granted(self) -> bool:
        """Whether somebody gets a grant."""
        return any(isinstance(step, Grant) for step in self.steps)

    @property
    def public(self) -> bool:
        """Whether the first column is, by what was said about the rows."""
        return self.place.public or (self.people is not None and self.people.public)


Acts = tuple[tuple[str, ...], ...]
SHARPER: Acts = (
    ("ask", "sharper"),
    ("ask", "sharper", "sharper"),
    ("ask", "lost sharper", "sharper"),
    ("ask", "refresh", "sharper"),
    ("ask", "sharper", "publish"),
    ("ask", "publish", "sharper"),
    ("ask", "publish", "sharper", "publish", "ask"),
)
"""The same question again, more accurately."""
ALONE: Acts = (("ask",), ("ask", "ask"), ("lost", "ask"), ("ask", "ask", "ask"), ("ask", "again"))
"""Questions under one policy, one by one."""
TOGETHER: Acts = (
    ("batch",),
    ("batch",),
    ("ask", "batch"),
    ("lost", "batch"),
    ("lost batch", "ask"),
    ("lost batch", "batch"),
)
"""Baskets under one policy."""
AT_ONCE = ALONE + TOGETHER
CHANGING: Acts = (
    ("ask", "publish"),
    ("batch", "publish"),
    ("ask", "publish", "ask"),
    ("batch", "publish", "ask"),
    ("ask", "publish", "batch"),
    ("ask", "ask", "publish", "ask"),
    ("lost", "publish", "ask"),
    ("lost batch", "publish"),
    ("batch", "publish", "batch"),
)
"""A policy that follows another."""
KEEPING: Acts = (
    ("overtaken", "ask"),
    ("overtaken", "publish", "ask"),
    ("ask", "publish", "withdraw", "ask"),
    ("ask", "budget", "publish", "budget", "ask"),
    ("ask", "publish", "budget", "ask"),
    ("ask", "refresh", "publish", "ask"),
    ("ask", "refresh", "ask", "publish"),
    ("ask", "publish", "ask", "publish", "ask"),
    ("lost batch", "publish", "batch", "publish"),
    ("ask", "grant", "ask", "publish", "ask"),
)
"""Promises that are kept beside newer ones, overtaken, taken back."""
IN_TIME = CHANGING + KEEPING
MADE_UP: Acts = (
    ("synthesize",),
    ("synthesize",),
    ("synthesize", "ask"),
    ("synthesize", "publish"),
    ("synthesize", "publish", "ask"),
    ("ask", "publish", "synthesize"),
)
"""Synthetic tables."""


PEOPLE: tuple[People | None, ...] = (
    *[None] * 7,
    *[People(2, keyed=True)] * 3,
    *[People(2, keyed=False)] * 2,
    People(3, keyed=True),
    People(2, keyed=False, told="person"),
    People(2, keyed=False, told="person", public=True),
    People(1, keyed=True, told="row_key"),
)


@dataclass(frozen=True)
class Scope:
    """What worlds are made of."""

    acts: Acts = AT_ONCE + IN_TIME
    columns: tuple[str, ...] = ("integer", "category", "wide", "real", "boolean", "date", "ordered")
    places: tuple[Place, ...] = (Place("sqlite"),)
    people: tuple[People | None, ...] = PEOPLE
    terms: tuple[Terms, ...] = SPEND
    members: int = 3
    """The most questions of a batch."""
    kinds: tuple[str, ...] = ()
    """Of questions, where not all of them are asked."""
    last: tuple[str, ...] = ()
    """Of the question in the last step, if others are asked there."""
    widths: tuple[int, ...] = (2, 2, 1, 2, 1, 3)
    """How many columns there are."""
    rules: tuple[tuple[str, ...], ...] = ()
    """Of each policy, where not all of them occur."""
    presence: tuple[bool, ...] = ()
    """Whether each policy hides it, where that is not left to chance."""
    sizes: tuple[int, ...] = (3, 2, 4)
    """Of columns."""
    missing: tuple[str, ...] = MISSING
    outside: tuple[str, ...] = OUTSIDE
    conditions: tuple[int, ...] = (0, 0, 0, 1, 1, 2)
    """How many a question has."""
    steady: bool = False
    """Whether each policy follows the one before it, confirmed, and nothing is taken back."""
    known: tuple[tuple[bool, ...], ...] = ((False,),)
    """Whether something is known under each policy; the last one goes for all that follow."""
    facts: tuple[str, ...] = ()
    """What kinds of counts are known, where not all of them are."""
    grants: tuple[int, ...] = (0,)
    """How many there are before anything else happens."""


PLACES: tuple[Place, ...] = (
    *[Place("sqlite")] * 24,
    *[Place("sqlite", collation="NOCASE")] * 2,
    Place("sqlite", view=FILTERED),
    Place("sqlite", view=FILTERED, public=True),
    Place("duckdb"),
    Place("duckdb", texts=True, collation="NOCASE"),
    Place("csv"),
    Place("parquet"),
)
"""SQLite is quickest; every kind occurs often enough among thousands."""
TABLES = (Place("sqlite", tables=True),)
"""Rows of one of several tables."""
TERMS = (*SPEND, *SPEND, *REACH)
KNOWN = ((False, False, True),)
"""Under one policy of three something is known."""
GRANTS = (0,) * 6 + (1, 2)
EVERYTHING = Scope(places=PLACES, terms=TERMS, known=KNOWN, grants=GRANTS)


@st.composite
def worlds(draw: st.DrawFn, scope: Scope = EVERYTHING) -> World:
    """A world and a neighbour of its database under one of its policies."""
    acts = draw(st.sampled_from(scope.acts))
    declared = draw(columns(scope.columns, scope.widths, scope.sizes, scope.missing, scope.outside))
    place = draw(st.sampled_from(scope.places))
    if place.tables:
        declared = full_names(declared)
    people = draw(st.sampled_from(scope.people))
    changes = acts.count("publish") + acts.count("overtaken")
    promised = tuple(
        draw(
            promises(
                declared,
                only=scope.rules[at : at + 1],
                presence=scope.presence[at : at + 1],
                known=scope.known[min(at, len(scope.known) - 1)],
                facts=scope.facts,
            )
        )
        for at in range(1 + changes)
    )
    known = any(promise.known for promise in promised)
    one = draw(rows(declared, people, texts=place.holds_texts, all_count=known))
    under = draw(st.sampled_from(promised))
    public = place.public or (people is not None and people.public)
    other = draw(neighbour(under, declared, one, people, texts=place.holds_texts, public=public))
    if draw(st.booleans()):
        one, other = other, one
    given = draw(st.sampled_from(scope.grants))
    steps: list[Step] = [draw(_grants()) for _ in range(given)]
    next_policy = 1
    for number, act in enumerate(acts, start=1):
        if act.endswith("sharper"):
            last = next(step for step in reversed(steps) if isinstance(step, Ask))
            less = draw(st.sampled_from((0.5, 0.8, 0.3)))
            steps.append(Ask(last.question.within(less), act.startswith("lost"), by=last.by))
            continue
        then = replace(scope, kinds=scope.last) if scope.last and number == len(acts) else scope
        steps.append(draw(_steps(act, declared, then, next_policy, askers=2 if given else 1)))
        next_policy += act in ("publish", "overtaken")
    budget = draw(st.sampled_from(("9", "2")))
    told = _told(promised, declared, place, one, other) if known else promised
    return World(declared, place, people, told, one, other, budget, tuple(steps))


def _told(
    promised: tuple[Promise, ...], declared: tuple[Column, ...], place: Place, one: Rows, other: Rows
) -> tuple[Promise, ...]:
    """With the answers to what is known, where they are said, as they are in both databases."""
    sides = [
        [
            *[(0,) * len(declared)] * place.filler,
            *(record(declared, row) for row in in_view(all_rows, bool(place.view))),
        ]
        for all_rows in (one, other)
    ]
    return tuple(
        replace(promise, known=promise.known and promise.known.told(declared, *sides)) for promise in promised
    )


@st.composite
def _grants(draw: st.DrawFn) -> Grant:
    return Grant(draw(st.sampled_from((0, 1))), draw(st.sampled_from(("1", "0.5", "1.5", "6"))))


@st.composite
def _steps(
    draw: st.DrawFn, act: str, declared: tuple[Column, ...], scope: Scope, policy: int, askers: int
) -> Step:
    asked = questions(declared, terms=scope.terms, only=scope.kinds, conditions=scope.conditions)
    if act in ("ask", "lost", "overtaken"):
        by = draw(st.sampled_from(range(askers)))
        return Ask(draw(asked), act == "lost", policy if act == "overtaken" else None, by)
    if act in ("batch", "lost batch"):
        members = draw(st.lists(asked, min_size=scope.members - 1, max_size=scope.members))
        lose = draw(st.sampled_from((1, 1, 0))) if act == "lost batch" else None
        return Batch(tuple(members), lose, draw(st.sampled_from(range(askers))))
    if act == "grant":
        return draw(_grants())
    if act == "synthesize":
        places = range(len(declared))
        keep = tuple(place for place in places if draw(st.booleans()) and draw(st.booleans()))
        return Synthesize(draw(st.sampled_from(("1", "4"))), keep, draw(st.sampled_from((None, *places))))
    if act == "again":
        return Again(draw(st.booleans()))
    if act == "publish" and scope.steady:
        return Publish(policy)
    if act == "publish":
        which = draw(st.sampled_from((policy, policy, policy, 0)))
        confirm = draw(st.sampled_from((True, True, False)))
        return Publish(which, confirm, withdraw=draw(st.booleans()))
    if act == "budget":
        return SetBudget(draw(st.sampled_from(("30", "4", "1"))))
    return Withdraw() if act == "withdraw" else Refresh()
