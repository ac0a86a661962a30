"""Datasets: which there are, what their columns are, and declaring new ones.

Places whose rows a curator of a server may declare: folders and hosts named by whoever started it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import Response

from blowfishdb.adapters.backends import addresses
from blowfishdb.adapters.backends.addresses import file_of
from blowfishdb.adapters.copies.folder import UPLOAD
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, SourceError
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.words import sentences
from blowfishdb.entrypoints.server.access import Caller, Curator, SignedIn
from blowfishdb.entrypoints.server.api.requests import (
    DatasetChange,
    Declared,
    NewDataset,
    Place,
    Plain,
    Refresh,
    SchemaChange,
    said_tables,
)
from blowfishdb.entrypoints.server.api.responses import (
    CopyList,
    DatasetList,
    DatasetShown,
    DatasetSummary,
    Deleted,
    Schema,
    SourceShown,
)
from blowfishdb.entrypoints.server.problems import read
from blowfishdb.entrypoints.server.routing import PREFIX, Router
from blowfishdb.messages.policies import Face
from blowfishdb.service.advice import missing_prices
from blowfishdb.service.declaration import check_not_own
from blowfishdb.workspace.gateway import Gateway

if TYPE_CHECKING:
    from blowfishdb.adapters.proposal import Proposal

_OF_FILES: Final = ("sqlite", "duckdb", "spark-local")
_USUAL: Final = "data"
_OPTIONS: Final = {"sslmode", "sslrootcert", "options", "charset", "connect_timeout", "application_name"}
"""Options of an address that cannot lead to another host."""


def check_place(source: str, allowed: tuple[str, ...], store: str) -> None:
    """Refuse a source that is in none of the folders and on none of the hosts (nothing named: all are), and
    the workspace itself, before anything is looked at."""
    check_not_own(source, store)
    if allowed and not _is_allowed(source, allowed):
        raise InvalidInput(
            "This server reads rows only from the folders and hosts that it was started with: "
            f"{', '.join(allowed)}.",
            fixes=("rows in one of these places", "serve --sources, for whoever runs the server"),
        )


def usual_places(store: str) -> tuple[str, ...]:
    """Where rows may be if whoever starts a server names no place: a folder beside the workspace."""
    beside = Path() if "://" in store else Path(store).parent
    return (str((beside / _USUAL).resolve()),)


def _is_allowed(source: str, allowed: tuple[str, ...]) -> bool:
    scheme, address, _ = source.partition("://")
    if not address or scheme.split("+")[0] in _OF_FILES:  # the very file that would be opened
        path = None if "${" in source else file_of(source)
        return path is not None and _inside(path, allowed)
    url = addresses.parse_url(source)
    if "${" in (url.host or "") or not set(url.query) <= _OPTIONS:
        return False
    host = (url.host or "").lower()
    return bool(host) and (host in allowed or f"{host}:{url.port}" in allowed)


def _inside(path: Path, allowed: tuple[str, ...]) -> bool:
    """Symbolic links are followed first."""
    real = path.resolve()
    folders = [Path(each).resolve() for each in allowed]
    return any(real == folder or folder in real.parents for folder in folders)


router: Final = Router(PREFIX, tags=["Datasets"])


@router.get("/datasets", summary="All datasets")
def datasets(caller: SignedIn) -> DatasetList:
    """Every dataset, its budget, and what the caller can still spend on it. Where rows are is not told."""
    return DatasetList(datasets=[_summary(caller.gateway, name) for name in caller.gateway.datasets()])


@router.post("/datasets", summary="Declare a dataset", status_code=201)
def add_dataset(body: NewDataset, caller: Curator, response: Response) -> DatasetShown:
    """Say where rows are and which values they may hold.

    Everything about a record stays hidden until a policy says otherwise, and the budget is 1.
    """
    declare_dataset(caller, body, read("domain", lambda: codec.domain(body.domain)))
    response.headers["Location"] = f"/api/v1/datasets/{body.name}".replace(" ", "%20")
    return shown(caller.gateway, body.name)


@router.post("/datasets/proposal", summary="Propose columns for a source")
def proposal(body: Place, caller: Curator) -> Plain:
    """How the columns of a source could be declared.

    It is computed from the rows, so it is for the curator's eyes, and nothing holds until it is confirmed by
    declaring the dataset. For a file of texts it says how the file is read: send that along, too.
    """
    proposal = propose_columns(caller, body)
    plain = proposal.to_plain()
    for column, shown in zip(proposal.columns, plain["columns"], strict=True):
        shown["missing_prices"] = _prices(column.attribute) if column.some_missing else None
    return plain


def _prices(attribute: Attribute | None) -> Plain | None:
    """What a usual question costs if it is public who has no value, and if it is secret."""
    if attribute is None:
        return None
    prices = missing_prices(attribute)
    return {"question": prices.question, "public": str(prices.public), "secret": str(prices.secret)}


@router.get("/datasets/{dataset}", summary="One dataset")
def dataset(dataset: str, caller: SignedIn) -> DatasetShown:
    """Its columns and its policy, as data and in words."""
    return shown(caller.gateway, dataset)


@router.patch("/datasets/{dataset}", summary="Introduce, close or reopen a dataset")
def change(dataset: str, body: DatasetChange, caller: Curator) -> DatasetShown:
    """Its title, description, owner and contact; whether everyone may read its promise; whether it is open.

    Its name stays what it is.
    """
    change_dataset(caller, dataset, body)
    return shown(caller.gateway, dataset)


@router.post("/datasets/{dataset}/refresh", summary="Declare that the rows have changed")
def refresh(dataset: str, caller: Curator, body: Refresh | None = None) -> DatasetShown:
    """Answers from now on belong to a new snapshot. The same people are in it: what was spent stays spent.

    A file is read again as it was read before, unless a dialect is said. If it does not fit, the copy so far
    stays in force.
    """
    with typed_place():
        caller.gateway.refresh(dataset, **(body or Refresh()).model_dump())
    return shown(caller.gateway, dataset)


@router.delete("/datasets/{dataset}", summary="Delete a dataset")
def delete(dataset: str, caller: Curator) -> Deleted:
    """End a dataset and erase the copy of its rows. Its books stay, and its name cannot be used again."""
    return Deleted(dataset=dataset, words=caller.gateway.delete(dataset))


@router.get("/datasets/{dataset}/source", summary="Where the rows of a dataset come from")
def source(dataset: str, caller: Curator) -> SourceShown:
    """The kind of its source, how a file was read, and the copy that answers come from."""
    return SourceShown.model_validate(caller.gateway.source(dataset).to_plain())


@router.get("/copies", summary="All copies of rows")
def copies(caller: Curator) -> CopyList:
    """The sources of all datasets, and the room that their copies take."""
    return CopyList.model_validate(caller.gateway.copies().to_plain())


@router.get("/datasets/{dataset}/schema", summary="The columns of a dataset")
def schema(dataset: str, caller: SignedIn) -> Schema:
    """The declared columns, in the form in which they can be declared."""
    return Schema(domain=codec.plain(caller.gateway.facts(dataset).domain))


@router.patch("/datasets/{dataset}/schema", summary="Declare columns anew")
def redeclare(dataset: str, body: SchemaChange, caller: Curator) -> Schema:
    """Other columns or limits, while nothing has been asked; everything is hidden again."""
    declared = dict(caller.gateway.facts(dataset).domain.columns)
    new = read("columns", lambda: {name: codec.attribute(column) for name, column in body.columns.items()})
    domain = read("columns", lambda: Domain.of(declared | new))
    with typed_place():
        caller.gateway.redeclare(dataset, domain)
    return Schema(domain=codec.plain(domain))


# --- what pages do, too ---------------------------------------------------------------------------


def declare_dataset(caller: Caller, body: Declared, domain: Domain) -> None:
    """Declare a dataset whose rows are in a place that this server may read."""
    _check_source(caller, body.source)
    tables = read("tables", lambda: said_tables(body.tables))
    with typed_place():
        caller.gateway.add_dataset(
            **body.model_dump(exclude={"domain", "tables"}), tables=tables, domain=domain
        )


def change_dataset(caller: Caller, dataset: str, body: DatasetChange) -> None:
    """Write down what was said, and open or close it."""
    said = body.model_dump(exclude={"opened"}, exclude_none=True)
    before = caller.gateway.facts(dataset).face
    if said:
        caller.gateway.introduce(dataset, Face.from_plain(before.to_plain() | said))
    if body.opened is not None:
        caller.gateway.stand(dataset, opened=body.opened)


def propose_columns(caller: Caller, body: Place) -> Proposal:
    """How the columns of a source in a place that this server may read could be declared."""
    from blowfishdb.adapters.proposal import propose

    _check_source(caller, body.source)
    rest, seconds = body.model_dump(exclude={"source", "tables"}), caller.server.settings.proposal_seconds
    tables = read("tables", lambda: said_tables(body.tables))
    with typed_place():
        sent = body.source.startswith(UPLOAD)
        place = caller.gateway.sent(body.source) if sent else body.source
        return propose(place, **rest, tables=tables, timeout=seconds)


def _check_source(caller: Caller, source: str) -> None:
    """A file that was sent is ours to read; anything else must be in a place that was named."""
    if not source.startswith(UPLOAD):
        check_place(source, caller.server.settings.sources, caller.gateway.place)


@contextmanager
def typed_place() -> Iterator[None]:
    """A source that someone just typed and that cannot be used is their input, not an outage of ours."""
    try:
        yield
    except SourceError as error:
        raise InvalidInput(error.message, fixes=error.fixes) from error


def shown(gateway: Gateway, name: str) -> DatasetShown:
    """A dataset as everyone who may ask may see it."""
    facts = gateway.facts(name)
    words = [f"{column}: {facts.domain[column].describe()}" for column in facts.domain.names]
    return DatasetShown(
        **facts.to_plain(), columns_in_words=words, policy_in_words=list(sentences(facts.policy))
    )


def _summary(gateway: Gateway, name: str) -> DatasetSummary:
    facts = gateway.facts(name)
    return DatasetSummary(
        name=name,
        columns=list(facts.domain.names),
        policy_version=facts.policy_version,
        snapshot=facts.snapshot,
        budget=str(gateway.budget(name).total),
        left=str(gateway.left(name)),
        title=facts.title,
        standing=facts.standing,
    )
