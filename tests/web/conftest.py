"""One browser for all tests of pages, a server for each file; windows fail a test on any console error."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from blowfishdb.entrypoints.server.web.frame import static_address
from tests.web.settling import PATIENCE, settling
from tests.web.site import ARGUMENTS, CHROMIUM, Site, Watched, site


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's chromium."""
    from playwright.sync_api import expect, sync_playwright

    if not Path(CHROMIUM).exists():
        pytest.fail(f"{CHROMIUM} is missing; `make browser` installs it.")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright, settling():
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server of its own for each file of tests: a demonstration with a few answers."""
    with site(tmp_path_factory.mktemp("web")) as running:
        yield running


def sign_in(context: Any, web: Site, role: str | None) -> None:
    """From now on the windows of ``context`` belong to ``role``, or to nobody."""
    context.clear_cookies()
    if role is not None:
        cookie = {"name": web.cookie, "value": web.secret(role), "url": web.address, "sameSite": "Strict"}
        context.add_cookies([cookie])


class Contexts:
    """Browser contexts of one site, used again: to start one takes a browser longer than to show a page.

    Whoever takes one signs in anew (:func:`sign_in`); the pages of BlowfishDB keep nothing else in a browser.
    One window of each stays open, on nothing but an icon: with it stays the process that shows pages of the
    site, which takes as long to start as two pages take to be shown.
    """

    def __init__(self, browser: Any, address: str) -> None:
        self._browser = browser
        self._address = address
        self._free: dict[str, list[Any]] = defaultdict(list)

    @contextmanager
    def taken(self, **options: Any) -> Iterator[Any]:
        """One that nobody else has, until its windows are closed."""
        free = self._free[repr(sorted(options.items()))]
        context = free.pop() if free else self._started(options)
        yield context
        for window in context.pages[1:]:
            window.close()
        free.append(context)

    def _started(self, options: dict[str, Any]) -> Any:
        context = self._browser.new_context(base_url=self._address, **options)
        context.new_page().goto(static_address("icon.svg"))
        return context

    def close(self) -> None:
        """All of them."""
        for free in self._free.values():
            for context in free:
                context.close()


@pytest.fixture(scope="module")
def contexts(web: Site, browser: Any) -> Iterator[Contexts]:
    """Those of the site of a file of tests."""
    made = Contexts(browser, web.address)
    yield made
    made.close()


PageFor = Callable[..., Any]


@pytest.fixture
def page_for(web: Site, contexts: Contexts) -> Iterator[PageFor]:
    """``page_for("analyst")``: a window, signed in; ``page_for(None)``: nobody.

    Further arguments go to the browser context (``color_scheme="dark"``, ``java_script_enabled=False``).
    """
    watched: list[Watched] = []
    with ExitStack() as opened:

        def open_for(role: str | None, **options: Any) -> Any:
            context = opened.enter_context(contexts.taken(**options))
            sign_in(context, web, role)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            watched.append(Watched(page, web.address))
            return page

        yield open_for
    assert [problem for each in watched for problem in each.problems] == []
