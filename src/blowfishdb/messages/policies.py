"""What is known of a dataset and promised about it: its facts, earlier policies, what answers so far told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, final

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.plain import Message
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.policy import Policy

_LONGEST: Final = {"title": 120, "description": 4_000, "owner": 255, "contact": 255}


@final
@dataclass(frozen=True)
class Face(Message):
    """How a dataset introduces itself. ``listed``: its promise is on the front page, for everyone to read.

    >>> people.introduce(title="Salaries of 2026", contact="data@example.org").face.title
    'Salaries of 2026'
    """

    title: str = ""
    description: str = ""
    owner: str = ""
    contact: str = ""
    listed: bool = False

    def __post_init__(self) -> None:
        for name, longest in _LONGEST.items():
            text = getattr(self, name)
            if not isinstance(text, str) or len(text) > longest:
                raise InvalidInput(f"The {name} of a dataset has at most {longest:,} characters.")
            if not text.replace("\n", "").replace("\r", "").isprintable() or (
                "\n" in text and name != "description"
            ):
                raise InvalidInput(f"The {name} of a dataset is a text that can be printed.")
        if not isinstance(self.listed, bool):
            raise InvalidInput("The promise of a dataset is listed, or it is not.")


@final
@dataclass(frozen=True)
class TableFacts(Message):
    """One of several tables of a dataset: how many of its rows count for one person, and which columns a row
    has, those of the rows that it belongs to included."""

    name: str
    rows_per_person: int
    columns: tuple[str, ...]


@final
@dataclass(frozen=True, eq=False)
class DatasetInfo(Message):
    """What everyone who may ask about a dataset may know of it."""

    name: str
    domain: Domain
    policy: Policy
    policy_version: int
    snapshot: int
    rows_per_person: int
    public: tuple[str, ...] = ()
    """Declared columns that no policy may hide."""
    rows_vary: bool = False
    """Whether hidden values decide which rows there are; then every policy hides presence."""
    kind: str = "frozen"
    """Whether answers come from a copy, from rows that are left as they are, or from rows that change."""
    tables: tuple[TableFacts, ...] = ()
    """The tables that can be counted, of a dataset that has several; none for one that has a single one."""
    part_of: str | None = None
    """The dataset that this is one table of."""
    keys: tuple[tuple[str, str], ...] = ()
    """By which columns rows belong to others: that of a row, and that of what it belongs to."""
    standing: str = "open"
    """Whether it can be asked about: ``not open yet`` (no policy is published), ``open`` or ``closed``."""
    face: Face = Face()
    """Title, description, owner and contact, as its curator wrote them."""
    may_keep: tuple[str, ...] = ()
    """Columns whose rows synthetic tables may keep as they are, as its curator confirmed."""

    @property
    def title(self) -> str:
        """What it is called on pages: its title, or else its name."""
        return self.face.title or self.name

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data: the graph of the policy, and beside it what everyone knows."""
        policy, known = codec.plain(self.policy.graph), codec.plain_known(self.policy)
        return {**super().to_plain(), "policy": policy, "known": known}

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> Self:
        """From its plain form."""
        whole = {"domain": stored["domain"], "graph": stored["policy"]}
        if stored.get("known"):
            whole["known"] = stored["known"]
        return super().from_plain({**stored, "policy": whole})


@final
@dataclass(frozen=True)
class PastLoss(Message):
    """What earlier answers lost under a policy, and in which columns most.

    >>> people.past(people.policy).sentence
    'No answer so far tells apart what this policy hides.'
    """

    _said = ("sentence",)

    epsilon: Epsilon | None
    """None if it is infinite."""
    columns: tuple[str, ...]

    @property
    def tells(self) -> bool:
        """Whether anything was lost."""
        return self.epsilon is None or bool(self.epsilon)

    @property
    def sentence(self) -> str:
        """For the curator, and for everyone who reads the guarantee."""
        where = f" in {', '.join(map(repr, self.columns))}" if self.columns else ""
        if self.epsilon is None:
            return (
                f"Counting all answers so far, an attacker may be certain between two values{where} that "
                "this policy hides: an earlier answer told them apart exactly, or nothing is proven about it."
            )
        if not self.epsilon:
            return "No answer so far tells apart what this policy hides."
        from blowfishdb.core.policy.protection import at_most, certainty  # not for those who only ask

        sure = at_most(certainty(float(self.epsilon)))
        return (
            f"Counting all answers so far, an attacker can be {sure} between two values{where} that this "
            f"policy hides (a loss of ε {self.epsilon:.3g})."
        )


@final
@dataclass(frozen=True)
class EarlierPolicy(Message):
    """An earlier policy that is still promised, and what may still be lost under it.

    >>> answer = people["salary"].cumulative(bins=20).accurate_to(50).ask()
    >>> weaker = people.hiding_within("salary", 100)
    >>> [earlier.version for earlier in people.publish(weaker, confirm=True).kept]
    [2]
    """

    _said = ("sentences",)

    version: int
    policy: Policy
    total: Epsilon
    remaining: Epsilon

    @property
    def sentences(self) -> tuple[str, ...]:
        """What it hides, in words."""
        from blowfishdb.core.policy.words import sentences  # a client reads what the server said

        return tuple(sentences(self.policy))


@final
@dataclass(frozen=True)
class PricedStart(Message):
    """A policy to begin with, and what common questions within ± ``error`` would cost under it.

    A price is None where the policy refuses the question.
    """

    _said = ("total", "sentences")

    key: str
    title: str
    words: str
    policy: Policy
    error: float
    questions: tuple[str, ...]
    prices: tuple[Epsilon | None, ...]

    @property
    def total(self) -> Epsilon:
        """What all of them cost one by one."""
        return sum((price for price in self.prices if price is not None), Epsilon(0))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What it hides, in words."""
        from blowfishdb.core.policy.words import sentences  # a client reads what the server said

        return tuple(sentences(self.policy))
