"""The ways in which people go through a flow: by mouse, by keyboard or without scripts; wide or narrow.

A :class:`Walker` does what a flow says in its own way. After every step nothing may be wider than the window;
by keyboard, what has the focus is seen to have it, and nothing lies over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, final

from playwright.sync_api import expect

Hand = Literal["mouse", "keys", "plain"]
"""``plain`` is a mouse without JavaScript."""
_MOST_TABS = 250
_THERE: Final = "domcontentloaded"  # pictures of charts come later
_FOCUSED = "element => element === document.activeElement"
_SEEN = """element => {
  const box = element.getBoundingClientRect();
  const at = (part) => document.elementFromPoint(box.x + box.width / 2, box.y + box.height * part);
  const free = [0.5, 0.2, 0.8].some((part) => element.contains(at(part)) || at(part)?.contains(element));
  return free && (getComputedStyle(element).outlineStyle !== "none");
}"""


@final
@dataclass(frozen=True)
class Way:
    """How somebody goes through a flow."""

    hand: Hand
    width: int
    theme: Literal["light", "dark"]

    def __str__(self) -> str:
        return f"{self.hand}-{self.width}-{self.theme}"

    @property
    def options(self) -> dict[str, Any]:
        """What the browser is started with."""
        return {
            "java_script_enabled": self.hand != "plain",
            "viewport": {"width": self.width, "height": 900},
            "color_scheme": self.theme,
            "reduced_motion": "reduce",
        }


HANDS: tuple[Hand, ...] = ("mouse", "keys", "plain")
WIDTHS = (390, 768, 1440)
WAYS = tuple(
    Way(hand, width, "dark" if (row + column) % 2 else "light")
    for row, hand in enumerate(HANDS)
    for column, width in enumerate(WIDTHS)
)
"""Every hand in every width, both of them in both themes."""


class Walker:
    """One person in front of one window."""

    def __init__(self, page: Any, way: Way) -> None:
        self.page = page
        self.way = way

    def go(self, address: str) -> None:
        """To a page."""
        self.page.goto(address, wait_until=_THERE)
        self._look()

    def press(self, role: str, name: Any) -> None:
        """A button or a link that leads to another page."""
        there = self.page.get_by_role(role, name=name).first
        if self.way.hand == "keys":
            self._tab_to(there)
        else:
            there.wait_for()
        with self.page.expect_navigation(wait_until=_THERE):
            if self.way.hand == "keys":
                self.page.keyboard.press("Enter")
            else:
                there.click()
        self._look()

    def fill(self, label: str, text: str) -> None:
        """A field."""
        there = self.page.get_by_label(label, exact=True).first
        if self.way.hand == "keys":
            self._tab_to(there)
            self.page.keyboard.press("Control+A")
            self.page.keyboard.insert_text(text)
        else:
            there.fill(text)

    def choose(self, label: str, words: str) -> None:
        """One of several."""
        there = self.page.get_by_label(label, exact=True).first
        if self.way.hand == "keys":
            self._tab_to(there)
            self.page.keyboard.type(words)
        else:
            there.select_option(label=words)

    def tick(self, label: str) -> None:
        """A box."""
        there = self.page.get_by_label(label).first
        if self.way.hand == "keys":
            self._tab_to(there)
            self.page.keyboard.press("Space")
        else:
            there.check()

    def send(self, label: str, file: Path) -> None:
        """A file: the window that chooses one belongs to the browser."""
        there = self.page.get_by_label(label)
        if self.way.hand == "keys":
            self._tab_to(there)
        there.set_input_files(file)

    def sees(self, words: Any) -> None:
        """Something on the page."""
        expect(self.page.locator("main")).to_contain_text(words)

    def _tab_to(self, there: Any) -> None:
        there.wait_for()
        for _ in range(_MOST_TABS):
            if there.evaluate(_FOCUSED):
                break
            self.page.keyboard.press("Tab")
        else:
            raise AssertionError(f"{there} cannot be reached by the keyboard")
        assert there.evaluate(_SEEN), f"{there} has the focus, and nobody sees it"

    def _look(self) -> None:
        expect(self.page.locator("html")).to_have_js_property("scrollWidth", self.way.width)
