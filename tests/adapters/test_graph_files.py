"""Edge lists from files."""

from __future__ import annotations

from pathlib import Path

import pytest

import blowfishdb as bf
from blowfishdb.core.errors import InvalidGraph, SourceMissing


def written(folder: Path, text: str) -> Path:
    path = folder / "edges.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_values_of_a_category_with_a_header(tmp_path: Path) -> None:
    path = written(tmp_path, 'one,other\nflu,cold\n\ncold, "hay fever"\n')
    graph = bf.read_graph(path, bf.Category(["flu", "cold", "hay fever", "broken leg"]))
    assert graph.edges().tolist() == [[0, 1], [1, 2]] and graph.size == 4


def test_numbers_and_dates_without_a_header(tmp_path: Path) -> None:
    assert bf.read_graph(written(tmp_path, "10,11\n12,10\n"), bf.Integer(10, 20)).edges().tolist() == [
        [0, 1],
        [0, 2],
    ]
    days = bf.Date("2024-01-01", "2024-01-31")
    assert bf.read_graph(written(tmp_path, "2024-01-01,2024-01-03"), days).edges().tolist() == [[0, 2]]


def test_an_empty_file_hides_nothing(tmp_path: Path) -> None:
    assert bf.read_graph(written(tmp_path, ""), bf.Integer(0, 3)).edge_count == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [("1,2\n3\n", "Line 2"), ("1,2\n1,99\n", "Line 2"), ("1,2\n2,2\n", "itself"), ("1,2\n1,2,3\n", "pair")],
)
def test_mistakes_name_their_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidGraph, match=words):
        bf.read_graph(written(tmp_path, text), bf.Integer(0, 9))


def test_a_missing_or_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="nowhere"):
        bf.read_graph(tmp_path / "nowhere.csv", bf.Integer(0, 9))
    binary = tmp_path / "b.csv"
    binary.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(InvalidGraph, match="UTF-8"):
        bf.read_graph(binary, bf.Integer(0, 9))
