"""The access page: users come and go, passwords change, tokens are shown once."""

from __future__ import annotations

import httpx
from playwright.sync_api import expect

from tests.web.conftest import PageFor
from tests.web.site import Site

ACCESS = "/datasets/salaries/access"
WORDS = "seven plain words nobody would ever guess"


def test_someone_comes_changes_and_goes(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    page.goto(ACCESS)
    page.get_by_label("Name", exact=True).fill("newcomer")
    page.get_by_label("Role", exact=True).select_option("analyst")
    page.get_by_label("Password", exact=True).fill(WORDS)
    page.get_by_role("button", name="Let in", exact=True).click()
    expect(page.locator(".alert.good")).to_contain_text("newcomer may come in as analyst")
    inside = _signed_in(web, "newcomer", WORDS)
    assert _me(web, inside).json()["role"] == "analyst"
    page.get_by_label("Role of newcomer", exact=True).select_option("auditor")
    page.get_by_role("button", name="Change the role of newcomer").click()
    expect(page.locator(".alert.good")).to_contain_text("now has the role auditor")
    page.get_by_label("New password for newcomer").fill(f"{WORDS} again")
    page.get_by_role("button", name="Set the password of newcomer").click()
    expect(page.locator(".alert.good")).to_contain_text("signed out everywhere")
    assert _me(web, inside).status_code == 401
    again = _signed_in(web, "newcomer", f"{WORDS} again")
    assert _me(web, again).json()["role"] == "auditor"
    row = page.get_by_role("row", name="newcomer")
    row.get_by_text("Revoke …").click()
    row.get_by_role("button", name="Revoke newcomer for good").click()
    expect(page.locator(".alert.good")).to_contain_text("let in no longer")
    assert _me(web, again).status_code == 401
    expect(page.get_by_role("row", name="newcomer")).to_contain_text("revoked")


def test_refusals_keep_what_was_typed(page_for: PageFor) -> None:
    page = page_for("curator", java_script_enabled=False)
    page.goto(ACCESS)
    page.get_by_label("Name", exact=True).fill("analyst")
    page.get_by_role("button", name="Let in", exact=True).click()
    expect(page.locator("#wrong-user")).to_contain_text("a name is not given away twice")
    expect(page.get_by_label("Name", exact=True)).to_have_value("analyst")
    own = page.get_by_role("row", name="curator you")
    expect(own.get_by_text("Revoke …")).to_have_count(0)


def test_a_token_is_shown_once_works_and_ends(page_for: PageFor, web: Site) -> None:
    page = page_for("curator")
    page.goto(ACCESS)
    expect(page.locator("#tokens")).to_contain_text("None yet.")
    page.get_by_label("What for").fill("nightly report")
    page.get_by_label("Days").fill("30")
    page.get_by_role("button", name="Make a token").click()
    text = page.locator("#made").inner_text()
    bearer = {"Authorization": f"Bearer {text}"}
    assert httpx.get(f"{web.address}/api/v1/me", headers=bearer).json()["user"] == "curator"
    page.goto(ACCESS)
    assert text not in page.content() and "nightly report" in page.locator("#tokens").inner_text()
    page.get_by_role("button", name="End the token nightly report").click()
    expect(page.locator(".alert.good")).to_contain_text("lets nobody in any more")
    assert httpx.get(f"{web.address}/api/v1/me", headers=bearer).status_code == 401
    page.get_by_label("Days").fill("forever")
    page.get_by_role("button", name="Make a token").click()
    expect(page.locator("#wrong-days")).to_contain_text("up to 3,650 days")


def test_a_wire_password_is_shown_once_and_ends(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto(ACCESS)
    row = page.locator("#wire").get_by_role("row", name="auditor")
    page.get_by_role("button", name="Make a wire password for auditor").click()
    text = page.locator("#wire-made").inner_text()
    assert text.startswith("bfw_")
    page.goto(ACCESS)
    assert text not in page.content()
    row.get_by_text("Settings …").click()
    row.get_by_label("Max cost ε").fill("0.1")
    page.get_by_role("button", name="Save the settings of auditor").click()
    expect(page.locator("#wire .mistake:not(:empty)")).to_contain_text("needs a cap for each day")
    expect(row.get_by_label("Max cost ε")).to_have_value("0.1")
    row.get_by_label("Cap a day ε").fill("0,5")
    page.get_by_role("button", name="Save the settings of auditor").click()
    expect(page.locator(".alert.good")).to_contain_text("now begin with these settings")
    expect(row).to_contain_text("daily_cap = 0.5")
    page.get_by_role("button", name="End the wire password of auditor").click()
    expect(page.locator(".alert.good")).to_contain_text("are let in no longer")


def _signed_in(web: Site, user: str, password: str) -> str:
    """The cookie of someone who signed in with a password."""
    answer = httpx.post(f"{web.address}/api/v1/session", json={"user": user, "password": password})
    assert answer.status_code == 200
    return answer.cookies[web.cookie]


def _me(web: Site, cookie: str) -> httpx.Response:
    return httpx.get(f"{web.address}/api/v1/me", headers={"Cookie": f"{web.cookie}={cookie}"})
