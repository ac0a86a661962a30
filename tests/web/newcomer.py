"""A newcomer who does only what the pages offer, from the front door to a first private answer; counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.entrypoints.server import PASSWORD
from tests.web.hands import Walker, Way

Look = Callable[[Any, str], None]


MOUSE = Way("mouse", 1280, "light")


class Newcomer:
    """Clicks and fields of one person in front of one window."""

    def __init__(self, page: Any, look: Look = lambda page, name: None, *, way: Way = MOUSE) -> None:
        self.page = page
        self._walker = Walker(page, way)
        self.steps: list[str] = []
        self._look = look

    def click(self, role: str, name: str) -> None:
        """One click on something that says what it does."""
        self.steps.append(f"click {name}")
        self._walker.press(role, name)
        expect(self.page.locator("[role=alert]")).to_have_count(0)

    def fill(self, label: str, text: str) -> None:
        """One field."""
        self.steps.append(f"fill {label}")
        self._walker.fill(label, text)

    def choose(self, label: str, file: Path) -> None:
        """One file."""
        self.steps.append(f"choose {file.name}")
        self._walker.send(label, file)

    def tick(self, label: str) -> None:
        """One box."""
        self.steps.append(f"tick {label}")
        self._walker.tick(label)

    def look(self, name: str) -> None:
        """Whoever watches may take a picture."""
        self._look(self.page, name)


def from_the_door_to_an_answer(newcomer: Newcomer, file: Path) -> None:
    """Sign in, import a file, confirm its columns, publish a policy, ask."""
    page = newcomer.page
    page.goto("/")
    newcomer.look("1-door")
    newcomer.click("link", "Sign in")
    newcomer.fill("Name", "curator")
    newcomer.fill("Password", PASSWORD)
    newcomer.click("button", "Sign in")
    newcomer.look("2-empty")
    newcomer.click("link", "Import data")
    newcomer.look("3-import")
    newcomer.choose("Choose a file", file)
    newcomer.click("button", "Send it and look at the columns")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Confirm the columns")
    newcomer.look("4-columns")
    newcomer.tick("Confirm all")
    newcomer.click("button", "Declare the dataset")
    expect(page.get_by_role("heading", level=1)).to_contain_text("What must stay hidden")
    newcomer.look("5-start")
    newcomer.click("link", "Begin with usual")
    newcomer.look("6-policy")
    newcomer.click("link", "Review and publish")
    newcomer.look("7-publish")
    newcomer.tick("I have read the promise")
    newcomer.click("button", "Publish")
    newcomer.look("8-open")
    newcomer.click("link", "Ask a question")
    newcomer.look("9-ask")
    newcomer.click("button", "Spend")
    page.wait_for_url("**/answers/*")
    newcomer.look("10-answer")
