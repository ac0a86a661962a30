"""A small demonstration behind the real server, and browsers for each role."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from blowfishdb.adapters.tokens import Tokens
from blowfishdb.entrypoints.demo import serving
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.entrypoints.server.server import Settings
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.server import CHEAP, make_workspace

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SETTINGS = Settings(warm_up=False, requests_per_second=10_000, burst=100_000, demo=True)
QUESTIONS = ("cumulative(salary, bins=20)", "cumulative(salary, bins=10)", "histogram(region)")
"""Asked beforehand as the analyst; ``Site.answers`` are the numbers of their answers, in this order."""


@dataclass(frozen=True)
class Site:
    """A running server; ``workspace`` is the one it holds open."""

    address: str
    workspace: Workspace
    folder: Path
    cookie: str
    answers: tuple[int, ...]

    def secret(self, role: str) -> str:
        """The cookie of someone who signed in."""
        return Tokens(self.workspace.store).issue(role, purpose="session", lifetime=timedelta(hours=1))[0]


@contextmanager
def site(
    folder: Path,
    *,
    settings: Settings = SETTINGS,
    make: Callable[[Path], Path] = make_workspace,
    questions: Sequence[str] = QUESTIONS,
) -> Iterator[Site]:
    """A fresh workspace in ``folder`` behind a real server on a free port."""
    place = make(folder)
    if questions:
        with Workspace(place, user="analyst") as workspace:
            for question in questions:
                workspace["salaries"].question(question).accurate_to(50, confidence=0.95).ask()
    make_people(folder)
    app = create_app(place, settings=settings, hasher=CHEAP)
    workspace = app.state.server.workspace
    numbers = tuple(answer.number for answer in workspace.answers())
    with serving(app) as address:
        yield Site(address, workspace, folder, settings.cookie, numbers)


def make_people(folder: Path) -> Path:
    """A file to import: numbers, dates, categories, and an identifier."""
    lines = ["person_id,income,joined,team,remote"]
    for i in range(400):
        joined = f"20{10 + i % 12:02}-{1 + i % 12:02}-{1 + i % 28:02}"
        lines.append(
            f"{1000 + i},{20_137 + i % 150 * 211},{joined},{['red', 'green', 'blue'][i % 3]},{i % 2 == 0}"
        )
    file = folder / "people.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


class Watched:
    """A browser window that remembers what must not happen: errors, and requests to another host."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.problems: list[str] = []
        self._allowed = (address, "data:", "blob:", "about:")
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("request", self._request)

    def _console(self, message: Any) -> None:
        refused = "Failed to load resource" in message.text  # a page that says no, which tests ask for
        if message.type in ("error", "warning") and not refused:
            self.problems.append(f"console {message.type}: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith(self._allowed):
            self.problems.append(f"request to another host: {request.url}")
