"""Counts and pages of what is in the books, as they are in a file and on a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.pages import Pages
from blowfishdb.adapters.store.values import Answered, State
from blowfishdb.core.budget import Epsilon
from tests.adapters.spending import reserve, spend


@pytest.fixture
def books(address: str) -> Iterator[Ledger]:
    """Six answers, one of them for nothing, one question under way and one that was given back."""
    with closing(Ledger.open(address)) as ledger:
        for dataset in ("people", "places"):
            ledger.set_budget(dataset, Epsilon(1), "carla")
        for number, amount in enumerate(("0.1", "0", "0.2", "0.1", "0.05", "0.05")):
            spend(ledger, amount, f"q{number}", "ana" if number % 2 else "ben")
        reserve(ledger, "0.1", "under way")
        ledger.void(reserve(ledger, "0.2", "given back"))
        yield ledger


def test_answers_are_counted_and_summed_up_to_a_number(books: Ledger) -> None:
    numbers = [stored.charge.id for stored in books.answers()]
    assert (
        Pages(books.store).answered("people")
        == Pages(books.store).answered()
        == Answered(6, 5, Epsilon("0.5"))
    )
    assert Pages(books.store).answered("people", before=numbers[3]) == Answered(3, 2, Epsilon("0.3"))
    assert (
        Pages(books.store).answered("places") == Pages(books.store).answered(before=numbers[0]) == Answered()
    )


def test_a_page_of_answers_leaves_out_newer_ones(books: Ledger) -> None:
    numbers = [stored.charge.id for stored in books.answers()]
    for skip in range(8):
        page = [stored.charge.id for stored in books.answers("people", limit=2, skip=skip)]
        assert page == numbers[::-1][skip : skip + 2][::-1]


def test_charges_by_their_states(books: Ledger) -> None:
    assert Pages(books.store).by_state("people") == {
        State.SETTLED: (6, Epsilon("0.5")),
        State.RESERVED: (1, Epsilon("0.1")),
        State.VOID: (1, Epsilon("0.2")),
    }
    assert Pages(books.store).by_state("places") == {}


@pytest.mark.parametrize("kind", ["", "settled", "grant"])
@pytest.mark.parametrize("analyst", ["", "ana", "nobody"])
def test_pages_of_events_are_all_events_once(books: Ledger, kind: str, analyst: str) -> None:
    chosen = [
        event
        for event in reversed(books.events("people"))
        if kind in ("", event.kind) and analyst in ("", event.analyst)
    ]
    first = Pages(books.store).event_page("people", kind=kind, analyst=analyst, size=3)
    pages = [
        Pages(books.store).event_page("people", kind=kind, analyst=analyst, number=number, size=3)
        for number in range(1, first.pages + 1)
    ]
    assert [event for page in pages for event in page.events] == chosen
    assert first.count == len(chosen) and first.pages == max(1, -(-len(chosen) // 3))
    assert Pages(books.store).event_page("people", kind=kind, analyst=analyst, number=99, size=3) == pages[-1]


def test_who_did_anything_and_what_was_asked(books: Ledger) -> None:
    assert Pages(books.store).people("people") == ["ana", "ben", "carla"] and Pages(books.store).people(
        "places"
    ) == ["carla"]
    charge = books.reserve("places", "ana", Epsilon("0.1"), "digest", {"question": "How many are there?"})
    told = [stored.charge.id for stored in books.answers()]
    assert Pages(books.store).asked([charge.id, *told]) == {charge.id: "How many are there?"}
