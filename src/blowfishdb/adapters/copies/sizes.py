"""How large files of rows may be: columns, and what a packed file may unpack to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from blowfishdb.core.errors import SourceCorrupt

_COLUMNS: Final = 5_000  # that a source may have
_TIMES: Final = 100  # how often larger than itself a packed file may be; texts pack to a tenth or so
_ALWAYS: Final = 1 << 30  # bytes to which any file may unpack


def check_columns(count: int, place: object) -> None:
    """More columns than anyone declares are a mistake about the delimiter, or meant to keep us busy."""
    if count > _COLUMNS:
        raise SourceCorrupt(
            f"'{place}' has {count:,} columns, and at most {_COLUMNS:,} are read.",
            fixes=(
                "a source with the columns that are asked about",
                "another delimiter, for a file of texts",
            ),
        )


def credible(file: Path) -> int:
    """The bytes that a packed file may hold."""
    return max(_ALWAYS, _TIMES * file.stat().st_size)
