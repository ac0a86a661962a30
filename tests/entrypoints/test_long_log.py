"""A log of many answers: no page and no route reads all of them to show a few."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from blowfishdb.adapters.store import pages, record
from blowfishdb.core.budget import Epsilon
from blowfishdb.entrypoints.server.web import answers as log
from blowfishdb.workspace import embedded
from tests.entrypoints.server import Running, ok, running

ANSWERS = 180
API = "/api/v1"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One answer that was asked for, and its likes."""
    with running(tmp_path_factory.mktemp("log")) as started:
        asked = {"question": "histogram(region)", "epsilon": "0.01"}
        first = ok(started.analyst.post(f"{API}/datasets/salaries/answers", json=asked))["id"]
        ledger = started.workspace._ledger
        stored = ledger.stored([first])[first]
        for number in range(1, ANSWERS):
            price = Epsilon.from_nano(number * 100_000)
            charge = ledger.reserve("salaries", "analyst", price, f"q{number}", stored.charge.detail)
            body = json.loads(stored.answer)
            facts = {"charge": str(charge.id), "epsilon": str(price), "question": f"regions q{number:03}x"}
            body["answer"]["receipt"] |= facts
            ledger.settle(ledger.mark_reading(charge), json.dumps(body))
        yield started


class Read:
    """How many answers and events were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for module, name in ((embedded, "read_answer"), (record, "event_of"), (pages, "event_of")):
            monkeypatch.setattr(module, name, self._counting(getattr(module, name)))

    def _counting(self, read: object) -> object:
        def counted(stored: object) -> object:
            self.count += 1
            return read(stored)  # type: ignore[operator]

        return counted


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    return Read(monkeypatch)


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/answers", 50),
        ("/answers?page=3&dataset=salaries", 50),
        ("/answers/{last}", 51),
        ("/answers?q=region", 150),
        ("/datasets/salaries", 5 + 1),  # with the last event, for when something was done last
        ("/datasets/salaries/budget", 50),
        ("/datasets/salaries/audit", 100 + 3 * 25),
        ("/datasets/salaries/audit?page=3", 100 + 3 * 25),
        ("/compare", 50),
        (f"{API}/answers?limit=20", 21),
        (f"{API}/answers?limit=20&newest=true", 21),
        (f"{API}/events?limit=20", 21),
        (f"{API}/audit?limit=20&after=100", 20),
        (f"{API}/datasets/salaries/budget", 0),
    ],
)
def test_no_more_is_read_than_is_shown(
    here: Running, read: Read, monkeypatch: pytest.MonkeyPatch, path: str, most: int
) -> None:
    monkeypatch.setattr(log, "_LOOKED_THROUGH", 99)
    last = here.workspace.answers(limit=1)[0].number
    read.count = 0
    shown = here.curator.get(path.format(last=last))
    assert shown.status_code == 200 and read.count <= most


def test_pages_of_the_log_have_every_answer_once(here: Running) -> None:
    shown = [here.curator.get(f"/answers?page={page}").text for page in range(1, 5)]
    numbers = [answer.number for answer in here.workspace.answers()]
    for number in numbers:
        assert sum(f'href="/answers/{number}"' in page for page in shown) == 1
    assert "Page 1 of 4" in shown[0] and f"{ANSWERS} answers" in shown[0]


def test_words_are_looked_for_further_back(here: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_LOOKED_THROUGH", 100)
    first, last = here.workspace.answers()[0].number, here.workspace.answers()[-1].number
    page = here.curator.get("/answers?q=q179x").text
    assert f'href="/answers/{last}"' in page and "Look further back" in page
    page = here.curator.get("/answers?q=regions+q003x").text
    begin = page.index("&amp;before=") + len("&amp;before=")
    older = page[begin : page.index('"', begin)]
    page = here.curator.get(f"/answers?q=regions+q003x&before={older}").text
    assert "regions q003x" in page.partition("<table")[2] and "Look further back" not in page
    nothing = here.curator.get("/answers?q=nowhere").text
    assert "Nothing fits" in nothing and "Look further back" in nothing
    none = here.curator.get(f"/answers?q=nowhere&before={first + 1}").text
    assert "No earlier answer has the words" in none and "Look further back" not in none


def test_books_are_checked_on_the_first_page_of_events(here: Running) -> None:
    first, second = (here.auditor.get(f"/datasets/salaries/audit?page={page}").text for page in (1, 2))
    assert "The books add up." in first and "The books add up." not in second
    assert "checked on <a" in second and "page 2 of 6" in second


def test_a_budget_says_what_earlier_answers_cost(here: Running) -> None:
    page = here.curator.get("/datasets/salaries/budget").text
    assert f"{ANSWERS - 50} earlier answers" in page


def test_events_come_in_pages_of_both_orders(here: Running) -> None:
    everything = [event.seq for event in here.workspace.events()]
    for newest in (False, True):
        listed, after = [], 0
        while after is not None:
            page = ok(here.auditor.get(f"{API}/events?limit=200&newest={newest}&after={after}"))
            listed += [event["seq"] for event in page["events"]]
            after = page["next"]
        assert listed == (everything[::-1] if newest else everything)
    policies = ok(here.auditor.get(f"{API}/events?dataset=salaries&kind=policy&kind=budget"))["events"]
    assert {event["kind"] for event in policies} == {"policy", "budget"}
    assert here.analyst.get(f"{API}/events").status_code == 403
    assert here.auditor.get(f"{API}/events?dataset=none").status_code == 404
