"""What the routes of this folder return, where it has a fixed shape."""

from __future__ import annotations

from abc import ABC
from datetime import datetime
from typing import Any, final

from pydantic import BaseModel, Field

from blowfishdb.adapters.copies.values import SourceKind
from blowfishdb.adapters.tokens import Role
from blowfishdb.entrypoints.server.api.requests import Plain


@final
class Me(BaseModel):
    """Who is signed in; ``csrf`` is what a browser sends along when it changes something."""

    user: str
    role: Role
    csrf: str | None = None
    demo: bool = False


class TokenFacts(BaseModel, ABC):
    """What may be known of a token."""

    id: str
    label: str
    created: datetime
    expires: datetime
    active: bool


@final
class TokenShown(TokenFacts):
    """A token that was handed over."""


@final
class TokenMade(TokenFacts):
    """A new token; its text is shown this once."""

    token: str


@final
class TokenList(BaseModel):
    """One's own tokens."""

    tokens: list[TokenShown]


@final
class WireAccess(BaseModel):
    """How database clients of a user come in: whether there is a wire password, what they begin with."""

    user: str
    active: bool
    defaults: dict[str, str]
    highest_cap: str | None
    """The cap for a day that a curator has set, which its user cannot raise."""
    spent_today: str


@final
class WireMade(BaseModel):
    """A new wire password; its text is shown this once."""

    user: str
    password: str


@final
class WireDefaults(BaseModel):
    """What questions of database clients about a dataset begin with."""

    dataset: str
    defaults: dict[str, str]


@final
class User(BaseModel):
    """Someone who may come in; not ``active`` once revoked."""

    user: str
    role: Role
    created: datetime
    active: bool


@final
class UserList(BaseModel):
    """Everyone, also those who were revoked."""

    users: list[User]


@final
class DatasetSummary(BaseModel):
    """A dataset in a list; ``left`` is what the caller can still spend on it."""

    name: str
    columns: list[str]
    policy_version: int
    snapshot: int
    budget: str
    left: str
    title: str
    standing: str


@final
class DatasetList(BaseModel):
    """All datasets."""

    datasets: list[DatasetSummary]


@final
class TableShown(BaseModel):
    """One of several tables: how many rows of it count for a person, and which columns a row has."""

    name: str
    rows_per_person: int
    columns: list[str]


@final
class FaceShown(BaseModel):
    """How a dataset introduces itself, as its curator wrote it."""

    title: str
    description: str
    owner: str
    contact: str
    listed: bool


@final
class PublicPromise(BaseModel):
    """What is promised about a dataset whose curator lets everyone read it."""

    dataset: str
    title: str
    description: str
    contact: str
    hidden: list[str]
    sure: str = Field(description="How sure an attacker can be at most, in words.")
    since: str | None = Field(description="The day of the policy that promises it.")


@final
class PromiseList(BaseModel):
    """The public promises of a server."""

    promises: list[PublicPromise]


@final
class DatasetShown(BaseModel):
    """What everyone who may ask about a dataset may know of it."""

    name: str
    domain: dict[str, Plain]
    policy: Plain
    known: Plain | None
    policy_version: int
    snapshot: int
    rows_per_person: int
    public: list[str]
    rows_vary: bool
    kind: SourceKind
    tables: list[TableShown]
    part_of: str | None
    keys: list[tuple[str, str]]
    standing: str = Field(description="'not open yet', 'open' or 'closed'.")
    face: FaceShown
    columns_in_words: list[str]
    policy_in_words: list[str]


@final
class CopyShown(BaseModel):
    """A copy of rows: its place in the folder of copies, its SHA-256, and how much it holds."""

    file: str
    sha256: str
    rows: int
    bytes: int
    taken: str


@final
class SourceShown(BaseModel):
    """Where the rows of a dataset come from, how a file was read, and the copy that answers come from."""

    dataset: str
    kind: SourceKind
    kind_in_words: str
    location: str
    snapshot: int
    dialect: Plain | None
    read_as: str | None
    copied: CopyShown | None = Field(serialization_alias="copy", validation_alias="copy")


@final
class CopyList(BaseModel):
    """The sources of all datasets, and the bytes that their copies take of those they may."""

    sources: list[SourceShown]
    used: int
    quota: int


@final
class Deleted(BaseModel):
    """A dataset that is no more, and what is left of it."""

    dataset: str
    words: str


@final
class Schema(BaseModel):
    """The declared columns."""

    domain: dict[str, Plain]


class PolicyFacts(BaseModel, ABC):
    """A policy as a graph, in words, and as a file (None where it has no form as a file).

    ``known`` is what everyone knows already; None where that is nothing.
    """

    graph: Plain
    known: Plain | None
    sentences: list[str]
    yaml: str | None


@final
class PolicyText(PolicyFacts):
    """A policy that is not published."""


@final
class PolicyShown(PolicyFacts):
    """The published policy; curators also see the draft that differs from it."""

    version: int
    draft: PolicyText | None = None


@final
class Difference(BaseModel):
    """What a policy would change, in words; None where that could not be told."""

    sentences: list[str]
    tightens: bool | None
    loosens: bool | None
    same: bool | None
    newly_exact: list[str]
    no_longer_exact: list[str]
    columns: list[dict[str, Any]]
    kept: str = ""


@final
class PastShown(BaseModel):
    """What answers so far lost between values that a policy hides; a null ``epsilon`` is infinite."""

    epsilon: str | None
    columns: list[str]
    sentence: str


@final
class WrongCount(BaseModel):
    """A declared count that is not true of the data."""

    what: str
    declared: int
    true: int


@final
class CheckShown(BaseModel):
    """How many declared counts were looked at, and which are not true of the data."""

    checked: int
    wrong: list[WrongCount]
    sentences: list[str]


@final
class PromiseShown(BaseModel):
    """An earlier policy that is still promised, and what may still be lost under it."""

    version: int
    policy: dict[str, Any]
    sentences: list[str]
    total: str
    remaining: str


@final
class Promises(BaseModel):
    """Earlier policies that new answers have to fit under too, oldest first."""

    promises: list[PromiseShown]


@final
class Protection(BaseModel):
    """How sure an attacker can become: about two values, and by how far apart two values are."""

    column: str
    budget: str
    probe: dict[str, Any] | None
    curve: list[dict[str, Any]]


@final
class BudgetShown(BaseModel):
    """Exact decimal texts beside whole numbers of nano-ε; ``left`` is what the caller can still spend."""

    dataset: str
    total: str
    nano_total: int
    spent: str
    nano_spent: int
    held: str
    nano_held: int
    carried: str
    nano_carried: int
    remaining: str
    nano_remaining: int
    left: str
    nano_left: int


@final
class GrantShown(BaseModel):
    """What someone may spend, has spent, and holds; ``granted`` is None for one without a grant."""

    user: str
    granted: str | None
    nano_granted: int | None
    spent: str
    nano_spent: int
    held: str
    nano_held: int


@final
class GrantList(BaseModel):
    """Everyone who has a grant or ever asked."""

    dataset: str
    grants: list[GrantShown]


@final
class EventShown(BaseModel):
    """One entry of the ledger's hash chain."""

    seq: int
    at: datetime
    kind: str
    dataset: str
    analyst: str
    charge: int | None
    amount: str
    nano_amount: int
    facts: Plain
    hash: str
    salt: str = Field(description="Hashed with the rest, so that nothing can be guessed from the hash.")
    sealed: list[Plain] = Field(description="Seals of what was changed outside the ledger.")


@final
class EventList(BaseModel):
    """A page of events."""

    events: list[EventShown]
    next: int | None = Field(description="The ``after`` of the next page; null on the last one.")


@final
class Audit(BaseModel):
    """The books, what is wrong with them, and what was looked at."""

    verified: bool
    problems: list[str]
    checked: dict[str, int] = Field(description="How many of what were compared with the events.")
    head: str = Field(description="The number of the last event and its hash, to be kept elsewhere.")
    covered_since: str | None = Field(
        description="Since when facts outside the ledger are on record; null: from the beginning."
    )
    witnessed: int | None = Field(description="With how many heads of the witness file it was compared.")
    events: list[EventShown]


@final
class HeadShown(BaseModel):
    """Where the books end."""

    head: str = Field(examples=["412:3f9a6c0e5d1b2a4f8e7c6b5a4f3e2d1c0b9a8f7e"])


@final
class Health(BaseModel):
    """Whether the server can reach its workspace."""

    status: str = Field(examples=["ok"])
    version: str
