"""Parquet files of a size that can be believed, before anything in them is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from blowfishdb.adapters.copies.sizes import check_columns, credible
from blowfishdb.core.errors import SourceCorrupt


def check_parquet(path: Path) -> None:
    """Refuse files with too many columns, or that unpack to far more than they are."""
    import pyarrow.parquet as pq

    for file in _files(path):
        try:
            about = pq.read_metadata(file)
        except (OSError, ValueError):  # whoever reads it says what is wrong
            continue
        check_columns(about.num_columns, path)
        unpacked = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups))
        if unpacked > credible(file):
            raise SourceCorrupt(
                f"'{file}' unpacks to {unpacked:,} bytes, far more than it has.",
                fixes=("write it anew without compression",),
            )


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from path.rglob("*.parquet")
    elif path.is_file():
        yield path
