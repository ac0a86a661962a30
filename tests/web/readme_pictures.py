"""The two pages that the README shows, of the demonstration: ``python -m tests.web.readme_pictures``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console

import blowfishdb as bf
from blowfishdb.adapters.tokens import Role
from blowfishdb.entrypoints import demo
from blowfishdb.entrypoints.demo import serving
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.entrypoints.server.server import Settings
from tests.web.site import ARGUMENTS, CHROMIUM

FOLDER = Path("docs/images")
WIDTH, HEIGHT = 1280, 980


def main() -> None:
    """Publish the policy of the tutorial, ask its question, and take both pictures."""
    with tempfile.TemporaryDirectory() as folder:
        place = demo.prepare(Path(folder), Console(quiet=True))
        with bf.open(place, user="analyst") as workspace:
            salaries = workspace["salaries"]
            salaries.publish(salaries.hiding_within("salary", 1_000))
            number = salaries["salary"].histogram(bins=20).accurate_to(1_500).ask().number
        app = create_app(place, settings=Settings(demo=True))
        with serving(app) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            for role, path, name in (
                (Role.CURATOR, "/datasets/salaries/policy", "policy"),
                (Role.ANALYST, f"/answers/{number}", "answer"),
            ):
                window = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
                window.goto(f"{address}/signin")
                window.get_by_label("Name").fill(role.value)
                window.get_by_label("Password").fill(demo.PASSWORDS[role])
                window.get_by_role("button", name="Sign in", exact=True).click()
                window.goto(f"{address}{path}")
                window.locator("figure svg").first.wait_for()
                window.wait_for_timeout(2_000)  # all charts are drawn
                window.screenshot(path=FOLDER / f"{name}.png")
            browser.close()


if __name__ == "__main__":
    main()
