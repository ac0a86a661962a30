"""A long history: what a question is answered from, chosen by what was measured and by nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.adapters.store.releases import IndexedRelease
from blowfishdb.adapters.store.tables import charges
from blowfishdb.adapters.store.values import StoredAnswer
from blowfishdb.core.domain.attributes import Integer
from blowfishdb.core.domain.bins import Bins, EqualBins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.service.choosing import MOST, Grid, SnapshotIndex, least_scale
from blowfishdb.service.stored import Closest
from blowfishdb.workspace.embedded import Workspace

SIZE = 120
ATTRIBUTE = Integer(0, SIZE - 1)
DOMAIN = bf.Domain(age=bf.Integer(0, 59), pay=bf.Integer(0, 99))


def grid(width: int, column: str = "value") -> Grid:
    return Grid((Axis(column, ATTRIBUTE, Bins.width(SIZE, width)),))


def release(number: int, width: int, scale: float, *, rows: str = "cells", exact: int = 0) -> IndexedRelease:
    scales = json.dumps([str(Fraction(scale))])
    return IndexedRelease(number, number, 1, str(width), f"{rows} {width}", scales, 0 if exact else 5, exact)


def index(releases: list[tuple[IndexedRelease, Grid]]) -> SnapshotIndex:
    entered = SnapshotIndex()
    for one, boxes in releases:
        entered.enter(one, boxes)
    return entered


def test_few_releases_are_all_taken() -> None:
    few = index([(release(n, w, 10), grid(w)) for n, w in enumerate([2, 3, 7, 11], 1)])
    assert few.choose(grid(5)).charges == (1, 2, 3, 4)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_single_release_is_always_among_them(seed: int) -> None:
    """Of every shape that can answer alone the least noisy one competes; here there are four such shapes."""
    draws = np.random.Generator(np.random.Philox(seed))
    widths = draws.choice([1, 2, 3, 4, 5, 6, 10, 12, 7, 9, 11], size=400)
    releases = [release(n, int(w), float(draws.integers(1, 10**6))) for n, w in enumerate(widths, 1)]
    many = index([(one, grid(int(one.grid))) for one in releases])
    for asked in (12, 20, 24):
        chosen = many.choose(grid(asked)).charges
        assert len(chosen) <= MOST
        fitting = [one for one in releases if asked % int(one.grid) == 0]
        noise = {one.charge: least_scale(one.scales) ** 2 * asked / int(one.grid) for one in fitting}
        assert min(noise, key=lambda charge: noise[charge]) in chosen


def test_what_is_taken_does_not_grow_with_what_there_is() -> None:
    releases = [(release(n, 1 + n % 30, 1 + n), grid(1 + n % 30)) for n in range(1, 3_000)]
    sizes = {len(index(releases[:count]).choose(grid(6)).charges) for count in (20, 200, 2_999)}
    assert sizes == {MOST}


def test_exact_ones_come_on_top_once_of_each_shape() -> None:
    many = [(release(n, 6, n), grid(6)) for n in range(1, 40)]
    told = [(release(n, 120, 0, exact=1), grid(120)) for n in range(40, 50)]
    chosen = index(many + told).choose(grid(6))
    assert 40 in chosen.charges and chosen.public == {40}
    assert not set(range(41, 50)) & set(chosen.charges)


@pytest.mark.parametrize("count", [6, 60])
def test_no_question_has_a_say_in_what_is_exact_beside_a_release(count: int) -> None:
    """Of a release on two columns: whichever of them is asked for, the same exact rows come along."""
    both = Grid((*grid(6, "a").axes, *grid(6, "b").axes))
    releases = [
        (IndexedRelease(n, n, 1, "both", "both", f'["{n}"]', 5, 0), both) for n in range(1, count // 3 + 1)
    ]
    for column in "abc":
        releases += [
            (IndexedRelease(n, n, 1, f"{column} {n}", f"{column} {n}", '["0"]', 0, 1 + n), grid(n, column))
            for n in range(len(releases) + 1, len(releases) + count // 3 + 1)
        ]
    exact = {one.charge: boxes for one, boxes in releases if one.exact}
    beside = []
    for asked in (grid(5, "a"), grid(12, "b"), both, Grid((*both.axes, *grid(6, "c").axes))):
        chosen = index(releases).choose(asked)
        if min(chosen.charges) <= count // 3:  # a release on both columns
            beside.append({charge for charge in chosen.public if exact[charge].columns <= both.columns})
    assert beside == [beside[0]] * len(beside) and len(beside) > 1 and beside[0]


def test_two_grids_that_only_together_have_the_cuts() -> None:
    noise = [(release(n, 60, n), grid(60)) for n in range(1, 30)]
    cut = index([*noise, (release(30, 8, 1000), grid(8)), (release(31, 20, 1000), grid(20))])
    asked = Grid((Axis("value", ATTRIBUTE, Bins.edges(SIZE, [0, 8, 20])),))
    assert {30, 31} <= set(cut.choose(asked).charges)


def test_labels_refine_labels() -> None:
    fine = Grid((Axis("value", ATTRIBUTE, Bins.labels(np.arange(SIZE) % 6)),))
    coarse = Grid((Axis("value", ATTRIBUTE, Bins.labels(np.arange(SIZE) % 3)),))
    assert fine.refines(coarse) and not coarse.refines(fine)
    assert grid(1).refines(fine) and not grid(2).refines(fine)


def test_other_columns_are_left_aside_while_there_are_own_ones() -> None:
    own = [(release(n, 6, 50 + n), grid(6)) for n in range(1, 20)]
    other = [
        (IndexedRelease(n, n, 1, "other", "other", '["1"]', 5, 0), grid(6, "other")) for n in range(20, 40)
    ]
    assert max(index(own + other).choose(grid(6)).charges) < 20


# --- through a workspace ----------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rows = tmp_path / "people.csv"
    rows.write_text("age,pay\n" + "\n".join(f"{n % 60},{n * 7 % 100}" for n in range(400)))
    with Workspace(tmp_path / "w.blowfish", user="ana") as workspace:
        people = workspace.add_dataset("people", rows, domain=DOMAIN)
        people.budget.set("1000")
        for number, question in enumerate(asked(people)):
            question.spend(f"{0.5 + number / 10:.1f}").ask()
    return tmp_path / "w.blowfish"


def asked(people: bf.Dataset) -> Iterator[bf.Question]:
    for bins in (20, 12, 10, 6, 5, 4, 3, 2):
        yield people["age"].histogram(bins=bins)
        yield people["pay"].cumulative(bins=bins)
    yield people["age", "pay"].histogram(bins=3)


def priced(place: Path) -> list[object]:
    """Everything that is decided about new questions, in a process that has read nothing yet."""
    with Workspace(place, user="ana") as workspace:
        people, decided = workspace["people"], []
        for question in asked(people):
            for error in (2, 8, 40, 200):
                quote = question.accurate_to(error).quote()
                decided.append((quote.epsilon, quote.mechanism, quote.explanation, quote.owned, quote.fits))
        return decided


def test_what_came_out_changes_no_quote(place: Path) -> None:
    """All stored values are replaced by others: nothing that is priced or decided differs."""
    before, draws = priced(place), np.random.Generator(np.random.Philox(3))
    assert any(owned for *_, owned, _ in before) and not all(owned for *_, owned, _ in before)  # type: ignore[misc]
    with Workspace(place, user="ana") as workspace, workspace.store.writing() as connection:
        for row in connection.execute(charges.select()).all():
            body = json.loads(row.answer)
            if body["release"] is not None:
                values = body["release"]["values"]
                body["release"]["values"] = draws.integers(-(10**6), 10**6, len(values)).tolist()
            this = charges.update().where(charges.c.id == row.id)
            connection.execute(this.values(answer=json.dumps(body)))
    assert priced(place) == before


def test_of_many_answers_to_one_question_few_are_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least noisy is among them, wherever it was in the order of asking."""
    read: list[int] = []
    look = Closest.of

    def counted(stored: StoredAnswer) -> Closest | None:
        read.append(stored.charge.id)
        return look(stored)

    with Workspace(place, user="ana") as workspace:
        question = workspace["people"]["age"].histogram(bins=15)
        numbers = {spent: question.spend(spent).ask().number for spent in (*"124635789", "0.5", "0.3", "0.2")}
        monkeypatch.setattr(Closest, "of", counted)
        assert question.accurate_to(40).ask().number == numbers["9"]
        assert 1 <= len(set(read)) <= 4 and len(numbers) == 12


def test_answers_and_events_come_in_pages(place: Path) -> None:
    with Workspace(place, user="ana") as workspace:
        everything = [answer.number for answer in workspace.answers("people")]
        newest = workspace.answers("people", limit=4)
        assert [answer.number for answer in newest] == everything[-4:]
        before = workspace.answers(limit=4, before=newest[0].number)
        assert [answer.number for answer in before] == everything[-8:-4]
        first = workspace.answers("people", limit=3, after=0)
        assert [answer.number for answer in first] == everything[:3]
        after = workspace.answers("people", limit=3, after=first[-1].number)
        assert [answer.number for answer in after] == everything[3:6]
        assert workspace.answer(everything[2]).number == everything[2]
        events = [event.seq for event in workspace.events("people")]
        assert [event.seq for event in workspace.events("people", limit=5)] == events[-5:]
        assert [event.seq for event in workspace.events("people", limit=5, after=events[3])] == events[4:9]


def test_an_index_that_is_lost_is_noticed_and_made_anew(place: Path) -> None:
    from blowfishdb.adapters.store.releases import reindex
    from blowfishdb.adapters.store.tables import grids, releases

    with Workspace(place, user="ana") as workspace:
        with workspace.store.writing() as connection:
            stored = [tuple(row) for row in connection.execute(releases.select().order_by(releases.c.seq))]
            connection.execute(releases.delete())
            connection.execute(grids.delete())
        assert len(workspace.verify()) >= len(stored)
        with workspace.store.writing() as connection:
            reindex(connection)
            anew = [tuple(row) for row in connection.execute(releases.select().order_by(releases.c.seq))]
        assert anew == stored and workspace.verify() == []


def test_only_releases_that_say_what_they_are_about_can_be_refined() -> None:
    """An older one may be of a file that was changed before it was copied, under the same snapshot."""
    index, grid = SnapshotIndex(), Grid((Axis("a", Integer(0, 59), EqualBins(60, 3)),))
    index.enter(release(1, 3, 5.0), grid)
    index.enter(replace(release(2, 3, 9.0), about="x"), grid)
    assert index.over("3") == [2]
