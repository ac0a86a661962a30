"""Advice that was meant for Python or the short form, as what is typed behind a statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from blowfishdb.core.errors import NoGuarantee
from blowfishdb.messages.questions import Terms

_ROWS: Final = 1_000
_SOME: Final = "0.1"
_INSTEAD: Final = "state an ε instead of an error"
_LEFT: Final = "epsilon "
_SIZE: Final = "for groups of "


@contextmanager
def advised(terms: Terms | None) -> Iterator[None]:
    """What is refused because no error can be promised says what can be typed instead."""
    try:
        yield
    except NoGuarantee as error:
        accuracy = None if terms is None else terms.accuracy
        error.fixes = for_statements(error.fixes, None if accuracy is None else accuracy.alpha)
        raise


def for_statements(fixes: Sequence[str], error: float | None) -> tuple[str, ...]:
    """The same advice for somebody who can only type statements, within ``error`` if one was stated."""
    return tuple(dict.fromkeys(_typed(fixes, error)))


def _typed(fixes: Sequence[str], error: float | None) -> Iterator[str]:
    for fix in fixes:
        if error is not None and _SIZE in fix.casefold():
            yield f"the statement WITH ERROR {error:g} FOR GROUPS OF {_ROWS}"
        elif fix.startswith(_INSTEAD):
            said = fix.removeprefix(_INSTEAD).removeprefix(":")
            yield f"the statement WITH EPSILON {_SOME}{';' if said else ''}{said}"
        elif fix.startswith(_LEFT):
            yield f"the statement WITH EPSILON {fix.removeprefix(_LEFT)}"
        else:
            yield fix
