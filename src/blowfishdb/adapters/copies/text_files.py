"""Files of texts, read strictly: every row has as many values as the first, or the file is refused.

A row that does not fit is told with its number and without its values. All of this happens under the eyes of
the curator; whoever asks questions later meets a copy.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, final

from blowfishdb.adapters.backends.addresses import check_file
from blowfishdb.adapters.copies import Patience, check_columns, credible
from blowfishdb.adapters.copies.values import SEPARATORS, Dialect
from blowfishdb.core.errors import InvalidInput, SourceCorrupt, SourceError, SourceMissing

if TYPE_CHECKING:
    from _csv import Reader

    import pyarrow as pa
    from typing_extensions import Buffer

_SAMPLE: Final = 1 << 20  # bytes by which a dialect is found
_PACKED: Final = {".gz": "gzip", ".zst": "zstd"}
_TOGETHER: Final = 1_000_000  # values in one batch
_ROWS: Final = 100_000  # rows in one batch
_LETTERS: Final = 1 << 24  # in one batch
_LONGEST: Final = 1 << 22  # letters of one line
_BLOCK: Final = 1 << 20
_MARKS: Final = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_LINE_END: Final = re.compile(r"[\r\n]+")
_NUMBER: Final = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
_COMMA_NUMBER: Final = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
_POINT_NUMBER: Final = re.compile(r"[+-]?\d*\.\d+")
_THOUSANDS: Final = re.compile(r"[+-]?\d{1,3}(\.\d{3})+")
_WITH_COMMA: Final = re.compile(r"\s*[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d*)?\s*|\s*[+-]?,\d+\s*")


# --- bytes ------------------------------------------------------------------------------------


@contextmanager
def opened_bytes(
    path: Path, most: int | None = None, patience: Patience | None = None
) -> Iterator[io.BufferedReader[Any]]:
    """The bytes of a file, unpacked; one that holds more than ``most``, or far more than it can, is refused
    on the way."""
    import pyarrow as pa

    check_file(path)
    packed = _PACKED.get(path.suffix.lower())
    try:
        stream = pa.input_stream(str(path), compression=packed)
        believed = credible(path) if packed else None
    except (OSError, pa.ArrowException) as error:
        raise _unreadable(path, error) from None
    unpacked = _Unpacked(path, stream, most, believed, patience)
    with closing(stream), io.BufferedReader(unpacked, _BLOCK) as bytes_of_it:
        yield bytes_of_it


@final
class _Unpacked(io.RawIOBase):
    """A stream of Arrow as one of Python."""

    def __init__(
        self,
        path: Path,
        stream: pa.NativeFile,
        most: int | None,
        believed: int | None,
        patience: Patience | None,
    ) -> None:
        self._path = path
        self._stream = stream
        self._most = most
        self._believed = believed
        self._patience = patience
        self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        import pyarrow as pa

        into = memoryview(buffer).cast("B")
        try:
            chunk = self._stream.read(len(into))
        except (OSError, EOFError, pa.ArrowException) as error:
            raise _unreadable(self._path, error) from None
        into[: len(chunk)] = chunk
        self._read += len(chunk)
        if self._patience is not None:
            self._patience.check()
        if self._believed is not None and self._read > self._believed:
            raise SourceCorrupt(
                f"'{self._path}' unpacks to more than {self._believed:,} bytes, far more than it has.",
                fixes=("unpack it, and give the file itself",),
            )
        if self._most is not None and self._read > self._most:
            raise InvalidInput(
                f"'{self._path}' holds more than there is room for.",
                fixes=("delete a dataset that is not needed", "raise BLOWFISHDB_COPIES_QUOTA"),
            )
        return len(chunk)


def _unreadable(path: Path, error: Exception) -> SourceError:
    if isinstance(error, FileNotFoundError):
        return SourceMissing(f"There is no file '{path}'.", fixes=("check the path and the working folder",))
    if isinstance(error, PermissionError):
        return SourceError(f"'{path}' may not be read.", fixes=("check the permissions of the file",))
    return SourceCorrupt(
        f"'{path}' cannot be read to its end ({type(error).__name__}).",
        fixes=("open it with another program to see",),
    )


# --- finding a dialect ------------------------------------------------------------------------


def find_texts(path: Path, patience: Patience | None = None) -> Dialect:
    """How a file seems to be written, for its curator to confirm; reading it may still refuse it."""
    encoding = _find_encoding(path, patience)
    with opened_bytes(path) as stream:
        sample = stream.read(_SAMPLE)
    whole = len(sample) < _SAMPLE
    text = sample.decode(encoding, errors="ignore")
    if "\n" in text and not whole:
        text = text[: text.rindex("\n") + 1]
    if not text.strip("\r\n"):
        raise SourceCorrupt(f"'{path}' is empty.", fixes=("a file with at least a line of column names",))
    quote = "'" if _single_quoted(text) else '"'
    delimiter = _find_delimiter(text, quote, whole, preferred="\t" if ".tsv" in path.name.lower() else ",")
    rows = _sample_rows(text, delimiter, quote, whole) or [[""]]
    cells = [cell for row in rows for cell in row]
    decimal = "," if delimiter != "," and _has_decimal_comma(cells) else "."
    return Dialect(delimiter, quote, encoding, not lacks_names(rows), decimal)


def _find_encoding(path: Path, patience: Patience | None) -> str:
    """UTF-8 if every byte agrees; otherwise that of Windows, which most files have that are not."""
    with opened_bytes(path) as stream:
        start = stream.peek(4)[:4]
        for mark, encoding in _MARKS:
            if start.startswith(mark):
                return encoding
        for encoding in ("utf-8", "cp1252"):
            if _decodes(path, encoding, patience):
                return encoding
    return "latin-1"


def _decodes(path: Path, encoding: str, patience: Patience | None) -> bool:
    with (
        opened_bytes(path, patience=patience) as stream,
        io.TextIOWrapper(stream, encoding, newline="") as text,
    ):
        try:
            while text.read(_BLOCK):
                pass
        except UnicodeDecodeError:
            return False
    return True


def _single_quoted(text: str) -> bool:
    first = _LINE_END.split(text, 1)[0]
    return len(first) > 2 and first[0] == first[-1] == "'" and '"' not in text


def _find_delimiter(text: str, quote: str, whole: bool, preferred: str) -> str:
    """The sign that cuts every row of the sample into equally many values, and into most of them."""
    order = [preferred, *(sign for sign in SEPARATORS if sign != preferred)]
    counted = []
    for sign in order:
        rows = _sample_rows(text, sign, quote, whole)
        widths = {len(row) for row in rows or [] if row}
        counted.append(widths.pop() if len(widths) == 1 else 0)
    most = max(counted)
    if most > 1:
        return order[counted.index(most)]
    by_first = max(order, key=_LINE_END.split(text, 1)[0].count)  # ragged: reading says where
    return by_first if by_first in _LINE_END.split(text, 1)[0] else preferred


def _sample_rows(text: str, delimiter: str, quote: str, whole: bool) -> list[list[str]] | None:
    """The rows of a sample; its last one may be cut off. None if it cannot be read like that."""
    rows: list[list[str]] = []
    reader = _reader(io.StringIO(text, newline=""), Dialect(delimiter, quote))
    try:
        rows.extend(reader)
    except csv.Error:
        if whole or not rows:
            return None
    return rows


def _has_decimal_comma(cells: Sequence[str]) -> bool:
    """Some numbers have a comma, and a point only where it sets thousands apart."""
    trimmed = [cell.strip() for cell in cells]
    points = [cell for cell in trimmed if _POINT_NUMBER.fullmatch(cell)]
    return any(_COMMA_NUMBER.fullmatch(cell) for cell in trimmed) and all(map(_THOUSANDS.fullmatch, points))


def lacks_names(rows: Sequence[Sequence[str]]) -> bool:
    """A number on the first line, above numbers, and no text above numbers."""
    first, below = rows[0], [row for row in rows[1:200] if len(row) == len(rows[0])]
    kinds = []
    for index, name in enumerate(first):
        values = [row[index].strip() for row in below if row[index].strip()]
        if values and all(map(_NUMBER.fullmatch, values)):
            kinds.append(bool(_NUMBER.fullmatch(name.strip())))
    return bool(kinds) and all(kinds)


# --- reading ----------------------------------------------------------------------------------


@contextmanager
def opened_texts(
    path: Path, dialect: Dialect, *, most: int | None = None, patience: Patience | None = None
) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """The columns of a file, all of them texts, and its rows; an empty value is a missing one."""
    import pyarrow as pa

    with (
        opened_bytes(path, most, patience) as stream,
        io.TextIOWrapper(stream, dialect.encoding, newline="") as text,
    ):
        lines = _Lines(path, text, dialect)
        schema = pa.schema([(name, pa.string()) for name in column_names(lines.first, dialect, path)])
        yield schema, batches(lines.rows(header=dialect.header), schema, dialect.decimal)


def batches(rows: Iterator[list[str]], schema: pa.Schema, decimal: str) -> Iterator[pa.RecordBatch]:
    """Rows of texts, each as wide as the schema, many at a time; an empty text is a missing value."""
    import pyarrow as pa

    for chunk in _chunks(rows, min(_ROWS, _TOGETHER // len(schema))):
        columns = [_column(values, decimal) for values in zip(*chunk, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _chunks(rows: Iterator[list[str]], most: int) -> Iterator[list[list[str]]]:
    """Rows together, as many as fit into a little memory however long they are."""
    chunk: list[list[str]] = []
    letters = 0
    for row in rows:
        chunk.append(row)
        letters += sum(map(len, row))
        if len(chunk) >= most or letters >= _LETTERS:
            yield chunk
            chunk, letters = [], 0
    if chunk:
        yield chunk


@final
class _Lines:
    """The rows of a file, each as wide as the first. What is wrong is told with its line, never its words:
    those of a reader may quote a value."""

    def __init__(self, path: Path, text: IO[str], dialect: Dialect) -> None:
        self._path = path
        self._encoding = dialect.encoding
        self._reader = _reader(text, dialect)
        self._line = 1
        self.first = self._next()
        if not self.first:
            raise SourceCorrupt(
                f"'{path}' is empty, or its first line is.", fixes=("a line of column names",)
            )

    def rows(self, *, header: bool) -> Iterator[list[str]]:
        """Empty lines at the end say nothing; in a file of one column they are values like others."""
        width, blank = len(self.first or ()), 0
        row = self._next() if header else self.first
        while row is not None:
            if not row and width > 1:
                blank = blank or self._line
            elif blank:
                raise SourceCorrupt(f"Line {blank} of '{self._path}' is empty.", fixes=("remove the line",))
            elif row and len(row) != width:
                raise SourceCorrupt(
                    f"Line {self._line} of '{self._path}' has {len(row)} values, but the first has {width}.",
                    fixes=("mend the line", "another delimiter, quote or encoding"),
                )
            else:
                yield row or [""]
            row = self._next()

    def _next(self) -> list[str] | None:
        """The next row; it begins on the line behind the last."""
        self._line = self._reader.line_num + 1
        try:
            return next(self._reader, None)
        except UnicodeError:
            line, what = _first_undecodable(self._path, self._encoding), "is not encoded as was said"
        except csv.Error as error:
            line, what = self._line, _FAULTS.get(str(error).partition(" (")[0], "cannot be read as values")
        raise SourceCorrupt(
            f"Line {line} of '{self._path}' {what}.", fixes=("mend the line", "another quote or encoding")
        )


_FAULTS: Final = {
    "unexpected end of data": "begins a value in quotes that do not end",
    "field larger than field limit": "begins a value that is too long",
    "line too long": f"has more than {_LONGEST:,} letters",
}


def _first_undecodable(path: Path, encoding: str) -> int:
    """The line on which the encoding ends to fit."""
    with opened_bytes(path) as stream:
        decoder, line = codecs.getincrementaldecoder(encoding)(), 1
        while block := stream.readline(_BLOCK):
            try:
                decoder.decode(block)
            except UnicodeError:
                break
            line += block.endswith(b"\n")
    return line


def _column(values: Sequence[str], decimal: str) -> pa.Array:
    """Values as texts; an empty one is missing."""
    import pyarrow as pa

    if decimal == ",":
        values = [_with_point(value) for value in values]
    return pa.array([value or None for value in values], pa.string())


def _with_point(value: str) -> str:
    """A number with a decimal comma, written with a point; any other text as it is."""
    return value.replace(".", "").replace(",", ".") if _WITH_COMMA.fullmatch(value) else value


def _reader(text: IO[str], dialect: Dialect) -> Reader:
    """Every option is said: none is left to what a library takes for usual."""
    return csv.reader(
        _short(text),
        delimiter=dialect.delimiter,
        quotechar=dialect.quote or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        doublequote=True,
        escapechar=None,
        skipinitialspace=False,
        strict=True,
    )


def _short(text: IO[str]) -> Iterator[str]:
    """Lines, none of which fills the memory."""
    while line := text.readline(_LONGEST):
        if len(line) == _LONGEST and line[-1] not in "\r\n":
            raise csv.Error("line too long")
        yield line


def column_names(first: Sequence[str] | None, dialect: Dialect, path: Path) -> list[str]:
    """What the columns are called; one without a name is called by its place."""
    written = [name if dialect.header else "" for name in first or ()]
    check_columns(len(written), path)
    names = [name if name.strip() else f"column_{number}" for number, name in enumerate(written, start=1)]
    if len({name.lower() for name in names}) < len(names):
        raise SourceCorrupt(
            f"Two columns of '{path}' have the same name on line 1.",
            fixes=("rename one of them", "say that no line names the columns"),
        )
    return names
