"""What a failure looks like: its exit code, its words on standard error, and its JSON."""

from __future__ import annotations

import re
from typing import Any, Final, cast

import typer

from blowfishdb.core import errors
from blowfishdb.core.errors import BlowfishError

OTHER: Final = 1
USAGE: Final = 2
BUDGET: Final = 3
FORBIDDEN: Final = 4
INFEASIBLE: Final = 5

USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""The base of everything that is wrong with what was typed, which typer does not export."""

# The first class that fits decides.
_EXIT_CODES: Final[tuple[tuple[type[BlowfishError], int], ...]] = (
    (errors.BudgetExhausted, BUDGET),
    (errors.MaxCostExceeded, BUDGET),
    (errors.NotAllowed, FORBIDDEN),
    (errors.NotSignedIn, FORBIDDEN),
    (errors.TooManyAttempts, FORBIDDEN),
    (errors.PolicyConflict, FORBIDDEN),
    (errors.NotProven, FORBIDDEN),
    (errors.NoGuarantee, FORBIDDEN),
    (errors.Infeasible, INFEASIBLE),
    (errors.UnsupportedSql, USAGE),
    (errors.InvalidInput, USAGE),
)


def exit_code(error: BlowfishError) -> int:
    """2 usage, 3 budget, 4 permission or policy, 5 infeasible accuracy, 1 everything else."""
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), OTHER)


def problem(error: BlowfishError) -> dict[str, Any]:
    """The failure as a problem object, as the API words it."""
    kebab, title = (_apart(type(error).__name__, gap) for gap in "- ")
    return {
        "type": f"urn:blowfishdb:problem:{kebab}",
        "title": title.capitalize(),
        "detail": error.message,
        "charged": error.charged,
        "fixes": list(error.fixes),
        "exit_code": exit_code(error),
    }


def usage_problem(message: str) -> dict[str, Any]:
    """The same for something that was typed wrongly."""
    return problem(errors.InvalidInput(message, fixes=("--help",)))


def _apart(name: str, gap: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", gap, name).lower()


def show(error: BlowfishError) -> None:
    """What happened and what to try, on standard error."""
    typer.secho(error.message, fg=typer.colors.RED, err=True)
    for fix in error.fixes:
        typer.echo(f"  try: {fix}", err=True)
    if error.charged:
        typer.echo("  The budget was charged although no answer came back.", err=True)
