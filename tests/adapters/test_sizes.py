"""What is too large is refused before it fills the memory, and a look at rows ends in time."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blowfishdb.adapters import copies
from blowfishdb.adapters.backends.duckdb import has_dialect
from blowfishdb.adapters.copies.dialects import find_dialect, opened_rows
from blowfishdb.adapters.copies.folder import Copies
from blowfishdb.adapters.copies.values import Dialect
from blowfishdb.adapters.proposal import propose
from blowfishdb.core.errors import SourceCorrupt, TooLarge


def taken(path: Path) -> None:
    Copies(path.with_name("copies")).take(path, Dialect() if has_dialect(path) else None)


def test_files_that_unpack_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_ALWAYS", 100_000)
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"v,t\n" + b"1,a\n" * 1_000_000))
    with pytest.raises(SourceCorrupt, match="unpacks to more than"):
        find_dialect(path)
    with pytest.raises(SourceCorrupt, match="unpacks to more than"):
        taken(path)
    table = pa.table({"v": ["x" * 100_000 + str(k) for k in range(100)]})
    pq.write_table(table, tmp_path / "rows.parquet", compression="zstd", use_dictionary=False)
    with pytest.raises(SourceCorrupt, match="unpacks to"):
        taken(tmp_path / "rows.parquet")
    with pytest.raises(SourceCorrupt, match="unpacks to"):
        propose(tmp_path / "rows.parquet")


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_more_columns_than_anyone_declares(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    names = [f"c{k}" for k in range(6_000)]
    if name.endswith(".csv"):
        path.write_text(",".join(names) + "\n")
    else:
        pq.write_table(pa.table({name: [1] for name in names}), path)
    for look in (lambda: taken(path), lambda: propose(path)):
        with pytest.raises(SourceCorrupt, match="6,000 columns"):
            look()


def test_a_line_without_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("v,t\n1,a\n" + "1," * 3_000_000)
    with pytest.raises(SourceCorrupt, match=r"Line 3 .* has more than 4,194,304 letters"):
        taken(path)


def test_rows_are_put_together_by_how_long_they_are(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("v\n" + ("x" * 100_000 + "\n") * 400)
    with opened_rows(path, Dialect()) as (_, batches):
        lengths = [batch.num_rows for batch in batches]
    assert sum(lengths) == 400
    assert max(lengths) < 200


def test_a_look_ends_in_time(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("v,t\n" + "1,a\n" * 100_000)
    sqlite = tmp_path / "rows.sqlite"
    with closing(sqlite3.connect(sqlite)) as database:
        counting = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r"
        database.execute(f"CREATE VIEW rows AS {counting}")
    for place, seconds in ((path, 1e-9), (sqlite, 0.2)):
        with pytest.raises(TooLarge, match=r"takes longer than .* seconds"):
            propose(place, timeout=seconds)
