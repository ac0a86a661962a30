"""policy show | set | known | check | diff | publish | promises | …: what must stay hidden."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.cli import session as prompts
from blowfishdb.entrypoints.cli.session import CURATOR, Commands, Data, Session, Yes, read_text

if TYPE_CHECKING:
    from rich.text import Text

    from blowfishdb.core.constraints import Constraints
    from blowfishdb.core.domain.domain import Domain
    from blowfishdb.core.policy.policy import Policy
    from blowfishdb.core.policy.statements import Guarantee, PolicyDifference
    from blowfishdb.show.terminal import Frame
    from blowfishdb.workspace.datasets import Datasets

Column = Annotated[
    str | None,
    typer.Argument(metavar="[COLUMN]", help="One column; all of them without.", show_default=False),
]
_FIXES = ('--count "age >= 65"', "--marginal region", "--csv FILE", '--range "age=30..39"', "--clear")
Draft = Annotated[bool, typer.Option("--draft", help="The draft instead of the published policy.")]


commands = Commands(CURATOR, "policy", "What must stay hidden.")


@commands("blowfishdb policy show people")
def show(here: Session, gateway: Datasets, data: Data, column: Column = None, draft: Draft = False) -> None:
    """What is hidden, in sentences."""
    from blowfishdb.core.policy import codec
    from blowfishdb.core.policy.words import sentence, sentences

    facts = gateway.facts(data)
    policy = gateway.draft(data) if draft else facts.policy
    words = sentences(policy) if column is None else (sentence(policy, column),)
    plain = {
        "dataset": data,
        "version": None if draft else facts.policy_version,
        "graph": codec.plain(policy.graph),
        "known": codec.plain_known(policy),
        "sentences": list(words),
    }
    which = "draft" if draft else f"policy v{facts.policy_version}"
    here.say(plain, _line(f"{data}, {which}", "bold"), *words)


@commands(
    "blowfishdb policy set people salary --hide-within 1000",
    "blowfishdb policy set people region --groups regions.yaml",
    "blowfishdb policy set people --hide-presence",
    name="set",
)
def set_policy(
    here: Session,
    data: Data,
    column: Column = None,
    hide_within: Annotated[
        str | None,
        typer.Option(metavar="D", help="Hide which of two values someone has when they are at most D apart."),
    ] = None,
    hide_all: Annotated[
        bool,
        typer.Option("--hide-all", help="Hide every value of the column; without a column, whole records."),
    ] = False,
    hide_nothing: Annotated[
        bool, typer.Option("--hide-nothing", help="Hide nothing about the column.")
    ] = False,
    groups: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Hide values within groups that a YAML or JSON file lists."),
    ] = None,
    whole_record: Annotated[
        bool | None,
        typer.Option(
            "--whole-record/--column-by-column",
            help="Hide the columns of a record together, or one at a time (weaker: columns add up).",
            show_default=False,
        ),
    ] = None,
    hide_presence: Annotated[
        bool | None,
        typer.Option(
            "--hide-presence/--show-presence",
            help="Hide also whether someone is in the data, and so how many rows there are.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Change the draft, and show what that would change. Nothing follows it until it is published."""
    rules = sum((hide_within is not None, hide_all, hide_nothing, groups is not None))
    if rules > 1 or not (rules or whole_record is not None or hide_presence is not None):
        raise InvalidInput(
            "Say one thing about what to hide.",
            fixes=("--hide-within 1000", "--hide-all", "--hide-nothing", "--groups FILE", "--hide-presence"),
        )
    if rules and column is None and not hide_all:
        raise InvalidInput(
            "Say of which column.", fixes=(f"blowfishdb policy set {data} COLUMN --hide-within 1000",)
        )
    with here.gateway() as gateway:
        from blowfishdb.core.policy.columns import column_graph
        from blowfishdb.language.policy_file import read_groups

        draft = gateway.draft(data)
        if rules and column is None:
            draft = draft.hiding_records()
        elif column is not None and rules:
            graph = column_graph(
                draft.domain[column],
                hide_within=hide_within,
                groups=None if groups is None else read_groups(read_text(groups)),
                everything=hide_all,
                nothing=hide_nothing,
            )
            draft = draft.with_column(column, graph)
        if whole_record is not None or hide_presence is not None:
            draft = draft.edited(joint=whole_record, hide_presence=hide_presence)
        _tell_change(here, gateway.save_draft(data, draft), f"blowfishdb policy publish {data}")


@commands(
    'blowfishdb policy known people --count "age >= 65" --answer 1200',
    "blowfishdb policy known people --marginal region",
    "blowfishdb policy known people --csv regions.csv",
    "blowfishdb policy known people --clear",
)
def known(
    here: Session,
    data: Data,
    count: Annotated[
        str | None,
        typer.Option(metavar="CONDITION", help="How many rows satisfy this SQL condition is known."),
    ] = None,
    marginal: Annotated[
        str | None,
        typer.Option(metavar="COL[,COL]", help="How many rows there are for every combination is known."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A published table: its columns, then a column called count."),
    ] = None,
    range_: Annotated[
        str | None,
        typer.Option("--range", metavar="COL=LO..HI[,…]", help="How many rows lie in this range is known."),
    ] = None,
    answer: Annotated[
        str | None, typer.Option(metavar="N", help="How many that are; the noise does not depend on it.")
    ] = None,
    reading: Annotated[
        str | None,
        typer.Option(
            metavar="literal|edge",
            help="Which others may change when known counts force them to: any (safe), or only as the policy "
            "says, which hides less.",
        ),
    ] = None,
    remove: Annotated[
        int | None, typer.Option(metavar="NUMBER", min=1, help="Take one back, numbered as it is listed.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Take everything back.")] = False,
) -> None:
    """Say in the draft what everyone knows already, and what that does to privacy and noise.

    Without options, what the draft says.
    """
    table = None if marginal is None and csv is None else (marginal, csv)
    given = sum((count is not None, table is not None, range_ is not None, remove is not None, clear))
    if given > 1 or (answer is not None and count is None and range_ is None):
        raise InvalidInput(
            "Say one thing that is known; an answer goes with a count or a range.", fixes=_FIXES
        )
    with here.gateway() as gateway:
        from blowfishdb.core.constraints import Constraints
        from blowfishdb.core.policy import codec
        from blowfishdb.core.policy.words import effect, known_things

        draft = gateway.draft(data)
        before = draft.constraints or Constraints()
        after = _changed(before, remove, clear).plus(
            _more(draft.domain, count, range_, answer, marginal, csv)
        )
        if reading is not None:
            after = after.read_as(reading)
        draft = draft.knowing(after)
        if given or reading is not None:
            gateway.save_draft(data, draft)
        things = known_things(draft)
        plain = {"dataset": data, "known": codec.plain_known(draft), "sentences": [*things, effect(draft)]}
        listed = [f"{number}. {words}" for number, words in enumerate(things, start=1)]
        here.say(plain, *(listed or ["Nothing is taken to be known."]), *([effect(draft)] if listed else []))


@commands("blowfishdb policy check people")
def check(here: Session, gateway: Datasets, data: Data) -> None:
    """CURATOR VIEW, TRUE DATA: whether the data satisfies the counts that the draft declares.

    Nothing is charged; that someone looked is written into the ledger.
    """
    check = gateway.check_known(data)
    here.say({"dataset": data, **check.to_plain()}, *check.sentences)


@commands("blowfishdb policy diff people")
def diff(here: Session, gateway: Datasets, data: Data) -> None:
    """What publishing the draft would change."""
    change = gateway.propose(data, gateway.draft(data))
    _tell_change(here, change, f"blowfishdb policy publish {data}")


@commands("blowfishdb policy publish people")
def publish(
    here: Session,
    gateway: Datasets,
    data: Data,
    withdraw_earlier: Annotated[
        bool, typer.Option("--withdraw", help="End the promise made so far, if the new one hides less.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Make the draft the policy that new answers follow, after showing what it promises."""
    from blowfishdb.show.words import loss

    draft = gateway.draft(data)
    change, promised = gateway.propose(data, draft), _promised(gateway, data, draft)
    if not here.json:
        for part in _words(change, promised):
            here.console().print(part)
    if change.kept and not withdraw_earlier:
        typer.echo(f"{change.kept} To withdraw it at once: --withdraw.", err=True)
    budget, past = gateway.budget(data), gateway.past(data, draft)
    if budget.used or past.tells:
        worth = f" worth {loss(budget.spent)}" if budget.spent else ""
        typer.echo(
            f"Answers{worth} were given under the current policy: that stays told. {past.sentence}",
            err=True,
        )
    if past.epsilon is not None and past.epsilon > budget.total:
        typer.echo(
            f"That is more than the budget of {loss(budget.total)}: nothing more can be asked until a "
            "larger one is set.",
            err=True,
        )
    if not yes:
        prompts.confirm("Publish this policy?", otherwise="--yes")
    gateway.publish(data, draft, confirm=True, withdraw=withdraw_earlier)
    version = gateway.facts(data).policy_version

    plain = {
        "dataset": data,
        "version": version,
        "difference": change.to_plain(),
        "guarantee": promised.to_plain(),
    }
    here.say(plain, _line(f"Published as version {version}.", "green"))


@commands("blowfishdb policy promises people")
def promises(here: Session, gateway: Datasets, data: Data) -> None:
    """Earlier policies that are still promised: new answers have to fit under each of them too."""
    from blowfishdb.show.words import loss

    earlier = gateway.kept(data)
    plain = {"dataset": data, "promises": [promise.to_plain() for promise in earlier]}
    words = [
        line
        for promise in earlier
        for line in (
            _line(f"Version {promise.version}: {loss(promise.remaining)} left", "bold"),
            *promise.to_plain()["sentences"],
        )
    ]
    here.say(plain, *(words or ["Only the policy of today is promised."]))


@commands("blowfishdb policy withdraw people 2")
def withdraw(
    here: Session,
    gateway: Datasets,
    data: Data,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="As `policy promises` shows it.")],
    yes: Yes = False,
) -> None:
    """Take an earlier promise back, on record for everyone: answers need not fit under it any more."""
    if not yes:
        prompts.confirm(f"Withdraw the promise of version {version}?", otherwise="--yes")
    gateway.withdraw(data, version)
    plain = {"dataset": data, "withdrawn": version}
    here.say(plain, _line(f"The promise of version {version} is withdrawn, on record.", "green"))


@commands("blowfishdb policy export people -o policy.yaml")
def export(
    here: Session,
    data: Data,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    draft: Draft = False,
) -> None:
    """The policy as a YAML file to keep, review and import elsewhere."""
    with here.gateway() as gateway:
        from blowfishdb.language.policy_file import write_policy

        policy = gateway.draft(data) if draft else gateway.facts(data).policy
        text = write_policy(policy, dataset=data)
    if output is not None:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InvalidInput(f"'{output}' cannot be written ({error.strerror}).") from None
    if here.json:
        here.say({"dataset": data, "yaml": text})
    else:
        typer.echo(text.rstrip() if output is None else f"Written to {output}.")


@commands("blowfishdb policy import people policy.yaml", name="import")
def import_file(
    here: Session,
    gateway: Datasets,
    data: Data,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A policy file.", show_default=False)],
) -> None:
    """Make a policy file the draft, and show what that would change."""
    from blowfishdb.language.policy_file import read_policy

    draft = read_policy(read_text(file), gateway.facts(data).domain, dataset=data)
    _tell_change(here, gateway.save_draft(data, draft), f"blowfishdb policy publish {data}")


# --- steps --------------------------------------------------------------------------------------


def _changed(before: Constraints, remove: int | None, clear: bool) -> Constraints:
    from blowfishdb.core.constraints import Constraints

    if clear:
        return Constraints(reading=before.reading)
    return before if remove is None else before.without(remove - 1)


def _more(
    domain: Domain,
    count: str | None,
    range_: str | None,
    answer: str | None,
    marginal: str | None,
    csv: Path | None,
) -> Constraints:
    """What was said, read as a policy file says it."""
    from blowfishdb.core.constraints import Constraints
    from blowfishdb.language.known import read_known, read_table

    number: dict[str, Any] = {} if answer is None else {"count": answer}
    columns = None if marginal is None else [name.strip() for name in marginal.split(",")]
    if csv is not None:
        return Constraints(marginals=[read_table(read_text(csv), domain, columns=columns)])
    if columns is not None:
        return read_known({"tables": [{"columns": columns}]}, domain)
    if count is not None:
        return read_known({"counts": [{"where": count, **number}]}, domain)
    if range_ is not None:
        return read_known({"ranges": [{"within": _sides(range_), **number}]}, domain)
    return Constraints()


def _sides(typed: str) -> dict[str, list[str]]:
    """``age=30..39,salary=0..49999`` as the ends of each column."""
    sides = {}
    for side in re.split(r",(?=[^,=]*=)", typed):  # not the comma inside 49,999
        name, equals, ends = side.partition("=")
        low, dots, high = ends.partition("..")
        if not (name.strip() and equals and dots):
            raise InvalidInput("A range names a column and two ends.", fixes=('--range "age=30..39"',))
        sides[name.strip()] = [low.strip(), high.strip()]
    return sides


def _promised(gateway: Datasets, data: str, policy: Policy) -> Guarantee:
    from blowfishdb.core.policy.guarantee import guarantee

    return guarantee(policy, gateway.budget(data).total, rows_per_person=gateway.facts(data).rows_per_person)


def _tell_change(here: Session, change: PolicyDifference, command: str) -> None:
    more = [] if change.same else [_line(f"To make it so: {command}", "dim")]
    stays = [change.kept] if change.kept else []
    here.say(change.to_plain(), *change.sentences, *stays, *more)


def _words(change: PolicyDifference, promised: Guarantee) -> list[Frame]:
    from blowfishdb.show.terminal import Frame, listed

    return [
        Frame("What changes", listed(change.sentences), "yellow"),
        Frame("What is promised", listed(promised.paragraphs), "green"),
    ]


def _line(words: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(words, style=style)
