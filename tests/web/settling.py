"""What a test reads or does at once, it does on a whole page: a browser shows the head of a page, and lets it
be clicked, while the rest of it is still under way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from unittest import mock

PATIENCE = 40_000
"""Milliseconds: as long as a busy machine needs, not as long as a page should take."""
READING = (
    "all",
    "all_inner_texts",
    "all_text_contents",
    "count",
    "evaluate_all",
    "inner_text",
    "input_value",
    "is_checked",
    "is_hidden",
    "is_visible",
)
"""Methods of a locator that say what is there now, and wait for nothing more."""
ACTING = ("check", "click", "fill", "press", "select_option", "set_input_files", "uncheck")
"""Methods that touch a page, which answers as its scripts say once these are there."""


def _on_a_whole_page(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def settled(locator: Any, *given: Any, **named: Any) -> Any:
        locator.page.wait_for_load_state()
        return method(locator, *given, **named)

    return settled


@contextmanager
def settling() -> Iterator[None]:
    """Within, locators wait until the page that they are on has been loaded."""
    from playwright.sync_api import Locator

    patient = {name: _on_a_whole_page(getattr(Locator, name)) for name in (*READING, *ACTING)}
    with mock.patch.multiple(Locator, **patient):
        yield
