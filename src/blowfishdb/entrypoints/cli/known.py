"""policy known | check: what the world already knows, and whether it is true of the data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.cli.session import AsJson, Data, Session, read_text

if TYPE_CHECKING:
    from blowfishdb.core.constraints import Constraints
    from blowfishdb.core.domain.domain import Domain

_FIXES = ('--count "age >= 65"', "--marginal region", "--csv FILE", '--range "age=30..39"', "--clear")


def known(
    ctx: typer.Context,
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
    _json: AsJson = False,
) -> None:
    """Say in the draft what everyone knows already, and what that does to privacy and noise.

    Without options, what the draft says.
    """
    here = Session.of(ctx)
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


def check(ctx: typer.Context, data: Data, _json: AsJson = False) -> None:
    """CURATOR VIEW, TRUE DATA: whether the data satisfies the counts that the draft declares.

    Nothing is charged; that someone looked is written into the ledger.
    """
    here = Session.of(ctx)
    with here.gateway() as gateway:
        found = gateway.check_known(data)
        here.say({"dataset": data, **found.to_plain()}, *found.sentences)


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

    said: dict[str, Any] = {} if answer is None else {"count": answer}
    columns = None if marginal is None else [name.strip() for name in marginal.split(",")]
    if csv is not None:
        return Constraints(marginals=[read_table(read_text(csv), domain, columns=columns)])
    if columns is not None:
        return read_known({"tables": [{"columns": columns}]}, domain)
    if count is not None:
        return read_known({"counts": [{"where": count, **said}]}, domain)
    if range_ is not None:
        return read_known({"ranges": [{"within": _sides(range_), **said}]}, domain)
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
