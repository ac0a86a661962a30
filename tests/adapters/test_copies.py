"""A file is read once, strictly, into a copy: every cell of it is what an independent reader finds."""

from __future__ import annotations

import gzip
import stat
from collections.abc import Callable
from pathlib import Path

import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfishdb.adapters.copies.dialects import find_dialect
from blowfishdb.adapters.copies.folder import Copies
from blowfishdb.adapters.copies.values import Dialect
from blowfishdb.core.errors import InvalidInput, SourceCorrupt, SourceError, SourceMissing

Rows = list[list[str | None]]


def read(path: Path, dialect: Dialect | None = None) -> tuple[list[str], Rows]:
    """The names and the cells of the copy of a file."""
    copies = Copies(path.with_name("copies"))
    table = pq.read_table(copies.path(copies.take(path, dialect or find_dialect(path))))
    assert all(column.type == pa.string() for column in table.schema)
    return table.column_names, [list(row.values()) for row in table.to_pylist()]


def independently(text: str, delimiter: str = ",", quote: str = '"') -> list[list[str]]:
    """The cells of a text, by an automaton of our own that follows RFC 4180 letter by letter."""
    rows: list[list[str]] = [[]]
    cell, quoted, place = "", False, 0
    while place < len(text):
        sign, after = text[place], text[place + 1 : place + 2]
        if quoted and sign == quote and after == quote:
            cell, place = cell + quote, place + 1
        elif sign == quote and (quoted or not cell):
            quoted = not quoted
        elif quoted:
            cell += sign
        elif sign == delimiter:
            rows[-1].append(cell)
            cell = ""
        elif sign in "\r\n":
            place += sign == "\r" and after == "\n"
            rows[-1].append(cell)
            rows.append([])
            cell = ""
        else:
            cell += sign
        place += 1
    if cell or rows[-1]:
        rows[-1].append(cell)
    return [row for row in rows if row]


def expected(text: str, delimiter: str = ",") -> tuple[list[str], Rows]:
    names, *rows = independently(text, delimiter)
    return names, [[cell or None for cell in row] for row in rows]


LONG = 25_000
AWKWARD: dict[str, str] = {
    "a comment that is none": "v,t\n#N/A,x\n" + "".join(f"{k},y\n" for k in range(29)),
    "a quoted comma late": "v,t\n" + "1,a\n" * LONG + '2,"a, b"\n' + "1,a\n" * 10,
    "a line break late": "v,t\n" + "1,a\n" * LONG + '2,"a\nb"\n' + "1,a\n" * 10,
    "a quote inside quotes": 'v,t\n1,"say ""hi"", twice"\n2,x\n',
    "a quote inside a text": 'v,t\n1,5" pipe\n2,x\n',
    "windows lines": "v,t\r\n1,a\r\n2,b\r\n",
    "a line break of windows inside": 'v,t\r\n1,"a\r\nb"\r\n2,b\r\n',
    "null signs": "v,t\n1,a\x00b\n2,\x00\n",
    "no end of the last line": "v,t\n1,a\n2,b",
    "missing values": "v,t\n,a\n2,\n,\n",
    "spaces and tabs": "v,t\n 1 ,\ta\n",
    "words for nothing": "v,t\nNULL,NA\nnan,None\n\\N,#N/A\n",
    "a header of commas": "a,b,c\n1,2,3\n",
    "letters of the world": "v,t\n1,日本 😀\n2,ﬁ\u2028x\n",
    "one column": "v\n1\n2\n",
}


@pytest.mark.parametrize("text", AWKWARD.values(), ids=AWKWARD.keys())
@pytest.mark.parametrize("pack", ["", ".gz", ".zst"])
def test_every_cell_is_what_an_independent_reader_finds(tmp_path: Path, text: str, pack: str) -> None:
    path = tmp_path / f"rows.csv{pack}"
    raw = text.encode()
    packed = {"": raw, ".gz": gzip.compress(raw), ".zst": pa.compress(raw, "zstd", asbytes=True)}
    path.write_bytes(packed[pack])
    assert read(path) == expected(text)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(tmp_path: Path, delimiter: str) -> None:
    text = "v,t,u\n1,a b,x\n2,,y\n".replace(",", delimiter)
    (tmp_path / "rows.csv").write_text(text)
    assert find_dialect(tmp_path / "rows.csv").delimiter == delimiter
    assert read(tmp_path / "rows.csv") == expected(text, delimiter)


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("latin-1", "cp1252"),
        ("cp1252", "cp1252"),
    ],
)
def test_encodings_are_found(tmp_path: Path, encoding: str, found: str) -> None:
    text = "name,town\nJosé,Würzburg\n" + "x,y\n" * 100_000 + "Zoë,Århus\n"
    (tmp_path / "rows.csv").write_bytes(text.encode(encoding))
    assert find_dialect(tmp_path / "rows.csv").encoding == found
    assert read(tmp_path / "rows.csv") == expected(text)


def test_a_decimal_comma_becomes_a_point_in_numbers_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("v;t\n1,5;a, b\n-1.234,25;01.02.2020\n7;3,\n1.234.567;1,2,3\n")
    assert find_dialect(path) == Dialect(delimiter=";", decimal=",")
    _, rows = read(path)
    assert rows == [["1.5", "a, b"], ["-1234.25", "01.02.2020"], ["7", "3."], ["1234567", "1,2,3"]]
    assert read(path, Dialect(delimiter=";"))[1][0] == ["1,5", "a, b"]
    path.write_text("v;t\n1,5;2.5\n")
    assert find_dialect(path).decimal == "."


def test_a_file_without_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("1,a\n2,b\n3,c\n")
    assert not find_dialect(path).header
    assert read(path) == (["column_1", "column_2"], [["1", "a"], ["2", "b"], ["3", "c"]])
    assert read(path, Dialect())[0] == ["1", "a"]
    path.write_text("v,a\n2,b\n3,c\n")
    assert find_dialect(path).header
    path.write_text(",a\n0,b\n1,c\n")
    assert read(path)[0] == ["column_1", "a"]


REFUSED: dict[str, tuple[str, str]] = {
    "": ("empty", ""),
    "\n\n": ("empty", ""),
    "a,b": ("Line 2 .* is missing", ""),
    "a,b\n": ("Line 2 .* is missing", ""),
    "a,b\n\n\n": ("Line 2 .* is missing", ""),
    "a\n": ("Line 2 .* is missing", ""),
    "a,b\n1,2\n1\n": ("Line 3 .* has 1 values", ""),
    "a,b\n1,2\n1,2,3\n": ("Line 3 .* has 3 values", ""),
    'a,b\n1,"x\ny"\n1\n': ("Line 4 .* has 1 values", ""),
    "a,b\n1,2\n\n1,2\n": ("Line 3 .* is empty", ""),
    'a,b\n1,2\n3,"hunter2\n1,2\n': ("Line 3 .* do not end", "hunter2"),
    'a,b\n1,2\n3,"hunter2"x\n': ("Line 3 .* cannot be read", "hunter2"),
    "a,A\n1,2\n": ("same name on line 1", ""),
    "a,b\n1,2\n3," + "x" * 200_000 + "\n": ("Line 3 .* too long", "xxx"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_does_not_fit_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.csv").write_text(text)
    told, hidden = REFUSED[text]
    with pytest.raises(SourceCorrupt, match=told) as caught:
        read(tmp_path / "rows.csv")
    assert not hidden or hidden not in f"{caught.value}{caught.value.__cause__}"
    assert list((tmp_path / "copies").glob("*")) == []


def test_bytes_that_do_not_fit_the_encoding(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n" * 50_000 + b"3,\xff\n" + b"1,2\n" * 10)
    with pytest.raises(SourceCorrupt, match=r"Line 50002 .* not encoded"):
        read(path, Dialect(encoding="utf-8"))


def test_files_that_break_off_or_are_none(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20])
    with pytest.raises(SourceError, match="to its end"):
        read(path)
    with pytest.raises(SourceMissing):
        read(tmp_path / "nowhere.csv", Dialect())
    (tmp_path / "bad.parquet").write_bytes(b"garbage")
    with pytest.raises(SourceCorrupt, match="Parquet"):
        Copies(tmp_path / "copies").take(tmp_path / "bad.parquet")


cells = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)


@settings(max_examples=150)
@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(cells, min_size=n, max_size=n), min_size=1, max_size=8)
    )
)
def test_whatever_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    lines = [[f"c{k}" for k in range(len(rows[0]))], *rows]
    text = "".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\r\n" for row in lines)
    path = tmp_path_factory.mktemp("any") / "rows.csv"
    path.write_bytes(text.encode())
    assert read(path, Dialect())[1] == [[cell or None for cell in row] for row in rows]
    assert [[cell or None for cell in row] for row in independently(text)[1:]] == read(path, Dialect())[1]


# --- the folder -------------------------------------------------------------------------------


def test_a_copy_is_its_owners_alone_and_has_its_hash(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("v\n1\n")
    copies = Copies(tmp_path / "copies")
    copy = copies.take(tmp_path / "rows.csv", Dialect())
    path = copies.checked(copy)
    assert path.name == "rows.parquet" and copy.rows == 1 and copy.bytes == path.stat().st_size
    for place in (path, path.parent, tmp_path / "copies"):
        assert stat.S_IMODE(place.stat().st_mode) & 0o077 == 0
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SourceCorrupt, match="changed"):
        copies.checked(copy)
    copies.erase(copy)
    with pytest.raises(SourceMissing):
        copies.checked(copy)
    assert list((tmp_path / "copies").iterdir()) == []


TABLES: dict[str, Callable[[], object]] = {
    "arrow": lambda: pa.table({"v": [1, 2, None], "t": ["a", "b", "c"]}),
    "pandas": lambda: pa.table({"v": [1, 2, None], "t": ["a", "b", "c"]}).to_pandas(),
    "polars": lambda: polars.DataFrame({"v": [1, 2, None], "t": ["a", "b", "c"]}),
}


@pytest.mark.parametrize("library", TABLES)
def test_tables_in_memory_keep_their_types(tmp_path: Path, library: str) -> None:
    copies = Copies(tmp_path / "copies")
    copy = copies.take(TABLES[library]())
    table = pq.read_table(copies.path(copy))
    assert copy.rows == 3 and table.column("t").to_pylist() == ["a", "b", "c"]
    assert [int(v) if v and v > 0 else None for v in table.column("v").to_pylist()] == [1, 2, None]


CATEGORIES: dict[str, Callable[[], object]] = {
    "arrow": lambda: pa.table({"t": pa.array(["a", None, "b", "a"]).dictionary_encode()}),
    "pandas": lambda: pandas.DataFrame({"t": pandas.Categorical(["a", None, "b", "a"], ["z", "b", "a"])}),
    "polars": lambda: polars.DataFrame({"t": ["a", None, "b", "a"]}, schema={"t": polars.Categorical}),
    "polars enum": lambda: polars.DataFrame({"t": ["a", None, "b", "a"]}, schema={"t": polars.Enum("ba")}),
}


@pytest.mark.parametrize("library", CATEGORIES)
def test_categories_in_memory_are_the_values_they_stand_for(tmp_path: Path, library: str) -> None:
    copies = Copies(tmp_path / "copies")
    table = pq.read_table(copies.path(copies.take(CATEGORIES[library]())))
    assert table.column("t").to_pylist() == ["a", None, "b", "a"]
    assert not pa.types.is_dictionary(table.schema.field("t").type)


NO_TABLES: dict[str, tuple[Callable[[], object], str]] = {
    "a type without a place": (
        lambda: pa.table({"v": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}),
        "cannot hold",
    ),
    "categories in lists": (
        lambda: polars.DataFrame({"v": [["a"]]}, schema={"v": polars.List(polars.Categorical)}),
        "cannot hold",
    ),
    "one name twice": (lambda: pandas.DataFrame([[1, 2]], columns=["v", "V"]), "same name"),
    "the very same name twice": (lambda: pandas.DataFrame([[1, 2]], columns=["v", "v"]), "same name"),
}


@pytest.mark.parametrize("what", NO_TABLES)
def test_tables_in_memory_that_are_refused(tmp_path: Path, what: str) -> None:
    made, told = NO_TABLES[what]
    with pytest.raises(SourceCorrupt, match=told):
        Copies(tmp_path / "copies").take(made())
    assert list((tmp_path / "copies").glob("*")) == []


def test_parquet_files_and_folders(tmp_path: Path) -> None:
    rows = pa.table({"v": pa.array([1, 2], pa.int16()), "d": pa.array([0, 1], pa.date32())})
    folder = tmp_path / "parts.d"
    folder.mkdir()
    for part in ("a", "b"):
        pq.write_table(rows, folder / f"{part}.parquet")
    copies = Copies(tmp_path / "copies")
    alone = copies.take(folder / "a.parquet")
    assert copies.path(alone).read_bytes() == (folder / "a.parquet").read_bytes()
    both = pq.read_table(copies.path(copies.take(folder)))
    assert both.schema.types == rows.schema.types and both.num_rows == 4


def test_a_quota_is_kept(tmp_path: Path) -> None:
    (tmp_path / "bomb.csv.gz").write_bytes(gzip.compress(b"v\n" + b"0\n" * 10_000_000))
    copies = Copies(tmp_path / "copies", quota=1_000_000)
    with pytest.raises(InvalidInput, match="room"):
        copies.take(tmp_path / "bomb.csv.gz", Dialect())
    pq.write_table(pa.table({"v": list(range(100_000))}), tmp_path / "big.parquet")
    small = Copies(tmp_path / "copies", quota=1_000)
    with pytest.raises(InvalidInput, match="left for copies"):
        small.take(tmp_path / "big.parquet")
    assert copies.used() == 0


def test_what_a_process_left_behind_is_swept(tmp_path: Path) -> None:
    import os

    (tmp_path / "rows.csv").write_text("v\n1\n")
    copies = Copies(tmp_path / "copies")
    kept, left = (copies.take(tmp_path / "rows.csv", Dialect()) for _ in range(2))
    part = tmp_path / "copies" / ".part-0"
    part.mkdir()
    assert copies.sweep([kept.file]) == []  # they may still be on their way
    for place in (part, copies.path(left), copies.path(left).parent, copies.path(kept).parent):
        os.utime(place, (0, 0))
    assert sorted(copies.sweep([kept.file])) == sorted([".part-0", left.file.split("/")[0]])
    copies.checked(kept)


def test_a_dialect_that_is_none() -> None:
    for said in (
        {"delimiter": ""},
        {"delimiter": "::"},
        {"delimiter": "\n"},
        {"quote": "x"},
        {"quote": ",", "delimiter": ","},
        {"encoding": "no-such"},
        {"encoding": "hex"},
        {"decimal": "x"},
        {"header": 1},
        {"comment": "#"},
    ):
        with pytest.raises(InvalidInput):
            Dialect.from_plain(said)
    assert Dialect.from_plain(Dialect(";", "'", "UTF-8", False, ",").to_plain()).encoding == "utf-8"
