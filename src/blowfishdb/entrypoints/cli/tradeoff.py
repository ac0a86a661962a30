"""tradeoff: what a question costs under one policy after another. Reads no data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.cli.here import AsJson, Data, Here
from blowfishdb.entrypoints.cli.panels import CURATOR, examples
from blowfishdb.entrypoints.cli.questions import Confidence, Each, Mechanism

if TYPE_CHECKING:
    from blowfishdb.core.policy import Policy
    from blowfishdb.datasets import Dataset

_ALL = "all"


def tradeoff(
    ctx: typer.Context,
    data: Data,
    column: Annotated[
        str, typer.Argument(metavar="COLUMN", help="Whose distances are tried.", show_default=False)
    ],
    thresholds: Annotated[
        str,
        typer.Option(
            metavar="D,D,…", help="The distances to try, from weak to strong; 'all' hides everything."
        ),
    ],
    error: Annotated[float, typer.Option(metavar="A", help="How far from the truth the answer may be.")],
    query: Annotated[
        str, typer.Option(metavar="KIND", help="The kind of question about the column, or a whole question.")
    ] = "cumulative",
    bins: Annotated[int | None, typer.Option(help="Into how many bins to cut the column.")] = None,
    confidence: Confidence = 0.95,
    each: Each = False,
    mechanism: Mechanism = None,
    at_epsilon: Annotated[
        str | None,
        typer.Option(metavar="E", help="Compare errors at this price; at the first price by default."),
    ] = None,
    _json: AsJson = False,
) -> None:
    """What a question costs, and how far off it is, for several distances to hide."""
    here = Here.of(ctx)
    with here.gateway() as gateway:
        from blowfishdb.core.budget import Epsilon
        from blowfishdb.entrypoints.terminal.tables import tradeoff_table

        dataset = gateway[data]
        text = query if "(" in query else f"{query}({column}{'' if bins is None else f', bins={bins}'})"
        asking = dataset.question(text).accurate_to(error, confidence=confidence, each=each).using(mechanism)
        policies, thetas = _policies(dataset, column, thresholds)
        with here.progress("Pricing policies") as advance:
            found = gateway.tradeoff(
                asking.request(),
                policies,
                at_epsilon=None if at_epsilon is None else Epsilon(at_epsilon),
                thetas=thetas,
                progress=advance,
            )
        here.say(found.to_plain(), tradeoff_table(found))


def _policies(dataset: Dataset, column: str, thresholds: str) -> tuple[dict[str, Policy], dict[str, float]]:
    from blowfishdb.core.column_policies import column_graph

    policies: dict[str, Policy] = {}
    thetas: dict[str, float] = {}
    attribute = dataset.schema[column]
    for typed in (part.strip() for part in thresholds.split(",")):
        if typed == _ALL:
            policies["everything"] = dataset.policy.with_column(
                column, column_graph(attribute, everything=True)
            )
            continue
        graph = column_graph(attribute, hide_within=typed)
        name = f"within {int(typed):,}" if typed.isdecimal() else f"within {typed}"
        policies[name] = dataset.policy.with_column(column, graph)
        thetas[name] = _number(typed)
    return policies, thetas


def _number(typed: str) -> float:
    """The number in a distance such as 1000 or 7 days."""
    try:
        return float(typed.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        raise InvalidInput(
            f"'{typed}' is not a distance.", fixes=("--thresholds 1000,10000,50000,all",)
        ) from None


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command(
        rich_help_panel=CURATOR,
        epilog=examples(
            "blowfishdb tradeoff people salary --query cumulative --bins 20 --error 50 "
            "--thresholds 1000,10000,50000,all",
        ),
    )(tradeoff)
