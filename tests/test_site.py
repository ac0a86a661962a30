"""The documentation site builds without a warning, asks nobody else for anything, and leads everywhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FETCHED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
    ("form", "action"),
}
FACTS = {
    "what ε 1 leaves an attacker": ("what-blowfish-gives-up.html", "73 %"),
    "the paper's budget overspends": ("counterexamples.html", "1.25"),
    "how long an answer takes beside its SELECT": ("performance.html", "SELECT + 2 commits"),
    "what happens after a crash": ("threat-model.html", "kill -9"),
    "the exit code of a refusal": ("reference/errors.html", "BudgetExhausted"),
    "which HTTP routes there are": ("reference/routes.html", "POST /api/v1"),
    "what accurate_to takes": ("reference/python.html", "accurate_to"),
    "whether a refresh restores budget": ("threat-model.html", "restores nothing"),
    "what a CSV file may look like": ("sources.html", "decimal"),
    "who else does this": ("comparison.html", "OpenDP"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    said = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        check=False,
    )
    assert said.returncode == 0 and not said.stderr.strip(), said.stderr
    return folder


class Requests(HTMLParser):
    """What a browser would fetch for a page, without a click."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.found += [value for name, value in values.items() if (tag, name) in FETCHED]
        self.found += re.findall(r"url\(['\"]?([^)'\"]+)", values.get("style", ""))
        if tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            self.found.append(values.get("href", ""))
        if tag == "a":
            self.links.add(values.get("href", "").partition("#")[0])


@cache
def read(page: Path) -> Requests:
    parser = Requests()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def outside(address: str) -> bool:
    return address.startswith("//") or "://" in address


def test_no_page_asks_anyone_else(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 50 and not [*site.rglob("*.py*")]
    for page in pages:
        for address in read(page).found:
            assert not outside(address), f"{page.name}: {address}"
            assert (
                page.name == "404.html"
                or (page.parent / address.partition("?")[0].partition("#")[0]).exists()
            )
    for sheet in site.rglob("*.css"):
        for address in re.findall(r"(?:url\(|@import )['\"]?([^)'\"]+)", sheet.read_text(encoding="utf-8")):
            assert address.startswith("data:") or not outside(address), f"{sheet.name}: {address}"


def test_an_outside_request_would_be_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        "<img src=//x.org/a.png><link rel=stylesheet href=https://x.org/a.css><p style='a:url(//x)'>"
    )
    assert [outside(address) for address in read(page).found] == [True] * 3


def test_ten_facts_are_three_clicks_from_the_start(site: Path) -> None:
    start = site / "index.html"
    near, edge = {start}, {start}
    for _ in range(3):
        links = {
            (page.parent / link).resolve()
            for page in edge
            for link in read(page).links
            if link and not outside(link)
        }
        edge = {page for page in links if page.suffix == ".html" and page.exists()} - near
        near |= edge
    for fact, (page, words) in FACTS.items():
        assert (site / page).resolve() in near, fact
        assert words in re.sub(r"<[^>]+>", "", (site / page).read_text(encoding="utf-8")), fact
