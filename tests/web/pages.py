"""Every page, once: what the checks of accessibility and privacy, and the screenshots, go through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.web.site import Site


@dataclass(frozen=True)
class Page:
    """A page as one role sees it.

    ``path`` may contain ``{a}``, ``{b}`` and ``{c}``, the numbers of the first three answers; ``act`` does
    what leads further than an address can.
    """

    name: str
    role: str | None
    path: str
    act: Callable[[Any, Site], None] | None = None
    status: int = 200

    def show(self, window: Any, site: Site) -> None:
        """Go there, and wait until everything is drawn."""
        response = window.goto(self.path.format(**dict(zip("abc", site.answers, strict=False))))
        assert response.status == self.status, f"{self.name}: {response.status}"
        if self.act is not None:
            self.act(window, site)
        drawn = "[...document.querySelectorAll('figure.chart .drawing')].every(each => each.dataset.drawn)"
        window.wait_for_function(drawn)


def _look_at_columns(window: Any, site: Site) -> None:
    window.get_by_label("File or database address").fill(str(site.folder / "people.csv"))
    window.get_by_role("button", name="Look at the columns").click()
    window.get_by_role("button", name="Declare the dataset").wait_for()


def _forget_to_confirm(window: Any, site: Site) -> None:
    _look_at_columns(window, site)
    window.get_by_role("button", name="Declare the dataset").click()
    window.locator(".column.wrong").first.wait_for()


def _wrong_source(window: Any, site: Site) -> None:
    window.get_by_label("File or database address").fill("nowhere.csv")
    window.get_by_role("button", name="Look at the columns").click()
    window.locator(".alert.bad").wait_for()


def _wrong_password(window: Any, _: Site) -> None:
    window.get_by_label("Name").fill("analyst")
    window.get_by_label("Password").fill("not it")
    window.get_by_role("button", name="Sign in", exact=True).click()
    window.locator(".alert.bad").wait_for()


PAGES: tuple[Page, ...] = (
    Page("signin", None, "/signin"),
    Page("signin-wrong", None, "/signin", _wrong_password),
    Page("datasets-curator", "curator", "/datasets"),
    Page("datasets-analyst", "analyst", "/datasets"),
    Page("import-source", "curator", "/datasets/new"),
    Page("import-source-wrong", "curator", "/datasets/new", _wrong_source),
    Page("import-columns", "curator", "/datasets/new", _look_at_columns),
    Page("import-columns-wrong", "curator", "/datasets/new", _forget_to_confirm),
    Page("overview-curator", "curator", "/datasets/salaries"),
    Page("overview-analyst", "analyst", "/datasets/salaries"),
    Page("overview-auditor", "auditor", "/datasets/salaries"),
    Page("not-found", "analyst", "/datasets/nothing", status=404),
    Page("another-role", "analyst", "/datasets/new", status=403),
)
