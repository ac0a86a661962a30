"""policy show | set | known | check | diff | publish | promises | …: what must stay hidden."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.cli import session as prompts
from blowfishdb.entrypoints.cli.known import check, known
from blowfishdb.entrypoints.cli.session import CURATOR, AsJson, Data, Session, Yes, examples, read_text

if TYPE_CHECKING:
    from rich.text import Text

    from blowfishdb.core.policy.policy import Policy
    from blowfishdb.core.policy.statements import Guarantee, PolicyDifference
    from blowfishdb.show.terminal import Framed
    from blowfishdb.workspace.datasets import Datasets

Column = Annotated[
    str | None,
    typer.Argument(metavar="[COLUMN]", help="One column; all of them without.", show_default=False),
]
Draft = Annotated[bool, typer.Option("--draft", help="The draft instead of the published policy.")]


def show(
    ctx: typer.Context, data: Data, column: Column = None, draft: Draft = False, _json: AsJson = False
) -> None:
    """What is hidden, in sentences."""
    here = Session.of(ctx)
    with here.gateway() as gateway:
        from blowfishdb.core.policy import codec
        from blowfishdb.core.policy.words import sentence, sentences

        facts = gateway.facts(data)
        policy = gateway.draft(data) if draft else facts.policy
        said = sentences(policy) if column is None else (sentence(policy, column),)
        plain = {
            "dataset": data,
            "version": None if draft else facts.policy_version,
            "graph": codec.plain(policy.graph),
            "known": codec.plain_known(policy),
            "sentences": list(said),
        }
        which = "draft" if draft else f"policy v{facts.policy_version}"
        here.say(plain, _line(f"{data}, {which}", "bold"), *said)


def set_policy(
    ctx: typer.Context,
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
    _json: AsJson = False,
) -> None:
    """Change the draft, and show what that would change. Nothing follows it until it is published."""
    here = Session.of(ctx)
    said = sum((hide_within is not None, hide_all, hide_nothing, groups is not None))
    if said > 1 or not (said or whole_record is not None or hide_presence is not None):
        raise InvalidInput(
            "Say one thing about what to hide.",
            fixes=("--hide-within 1000", "--hide-all", "--hide-nothing", "--groups FILE", "--hide-presence"),
        )
    if said and column is None and not hide_all:
        raise InvalidInput(
            "Say of which column.", fixes=(f"blowfishdb policy set {data} COLUMN --hide-within 1000",)
        )
    with here.gateway() as gateway:
        from blowfishdb.core.policy.columns import column_graph
        from blowfishdb.language.policy_file import read_groups

        draft = gateway.draft(data)
        if said and column is None:
            draft = draft.hiding_records()
        elif column is not None and said:
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
        gateway.save_draft(data, draft)
        _tell_change(here, gateway.propose(data, draft), f"blowfishdb policy publish {data}")


def diff(ctx: typer.Context, data: Data, _json: AsJson = False) -> None:
    """What publishing the draft would change."""
    here = Session.of(ctx)
    with here.gateway() as gateway:
        change = gateway.propose(data, gateway.draft(data))
        _tell_change(here, change, f"blowfishdb policy publish {data}")


def publish(
    ctx: typer.Context,
    data: Data,
    withdraw_earlier: Annotated[
        bool, typer.Option("--withdraw", help="End the promise made so far, if the new one hides less.")
    ] = False,
    yes: Yes = False,
    _json: AsJson = False,
) -> None:
    """Make the draft the policy that new answers follow, after showing what it promises."""
    here = Session.of(ctx)
    with here.gateway() as gateway:
        from blowfishdb.show.words import loss

        draft = gateway.draft(data)
        change, promised = gateway.propose(data, draft), _promised(gateway, data, draft)
        if not here.json:
            for part in _words(change, promised):
                here.console().print(part)
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


def promises(ctx: typer.Context, data: Data, _json: AsJson = False) -> None:
    """Earlier policies that are still promised: new answers have to fit under each of them too."""
    here = Session.of(ctx)
    with here.gateway() as gateway:
        from blowfishdb.show.words import loss

        kept = gateway.kept(data)
        plain = {"dataset": data, "promises": [promise.to_plain() for promise in kept]}
        words = [
            line
            for promise in kept
            for line in (
                _line(f"Version {promise.version}: {loss(promise.remaining)} left", "bold"),
                *promise.to_plain()["sentences"],
            )
        ]
        here.say(plain, *(words or ["Only the policy of today is promised."]))


def withdraw(
    ctx: typer.Context,
    data: Data,
    version: Annotated[int, typer.Argument(metavar="VERSION", help="As `policy promises` shows it.")],
    yes: Yes = False,
    _json: AsJson = False,
) -> None:
    """Take an earlier promise back, on record for everyone: answers need not fit under it any more."""
    here = Session.of(ctx)
    with here.gateway() as gateway:
        if not yes:
            prompts.confirm(f"Withdraw the promise of version {version}?", otherwise="--yes")
        gateway.withdraw(data, version)
        plain = {"dataset": data, "withdrawn": version}
        here.say(plain, _line(f"The promise of version {version} is withdrawn, on record.", "green"))


def export(
    ctx: typer.Context,
    data: Data,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    draft: Draft = False,
    _json: AsJson = False,
) -> None:
    """The policy as a YAML file to keep, review and import elsewhere."""
    here = Session.of(ctx)
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


def import_file(
    ctx: typer.Context,
    data: Data,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A policy file.", show_default=False)],
    _json: AsJson = False,
) -> None:
    """Make a policy file the draft, and show what that would change."""
    here = Session.of(ctx)
    with here.gateway() as gateway:
        from blowfishdb.language.policy_file import read_policy

        draft = read_policy(read_text(file), gateway.facts(data).domain, dataset=data)
        gateway.save_draft(data, draft)
        _tell_change(here, gateway.propose(data, draft), f"blowfishdb policy publish {data}")


# --- steps --------------------------------------------------------------------------------------


def _promised(gateway: Datasets, data: str, policy: Policy) -> Guarantee:
    from blowfishdb.core.policy.guarantee import guarantee

    return guarantee(policy, gateway.budget(data).total, rows_per_person=gateway.facts(data).rows_per_person)


def _tell_change(here: Session, change: PolicyDifference, command: str) -> None:
    more = [] if change.same else [_line(f"To make it so: {command}", "dim")]
    here.say(change.to_plain(), *change.sentences, *more)


def _words(change: PolicyDifference, promised: Guarantee) -> list[Framed]:
    from blowfishdb.show.terminal import Framed, listed

    return [
        Framed("What changes", listed(change.sentences), "yellow"),
        Framed("What is promised", listed(promised.paragraphs), "green"),
    ]


def _line(words: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(words, style=style)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(help="What must stay hidden.", no_args_is_help=True)
    group.command(epilog=examples("blowfishdb policy show people"))(show)
    group.command(
        "set",
        epilog=examples(
            "blowfishdb policy set people salary --hide-within 1000",
            "blowfishdb policy set people region --groups regions.yaml",
            "blowfishdb policy set people --hide-presence",
        ),
    )(set_policy)
    group.command(
        epilog=examples(
            'blowfishdb policy known people --count "age >= 65" --answer 1200',
            "blowfishdb policy known people --marginal region",
            "blowfishdb policy known people --csv regions.csv",
            "blowfishdb policy known people --clear",
        )
    )(known)
    group.command(epilog=examples("blowfishdb policy check people"))(check)
    group.command(epilog=examples("blowfishdb policy diff people"))(diff)
    group.command(epilog=examples("blowfishdb policy publish people"))(publish)
    group.command(epilog=examples("blowfishdb policy promises people"))(promises)
    group.command(epilog=examples("blowfishdb policy withdraw people 2"))(withdraw)
    group.command(epilog=examples("blowfishdb policy export people -o policy.yaml"))(export)
    group.command("import", epilog=examples("blowfishdb policy import people policy.yaml"))(import_file)
    app.add_typer(group, name="policy", rich_help_panel=CURATOR)
