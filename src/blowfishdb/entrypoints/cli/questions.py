"""quote, ask, sql, plan: a price before anything is spent, and answers.

tradeoff: what a question costs under one policy after another. Reads no data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from blowfishdb.core.errors import BlowfishError, InvalidInput, MaxCostExceeded, NotCounted
from blowfishdb.entrypoints.cli import session as prompts
from blowfishdb.entrypoints.cli.session import ANALYST, CURATOR, Commands, Data, Session, Yes

if TYPE_CHECKING:
    from blowfishdb.core.budget import Epsilon
    from blowfishdb.core.policy.policy import Policy
    from blowfishdb.messages.answers import Answer
    from blowfishdb.messages.quotes import Quote
    from blowfishdb.workspace.asking import Asking
    from blowfishdb.workspace.datasets import Dataset, Datasets


Text = Annotated[
    str, typer.Argument(metavar="QUESTION", help="Such as 'cumulative(salary, bins=20)'.", show_default=False)
]
Texts = Annotated[
    list[str],
    typer.Argument(metavar="QUESTION…", help="Questions or SELECTs, each by itself.", show_default=False),
]
_SELECT = re.compile(r"\s*(explain|select|with)\b", re.IGNORECASE)
Select = Annotated[
    str | None,
    typer.Argument(
        metavar="SELECT",
        help="A SELECT, perhaps WITH ERROR 50. It may stand alone: its FROM names the dataset.",
        show_default=False,
    ),
]
Error = Annotated[
    float | None, typer.Option(metavar="A", help="How far from the truth an answer may be: 50 means ±50.")
]
Confidence = Annotated[float, typer.Option(metavar="P", help="How often it must be that close.")]
Each = Annotated[
    bool, typer.Option("--each/--all", help="Close on each bar by itself, or on all bars at once.")
]
Loss = Annotated[
    str | None, typer.Option("--epsilon", metavar="E", help="Spend this much instead of stating an accuracy.")
]
Mechanism = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Use this mechanism instead of the cheapest; with --epsilon also adaptive, which promises no "
        "error and is usually closer.",
    ),
]
MaxCost = Annotated[str | None, typer.Option(metavar="E", help="Refuse to spend more than this.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Write the answer to a file: csv, parquet, arrow, json, html, svg or png."
    ),
]
MadeUp = Annotated[bool, typer.Option("--made-up", help="Try it on made-up rows: nothing is read or spent.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show how it would be answered. Free.")]

_NOBODY = "Made-up rows, about nobody: nothing was read, charged or stored."

_UNSTATED = InvalidInput(
    "How accurate must the answer be?", fixes=("--error 50 --confidence 0.95", "--epsilon 0.1")
)


@final
@dataclass(frozen=True)
class TermOptions:
    """How accurate an answer must be, or what may be spent on it."""

    error: Error = None
    confidence: Confidence = 0.95
    each: Each = False
    epsilon: Loss = None
    mechanism: Mechanism = None

    def on(self, asking: Asking) -> Asking:
        """The question on these terms; where none are given, on those that it came with."""
        if self.error is not None and self.epsilon is not None:
            raise InvalidInput("Give --error or --epsilon, not both.")
        if self.error is not None:
            asking = asking.accurate_to(self.error, confidence=self.confidence, each=self.each)
        elif self.epsilon is not None:
            asking = asking.spend(self.epsilon)
        elif asking.terms.accuracy is None and asking.terms.epsilon is None:
            raise _UNSTATED
        return asking.using(self.mechanism)


@final
@dataclass(frozen=True)
class PaymentOptions:
    """What may be paid without asking back, and where the answer goes."""

    max_cost: MaxCost = None
    yes: Yes = False
    output: Output = None
    made_up: MadeUp = False

    def rows(self, gateway: Datasets, data: str) -> Dataset:
        """The dataset, or one with made-up rows in its place."""
        return gateway[data].made_up() if self.made_up else gateway[data]


commands = Commands(ANALYST)


@commands(
    "blowfishdb quote people \"histogram(age, width=10) where region = 'west'\" --error 50",
    'blowfishdb quote people "median(salary)" --error 100 --confidence 0.99 --explain',
)
def quote(
    here: Session, gateway: Datasets, data: Data, question: Text, terms: TermOptions, explain: Explain = False
) -> None:
    """What an answer would cost. Free: nothing is spent and no row is read."""
    _tell_price(here, gateway, terms.on(gateway[data].question(question)), explain=explain)


@commands(
    'blowfishdb ask people "cumulative(salary, bins=20)" --error 50',
    'blowfishdb ask people "mean(age)" --epsilon 0.1 --yes --max-cost 0.1 --json',
    'blowfishdb ask people "histogram(age)" --epsilon 0.1 --mechanism adaptive',
    'blowfishdb ask people "histogram(age, region)" --error 80 -o answer.parquet',
    'blowfishdb ask people "clusters(age, salary, k=4)" --epsilon 0.5',
    'blowfishdb ask people "median(salary)" --error 100 --made-up',
)
def ask(
    here: Session, gateway: Datasets, data: Data, question: Text, terms: TermOptions, payment: PaymentOptions
) -> None:
    """Show the price, ask whether to pay it, and give the answer with its noise interval."""
    dataset = payment.rows(gateway, data)
    _buy(here, dataset, terms.on(dataset.question(question)), payment)


@commands(
    'blowfishdb sql people "SELECT region, COUNT(*) FROM people GROUP BY region WITH ERROR 50"',
    'blowfishdb sql people "SELECT AVG(age) FROM people" --error 0.1 --explain',
)
def sql(
    here: Session,
    gateway: Datasets,
    data: Data,
    terms: TermOptions,
    select: Select = None,
    explain: Explain = False,
    *,
    payment: PaymentOptions,
) -> None:
    """The same in SQL: counts, sums, means, medians and GROUP BY over declared columns."""
    from blowfishdb.language.select import dataset_of

    if select is None:
        if not _SELECT.match(data):
            raise typer.BadParameter(f"Missing a SELECT about {data}.")
        data, select = dataset_of(data), data
    explained, statement = _without_explain(select)
    dataset = payment.rows(gateway, data)
    asking = terms.on(dataset.sql(statement))
    if explain or explained:
        _tell_price(here, gateway, asking, explain=True)
    else:
        _buy(here, dataset, asking, payment)


@commands(
    'blowfishdb plan people "histogram(salary, bins=20)" "cumulative(salary, bins=20)" --error 50',
    'blowfishdb plan people "SELECT COUNT(*) FROM people GROUP BY region WITH ERROR 50" "median(age)" '
    "--error 100 --ask --yes --max-cost 0.5",
)
def plan(
    here: Session,
    gateway: Datasets,
    data: Data,
    questions: Texts,
    terms: TermOptions,
    ask: Annotated[bool, typer.Option("--ask", help="Ask all of them, for what that costs as one.")] = False,
    max_cost: MaxCost = None,
    yes: Yes = False,
) -> None:
    """What several questions cost as one: what follows from the others is free. Free until you --ask."""
    from blowfishdb.core.budget import Epsilon
    from blowfishdb.show.terminal import answer_chart, receipt_line, together_table
    from blowfishdb.show.words import loss

    _check_limit(max_cost, yes=yes)
    together = gateway.plan(*(_on_its_terms(terms, gateway[data], text) for text in questions))
    quote = together.quotes()
    if not ask:
        here.say(quote.to_plain(), together_table(quote))
        return
    if max_cost is not None and quote.most > Epsilon(max_cost):
        raise _too_dear(quote.most, Epsilon(max_cost))
    if not here.json:
        here.console().print(together_table(quote))
    if quote.most and not yes:
        prompts.confirm(f"Spend {loss(quote.most)} and answer?", otherwise="--yes --max-cost 0.2")
    with here.progress("Answering"):
        answers = together.ask(max_cost=quote.most)
    shown = (part for answer in answers for part in (answer_chart(answer), receipt_line(answer.receipt)))
    here.say([answer.to_plain() for answer in answers], *shown)


# --- steps --------------------------------------------------------------------------------------


def _without_explain(select: str) -> tuple[bool, str]:
    word, *rest = select.split(maxsplit=1) or [""]
    return (True, "".join(rest)) if word.upper() == "EXPLAIN" else (False, select)


def _on_its_terms(terms: TermOptions, dataset: Dataset, text: str) -> Asking:
    """One of several questions, short or SQL; what it says of its accuracy itself goes before the options."""
    asking = dataset.sql(text) if text.lstrip()[:6].upper() == "SELECT" else dataset.question(text)
    stated = asking.terms.accuracy is not None or asking.terms.epsilon is not None
    return asking if stated else terms.on(asking)


def _check_limit(max_cost: str | None, *, yes: bool) -> None:
    if yes and max_cost is None:
        raise InvalidInput("--yes spends without asking, so it needs a limit.", fixes=("--max-cost 0.2",))


def _too_dear(cost: Epsilon, limit: Epsilon) -> MaxCostExceeded:
    from blowfishdb.show.words import enough, loss

    return MaxCostExceeded(
        f"This costs ε {loss(cost)}, more than --max-cost {limit}. Nothing was charged.",
        fixes=(f"--max-cost {enough(cost)}", "a larger --error"),
    )


def _tell_price(here: Session, gateway: Datasets, asking: Asking, *, explain: bool) -> None:
    from rich.text import Text as Line

    from blowfishdb.show.terminal import quote_panel

    if explain:
        explanation = gateway.explain(asking.request())
        here.say(explanation.to_plain(), Line(str(explanation)))
        return
    priced = asking.quote()
    here.say(priced.to_plain(), quote_panel(priced))


def _buy(here: Session, dataset: Dataset, asking: Asking, payment: PaymentOptions) -> None:
    from blowfishdb.core.budget import Epsilon
    from blowfishdb.entrypoints.cli.answers import check_output, write
    from blowfishdb.show.terminal import answer_chart, budget_line, quote_panel, receipt_line
    from blowfishdb.show.words import loss

    _check_limit(payment.max_cost, yes=payment.yes)
    limit, output = None if payment.max_cost is None else Epsilon(payment.max_cost), payment.output
    form = None if output is None else check_output(output)
    try:
        priced = asking.quote()
    except NotCounted:  # what is public and free is asked for without asking back
        asking.counting().ask(max_cost=0)
        priced = asking.quote()
    if limit is not None and priced.most > limit:
        raise _too_dear(priced.most, limit)
    if not here.json:
        here.console().print(quote_panel(priced))
    if priced.most and not payment.yes and not payment.made_up and priced.affordable:
        prompts.confirm(f"Spend {loss(priced.most)} and answer?", otherwise="--yes --max-cost 0.2")
    with here.progress("Answering") as advance:
        answer = asking.ask(max_cost=priced.most, progress=advance)
    if output is not None and form is not None:
        write(answer, output, form)
    paid = not here.json and not payment.made_up and bool(answer.receipt.debit)
    closer, status = _closer(dataset, answer) if paid else None, dataset.budget.status
    spent = (receipt_line(answer.receipt), budget_line(status.total, status.remaining))
    here.say(
        answer.to_plain(),
        answer_chart(answer),
        *((_NOBODY,) if payment.made_up else spent),
        *([] if closer is None else [f"{closer.closer}: the same with --error {closer.alpha:.6g}"]),
        *([f"Written to {output}."] if output is not None else []),
    )


def _closer(dataset: Dataset, answer: Answer) -> Quote | None:
    """What half the error would cost; nothing to say where that has no price or is not affordable."""
    asking = dataset.sharper(answer)
    try:
        quote = None if asking is None else asking.quote(more=False)
    except BlowfishError:
        return None
    return quote if quote is not None and quote.epsilon and quote.affordable else None


_ALL = "all"


pricing = Commands(CURATOR)


@pricing(
    "blowfishdb tradeoff people salary --query cumulative --bins 20 --error 50 "
    "--thresholds 1000,10000,50000,all"
)
def tradeoff(
    here: Session,
    gateway: Datasets,
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
) -> None:
    """What a question costs, and how far off it is, for several distances to hide."""
    from blowfishdb.core.budget import Epsilon
    from blowfishdb.show.terminal import tradeoff_table

    dataset = gateway[data]
    text = query if "(" in query else f"{query}({column}{'' if bins is None else f', bins={bins}'})"
    asking = dataset.question(text).accurate_to(error, confidence=confidence, each=each).using(mechanism)
    policies, thetas = _policies(dataset, column, thresholds)
    with here.progress("Pricing policies") as advance:
        priced = gateway.tradeoff(
            asking.request(),
            policies,
            at_epsilon=None if at_epsilon is None else Epsilon(at_epsilon),
            thetas=thetas,
            progress=advance,
        )
    here.say(priced.to_plain(), tradeoff_table(priced))


def _policies(dataset: Dataset, column: str, thresholds: str) -> tuple[dict[str, Policy], dict[str, float]]:
    from blowfishdb.core.policy.columns import column_graph

    policies: dict[str, Policy] = {}
    thetas: dict[str, float] = {}
    for typed in (part.strip() for part in thresholds.split(",")):
        if typed == _ALL:
            everything = column_graph(dataset.schema[column], everything=True)
            policies["everything"] = dataset.policy.with_column(column, everything)
            continue
        name = f"within {int(typed):,}" if typed.isdecimal() else f"within {typed}"
        policies[name] = dataset.hiding_within(column, typed)
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
