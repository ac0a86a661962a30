"""Files of Excel: each cell is read by itself, into a copy of texts that stays as it is."""

from __future__ import annotations

import datetime as dt
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest

import blowfishdb as bf
from blowfishdb.adapters.copies.dialects import find_dialect, sheets_of
from blowfishdb.adapters.copies.folder import Copies
from blowfishdb.adapters.copies.values import Dialect
from blowfishdb.adapters.proposal import propose
from blowfishdb.core.errors import InvalidInput, SourceCorrupt, SourceError, SourceMissing

NAMES = ("salary", "joined", "team", "remote")
ROWS = [
    (40_000 + 125 * i, dt.date(2020, 1 + i % 12, 1 + i % 28), ["red", "green"][i % 2], i % 3 == 0)
    for i in range(120)
]


def workbook(path: Path, **sheets: Sequence[Sequence[Any]]) -> Path:
    """A file of Excel with these rows."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    book.save(path)
    return path


def read(path: Path, dialect: Dialect | None = None) -> dict[str, list[str | None]]:
    """The columns of the copy."""
    copies = Copies(path.with_name("copies"))
    copied = pq.read_table(copies.path(copies.take(path, dialect or find_dialect(path))))
    return copied.to_pydict()


def test_every_cell_is_the_text_it_would_be_in_a_file_of_texts(tmp_path: Path) -> None:
    cells = [
        [1, "1"],
        [1.0, "1"],
        [1.125, "1.125"],
        [-0.5, "-0.5"],
        [True, "true"],
        [dt.date(2024, 2, 29), "2024-02-29"],
        [dt.datetime(2024, 2, 29, 13, 5), "2024-02-29 13:05:00"],
        ["1,5", "1,5"],
        ["007", "007"],
        ["north, or so", "north, or so"],
    ]
    path = workbook(tmp_path / "cells.xlsx", only=[["value"], *([cell] for cell, _ in cells)])
    assert read(path) == {"value": [text for _, text in cells]}


def test_a_cell_is_read_alike_whatever_rows_come_later(tmp_path: Path) -> None:
    before = workbook(tmp_path / "a.xlsx", s=[["v", "w"], [12, 1], [13.5, 2]])
    after = workbook(tmp_path / "b.xlsx", s=[["v", "w"], [12, 1], [13.5, 2], ["none", None], [None, 0.1]])
    assert read(after)["v"][:2] == read(before)["v"]
    assert read(after) == {"v": ["12", "13.5", "none", None], "w": ["1", "2", None, "0.1"]}


def test_the_first_sheet_that_is_seen_is_proposed_and_another_can_be_chosen(tmp_path: Path) -> None:
    path = workbook(tmp_path / "book.xlsx", notes=[["x"], [1]], rows=[NAMES, *ROWS], more=[["y"], [2]])
    book = openpyxl.load_workbook(path)
    book["notes"].sheet_state = "hidden"
    book.save(path)
    assert find_dialect(path) == Dialect(sheet="rows")
    assert sheets_of(path) == ("rows", "more")
    assert read(path, Dialect(sheet="more")) == {"y": ["2"]}
    with pytest.raises(SourceError, match="no sheet 'notes'"):
        read(path, Dialect(sheet="notes"))
    with pytest.raises(InvalidInput, match="A sheet is named"):
        read(path, Dialect())


def test_numbers_and_dates_are_proposed_as_such(tmp_path: Path) -> None:
    proposal = propose(workbook(tmp_path / "people.xlsx", people=[NAMES, *ROWS]))
    kinds = {each.name: type(each.attribute).__name__ for each in proposal.columns}
    assert kinds == {"salary": "Integer", "joined": "Date", "team": "Category", "remote": "Boolean"}
    shapes = {each.name: each.shape for each in proposal.columns}
    assert len(shapes["joined"]) == 12 and sum(shapes["joined"]) == len(ROWS)
    assert sorted(shapes["remote"]) == [40, 80] and shapes["team"] == (60, 60)
    assert proposal.sheets == ("people",)
    assert proposal.to_plain()["read_as"] == (
        "the sheet 'people' of a file of Excel, its first row names the columns"
    )


def test_a_dataset_is_asked_and_refreshed_under_the_sheet_it_was_declared_with(tmp_path: Path) -> None:
    path = workbook(tmp_path / "people.xlsx", people=[NAMES, *ROWS])
    with bf.open(tmp_path / "w.blowfish") as workspace:
        people = workspace.add_dataset(
            "people",
            path,
            domain=bf.Domain(salary=bf.Integer(40_000, 60_000), team=bf.Category(["red", "green"])),
        )
        assert people.source.dialect == Dialect(sheet="people")
        assert people.source.copy.rows == len(ROWS)
        answer = people.question("histogram(team)").accurate_to(5).ask()
        assert answer.values == pytest.approx([60, 60], abs=12)
        workbook(path, people=[NAMES, *ROWS, *ROWS[:5]])
        people.refresh()
        assert people.source.copy.rows == len(ROWS) + 5
        workbook(path, others=[NAMES, *ROWS])
        with pytest.raises(SourceError, match="no sheet 'people'"):
            people.refresh()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([["a", "b"], [1, 2], [], [3, 4]], "Row 3 of .* is empty"),
        ([["A title"], ["a", "b"], [1, 2]], "Row 2 of .* has 2 values, but the first has 1"),
        ([["a", "A"], [1, 2]], "Two columns of .* have the same name"),
        ([["a", "b"]], "no row follows the names"),
        ([], "is empty"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_row(tmp_path: Path, rows: list[list[Any]], said: str) -> None:
    path = workbook(tmp_path / "odd.xlsx", s=rows)
    with pytest.raises(SourceCorrupt, match=said):
        read(path, Dialect(sheet="s"))


def test_rows_without_names_are_called_by_their_place(tmp_path: Path) -> None:
    path = workbook(tmp_path / "plain.xlsx", s=[[1, 2.5], [3, 4.5]])
    assert read(path) == {"column_1": ["1", "3"], "column_2": ["2.5", "4.5"]}


def test_a_damaged_file_and_one_that_is_not_there_are_told_apart(tmp_path: Path) -> None:
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"PK\x03\x04 nothing of the kind")
    with pytest.raises(SourceCorrupt, match=r"cannot be read as a file of Excel"):
        find_dialect(broken)
    with pytest.raises(SourceMissing):
        find_dialect(tmp_path / "nowhere.xlsx")


def test_a_file_that_unpacks_to_far_too_much_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("blowfishdb.adapters.copies._ALWAYS", 1_000)
    path = workbook(tmp_path / "bomb.xlsx", s=[["a"], [1]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/media/nothing", bytes(20_000_000))
    with pytest.raises(SourceCorrupt, match="unpacks to"):
        find_dialect(path)


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path / "people.xlsx", s=[["a"], [1]])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InvalidInput, match="not installed") as refused:
        find_dialect(path)
    assert "pip install 'blowfishdb[excel]'" in refused.value.fixes
