"""The trade-off page: prices by distance, points that lead on, progress; and all of it without scripts."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.web.conftest import PageFor
from tests.web.site import Site

TRADEOFF = "/datasets/salaries/tradeoff"


def test_points_are_links_and_the_star_names_free_protection(page_for: PageFor) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(f"{TRADEOFF}?distances=1,000; 5,000; 50,000; everything&ask=cumulative&bins=20&data=made-up")
    assert (
        "Within 1,000 → within 5,000 costs nothing more at this granularity."
        in page.locator(".star").inner_text()
    )
    costs = [float(cost) for cost in page.locator("table.points td:nth-child(2)").all_inner_texts()]
    assert costs == sorted(costs) and costs[0] == costs[1] < costs[3]
    page.get_by_role("link", name="within 50,000").click()
    expect(page.locator("#point")).to_contain_text("If salary is hidden within 50,000")
    assert page.locator("tr.picked").inner_text().startswith("within 50,000")
    expect(page.locator("main")).to_contain_text("MADE-UP DATA")
    expect(page.locator("#graph")).to_contain_text("145 pairs of values are hidden")
    page.get_by_role("link", name="Use this policy").click()
    expect(page.get_by_label("Distance in salary")).to_have_value("50,000")
    expect(page.locator("#change-live")).to_contain_text("within 50,000 of each other")


def test_what_is_wrong_is_said_and_nothing_typed_is_lost(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto(TRADEOFF)
    page.get_by_label("Distances to try").fill("1,000, far")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#wrong-distances")).to_contain_text("must be a number")
    expect(page.get_by_label("Distances to try")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_label("Distances to try")).to_have_value("1,000, far")
    page.goto(f"{TRADEOFF}?ask=own&own=nonsense(")
    expect(page.locator("#wrong-own")).to_contain_text("nonsense")
    expect(page.get_by_label("Your question")).to_have_value("nonsense(")
    expect(page.get_by_label("Your question")).to_have_attribute("aria-invalid", "true")


def test_progress_of_a_long_list_comes_from_the_job(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto(f"{TRADEOFF}?data=made-up")
    told = []
    page.on("response", lambda r: told.append((r.status, r.url)) if "/job" in r.url else None)
    page.get_by_label("Distances to try").fill(", ".join(str(1_000 * step) for step in range(1, 25)))
    page.get_by_role("button", name="Compare").click()
    page.locator("#progress").wait_for()
    page.wait_for_url("**distances=1000%2C*")
    expect(page.locator("table.points tbody tr")).to_have_count(24)
    assert told[0][0] == 202 and any("/api/v1/jobs/" in url for _, url in told)
    assert "csrf" not in page.url


def test_a_column_without_distances_says_so(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto(f"{TRADEOFF}?column=region")
    expect(page.locator("main")).to_contain_text("region has no distances")
    expect(page.locator("table.points tbody tr")).to_have_count(1)


def test_the_chosen_point_is_marked_in_the_chart(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto("/datasets/salaries/tradeoff")
    expect(page.locator("#tradeoff .drawing[data-drawn] svg")).to_be_visible()
    lines = page.locator("#tradeoff .mark-rule.role-mark line")
    expect(lines).to_have_count(0)
    page.get_by_role("link", name="within 10,000").click()
    expect(lines).to_have_count(2)  # through both panels


def test_nothing_is_looked_at_unless_it_is_asked_for(page_for: PageFor, web: Site) -> None:
    def looks() -> int:
        return sum(event.kind == "preview" for event in web.workspace.events("salaries"))

    page, before = page_for("curator"), looks()
    page.goto(f"{TRADEOFF}?point=within+10%2C000")
    expect(page.locator("main")).to_contain_text("MADE-UP DATA")
    expect(page.locator("#point")).to_contain_text("noisy − made up")
    assert looks() == before
    page.goto(f"{TRADEOFF}?point=within+10%2C000&data=true")
    expect(page.locator("main")).to_contain_text("CURATOR VIEW")
    assert looks() == before + 1
