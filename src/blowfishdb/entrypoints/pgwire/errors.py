"""Refusals and notices with PostgreSQL's codes: what happened, why, and what to try.

A code says in which class a refusal is (SQLSTATE), so that drivers raise the error that programs expect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from blowfishdb.core import errors
from blowfishdb.core.errors import BlowfishError
from blowfishdb.entrypoints.pgwire import protocol
from blowfishdb.entrypoints.server.problems import problem_of

NOT_ALLOWED: Final = "42501"
NOT_SUPPORTED: Final = "0A000"
SYNTAX: Final = "42601"
FAILED_BLOCK: Final = "25P02"
CANCELLED: Final = "57014"
PROTOCOL_VIOLATION: Final = "08P01"
TOO_MANY: Final = "53300"
WRONG_PASSWORD: Final = "28P01"  # noqa: S105 (a code)
NOT_AUTHORIZED: Final = "28000"
NO_BUDGET: Final = "53400"
INTERNAL: Final = "XX000"
SHUTDOWN: Final = "57P01"
IDLE: Final = "57P05"
UNKNOWN_SETTING: Final = "42704"
WRONG_VALUE: Final = "22023"
NO_STATEMENT: Final = "26000"
NO_CURSOR: Final = "34000"

CODES: Final[tuple[tuple[type[BlowfishError], str], ...]] = (
    (errors.UnknownDataset, "42P01"),
    (errors.UnknownColumn, "42703"),
    (errors.TooLarge, "54000"),
    (errors.InvalidValue, "22000"),
    (errors.InvalidQuestion, SYNTAX),
    (errors.InvalidInput, WRONG_VALUE),
    (errors.BudgetExhausted, NO_BUDGET),
    (errors.MaxCostExceeded, NO_BUDGET),
    (errors.NotSignedIn, NOT_AUTHORIZED),
    (errors.NotAllowed, NOT_ALLOWED),
    (errors.TooManyAttempts, "53400"),
    (errors.UnsupportedSql, NOT_SUPPORTED),
    (errors.NotProven, NOT_SUPPORTED),
    (errors.NoGuarantee, NOT_SUPPORTED),
    (errors.Infeasible, NOT_SUPPORTED),
    (errors.AnswerInProgress, "55P03"),
    (errors.PolicyConflict, "55000"),
    (errors.Cancelled, CANCELLED),
    (errors.SourceError, "58000"),
    (errors.WorkspaceError, "58000"),
    (errors.Refused, NOT_SUPPORTED),
)
"""The first class that fits decides; what is not listed is our mistake."""


@final
class Refusal(Exception):
    """What a client is told instead of an answer."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        detail: str = "",
        routine: str = "",
        fatal: bool = False,
    ) -> None:
        super().__init__(message)
        self.routine = routine  # of PostgreSQL, by which some drivers know what to do next
        self.code, self.message, self.hint, self.detail, self.fatal = code, message, hint, detail, fatal

    def to_bytes(self) -> bytes:
        """As a message."""
        severity = "FATAL" if self.fatal else "ERROR"
        said = {"S": severity, "V": severity, "C": self.code, "M": self.message}
        return protocol.fields(b"E", {**said, "D": self.detail, "H": self.hint, "R": self.routine})


def refusal_of(error: BlowfishError, *, shown_places: bool, reference: str) -> Refusal:
    """The refusal that an error of ours is; where rows are kept is for curators (``problem_of``)."""
    code = next((code for kind, code in CODES if isinstance(error, kind)), INTERNAL)
    problem = problem_of(error, shown_places=shown_places, reference=reference)
    detail = "The budget was charged although no answer came back." if problem.charged else ""
    return Refusal(code, problem.detail, hint=hint_of(problem.fixes), detail=detail)


def unexpected(reference: str) -> Refusal:
    """Something that nobody foresaw; only the log says more."""
    return Refusal(
        INTERNAL,
        "Something went wrong inside the server. The ledger says what became of a question under way.",
        hint=f"Ask a curator, with the reference {reference}.",
    )


def hint_of(fixes: Sequence[str]) -> str:
    """What to try, a line for each."""
    if not fixes:
        return ""
    return "Try: " + fixes[0] + "".join(f"\n  or: {fix}" for fix in fixes[1:4])


def notice(
    message: str, *, detail: str = "", hint: str = "", severity: str = "NOTICE", code: str = "00000"
) -> bytes:
    """What is said beside an answer."""
    said = {"S": severity, "V": severity, "C": code, "M": message, "D": detail, "H": hint}
    return protocol.fields(b"N", said)
