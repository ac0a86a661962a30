"""Questions to whoever sits at the terminal. They go to standard error, so that answers can be piped."""

from __future__ import annotations

import sys

import typer

from blowfishdb.core.errors import InvalidInput


def confirm(question: str, *, otherwise: str) -> None:
    """Go on only after a yes; ``otherwise`` is what to pass where nobody can be asked."""
    try:
        agreed = typer.confirm(question, default=False, err=True)
    except typer.Abort:
        raise _unanswered(otherwise) from None
    if not agreed:
        typer.echo("Nothing was done.", err=True)
        raise typer.Exit(1)


def ask(question: str, *, default: str, otherwise: str) -> str:
    """A line of text; Enter for the default."""
    try:
        return str(typer.prompt(question, default=default, err=True)).strip()
    except typer.Abort:
        raise _unanswered(otherwise) from None


def ask_password(name: str) -> str:
    """A password, typed twice, or the first line of a pipe."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    return str(typer.prompt(f"Password for {name}", hide_input=True, confirmation_prompt=True, err=True))


def _unanswered(otherwise: str) -> Exception:
    """Someone who interrupts means it; a pipe that ends cannot be asked."""
    if sys.stdin.isatty():
        return typer.Abort()
    return InvalidInput(
        "This needs a confirmation, and nobody is there to give it. Nothing was done.", fixes=(otherwise,)
    )
