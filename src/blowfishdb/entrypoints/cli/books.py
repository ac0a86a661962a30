"""datasets, explain, audit, refresh, copies, remove: what is there, what was promised, what was spent.

budget show | set | grant: what may be lost in total, and who may spend it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from blowfishdb.core.errors import InvalidInput, NotAllowed
from blowfishdb.entrypoints.cli import session as prompts
from blowfishdb.entrypoints.cli.session import (
    ANALYST,
    AUDITOR,
    CURATOR,
    Commands,
    Data,
    Session,
    WitnessFile,
)

if TYPE_CHECKING:
    from rich.table import Table

    from blowfishdb.adapters.store.values import Event
    from blowfishdb.workspace.datasets import Datasets


_ALL = "all"
_MECHANISMS = "mechanisms"
_MANY = 50
_SECONDS = 10.0


commands = Commands()


@commands("blowfishdb datasets", panel=ANALYST)
def datasets(here: Session, gateway: Datasets) -> None:
    """The datasets of the workspace, their columns and what is left of their budgets."""
    from blowfishdb.show.terminal import grid
    from blowfishdb.show.words import loss

    table = grid("dataset", "columns", "policy", "budget", "left", right=(3, 4), wrap=(1,))
    plain = []
    for name in gateway.datasets():
        facts, total, left = gateway.facts(name), gateway.budget(name).total, gateway.left(name)
        columns = list(facts.domain.names)
        table.add_row(name, ", ".join(columns), f"v{facts.policy_version}", loss(total), loss(left))
        plain.append(
            {
                "name": name,
                "columns": columns,
                "policy_version": facts.policy_version,
                "snapshot": facts.snapshot,
                "budget": str(total),
                "left": str(left),
            }
        )
    here.say({"datasets": plain}, table if plain else "None yet: blowfishdb import SOURCE --name NAME")


@commands("blowfishdb explain people", panel=AUDITOR)
def explain(here: Session, gateway: Datasets, data: Data) -> None:
    """What is promised to the people in the data, and what is not, in words."""
    from blowfishdb.core.policy.words import sentences
    from blowfishdb.show.terminal import Frame, listed

    promised, hidden = gateway.guarantee(data), sentences(gateway.facts(data).policy)
    plain = {"dataset": data, "sentences": list(hidden), **promised.to_plain()}
    here.say(
        plain,
        Frame("What is hidden", listed(hidden)),
        Frame("What is promised", listed(promised.paragraphs), "green"),
        Frame("What was promised when", listed(promised.history)),
    )


@commands(
    "blowfishdb audit people",
    "blowfishdb audit --head",
    "blowfishdb audit --since HEAD",
    "blowfishdb audit mechanisms dawa --seconds 60",
    panel=AUDITOR,
)
def audit(
    here: Session,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATA|all|mechanisms [NAME]",
            help="A dataset, or all of them; or the mechanisms themselves, by their names or all.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Show at most so many events, the newest.")] = _MANY,
    head: Annotated[bool, typer.Option("--head", help="Print only where the books end, to keep it.")] = False,
    since: Annotated[
        str | None, typer.Option(metavar="HEAD", help="A head that was kept: the books must extend it.")
    ] = None,
    witness: WitnessFile = None,
    seconds: Annotated[
        float,
        typer.Option(min=0, help="Processor time to release with each mechanism that looks at the data."),
    ] = _SECONDS,
) -> None:
    """Check that every charge, hash and sealed fact adds up, and list what happened. Fails if they do not."""
    data, *names = what or [_ALL]
    if data == _MECHANISMS:
        _audit_mechanisms(here, names, seconds)
        return
    if names:
        raise InvalidInput(
            "One dataset is audited at a time.", fixes=(f"blowfishdb audit {data}", "blowfishdb audit all")
        )
    with here.gateway() as gateway:
        from rich.text import Text

        if data != _ALL:
            gateway.facts(data)
        if head:
            end = str(gateway.head())
            here.say({"head": end}, end)
            return
        audited = gateway.audit(since=since, witness=witness)
        events = gateway.events(None if data == _ALL else data, limit=None if here.json else limit)
        plain = {**audited.to_plain(), "events": [happened.to_plain() for happened in events]}
        verdict = [Text(problem, style="red") for problem in audited.problems]
        good = Text("The ledger verifies: every charge and every hash adds up.", style="green")
        extends = [Text(f"The books extend the head {since}.", style="green")] if since else []
        here.say(
            plain,
            _table(events[max(0, len(events) - limit) :]),
            *(verdict or [good, *extends]),
            *audited.sentences,
            f"Head, to be kept elsewhere: {audited.head}",
        )
    if audited.problems:
        raise typer.Exit(1)


def _audit_mechanisms(here: Session, names: list[str], seconds: float) -> None:
    """What each mechanism loses on neighbouring databases that are made for it; no workspace is opened."""
    from time import process_time

    from rich.text import Text

    from blowfishdb.mechanisms.auditing import audit_mechanism, chosen
    from blowfishdb.noise import secure
    from blowfishdb.show.terminal import grid

    noise = secure()
    found = [
        audit_mechanism(name, noise=noise, clock=process_time, seconds=seconds) for name in chosen(names)
    ]
    table = grid("mechanism", "loss at ε 1", "how", "problems", "releases", "verdict", right=(1, 3, 4))
    for each in found:
        table.add_row(
            each.name,
            f"{each.loss:.3f}" if each.exact else f"≥ {each.loss:.3f}",
            "exact, every edge" if each.exact else "from outside",
            f"{each.problems}",
            f"{each.releases:,}" if each.releases else "",
            Text("FAULT", style="red") if each.fault else Text("as claimed", style="green"),
        )
    faults = [Text(f"{each.name}: {each.fault}", style="red") for each in found if each.fault]
    here.say({"mechanisms": [each.to_plain() for each in found]}, table, *faults)
    if faults:
        raise typer.Exit(1)


def _table(events: list[Event]) -> Table:
    from blowfishdb.show.terminal import grid
    from blowfishdb.show.words import loss

    table = grid("no.", "when (UTC)", "what", "dataset", "by", "answer", "ε", "hash", right=(0, 5, 6))
    for happened in events:
        table.add_row(
            f"{happened.seq}",
            f"{happened.at:%Y-%m-%d %H:%M}",
            happened.kind,
            happened.dataset,
            happened.analyst,
            "" if happened.charge is None else f"{happened.charge}",
            loss(happened.amount) if happened.amount else "",
            happened.hash[:8],
        )
    return table


@commands("blowfishdb refresh people", panel=CURATOR)
def refresh(
    here: Session,
    gateway: Datasets,
    data: Data,
    same_rows: Annotated[
        bool,
        typer.Option("--same-rows", help="The rows are in another dataset too, and the promises add up."),
    ] = False,
) -> None:
    """Declare that the rows have changed. The same people are in them, so what was spent stays spent."""
    gateway.refresh(data, same_rows=same_rows)
    snapshot = gateway.facts(data).snapshot
    here.say({"dataset": data, "snapshot": snapshot}, f"'{data}' is at snapshot {snapshot} now.")


@commands("blowfishdb copies", panel=CURATOR)
def copies(here: Session, gateway: Datasets) -> None:
    """Where the rows of every dataset come from, and how much room their copies take."""
    from blowfishdb.show.terminal import grid

    held = gateway.copies()
    table = grid("dataset", "kind", "from", "rows", "bytes", "taken", "SHA-256", right=(3, 4), wrap=(2,))
    for source in held.sources:
        copy = source.copy
        sizes = ("", "", "", "") if copy is None else (f"{copy.rows:,}", f"{copy.bytes:,}", copy.taken)
        hashed = "" if copy is None else copy.sha256[:12]
        table.add_row(source.dataset, source.kind, source.location or "memory", *sizes[:3], hashed)
    room = f"Copies take {held.used:,} of {held.quota:,} bytes."
    here.say(held.to_plain(), table, room)


@commands("blowfishdb remove people --yes", panel=CURATOR)
def remove(
    here: Session,
    gateway: Datasets,
    data: Data,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether to delete it.")] = False,
) -> None:
    """End a dataset and erase the copy of its rows. Its books stay, and its name cannot be used again."""
    gateway.facts(data)
    if not yes:
        prompts.confirm(f"Delete '{data}' for good?", otherwise="--yes")
    words = gateway.delete(data)
    here.say({"dataset": data, "words": words}, words)


Amount = Annotated[str, typer.Option("--epsilon", metavar="E", help="A privacy loss, such as 0.5.")]


budget = Commands(CURATOR, "budget", "What may be spent, is spent and is left.")


@budget("blowfishdb budget show people")
def show(here: Session, gateway: Datasets, data: Data) -> None:
    """What is spent, held and left, and who may spend what."""
    _tell(here, gateway, data)


@budget("blowfishdb budget set people --epsilon 2", name="set")
def set_total(here: Session, gateway: Datasets, data: Data, epsilon: Amount) -> None:
    """Declare how much may be lost about anyone in total, by all answers together."""
    gateway[data].budget.set(epsilon)
    _tell(here, gateway, data)


@budget("blowfishdb budget grant people --user ana --epsilon 0.5")
def grant(
    here: Session,
    gateway: Datasets,
    data: Data,
    user: Annotated[str, typer.Option(help="Who may spend it.")],
    epsilon: Amount,
) -> None:
    """Let someone spend a part of the total. Once there are grants, only they can spend."""
    gateway[data].budget.grant(user, epsilon)
    _tell(here, gateway, data)


def _tell(here: Session, gateway: Datasets, data: str) -> None:
    from blowfishdb.core.plain import epsilon_fields
    from blowfishdb.show.terminal import budget_table

    status, left = gateway.budget(data), gateway.left(data)
    try:
        grants = gateway.grants(data)
    except NotAllowed:  # who else may spend is for curators and auditors
        grants = []
    plain = {
        **status.to_plain(),
        **epsilon_fields("left", left),
        "grants": [grant.to_plain() for grant in grants],
    }
    here.say(plain, budget_table(status, left, grants))
