"""What people send to sign in, to manage accounts and to manage datasets. Unknown fields are refused."""

from __future__ import annotations

from abc import ABC
from typing import Any, Final, Literal, final

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic_core import PydanticCustomError

from blowfishdb.adapters.copies.values import SourceKind
from blowfishdb.adapters.tokens import Role
from blowfishdb.core.domain.tables import Tables

Plain = dict[str, Any]
Value = int | float | str | bool

_DEEPEST: Final = 150  # a condition of 64 levels has 128 lists and objects
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f]+$"
_SEVERAL: Final = "Several tables of a database that belong together by keys; not with table or view."
_NO_NULL: Final = r"^[^\x00]+$"


class Body(BaseModel, ABC):
    """A body; a field that nobody knows is more likely a typo than something to overlook."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _not_too_deep(cls, sent: Any) -> Any:
        """What is nested deeper than anything we know how to read is not walked through."""
        level = [sent] if isinstance(sent, dict | list) else []
        for _ in range(_DEEPEST):
            inner = [each.values() if isinstance(each, dict) else each for each in level]
            level = [each for values in inner for each in values if isinstance(each, dict | list)]
            if not level:
                return sent
        raise PydanticCustomError("too_deep", "it is nested too deeply")


@final
class SignIn(Body):
    """A name and a password."""

    user: str = Field(max_length=255)
    password: SecretStr = Field(max_length=2_000)


@final
class DemoRole(Body):
    """The role to play in the demonstration."""

    role: Role


@final
class NewToken(Body):
    """A token to make: what it is for, and for how many days."""

    label: str = Field(default="", max_length=255)
    days: float | None = Field(default=None, gt=0, le=3650)


@final
class NewUser(Body):
    """Someone to let in; without a password, by tokens only."""

    user: str = Field(max_length=255)
    role: Role
    password: SecretStr | None = Field(default=None, max_length=2_000)


@final
class WireChange(Body):
    """What connections of database clients begin with; an empty text takes a value back."""

    error: str | None = Field(default=None, max_length=100)
    confidence: str | None = Field(default=None, max_length=100)
    each: str | None = Field(default=None, max_length=100)
    epsilon: str | None = Field(default=None, max_length=100)
    max_cost: str | None = Field(default=None, max_length=100)
    daily_cap: str | None = Field(default=None, max_length=100)
    intervals: str | None = Field(default=None, max_length=100)
    preview: str | None = Field(default=None, max_length=100)
    reset: bool = False
    """Forget all of them first."""

    def said(self) -> dict[str, str | None]:
        """The settings by their names."""
        return self.model_dump(exclude={"reset"})


@final
class UserChange(Body):
    """What to change about a user."""

    role: Role | None = None
    password: SecretStr | None = Field(default=None, max_length=2_000)


class Located(Body, ABC):
    """Where rows are: a path or a database address, and a table or a SELECT in it."""

    source: str = Field(
        pattern=_PRINTABLE,
        max_length=4_000,
        description="A path on the server (DuckDB, SQLite, CSV, Parquet) or a database address.",
        examples=["salaries.duckdb"],
    )
    table: str | None = Field(
        default=None, pattern=_PRINTABLE, max_length=255, description="Whose rows; not with view."
    )
    view: str | None = Field(
        default=None, pattern=_NO_NULL, max_length=100_000, description="A SELECT over several tables."
    )


@final
class TableSaid(Body):
    """One of several tables: that of people, one whose rows belong to another's, or a public one."""

    kind: Literal["people", "child", "lookup"]
    key: str | None = Field(
        default=None, max_length=255, description="The column that tells its rows apart, or is looked up in."
    )
    of: str | None = Field(default=None, max_length=255, description="The table that it belongs to.")
    by: str | None = Field(default=None, max_length=255, description="By which column.")
    rows_per_person: int | None = Field(default=None, ge=1, le=1_000_000, description="Of child tables.")
    table: str | None = Field(
        default=None, max_length=255, description="What it is called in the database, if not like here."
    )


TablesSaid = dict[str, TableSaid]


def said_tables(said: TablesSaid | None) -> Tables | None:
    """Several tables as they were sent; None if there is one."""
    if said is None:
        return None
    return Tables.from_plain({name: each.model_dump(exclude_none=True) for name, each in said.items()})


@final
class DialectSaid(Body):
    """How a file of texts is written, or which sheet is read; what is not said is as in most files."""

    delimiter: str = Field(default=",", min_length=1, max_length=1)
    quote: Literal['"', "'", ""] = '"'
    encoding: str = Field(default="utf-8", max_length=40)
    header: bool = Field(default=True, description="Whether the first line names the columns.")
    decimal: Literal[".", ","] = "."
    sheet: str = Field(
        default="", max_length=255, description="The sheet of a file of Excel, and of no other."
    )


@final
class Place(Located):
    """A source to look at; how a file of texts is written is found, unless it is said."""

    dialect: DialectSaid | None = None
    tables: TablesSaid | None = Field(default=None, max_length=64, description=_SEVERAL)
    rare: int = Field(
        default=10,
        ge=1,
        description="Texts that fewer rows have are not proposed by name but count as 'other'.",
    )


@final
class Refresh(Body):
    """How to read a file again, if not as before, and that its rows are in another dataset too."""

    dialect: DialectSaid | None = None
    same_rows: bool = False


class Declared(Located):
    """A dataset to declare, but for its columns."""

    name: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_. -]{0,254}$")
    person: str | None = Field(
        default=None, max_length=255, description="The column that says whose row it is."
    )
    rows_per_person: int = Field(default=1, ge=1, le=1_000_000, description="At most so many count for each.")
    row_key: str | None = Field(
        default=None,
        max_length=255,
        description="A column that never changes and decides which of them count.",
    )
    public: list[str] = Field(
        default=[],
        max_length=1_000,
        description="Columns that no policy may hide, such as those in WHERE of the view.",
    )
    rows_vary: bool | None = Field(
        default=None,
        description="Whether values that may be hidden decide which rows there are. A view in the database "
        "needs an answer; every policy then hides presence, if they do.",
    )
    same_rows: bool = Field(
        default=False,
        description="Confirms that these rows are in another dataset already, and that the promises add up.",
    )
    opened: bool = Field(
        default=True, description="If not, it takes no questions before a policy is published."
    )
    kind: SourceKind | None = Field(
        default=None,
        description="Files of rows are copied; rows in a database are frozen, unless said to be live.",
    )
    dialect: DialectSaid | None = Field(
        default=None, description="How a file of texts is written, as a proposal says it."
    )
    tables: TablesSaid | None = Field(
        default=None,
        max_length=64,
        description=_SEVERAL,
        examples=[
            {
                "people": {"kind": "people", "key": "id"},
                "orders": {"kind": "child", "of": "people", "by": "person", "rows_per_person": 20},
            }
        ],
    )


@final
class NewDataset(Declared):
    """A dataset to declare."""

    domain: dict[str, Plain] = Field(
        description="The columns, in the form that GET …/schema returns.",
        examples=[{"salary": {"kind": "integer", "lo": 0, "hi": 199_999, "step": 1}}],
    )


@final
class DatasetChange(Body):
    """How a dataset introduces itself, and whether it takes questions; what is not said stays."""

    title: str | None = Field(default=None, max_length=120)
    description: str | None = Field(default=None, max_length=4_000)
    owner: str | None = Field(default=None, max_length=255)
    contact: str | None = Field(default=None, max_length=255, description="Whom to write to.")
    listed: bool | None = Field(
        default=None, description="Whether its promise is on the front page, for everyone to read."
    )
    opened: bool | None = Field(default=None, description="False takes no more questions; true does again.")


@final
class SchemaChange(Body):
    """Columns to declare anew; the others stay as they are."""

    columns: dict[str, Plain] = Field(min_length=1)


@final
class ColumnRule(Body):
    """What to hide of one column: exactly one of these."""

    hide_within: int | float | str | None = Field(default=None, description="A distance in data units.")
    groups: dict[str, list[Value]] | list[list[Value]] | None = None
    groups_of: int | float | str | None = Field(default=None, description="The width of equal groups.")
    between: list[tuple[Value, Value]] | None = Field(default=None, description="Listed pairs.")
    everything: bool = False
    nothing: bool = False


@final
class PolicyDraft(Body):
    """A policy in one of three forms: its graph, its file, or what to hide of each column.

    Columns that are not named are hidden entirely; ``joint`` and ``hide_presence`` go with ``columns``.
    ``known`` goes with a graph or with columns; a file has its own section for it. Without it, what the draft
    takes to be known stays; an empty one says that nothing is.
    """

    graph: Plain | None = None
    yaml: str | None = Field(default=None, max_length=900_000)
    columns: dict[str, ColumnRule] | None = Field(default=None, examples=[{"salary": {"hide_within": 1000}}])
    joint: bool = True
    hide_presence: bool = False
    known: Plain | None = Field(
        default=None,
        description="What everyone knows already, in the form that GET …/policy returns.",
        examples=[{"marginals": [{"columns": ["region"]}]}],
    )


@final
class Confirmation(Body):
    """Whether to publish although answers were already given under the current policy.

    ``withdraw``: a policy that hides less replaces the promise made so far instead of standing beside it.
    """

    confirm: bool = False
    withdraw: bool = False


@final
class Version(Body):
    """The version of a policy."""

    version: int = Field(ge=1, le=2**31 - 1, examples=[2])


@final
class Total(Body):
    """A total privacy loss, as a decimal text."""

    total: str | float | int = Field(examples=["2.0"])


@final
class Allowance(Body):
    """What someone may spend, as a decimal text."""

    epsilon: str | float | int = Field(examples=["0.5"])
