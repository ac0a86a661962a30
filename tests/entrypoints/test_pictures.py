"""Pictures without JavaScript: drawn by whichever worker is asked, for the one who saw the page."""

from __future__ import annotations

import base64
import html
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from blowfishdb.entrypoints.server.app import create_app
from tests.entrypoints.server import CHEAP, SETTINGS, Running, TestClient, client_of, running

PICTURE = re.compile(r'<img src="(/pictures[^"]*|/api/[^"]*|/datasets/[^"]*[.]svg[^"]*)"')


@contextmanager
def two_workers(folder: Path) -> Iterator[tuple[Running, TestClient, TestClient]]:
    """One workspace, two apps, and a curator whose cookie both of them know."""
    with running(folder, rows=200) as one:
        place = folder / "server.blowfish"
        other = create_app(place, settings=SETTINGS, hasher=CHEAP)
        try:
            first = one.browser("curator")
            second = client_of(other)
            second.cookies.update(first.cookies)
            yield one, first, second
        finally:
            other.state.server.workspace.close()


def addresses(page: str) -> list[str]:
    return [html.unescape(found) for found in PICTURE.findall(page)]


def test_the_other_worker_draws_the_same_picture(tmp_path: Path) -> None:
    with two_workers(tmp_path) as (one, first, second):
        one.workspace["salaries"].budget.set("1")  # so that a guarantee has something to draw
        asked = {"question": "histogram(region)", "epsilon": "0.1"}
        number = one.analyst.post("/api/v1/datasets/salaries/answers", json=asked).json()["id"]
        for path, charts in (
            (f"/answers/{number}", 1),
            ("/datasets/salaries/policy?data=true", 3),
            ("/datasets/salaries/budget", 1),
            ("/datasets/salaries/guarantee", 1),
        ):
            found = addresses(first.get(path).text)
            assert len(found) == charts and max(map(len, found)) < 8_000, path
            for address in found:
                drawn = [client.get(address) for client in (first, second)]
                assert [each.status_code for each in drawn] == [200, 200]
                assert drawn[0].content == drawn[1].content and drawn[0].text.startswith("<svg ")
                assert drawn[0].headers["Cache-Control"] == "private, no-store"
        # a preview is a noisy draw over true rows: looked at once, however often its picture is fetched
        looks = [event for event in one.workspace.events("salaries") if event.kind == "preview"]
        assert len(looks) == 1


def test_a_picture_is_for_its_reader_and_its_address_tells_nothing(tmp_path: Path) -> None:
    with two_workers(tmp_path) as (one, first, _):
        address = addresses(first.get("/datasets/salaries/policy").text)[0]
        for other in (one.browser("analyst"), client_of(one.app)):
            refused = other.get(address)
            assert refused.status_code == 404 and "no such picture for you" in refused.text
        sealed = base64.urlsafe_b64decode(address.partition("of=")[2] + "===")
        assert b"salary" not in sealed and b"values" not in sealed
        changed = address[:-4] + ("AAAA" if not address.endswith("AAAA") else "BBBB")
        for wrong in (
            changed,
            "/pictures?of=",
            "/pictures?of=%00",
            "/pictures?of=\u00e9",
            "/pictures?of=abc",
        ):
            assert first.get(wrong).status_code == 404
        one.workspace["salaries"].budget.set("1")
        public = addresses(client_of(one.app).get("/datasets/salaries/guarantee").text)
        assert len(public) == 1 and one.browser("analyst").get(public[0]).status_code == 200


def test_what_follows_from_the_address_of_a_page_is_drawn_again_for_curators(tmp_path: Path) -> None:
    with two_workers(tmp_path) as (one, first, _):
        page = "/datasets/salaries/policy?records=together&column=salary&hide.salary=within&within.salary="
        near, far = (addresses(first.get(f"{page}{theta}").text)[1:] for theta in ("5000", "20000"))
        assert [address.partition(".svg?")[0] for address in near] == [
            "/datasets/salaries/policy/graph",
            "/datasets/salaries/policy/protection",
        ]
        for one_of, other in zip(near, far, strict=True):
            assert first.get(one_of).text != first.get(other).text
            assert one.browser("analyst").get(one_of).status_code == 403
        assert first.get("/datasets/salaries/policy/other.svg").status_code == 404
        assert first.get("/datasets/salaries/policy/graph.svg?own=no(&ask=own").status_code == 422


def test_the_policy_page_is_light_when_it_is_visited_again(tmp_path: Path) -> None:
    with running(tmp_path, rows=200) as one:
        page = one.browser("curator").get("/datasets/salaries/policy")
        headers = sum(len(name) + len(value) + 4 for name, value in page.headers.items())
        assert len(zlib.compress(page.content, 9)) + headers <= 12_000


def test_one_with_too_much_in_it_is_had_elsewhere_or_said_to_be_in_the_table(tmp_path: Path) -> None:
    with running(tmp_path, rows=200) as one:
        asked = {"question": "histogram(salary, bins=2000)", "epsilon": "0.1"}
        number = one.analyst.post("/api/v1/datasets/salaries/answers", json=asked).json()["id"]
        browser = one.browser("analyst")
        (address,) = addresses(browser.get(f"/answers/{number}").text)
        assert address == f"/api/v1/answers/{number}.svg?"
        assert browser.get(address).headers["Content-Type"].startswith("image/svg+xml")


def test_a_server_has_its_key_before_the_first_quote(tmp_path: Path) -> None:
    with running(tmp_path, rows=200) as one:
        store = one.workspace.store
        with store.writing():  # somebody else writes
            quoted = one.analyst.post(
                "/api/v1/datasets/salaries/quotes", json={"question": "histogram(region)", "error": 50}
            )
        assert quoted.status_code == 200 and quoted.json()["quote_id"]
