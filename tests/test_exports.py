"""Exports: the same numbers in every format, nothing that runs, nothing that was not in the answer."""

from __future__ import annotations

import csv
import html.parser
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blowfishdb.core.errors import InvalidInput
from blowfishdb.messages.answers import Answer
from blowfishdb.show.exports import FORMATS, export
from tests.made_up import bins, hill, made_up

ODD = np.array([0.1 + 0.2, 1e-7, 12345678.9, 1 / 3])
ANSWER = made_up(bins(4), ODD, alpha=0.25)


def table(answer: Answer) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(export(answer, "csv").body.decode("utf-8-sig"))))


def test_csv_gives_back_the_very_numbers() -> None:
    rows = table(ANSWER)
    assert [float(row["value"]) for row in rows] == ANSWER.values.tolist()
    assert [float(row["low"]) for row in rows] == ANSWER.low.tolist()
    assert [row["salary"] for row in rows] == list(bins(4)[0]) and rows[0]["exact"] == "false"


@pytest.mark.parametrize(
    "label", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "|cmd", "%x", '=HYPERLINK("x")']
)
def test_csv_labels_are_never_formulas(label: str) -> None:
    answer = made_up(((label, 'plain, with "quotes"\nand lines'),), [1, 2], axes=("=column",))
    rows = table(answer)
    assert rows[0]["'=column"] == f"'{label}" and rows[1]["'=column"] == 'plain, with "quotes"\nand lines'


def test_csv_negative_numbers_stay_numbers() -> None:
    answer = made_up((("sum",),), [5.0], kind="sum")
    low = Answer(**{**vars(answer), "low": np.array([-12.5])})
    assert table(low)[0]["low"] == "-12.5"


def test_columnar_formats_keep_numbers_and_say_what_they_are() -> None:
    arrow = pa.ipc.open_file(export(ANSWER, "arrow").body).read_all()
    parquet = pq.read_table(io.BytesIO(export(ANSWER, "parquet").body))
    for read in (arrow, parquet):
        assert read["value"].to_pylist() == ANSWER.values.tolist()
        facts = read.schema.metadata
        assert facts[b"blowfishdb.epsilon"] == b"0.118" and facts[b"blowfishdb.question"]
        assert not any(b"SELECT" in value or b"analyst" in value for value in facts.values())


def test_json_is_the_whole_answer() -> None:
    said = json.loads(export(ANSWER, "json").body)
    assert Answer.from_plain(said).values.tolist() == ANSWER.values.tolist()


class _Page(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def test_html_is_one_page_that_runs_nothing_and_loads_nothing() -> None:
    nasty = made_up((("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'),), [1, 2], axes=("<b>",))
    text = export(nasty, "html", dark=True).body.decode()
    page = _Page()
    page.feed(text)
    assert {"script", "img", "link", "iframe", "b"}.isdisjoint(page.tags)
    assert {"h1", "table", "caption", "svg", "main"} <= set(page.tags) and page.tags.count("h1") == 1
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href")]
    assert (
        page.tags.count("caption") == 1
        and page.tags.count("table") == 2
        and "SELECT 1" not in text
        and ">analyst<" not in text
    )


def test_pictures() -> None:
    answer = made_up(bins(20), hill(20))
    for dark in (False, True):
        assert export(answer, "svg", dark=dark).body.startswith(b"<svg")
        assert export(answer, "png", dark=dark).body.startswith(b"\x89PNG\r\n\x1a\n")
    assert export(answer, "svg").body != export(answer, "svg", dark=True).body


def test_names_and_types_of_files() -> None:
    answer = made_up(bins(2), [1, 2], dataset="../naïve data\n", number=9)
    for form, (media_type, _) in FORMATS.items():
        if form in ("svg", "png", "html"):
            continue
        file = export(answer, form)
        assert file.filename == f"na-ve-data-9.{form}" and file.media_type == media_type
    with pytest.raises(InvalidInput, match="xlsx"):
        export(answer, "xlsx")
