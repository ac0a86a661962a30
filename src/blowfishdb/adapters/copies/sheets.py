"""Sheets of Excel, read as strictly as files of texts: a cell becomes the text that it would be in CSV.

What a cell is depends on that cell alone: a number is written with a decimal point, a day as year-month-day,
and a formula as the value that Excel computed last. Columns have no types, so rows that come later cannot
change how those before them are read.
"""

from __future__ import annotations

import datetime as dt
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from blowfishdb.adapters.backends.addresses import check_file
from blowfishdb.adapters.backends.duckdb import SHEET_ENDING
from blowfishdb.adapters.copies import Patience, credible
from blowfishdb.adapters.copies.text_files import batches, column_names, lacks_names
from blowfishdb.adapters.copies.values import Dialect
from blowfishdb.core.errors import BlowfishError, InvalidInput, SourceCorrupt, SourceMissing

if TYPE_CHECKING:
    import pyarrow as pa

_SAMPLE: Final = 200  # rows by which it is found whether the first one names the columns
_MOST_ROWS: Final = 1 << 20  # that Excel itself allows
_OFTEN: Final = 10_000  # rows between two looks at the clock


def is_sheet_file(path: Path) -> bool:
    """Whether a file is one of Excel, by its name."""
    return path.name.lower().endswith(SHEET_ENDING)


def sheet_names(path: Path) -> tuple[str, ...]:
    """The sheets of a file that are seen when it is opened, in their order."""
    with _opened(path) as book:
        seen = [sheet.title for sheet in book.worksheets if sheet.sheet_state == "visible"]
    if not seen:
        raise SourceCorrupt(f"'{path}' has no sheet that can be seen.", fixes=("show the sheet in Excel",))
    return tuple(seen)


def find_sheet(path: Path) -> Dialect:
    """The first sheet that is seen, and whether its first row names the columns, to be confirmed."""
    name = sheet_names(path)[0]
    with _opened(path) as book:
        rows = [[text or "" for text in row] for _, row in islice(_rows(book[name], path, None), _SAMPLE)]
        rows = [[*row, *[""] * (len(rows[0]) - len(row))] for row in rows]
    if not rows:
        raise SourceCorrupt(
            f"The sheet '{name}' of '{path}' is empty.", fixes=("another sheet", "names and rows")
        )
    return Dialect(sheet=name, header=not lacks_names(rows))


@contextmanager
def opened_sheet(
    path: Path, dialect: Dialect, *, most: int | None = None, patience: Patience | None = None
) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """The columns of a sheet, all of them texts, and its rows; an empty cell is a missing value."""
    import pyarrow as pa

    if dialect.sheet not in (there := sheet_names(path)):
        raise SourceCorrupt(
            f"'{path}' has no sheet '{dialect.sheet}' any more, or none that is seen.",
            fixes=tuple(f"the sheet '{name}'" for name in there[:5]),
        )
    with _opened(path, most) as book:
        rows = _rows(book[dialect.sheet], path, patience)
        _, first = next(rows, (0, []))
        if not first:
            raise SourceCorrupt(
                f"The sheet '{dialect.sheet}' of '{path}' is empty.", fixes=("a row of column names",)
            )
        names = column_names([text or "" for text in first], dialect, path)
        schema = pa.schema([(name, pa.string()) for name in names])
        kept = _Fitting(path, len(names)).rows(rows if dialect.header else _with_first(first, rows))
        yield schema, batches(kept, schema, ".")


def _with_first(first: list[str | None], rows: Iterator[tuple[int, list[str | None]]]) -> Iterator[Any]:
    yield 1, first
    yield from rows


class _Fitting:
    """Rows that are no wider than the first; an empty one may stand at the end only. What is wrong is told
    with the number of its row, never its values."""

    def __init__(self, path: Path, width: int) -> None:
        self._path = path
        self._width = width

    def rows(self, numbered: Iterator[tuple[int, list[str | None]]]) -> Iterator[list[str]]:
        """As wide as the first, with empty texts where cells are empty."""
        before = None
        for number, row in numbered:
            if before is not None and number > before + 1 and self._width > 1:
                raise SourceCorrupt(
                    f"Row {before + 1} of '{self._path}' is empty.", fixes=("remove the empty row",)
                )
            if len(row) > self._width:
                raise SourceCorrupt(
                    f"Row {number} of '{self._path}' has {len(row)} values, but the first has {self._width}.",
                    fixes=("remove what stands above or beside the table", "another sheet"),
                )
            before = number
            yield [*(text or "" for text in row), *[""] * (self._width - len(row))]


def _rows(sheet: Any, path: Path, patience: Patience | None) -> Iterator[tuple[int, list[str | None]]]:
    """Rows that are not empty, by number, without the empty cells behind the last value."""
    sheet.reset_dimensions()  # what a file says about its size may be wrong
    with _reading(path):
        for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            if patience is not None and number % _OFTEN == 0:
                patience.check()
            if number > _MOST_ROWS:
                raise SourceCorrupt(
                    f"'{path}' has more rows than Excel allows.", fixes=("a CSV or Parquet file",)
                )
            row = [_text(value) for value in cells]
            while row and not row[-1]:
                row.pop()
            if row:
                yield number, row


def _text(value: object) -> str | None:
    """A cell as a text: what depends on nothing but its value."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case dt.datetime():
            whole = value.time() == dt.time()
            return value.date().isoformat() if whole else value.isoformat(" ", "seconds")
        case dt.date() | dt.time():
            return value.isoformat()
        case _:
            return str(value)


@contextmanager
def _opened(path: Path, most: int | None = None) -> Iterator[Any]:
    """A file of Excel, whose unpacked size was believed first."""
    check_file(path)
    try:
        import openpyxl
    except ImportError:
        raise InvalidInput(
            "Files of Excel are read by openpyxl, which is not installed here.",
            fixes=("pip install 'blowfishdb[excel]'", "save the sheet as CSV"),
        ) from None
    warnings.filterwarnings("ignore", module=r"openpyxl\b")  # it warns of styles, and quotes cells
    with _reading(path):
        _check_size(path, most)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    try:
        yield book
    finally:
        book.close()


def _check_size(path: Path, most: int | None) -> None:
    with zipfile.ZipFile(path) as packed:
        unpacked = sum(each.file_size for each in packed.infolist())  # no more than that is ever unpacked
    if unpacked > credible(path):
        raise SourceCorrupt(
            f"'{path}' unpacks to {unpacked:,} bytes, far more than it has.", fixes=("a CSV or Parquet file",)
        )
    if most is not None and unpacked > most:
        raise InvalidInput(
            f"'{path}' holds more than there is room for.",
            fixes=("delete a dataset that is not needed", "raise BLOWFISHDB_COPIES_QUOTA"),
        )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Whatever a damaged file does to the library that reads it is said in one sentence, without a value."""
    try:
        yield
        return
    except BlowfishError:
        raise
    except FileNotFoundError:
        failure = None
    except Exception as error:
        failure = type(error).__name__
    if failure is None:
        raise SourceMissing(f"There is no file '{path}'.", fixes=("check the path and the working folder",))
    raise SourceCorrupt(
        f"'{path}' cannot be read as a file of Excel ({failure}).",
        fixes=("open it in Excel and save it again", "save the sheet as CSV"),
    )
