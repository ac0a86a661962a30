"""The folder of copies: every file or table that was declared, once, with its hash; nobody else may read it.

A copy is written beside its place and put there in one step, so that it is whole or not there. It is a folder
with one Parquet file, which has the name that the rows have as a table.

What a curator is told about where rows are, and about what is kept of them.

Parquet files of a size that can be believed, before anything in them is read.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from glob import escape as glob_escape
from pathlib import Path
from typing import Final, final

from blowfishdb.adapters.backends.duckdb import (
    NAME,
    check_readable,
    has_dialect,
    holds_rows,
    merge_parquet,
    save_table,
    table_name,
)
from blowfishdb.adapters.copies import (
    Patience,
    check_columns,
    credible,
    is_private,
    make_durable,
    make_private,
    private_file,
    private_folder,
)
from blowfishdb.adapters.copies.dialects import opened_rows
from blowfishdb.adapters.copies.values import Dialect, RowsCopy
from blowfishdb.adapters.store.database import Store
from blowfishdb.core.errors import InvalidInput, SourceCorrupt, SourceError, SourceMissing


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


QUOTA: Final = 50 * 10**9
"""Bytes that all copies of a workspace may take, unless it is told otherwise."""
UPLOAD: Final = "upload:"
"""Before the name of a file that was sent to the workspace, where a source is named."""
_SENT: Final = "upload-"
_PART: Final = ".part-"
_BLOCK: Final = 1 << 24  # bytes that are copied at once
_YOUNG: Final = 3600.0  # seconds for which a copy that nobody mentions may still be on its way
_LONGEST: Final = 120  # letters of a table, so that its file has a name that every disk can hold


@final
class Copies:
    """The copies of one workspace; ``folder`` is None where it has no place for any."""

    def __init__(self, folder: Path | None, quota: int = QUOTA) -> None:
        self._folder = folder
        self.quota = quota

    @property
    def folder(self) -> Path:
        """Where they are."""
        if self._folder is None:
            raise InvalidInput(
                "This workspace has no folder for copies of rows.",
                fixes=("set BLOWFISHDB_COPIES to a folder that every server of the workspace can reach",),
            )
        return self._folder

    def take(
        self,
        source: object,
        dialect: Dialect | None = None,
        patience: Patience | None = None,
        *,
        empty: bool = False,
    ) -> RowsCopy:
        """Read a file, a folder of Parquet files or a table in memory, once, into a new copy.

        A file of texts without a row is refused, as it hardly is what was meant, unless it may be ``empty``.
        """
        table = table_name(Path(source)) if isinstance(source, str | Path) else NAME
        identity = secrets.token_hex(8)
        name = f"{_safe(table)}.parquet"
        with self._part(identity) as part:
            file = part / name
            private_file(file)
            room = self.quota - self.used()
            rows = _write(source, file, dialect, room, patience)
            if not rows and not empty and isinstance(source, str | Path) and has_dialect(source):
                raise SourceCorrupt(
                    f"Line 2 of '{source}' is missing: no row follows the names of the columns.",
                    fixes=("a file with at least one row",),
                )
            if patience is not None:
                patience.check()
            size = file.stat().st_size
            _check_room(size, room)
            make_private(file)
            make_durable(file)
            return RowsCopy(f"{identity}/{name}", _sha256(file), rows, size, _now())

    def receive(self, name: str, blocks: Iterable[bytes], *, most: int) -> str:
        """Keep a file that a curator sends, and say how it is called as a source.

        It stays until it is declared, or is swept away with whatever else nobody mentions after an hour.
        """
        kept, received = _upload_name(name), 0
        identity = f"{_SENT}{secrets.token_hex(8)}"
        room = min(most, self.quota - self.used())
        with self._part(identity) as part:
            file = part / kept
            private_file(file)
            with file.open("wb") as stream:
                for block in blocks:
                    received += len(block)
                    if received > room:
                        raise InvalidInput(
                            f"A file that is sent may have at most {max(room, 0):,} bytes.",
                            fixes=("a file that the server can read where it is", "fewer columns"),
                        )
                    stream.write(block)
            if not received:
                raise InvalidInput("This file is empty.", fixes=("a file with at least one row",))
        return f"{UPLOAD}{identity}/{kept}"

    def sent(self, source: str) -> Path:
        """Where a file is that was sent."""
        identity, _, name = source.removeprefix(UPLOAD).partition("/")
        fits = re.fullmatch(rf"{_SENT}[0-9a-f]{{16}}", identity) and name == _upload_name(name)
        file = self.folder / identity / name
        if not fits or not file.is_file():
            raise SourceMissing("The file that was sent is not kept any more.", fixes=("send it again",))
        return file

    def forget(self, source: str) -> None:
        """Remove a file that was sent."""
        self._remove(self.sent(source).parent)

    def path(self, copy: RowsCopy) -> Path:
        """Where a copy is."""
        return self.folder / copy.file

    def checked(self, copy: RowsCopy) -> Path:
        """Where a copy is, which has the very bytes that were taken."""
        path = self.path(copy)
        if not path.is_file():
            raise SourceMissing("The copy of the rows is not there.", fixes=("let the curator refresh it",))
        if _sha256(path) != copy.sha256:
            raise SourceCorrupt("The copy of the rows was changed.", fixes=("let the curator refresh it",))
        return path

    def erase(self, copy: RowsCopy) -> None:
        """Remove a copy for good."""
        self._remove(self.folder / Path(copy.file).parts[0])

    def used(self) -> int:
        """Bytes of everything in the folder."""
        if self._folder is None:
            return 0
        walk = os.walk(self._folder)  # which overlooks folders that go away or get their name meanwhile
        return sum(_size(Path(folder) / name) for folder, _, names in walk for name in names)

    @property
    def any_old(self) -> bool:
        """Whether anything is there that could have been left behind."""
        there = self._folder is not None and self._folder.is_dir()
        return there and any(_is_old(folder) for folder in self.folder.iterdir())

    def sweep(self, mentioned: Iterable[str]) -> list[str]:
        """Remove what a process left behind that ended in between; what is being written stays."""
        if self._folder is None or not self._folder.is_dir():
            return []
        folders = {Path(file).parts[0] for file in mentioned}
        left = [folder for folder in self._folder.iterdir() if folder.name not in folders and _is_old(folder)]
        for folder in left:
            self._remove(folder)
        return [folder.name for folder in left]

    def open_to_others(self) -> list[Path]:
        """What others than its owner may read: the folder, what is in it, and the workspace beside it."""
        if self._folder is None:
            return []
        beside = self._folder.with_suffix("")
        places = [*self._folder.rglob("*"), *self._folder.parent.glob(f"{glob_escape(beside.name)}*")]
        return [path for path in places if not is_private(path)]

    @contextmanager
    def _part(self, identity: str) -> Iterator[Path]:
        """A folder under another name, which gets its own when all went well and is removed otherwise."""
        private_folder(self.folder)
        part = self.folder / f"{_PART}{identity}"
        part.mkdir(mode=0o700)
        try:
            yield part
            part.rename(self.folder / identity)
            make_durable(self.folder)
        except OSError as error:
            failure = type(error).__name__ if error.errno is None else os.strerror(error.errno)
            raise SourceError(f"A copy of the rows could not be written ({failure}).") from None
        finally:
            self._remove(part)

    @staticmethod
    def _remove(folder: Path) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def _upload_name(name: str) -> str:
    """A name for a file that was sent: the last part of its own, if it names rows that can be read."""
    last = re.split(r"[/\\]", name)[-1]
    kept = re.sub(r"[^A-Za-z0-9_.-]+", "_", last).strip("._-")[-_LONGEST:]
    if not Path(kept).suffix or not holds_rows(Path(kept)):
        raise InvalidInput(
            "Only files of rows can be sent: CSV, TSV, Parquet or Excel (.xlsx).",
            fixes=("save the rows as CSV", "the address of a database"),
        )
    return kept


def copies_folder(workspace: Path) -> Path:
    """Where the copies of a workspace lie that is a file."""
    return workspace.with_name(f"{workspace.name}.copies")


def copies_of(store: Store) -> Copies:
    """Beside a workspace that is a file; otherwise in the folder that ``BLOWFISHDB_COPIES`` names."""
    quota = os.environ.get("BLOWFISHDB_COPIES_QUOTA", "")
    if quota and not quota.isdecimal():
        raise InvalidInput("BLOWFISHDB_COPIES_QUOTA is a number of bytes.", fixes=(f"{QUOTA}",))
    most = int(quota) if quota else QUOTA
    if store.file is not None:
        return Copies(copies_folder(store.file), most)
    named = os.environ.get("BLOWFISHDB_COPIES")
    return Copies(Path(named).resolve() / store.identity if named else None, most)


def _write(source: object, file: Path, dialect: Dialect | None, room: int, patience: Patience | None) -> int:
    """Write the rows of a source, and say how many there are."""
    if not isinstance(source, str | Path):
        save_table(source, file)
    elif has_dialect(source):
        if dialect is None:
            raise InvalidInput("A file of texts is read under a dialect.")
        return _write_texts(_there(Path(source)), file, dialect, room, patience)
    elif Path(source).is_dir():
        check_parquet(Path(source))
        merge_parquet(Path(source), file)
    elif holds_rows(Path(source)):
        check_parquet(Path(source))
        _check_room(_there(Path(source)).stat().st_size, room)
        _copy(Path(source), file, patience)
    else:
        raise InvalidInput("Databases are not copied.", fixes=("a CSV or Parquet file",))
    return _rows_of(file, "The table in memory" if not isinstance(source, str | Path) else f"'{source}'")


def _copy(source: Path, file: Path, patience: Patience | None) -> None:
    with source.open("rb") as read, file.open("wb") as written:
        while block := read.read(_BLOCK):
            if patience is not None:
                patience.check()
            written.write(block)


def _rows_of(file: Path, title: str) -> int:
    """How many rows a Parquet file has, all of whose values can be read."""
    import pyarrow.parquet as pq

    try:
        rows = int(pq.ParquetFile(file).metadata.num_rows)
    except (OSError, ValueError) as error:  # Arrow's own errors are both
        failure = type(error).__name__
    else:
        check_readable(file, title)
        return rows
    raise SourceCorrupt(
        f"{title} is not a readable Parquet file ({failure}).",
        fixes=("open it with another program to see",),
    )


def _write_texts(path: Path, file: Path, dialect: Dialect, room: int, patience: Patience | None) -> int:
    import pyarrow.parquet as pq

    rows = 0
    with (
        opened_rows(path, dialect, most=room, patience=patience) as (schema, batches),
        pq.ParquetWriter(file, schema) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _there(path: Path) -> Path:
    """A file and nothing else: a pipe would never end, and a device has no end."""
    if not path.exists():
        raise SourceMissing(f"There is no file '{path}'.", fixes=("check the path and the working folder",))
    if not path.is_file():
        raise SourceError(f"'{path}' is not a file.", fixes=("a file of rows",))
    return path


def _check_room(size: int, room: int) -> None:
    if size > room:
        raise InvalidInput(
            f"The copy would need {size:,} bytes, and {max(room, 0):,} are left for copies.",
            fixes=("delete a dataset that is not needed", "raise BLOWFISHDB_COPIES_QUOTA"),
        )


def _safe(table: str) -> str:
    """The name of a table as that of a file."""
    return table if table == table_name(Path(f"{table}.parquet")) and len(table) <= _LONGEST else NAME


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # it went away meanwhile, or got its name
        return 0


def _is_old(path: Path) -> bool:
    try:
        newest = max(part.stat().st_mtime for part in (path, *path.rglob("*")))
    except OSError:  # it went away meanwhile
        return False
    return time.time() - newest > _YOUNG


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
