"""What costs nothing to see, as plain data: two neighbours must look the same in all of it.

Noisy numbers are paid for and left out, with what follows from them; so are clocks, hashes over clocks, and
where the files of the two worlds are.
"""

from __future__ import annotations

import json
import re
from typing import Any

from blowfishdb.core.errors import BlowfishError
from blowfishdb.messages.answers import Answer
from blowfishdb.workspace.embedded import Workspace

NOISY = "a number that was paid for"
PICKED = ("top", "above")
_DIGITS = 9  # what follows by arithmetic from noisy numbers and is exact, is so but for rounding


def seen(answer: Answer) -> dict[str, Any]:
    """An answer without its noise."""
    return _answer(answer.to_plain())


def _answer(plain: dict[str, Any]) -> dict[str, Any]:
    """What is picked by noisy counts is noise itself; picked by exact ones, the watch sees them."""
    picked, exact, shown = plain["kind"] in PICKED, plain["exact"], dict(plain)
    if picked:
        shown["labels"] = shown["exact"] = shown["promise"] = NOISY
    for name in ("values", "raw", "low", "high"):
        numbers = plain[name]
        if numbers is None:
            continue
        apart = len(numbers) != len(exact) or (name == "raw" and plain["kind"] == "aggregates")  # sums
        if picked or (apart and not all(exact)):
            shown[name] = NOISY
        elif not apart:
            shown[name] = [
                round(number, _DIGITS) + 0.0 if sure else NOISY
                for number, sure in zip(numbers, exact, strict=True)
            ]
    shown["receipt"] = {**plain["receipt"], "settled": ""}
    return shown


def refused(error: BlowfishError) -> dict[str, Any]:
    """An error as everyone reads it."""
    return {
        "error": type(error).__name__,
        "message": str(error),
        "fixes": list(error.fixes),
        "charged": error.charged,
    }


def books(workspace: Workspace, name: str, users: tuple[str, ...]) -> dict[str, Any]:
    """Everything on record about a dataset that is open to those who may ask."""
    record: dict[str, Any] = {
        "facts": workspace.facts(name).to_plain(),
        "budget": str(workspace.budget(name)),
        "left": [str(workspace.as_user(user).left(name)) for user in users],
        "grants": [str(grant) for grant in workspace.grants(name)],
        "kept": [kept.to_plain() for kept in workspace.kept(name)],
        "guarantee": str(workspace.guarantee(name)),
        "answers": [seen(answer) for answer in workspace.answers(name)],
        "events": [
            (event.kind, event.analyst, event.charge, str(event.amount), _told(event.facts))
            for event in workspace.events(name)
        ],
    }
    return record


def _told(facts: Any) -> Any:
    """The facts of an event; the answer of a settled charge is in it as a hash only."""
    own = ("hash", "answer", "holder")  # of the noise, and of this process
    return {key: value for key, value in facts.items() if not any(part in key for part in own)}


def difference(mine: str, theirs: str) -> str:
    """Where two texts begin to differ, and a little of what stands there."""
    start = next((at for at, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), 0)
    return "\n".join(text[max(0, start - 200) : start + 160] for text in (mine, theirs))


_ITS_OWN = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?", "then"),
    (r"quote_id\W+[\w.-]+=*", "signed"),
    (r"\b[0-9a-f]{32}\b|\b[0-9a-f]{64}\b", "numbered"),
    (r"\b\d+:[0-9a-f]{40}\b", "head"),
)
"""Clocks, signatures, heads of the books, and numbers drawn for each request: no two responses share them."""


def alike(text: object, folder: str) -> str:
    """Anything as text, without where the files are and without what no two responses share."""
    said = json.dumps(text, default=str, sort_keys=True).replace(folder, "…")
    for pattern, word in _ITS_OWN:
        said = re.sub(pattern, word, said)
    return said
