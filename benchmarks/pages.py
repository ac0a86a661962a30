"""Pages in a real browser on this machine: first paint, how soon a quote follows a change, and bytes.

python -m benchmarks.pages [--repeats R]
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from tests.web.site import ARGUMENTS, CHROMIUM, Site, site

from benchmarks.tables import show

PAGES = (
    ("analyst", "/datasets"),
    ("analyst", "/datasets/salaries"),
    ("analyst", "/datasets/salaries/ask"),
    ("analyst", "/answers/{a}"),
    ("curator", "/datasets/salaries/policy"),
    ("curator", "/datasets/salaries/tradeoff"),
)
CHART_PAGES = PAGES[-3:]
MOST_FIRST, MOST_AGAIN = 350_000, 12_000
_FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
_DRAWN = "() => [...document.querySelectorAll('figure.chart .drawing')].every(each => each.dataset.drawn)"
_QUOTED = """(error) => new Promise((done) => {
  const quote = document.getElementById("quote");
  const field = document.querySelector('#ask [name="error"]');
  new MutationObserver((_, watching) => {
    if (quote.getAttribute("aria-busy") === "true") return;
    watching.disconnect();
    done(performance.now() - changed);
  }).observe(quote, { attributes: true });
  field.value = error;
  const changed = performance.now();
  field.dispatchEvent(new Event("input", { bubbles: true }));
})"""


def first_paint(browser: Any, running: Site, repeats: int) -> Iterator[dict[str, Any]]:
    """Milliseconds from the click to the first text, everything having been loaded before."""
    for role, path in PAGES:
        window = _window(browser, running, role)
        times = []
        for visit in range(repeats + 1):
            _show(window, running, path)
            window.wait_for_function(f"() => ({_FIRST_PAINT}) !== null")
            if visit:
                times.append(window.evaluate(_FIRST_PAINT))
        window.context.close()
        yield {"page": path, "first paint, median ms": statistics.median(times), "worst ms": max(times)}


def quotes(browser: Any, running: Site, repeats: int) -> dict[str, Any]:
    """Milliseconds from the last change of a question to its new quote, the wait for more typing and all."""
    window = _window(browser, running, "analyst")
    _show(window, running, "/datasets/salaries/ask")
    errors = (f"{49 - number / 8:g}" for number in range(repeats + 1))  # better than what is owned already
    times = [window.evaluate(_QUOTED, error) for error in errors][1:]
    window.context.close()
    return {"quote after the last change, median ms": statistics.median(times), "worst ms": max(times)}


def weight(browser: Any, running: Site) -> Iterator[dict[str, Any]]:
    """Bytes that travel for a page with charts: in a new browser, and when it comes back."""
    for role, path in CHART_PAGES:
        window = _window(browser, running, role)
        wire = window.context.new_cdp_session(window)
        wire.send("Network.enable")
        travelled: list[float] = []
        wire.on("Network.loadingFinished", lambda event, to=travelled: to.append(event["encodedDataLength"]))
        sums = []
        for _ in range(2):
            travelled.clear()
            _show(window, running, path)
            sums.append(round(sum(travelled)))
        window.context.close()
        first, again = sums
        fits = first <= MOST_FIRST and again <= MOST_AGAIN
        yield {"page": path, "first visit, kB": first / 1e3, "again, kB": again / 1e3, "within limits": fits}


def _window(browser: Any, running: Site, role: str) -> Any:
    context = browser.new_context(base_url=running.address)
    context.add_cookies([{"name": running.cookie, "value": running.secret(role), "url": running.address}])
    return context.new_page()


def _show(window: Any, running: Site, path: str) -> None:
    window.goto(path.format(a=running.answers[0]))
    window.wait_for_function(_DRAWN)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Pages in a real browser.")
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    logging.getLogger("blowfishdb.server").setLevel(logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory() as folder,
        site(Path(folder)) as running,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        show(list(first_paint(browser, running, repeats)))
        print()
        show([quotes(browser, running, repeats)])
        print()
        show(list(weight(browser, running)))
        browser.close()


if __name__ == "__main__":
    main()
