"""One server and one browser for all tests of pages; windows that fail the test on any console error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.site import ARGUMENTS, CHROMIUM, Site, Watched, site


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's chromium."""
    from playwright.sync_api import expect, sync_playwright

    if not Path(CHROMIUM).exists():
        pytest.fail(f"{CHROMIUM} is missing; `make browser` installs it.")
    expect.set_options(timeout=15_000)  # as long as a busy machine needs, not as long as a page should take
    with sync_playwright() as playwright:
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


PageFor = Callable[..., Any]


@pytest.fixture
def page_for(web: Site, browser: Any) -> Iterator[PageFor]:
    """``page_for("analyst")``: a window, signed in; ``page_for(None)``: nobody.

    Further arguments go to the browser context (``color_scheme="dark"``, ``java_script_enabled=False``).
    """
    contexts: list[Any] = []
    watched: list[Watched] = []

    def opened(role: str | None, **options: Any) -> Any:
        context = browser.new_context(base_url=web.address, **options)
        contexts.append(context)
        sign_in(context, web, role)
        page = context.new_page()
        page.set_default_timeout(15_000)
        watched.append(Watched(page, web.address))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [problem for each in watched for problem in each.problems] == []
