"""Files that are read under a dialect, once and as texts: those of texts, and sheets of Excel."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from blowfishdb.adapters.copies import Patience
from blowfishdb.adapters.copies.sheets import find_sheet, is_sheet_file, opened_sheet, sheet_names
from blowfishdb.adapters.copies.text_files import find_texts, opened_texts
from blowfishdb.adapters.copies.values import Dialect
from blowfishdb.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def find_dialect(path: Path, patience: Patience | None = None) -> Dialect:
    """How a file seems to be written, for its curator to confirm; reading it may still refuse it."""
    return find_sheet(path) if is_sheet_file(path) else find_texts(path, patience)


def opened_rows(
    path: Path, dialect: Dialect, *, most: int | None = None, patience: Patience | None = None
) -> AbstractContextManager[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """The columns of a file, all of them texts, and its rows; an empty value is a missing one."""
    if is_sheet_file(path) != bool(dialect.sheet):
        raise InvalidInput(
            "A sheet is named for files of Excel, and for no other.",
            fixes=(f"sheet='{sheets_of(path)[0]}'" if is_sheet_file(path) else "leave the sheet out",),
        )
    opened = opened_sheet if is_sheet_file(path) else opened_texts
    return opened(path, dialect, most=most, patience=patience)


def sheets_of(path: Path) -> tuple[str, ...]:
    """The sheets to choose from; none in a file of texts."""
    return sheet_names(path) if is_sheet_file(path) else ()
