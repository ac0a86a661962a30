"""What people are shown of an answer: everything but whose question it was and how the rows were read.

Others' names are for curators and auditors, and so is the SQL, which names tables and columns as the source
has them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from blowfishdb.answers import Answer
from blowfishdb.entrypoints.api.access import Caller
from blowfishdb.messages import answer_summary


def shown_to(answer: Answer, caller: Caller) -> Answer:
    """The answer without what the caller may not see."""
    if not caller.analyst:
        return answer
    own = answer.receipt.user == caller.name
    return replace(answer, receipt=replace(answer.receipt, sql="", user=answer.receipt.user if own else ""))


def answer_body(answer: Answer, caller: Caller) -> dict[str, Any]:
    """The answer as JSON; a name that is not shown is null."""
    body = shown_to(answer, caller).to_plain()
    body["receipt"]["user"] = body["receipt"]["user"] or None
    return {"id": answer.number, **body}


def summary_body(answer: Answer, caller: Caller) -> dict[str, Any]:
    """One line of a list of answers."""
    return answer_summary(shown_to(answer, caller))
