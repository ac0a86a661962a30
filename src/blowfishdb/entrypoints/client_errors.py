"""What a server refuses, as the errors that the same question would have raised in this process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import httpx

from blowfishdb.core import errors

_KINDS: Final = {
    re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower(): kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.BlowfishError)
} | {"policy-changed": errors.PolicyConflict}


def error_of(problem: Any, headers: Mapping[str, str] | None = None) -> errors.BlowfishError:
    """The error that a problem stands for: its class, its words, and what became of the charge."""
    said: Mapping[str, Any] = problem if isinstance(problem, Mapping) else {}
    kind = _KINDS.get(str(said.get("type", "")).rpartition(":")[2], errors.SourceError)
    words = str(said.get("detail", "The server refused without saying why."))
    fixes = tuple(str(fix) for fix in said.get("fixes", ()))
    error = _made(kind, words, fixes, said, headers or {})
    error.charged = bool(said.get("charged", False))
    return error


def _made(
    kind: type[errors.BlowfishError],
    words: str,
    fixes: tuple[str, ...],
    said: Mapping[str, Any],
    headers: Mapping[str, str],
) -> errors.BlowfishError:
    if issubclass(kind, errors.BudgetExhausted):
        return kind(words, needed=said.get("needed"), left=said.get("left"), fixes=fixes)
    if issubclass(kind, errors.TooManyAttempts | errors.AnswerInProgress):
        wait = headers.get("Retry-After", "")
        return kind(words, wait=int(wait) if wait.isdecimal() else 1, fixes=fixes)
    return kind(words, fixes=fixes)


def unreachable(host: str, *lost: httpx.TransportError, asked: bool = False) -> errors.SourceError:
    """Nobody answered; a question that may have arrived is counted as charged, to be on the safe side."""
    error = errors.SourceError(
        f"The server at {host} did not answer ({type(lost[-1]).__name__}).",
        fixes=("check that it runs, and its address", "again in a moment"),
    )
    if asked and not all(isinstance(each, httpx.ConnectError | httpx.ConnectTimeout) for each in lost):
        error.message += (
            " The question may have been charged; if so, asking again returns its answer for nothing."
        )
        error.charged = True
    return error


def not_ours(host: str) -> errors.SourceError:
    """Somebody answered, in another language."""
    return errors.SourceError(
        f"What answers at {host} is not a BlowfishDB server.", fixes=("check the address and the port",)
    )
