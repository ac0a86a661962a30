"""The frame of the pages: signing in, forms that cannot be forged, headers, themes, no JavaScript."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from blowfishdb import Domain, Integer
from tests.entrypoints.server import PASSWORD
from tests.web.conftest import PageFor
from tests.web.site import Site


@pytest.fixture
def http(web: Site) -> Any:
    """A program that follows no redirect."""
    with httpx.Client(base_url=web.address) as client:
        yield client


def signed_in(http: httpx.Client, web: Site, role: str) -> str:
    """Signs a client in; the csrf text of its pages."""
    http.cookies.set(web.cookie, web.secret(role))
    found = re.search(r'name="csrf" value="([0-9a-f]{128})"', http.get("/datasets").text)
    assert found is not None
    return found[1]


def test_a_visitor_is_led_to_sign_in_and_then_where_they_wanted_to_go(page_for: PageFor) -> None:
    page = page_for(None)
    page.goto("/datasets/salaries?from=mail")
    assert page.url.endswith("/signin?next=%2Fdatasets%2Fsalaries%3Ffrom%3Dmail")
    page.get_by_label("Name").fill("analyst")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    assert page.url.endswith("/datasets/salaries?from=mail")
    expect(page.locator("h1")).to_have_text("salaries")


def test_a_wrong_password_says_so_and_keeps_the_name(page_for: PageFor) -> None:
    page = page_for(None)
    page.goto("/signin")
    page.get_by_label("Name").fill("auditor")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("name or")
    expect(page.get_by_label("Name")).to_have_value("auditor")
    expect(page.get_by_label("Password")).to_have_value("")
    expect(page.get_by_role("link", name="Sign in")).to_have_count(0)  # one is there already


def test_the_cookie_cannot_be_read_by_scripts_and_signing_out_ends_it(page_for: PageFor, web: Site) -> None:
    page = page_for(None)
    page.goto("/signin")
    page.get_by_role("button", name="Be the analyst").click()
    (cookie,) = [each for each in page.context.cookies() if each["name"] == web.cookie]
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("status")).to_have_text("You are signed out.")
    again = httpx.get(f"{web.address}/datasets", cookies={web.cookie: cookie["value"]})
    assert again.status_code == 303


@pytest.mark.parametrize("next_page", ["//evil.example/", "https://evil.example/", "/\\evil.example", "x"])
def test_signing_in_leads_nowhere_else(http: httpx.Client, next_page: str) -> None:
    sent = {"user": "analyst", "password": PASSWORD, "next": next_page}
    done = http.post("/signin", data=sent)
    assert (done.status_code, done.headers["Location"]) == (303, "/")


@pytest.mark.parametrize("csrf", ["", "0" * 64, "0" * 128, "no hexadecimal digits", "abc", None])
def test_a_forged_form_changes_nothing(http: httpx.Client, web: Site, csrf: str | None) -> None:
    signed_in(http, web, "curator")
    before = web.workspace.facts("salaries").snapshot
    sent = {} if csrf is None else {"csrf": csrf}
    refused = http.post("/datasets/salaries/refresh", data=sent)
    assert refused.status_code == 403
    assert web.workspace.facts("salaries").snapshot == before


def test_the_text_of_someone_else_is_forged_too(http: httpx.Client, web: Site) -> None:
    theirs = signed_in(http, web, "analyst")
    signed_in(http, web, "curator")
    assert http.post("/datasets/salaries/refresh", data={"csrf": theirs}).status_code == 403


def test_a_form_from_another_site_signs_nobody_in(http: httpx.Client, web: Site) -> None:
    sent = {"user": "analyst", "password": PASSWORD}
    refused = http.post("/signin", data=sent, headers={"Sec-Fetch-Site": "cross-site"})
    assert refused.status_code == 403
    assert web.cookie not in refused.cookies


def test_a_form_of_ours_is_read(http: httpx.Client, web: Site) -> None:
    csrf = signed_in(http, web, "curator")
    before = web.workspace.facts("salaries").snapshot
    assert http.post("/datasets/salaries/refresh", data={"csrf": csrf}).status_code == 303
    assert web.workspace.facts("salaries").snapshot == before + 1


def test_a_file_that_is_sent_anew_is_as_long_as_any_and_read_for_curators_only(
    http: httpx.Client, web: Site
) -> None:
    long = b"age,more\n" + (b"30," + b"x" * 4_000 + b"\n") * 300
    source = web.workspace.receive("long.csv", [b"age,more\n30,x\n"], most=10**6)
    web.workspace.add_dataset("sent anew", source, domain=Domain(age=Integer(0, 99)))
    for role, status in (("analyst", 403), ("curator", 303)):
        csrf, file = signed_in(http, web, role), {"file": ("long.csv", long)}
        sent = http.post("/datasets/sent%20anew/refresh", data={"csrf": csrf}, files=file)
        assert sent.status_code == status, sent.text
    assert web.workspace.facts("sent anew").snapshot == 2
    assert http.post("/datasets/sent%20anew/about", data={"csrf": csrf}, files=file).status_code == 413
    web.workspace.delete("sent anew")


def test_a_request_that_was_answered_is_not_granted_any_more(http: httpx.Client, web: Site) -> None:
    csrf, kept = signed_in(http, web, "curator"), web.workspace.desk
    asked = kept.request("salaries", "latecomer", "More, please.")
    kept.settle_request(asked.id, "declined", "", "curator")
    granting = {"csrf": csrf, "state": "granted", "epsilon": "3"}
    assert http.post(f"/requests/{asked.id}", data=granting).status_code == 422
    assert "latecomer" not in {grant.user for grant in web.workspace.grants("salaries")}


def test_the_text_of_a_form_looks_different_on_every_page(http: httpx.Client, web: Site) -> None:
    signed_in(http, web, "curator")
    page = http.get("/datasets")
    assert page.headers["Content-Encoding"] == "gzip"
    texts = {*re.findall(r'name="csrf" value="(\w+)"', page.text), *_again(http)}
    assert len(texts) == 2
    sent = [http.post("/theme", data={"csrf": text, "theme": "dark"}).status_code for text in texts]
    assert sent == [303, 303]


def _again(http: httpx.Client) -> list[str]:
    return re.findall(r'name="csrf" value="(\w+)"', http.get("/datasets").text)


def test_the_field_of_a_form_does_not_open_the_interface(http: httpx.Client, web: Site) -> None:
    csrf = signed_in(http, web, "curator")
    refused = http.post("/api/v1/datasets/salaries/refresh", data={"csrf": csrf})
    assert refused.status_code == 403


def test_pages_run_no_code_but_ours(http: httpx.Client, web: Site) -> None:
    signed_in(http, web, "analyst")
    page = http.get("/datasets")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["X-Frame-Options"] == "DENY"


def test_static_files_are_kept_for_good_under_an_address_that_names_them(http: httpx.Client) -> None:
    address = re.findall(r'href="(/static/[^"]+site\.css)"', http.get("/signin").text)[0]
    style = http.get(address, headers={"Accept-Encoding": "gzip"})
    assert "immutable" in style.headers["Cache-Control"]
    assert style.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in http.get(address, headers={"Accept-Encoding": "identity"}).headers
    older = http.get("/static/0123456789abcdef/site.css")
    assert older.headers["Cache-Control"] == "no-cache"
    assert http.get("/static/0123456789abcdef/secrets.css").status_code == 404
    assert http.get("/static/x/..%2Ftemplates%2Fbase.html").status_code == 404


def test_a_program_is_told_as_data_and_a_person_as_a_page(http: httpx.Client) -> None:
    assert http.get("/api/v1/nothing").headers["Content-Type"] == "application/problem+json"
    page = http.get("/nothing")
    assert page.status_code == 404
    assert page.headers["Content-Type"].startswith("text/html")
    assert "There is nothing here" in page.text


def test_what_is_too_long_gets_a_page(http: httpx.Client) -> None:
    page = http.post("/signin", data={"user": "x" * 1_100_000})
    assert page.status_code == 413
    assert "That was too long" in page.text
    assert "Nothing was charged." in page.text


def test_another_role_is_told_so(http: httpx.Client, web: Site) -> None:
    signed_in(http, web, "analyst")
    page = http.get("/import")
    assert page.status_code == 403
    assert "This page is for another role" in page.text


def test_the_theme_follows_the_system_until_it_is_chosen(page_for: PageFor) -> None:
    page = page_for("analyst", color_scheme="dark")
    page.goto("/datasets")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name="Light theme").click()
    light = page.evaluate(background)
    assert dark != light
    page.reload()
    assert page.evaluate(background) == light
    assert page.locator("html").get_attribute("data-theme") == "light"


def test_everything_here_works_without_javascript(page_for: PageFor) -> None:
    page = page_for(None, java_script_enabled=False)
    page.goto("/signin")
    page.get_by_role("button", name="Be the curator").click()
    page.get_by_role("button", name="Dark theme").click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    page.get_by_label("Demo role").select_option("auditor")
    page.get_by_role("button", name="Switch").click()
    expect(page.get_by_role("status")).to_have_text("You are now the auditor.")
    page.get_by_role("link", name="salaries", exact=True).click()
    expect(page.get_by_role("link", name="Check the books")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    assert page.url.endswith("/signin")


def test_the_role_switch_is_one_choice_with_javascript(page_for: PageFor) -> None:
    page = page_for("curator")
    page.goto("/datasets/salaries")
    page.get_by_label("Demo role").select_option("analyst")
    page.get_by_role("link", name="Ask a question").wait_for()
    assert page.url.endswith("/datasets/salaries")


def test_everything_can_be_reached_by_keyboard(page_for: PageFor) -> None:
    page = page_for("analyst")
    page.goto("/datasets")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "salaries"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"


def test_all_pages_of_a_dataset_and_its_budget_stand_on_one_line(page_for: PageFor) -> None:
    page = page_for("curator", viewport={"width": 1440, "height": 900})
    page.goto("/datasets/salaries")
    tabs, meter = (page.locator(f".dataset-bar > {part}").bounding_box() for part in (".tabs", ".meter"))
    assert tabs["height"] < 48 and tabs["y"] < meter["y"] < tabs["y"] + tabs["height"]
    page.set_viewport_size({"width": 768, "height": 900})  # the budget beside the name, all pages below
    name, tabs, meter = (
        page.locator(f".dataset-bar > {part}").bounding_box() for part in (".dataset-name", ".tabs", ".meter")
    )
    assert tabs["height"] < 48 and meter["x"] > name["x"] + name["width"]
    assert name["y"] <= meter["y"] < name["y"] + name["height"] <= tabs["y"]


def test_a_page_that_is_not_whole_yet_says_so(page_for: PageFor) -> None:
    page = page_for("curator", java_script_enabled=False)
    said = "() => getComputedStyle(document.querySelector('main'), '::after').content"

    def cut_off(route: Any) -> None:
        body = route.fetch().text()
        route.fulfill(body=body[: body.index("</h1>") + 5], content_type="text/html")

    page.route("**/datasets/salaries/start", cut_off)
    page.goto("/datasets/salaries/start")
    assert page.evaluate(said) == '"One moment …"'
    page.unroute("**/datasets/salaries/start")
    page.reload()
    assert page.evaluate(said) == "none"
