"""Row sources: where the rows of each dataset are read, once declared, refreshed or deleted.

A file is copied when it is declared and when it is refreshed, and answers come from the copy. What is open is
kept by dataset and version of its declaration, so that no question ever reads rows of another version.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, final

from blowfishdb.adapters.backends import TIMEOUT, Backend, open_backend
from blowfishdb.adapters.backends.addresses import check_file, check_no_secret
from blowfishdb.adapters.backends.duckdb import check_readable, has_dialect
from blowfishdb.adapters.copies import Patience, make_private
from blowfishdb.adapters.copies.dialects import find_dialect
from blowfishdb.adapters.copies.folder import UPLOAD, Copies
from blowfishdb.adapters.copies.sheets import is_sheet_file
from blowfishdb.adapters.copies.values import Dialect, RowsCopy, SourceKind, SourceRows
from blowfishdb.adapters.proposal.rows import check_rows
from blowfishdb.adapters.proposal.tables import check_tables
from blowfishdb.adapters.store.catalogue import name_taken
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.tables import Child, Lookup, Tables
from blowfishdb.core.errors import BlowfishError, InvalidInput, PolicyConflict, SourceError
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.policy import Policy
from blowfishdb.service import declaration
from blowfishdb.service.curator import check_none_missing
from blowfishdb.service.declaration import declared_source, place
from blowfishdb.service.records import DatasetEntry, KeyedTables, Records, is_copied

_LOG: Final = logging.getLogger("blowfishdb.copies")
_FASTER: Final = (
    "a Parquet file, which is copied as it is",
    "declare or refresh it where the workspace is, in Python or on the command line: nothing hurries there",
)


@final
class RowSources:
    """The rows of the datasets of one workspace."""

    def __init__(self, records: Records, copies: Copies, statement_seconds: float = TIMEOUT) -> None:
        self._records = records
        self._seconds = statement_seconds
        self.copies = copies
        self.seconds: float | None = None
        """How long a file may be copied that is declared or refreshed; None: as long as it takes."""
        self._open: dict[tuple[str, int], Backend] = {}
        self._retired: dict[str, Backend] = {}
        self._opening = threading.Lock()
        self._declared: tuple[str, Backend] | None = None
        """The copy that was declared last, and of which dataset: opening it again for the first question
        would take as long as a hundred questions."""

    def close(self) -> None:
        """Let go of everything."""
        self._let_go()
        with self._opening:
            backends = [*self._open.values(), *self._retired.values()]
            self._open.clear()
            self._retired.clear()
        for backend in backends:
            backend.close()

    # --- declaring ------------------------------------------------------------------------------

    def declare(
        self,
        name: str,
        source: object,
        domain: Domain,
        rows: SourceRows,
        *,
        by: str,
        total: Epsilon,
    ) -> DatasetEntry:
        """Read a file once, check that the columns are there, and enter all of it in one step."""
        if self._records.is_taken(name):
            raise name_taken(name, deleted=name not in self._records.names())
        several = None if rows.tables is None else Tables.from_plain(rows.tables)
        for table in () if several is None else several.asked:
            if self._records.is_taken(f"{name}.{table}"):
                raise name_taken(f"{name}.{table}", deleted=False)
        if isinstance(source, str) and source.startswith(UPLOAD):
            return self._declare_sent(name, source, domain, rows, by, total)
        location = place(source) if isinstance(source, str | Path) else ""
        if "://" not in location:
            check_file(Path(location))
        kind = _kind_of(location, rows.kind)
        if rows.tables is not None:
            _check_several(rows, kind)
        if kind is not SourceKind.COPY:
            _check_no_dialect(rows.dialect)
            if "://" in location and not location.startswith("spark"):
                check_no_secret(location)
            return self._enter_declared(name, location, None, None, domain, rows, by, total, kind)
        with self._taken(location or source, rows.dialect, self._patience()) as (copy, found):
            told = self._enter_declared(name, location, copy, found, domain, rows, by, total, kind)
        self.sweep()
        return told

    def _declare_sent(
        self, name: str, source: str, domain: Domain, rows: SourceRows, by: str, total: Epsilon
    ) -> DatasetEntry:
        """The same for a file that was sent, of which nothing is kept but the copy."""
        kind = _kind_of("", rows.kind)
        with self._taken(self.copies.sent(source), rows.dialect, self._patience()) as (copy, found):
            told = self._enter_declared(name, "", copy, found, domain, rows, by, total, kind)
        self.copies.forget(source)
        self.sweep()
        return told

    def _enter_declared(
        self,
        name: str,
        location: str,
        copy: RowsCopy | None,
        dialect: Dialect | None,
        domain: Domain,
        rows: SourceRows,
        by: str,
        total: Epsilon,
        kind: SourceKind,
    ) -> DatasetEntry:
        read_from = location if copy is None else str(self.copies.path(copy))
        several = None if rows.tables is None else Tables.from_plain(rows.tables)
        tables = None if several is None else KeyedTables(several, secrets.token_hex(8))
        where = declared_source(
            read_from,
            table=rows.table,
            view=rows.view,
            person=rows.person,
            rows_per_person=rows.rows_per_person,
            row_key=rows.row_key,
            public=rows.public,
            rows_vary=rows.rows_vary,
        )
        policy = Policy.whole_record(domain)
        record = DatasetEntry(
            name, location, where, domain, policy, kind=kind, copy=copy, dialect=dialect, tables=tables
        )
        shared = declaration.sharing(self._records.every(), record)
        declaration.check_shared(shared, rows.same_rows)
        record = replace(self._settled(record, rows), shared=tuple(shared))
        self._records.declare(record, by, total, opened=rows.opened)
        return record

    def _settled(self, record: DatasetEntry, rows: SourceRows) -> DatasetEntry:
        """With everything said about its rows that has to be, and the policy that it begins with."""
        if record.tables is not None:
            self._check_tables(record)
            return replace(record, policy=record.rules.first_policy(record.domain))
        place = self._place(record)
        backend = open_backend(place, record.domain, source=record.source, timeout=self._seconds)
        try:  # a file of DuckDB that is open is opened again at once
            backend.check()
            where = declaration.settled_source(
                backend, record.source, record.domain, public=rows.public, rows_vary=rows.rows_vary
            )
            _check_values(record)
            if where is not None:
                check_rows(place, where)
            check_none_missing(
                record.domain,
                lambda domain: open_backend(place, domain, source=where, timeout=self._seconds),
            )
        except BaseException:
            backend.close()
            raise
        if record.copy is None:  # whoever writes a database of their own need not wait for us
            backend.close()
        else:
            self._let_go(instead=(record.name, backend))
        settled = replace(record, source=where)
        return replace(settled, policy=settled.rules.first_policy(record.domain))

    def _check_tables(self, record: DatasetEntry) -> None:
        """Keys are there and tell apart what they have to; every table has the declared columns."""
        assert record.tables is not None
        record.tables.declared.check(record.domain)
        check_tables(self._place(record), record.tables.declared)
        for table in record.asked_tables():
            assert table.source is not None
            backend = open_backend(
                self._place(record), table.domain, source=table.source, timeout=self._seconds
            )
            try:
                backend.check()
                _check_views(backend)
                table.source.check_rules(table.domain)
                if backend.computed() & _key_columns(record.tables.declared):
                    raise InvalidInput(
                        "The database computes a key of these tables from other columns: where a hidden "
                        "value changes, rows would belong to others.",
                        fixes=("keys with values of their own",),
                    )
            finally:
                backend.close()
            check_rows(self._place(record), table.source)
            self._check_missing(table)

    def redeclare(self, record: DatasetEntry, domain: Domain, *, by: str) -> None:
        """Declare other columns of the same rows."""
        if record.source is not None:
            record.source.check_rules(domain)
        self._check(replace(record, domain=domain, policy=Policy.whole_record(domain)))
        self._records.redeclare(record, domain, by)

    def refresh(
        self,
        record: DatasetEntry,
        *,
        by: str,
        source: object | None = None,
        dialect: Dialect | None = None,
        same_rows: bool = False,
    ) -> None:
        """A new snapshot: a file is read again under its dialect; what does not fit leaves the old copy."""
        if record.copy is None and not record.awaits_copy:
            _check_no_dialect(dialect)
            if source is not None:
                raise InvalidInput("Rows in a database are read where they are.", fixes=("refresh()",))
            self._check(record)
            self._records.replace(replace(record, snapshot=record.snapshot + 1), by)
            return
        if source is None and not record.location:
            raise InvalidInput(
                "These rows came from a table in memory or a file that was sent, and cannot be read again.",
                fixes=("refresh(table), with the rows as they are now", "send the file as it is now"),
            )
        if source is not None and record.location:
            raise InvalidInput("These rows come from a file.", fixes=("refresh()",))
        if isinstance(source, str) and source.startswith(UPLOAD):
            try:
                self._refresh_copy(record, self.copies.sent(source), dialect, by, same_rows)
            finally:
                self.copies.forget(source)
        else:
            self._refresh_copy(record, source, dialect, by, same_rows)
        if not self._records.is_under_way(record.name):
            self._erase(self._records.copies(record.name)[:-1])  # also those that questions held before
        self.sweep()

    def _refresh_copy(
        self, record: DatasetEntry, rows: object | None, dialect: Dialect | None, by: str, same_rows: bool
    ) -> None:
        """Read the rows as they were read before; ``rows`` in place of where they come from."""
        said = dialect or record.dialect
        if isinstance(rows, Path):
            _check_same_kind(rows, said)
        source = record.location if rows is None else rows
        with self._taken(source, said, self._patience()) as (copy, found):
            known = self._shared_anew(record, copy, same_rows)
            self._enter_copy(known, copy, found, by, snapshot=record.snapshot + 1)

    def _patience(self) -> Patience | None:
        return None if self.seconds is None else Patience(self.seconds, _FASTER, doing="Copying these rows")

    def _shared_anew(self, record: DatasetEntry, copy: RowsCopy, confirmed: bool) -> DatasetEntry:
        """Rows that are those of another dataset now, and were not before, need a word as on declaring."""
        every = self._records.every()
        before = {*record.shared, *declaration.sharing(every, record)}
        found = [
            name for name in declaration.sharing(every, replace(record, copy=copy)) if name not in before
        ]
        declaration.check_shared(found, confirmed)
        return replace(record, shared=(*record.shared, *found))

    def delete(self, record: DatasetEntry, *, by: str) -> None:
        """End a dataset and erase its copy."""
        self._records.delete(record, by)
        for table in record.asked_tables():
            self._forget(table.name)
        self._erase(self._records.copies(record.name))
        self.sweep()

    def _erase(self, copies: Sequence[RowsCopy]) -> None:
        for copy in copies:
            self.copies.erase(copy)

    def sweep(self) -> list[str]:
        """Remove copies that no dataset mentions, left by a process that ended in between."""
        if not self.copies.any_old or self._records.any_under_way():
            return []
        found = (record.copy for record in self._records.current())
        return self.copies.sweep(copy.file for copy in found if copy is not None)

    # --- looking after --------------------------------------------------------------------------

    def problems(self) -> Iterator[str]:
        """What is not as it should be with datasets and the copies of their rows, in words."""
        for name in self._records.names():
            record = self._records[name]
            if record.policy_version == 0:
                yield f"'{name}' was left without a policy by a crash; everything about it is hidden."
            if record.awaits_copy:
                yield f"The file of '{name}' is not copied yet; that happens when it is first asked about."
            if record.copy is not None:
                try:
                    self.copies.checked(record.copy)
                except SourceError as error:
                    yield f"'{name}': {error.message}"
        for file in self.copies.open_to_others():
            yield f"'{file.name}' can be read by others than its owner."

    def repair(self, by: str) -> Iterator[str]:
        """Mend what can be mended without a decision, and say what was done."""
        for name in self._records.names():
            if self._records.complete(self._records[name], by):
                yield f"'{name}' has a policy now, which hides everything."
        for left in self.sweep():
            yield f"A copy that was left behind is erased: {left}."
        for file in self.copies.open_to_others():
            make_private(file)
            yield f"'{file.name}' can be read by its owner only."

    # --- from before there were copies ----------------------------------------------------------

    def adopt(self, record: DatasetEntry, *, by: str) -> None:
        """Take the copy of a dataset from before there were copies, once; the curator sees why it fails.

        However many rows the file has by now, none of them too: where presence is hidden, whoever asks first
        must not learn that there is nobody.
        """
        try:
            with self._taken(record.location, None, empty=True) as (copy, dialect):
                ours = self._is_ours(record)
                known = replace(record, location="") if ours else record
                self._enter_copy(known, copy, dialect, by, snapshot=record.snapshot)
            if ours:
                Path(record.location).unlink(missing_ok=True)
        except PolicyConflict:
            return  # another process was faster
        except BlowfishError as error:
            _LOG.warning("The file of '%s' could not be copied: %s", record.name, error)
        else:
            _LOG.warning(
                "The file of '%s' was read once more, into a copy that answers come from now on.", record.name
            )
            return
        raise SourceError(
            f"The rows of '{record.name}' are not ready to be asked about. Nothing was charged.",
            fixes=("ask the curator to refresh it",),
        )

    def _is_ours(self, record: DatasetEntry) -> bool:
        """Whether a file is the copy of a table in memory as older versions kept it beside the workspace."""
        workspace, file = self.copies.folder.with_suffix(""), Path(record.location)
        name = f"{workspace.stem}-{codec.digest(record.name)[:12]}.parquet"
        return file == workspace.with_name(name)

    # --- reading --------------------------------------------------------------------------------

    def backend(self, record: DatasetEntry) -> Backend:
        """The rows of exactly this version of a declaration."""
        key = (record.name, record.version)
        with self._opening:
            if key not in self._open:
                opened = self._opened(record)
                self._retire(record.name)
                self._open[key] = opened
            backend, declared = self._open[key], self._declared
        if declared is not None and declared[0] == record.name:
            self._let_go()
        return backend

    def _let_go(self, instead: tuple[str, Backend] | None = None) -> None:
        """Close what was declared last, and keep another one in its place."""
        with self._opening:
            before, self._declared = self._declared, instead
        if before is not None:
            before[1].close()

    def _forget(self, name: str) -> None:
        self._let_go()
        with self._opening:
            self._retire(name)
            left = self._retired.pop(name, None)
        if left is not None:
            left.close()

    def _retire(self, name: str) -> None:
        """Close what an earlier version left, except the last, which may be in use until it is done."""
        for key in [key for key in self._open if key[0] == name]:
            before = self._retired.pop(name, None)
            if before is not None:
                before.close()
            self._retired[name] = self._open.pop(key)

    def _place(self, record: DatasetEntry) -> str | Path:
        return record.location if record.copy is None else self.copies.checked(record.copy)

    def _opened(self, record: DatasetEntry) -> Backend:
        place = self._place(record)
        opened = open_backend(place, record.domain, source=record.source, timeout=self._seconds)
        try:
            declaration.check_found_view(record, opened)
        except BaseException:
            opened.close()
            raise
        return opened

    def _check(self, record: DatasetEntry) -> None:
        if record.tables is not None:
            self._check_tables(record)
            return
        rows = self._place(record)
        backend = open_backend(rows, record.domain, source=record.source, timeout=self._seconds)
        try:
            backend.check()
        finally:
            backend.close()
        _check_values(record)
        self._check_missing(record)

    def _check_missing(self, record: DatasetEntry) -> None:
        rows = self._place(record)
        check_none_missing(
            record.domain,
            lambda domain: open_backend(rows, domain, source=record.source, timeout=self._seconds),
        )

    def _enter_copy(
        self, record: DatasetEntry, copy: RowsCopy, dialect: Dialect | None, by: str, *, snapshot: int
    ) -> None:
        changed = replace(record, kind=SourceKind.COPY, copy=copy, dialect=dialect, snapshot=snapshot)
        self._check(changed)
        self._records.replace(changed, by)

    @contextmanager
    def _taken(
        self,
        source: object,
        dialect: Dialect | None,
        patience: Patience | None = None,
        *,
        empty: bool = False,
    ) -> Iterator[tuple[RowsCopy, Dialect | None]]:
        """A new copy, which is erased unless all that follows goes well."""
        if isinstance(source, str | Path):
            check_file(Path(source))
        if isinstance(source, str | Path) and has_dialect(source):
            dialect = dialect or find_dialect(Path(source), patience)
        else:
            _check_no_dialect(dialect)
        copy = self.copies.take(source, dialect, patience, empty=empty)
        try:
            yield copy, dialect
        except BaseException:
            self._let_go()
            with suppress(OSError):
                self.copies.erase(copy)
            raise


def what_stays(record: DatasetEntry) -> str:
    """What is left of a dataset that was deleted, in words."""
    words = [f"'{record.name}' is deleted, and nothing can be asked about it."]
    if record.copy is not None:
        words.append("The copy of its rows is erased.")
    if record.location:
        words.append("Where its rows came from, nothing was changed.")
    words.append(
        "Its books stay: declarations, policies, charges and the answers that were given, under a name that "
        "cannot be used again. Backups that were made before still hold these, and never rows; whoever "
        "copied the folder of copies itself has the rows, too."
    )
    return " ".join(words)


def _kind_of(location: str, kind: SourceKind | None) -> SourceKind:
    """What was declared about the rows, or what is usual for such a source."""
    copied = not location or is_copied(location)
    if kind is None:
        return SourceKind.COPY if copied else SourceKind.FROZEN
    if kind is SourceKind.COPY and not copied:
        raise InvalidInput("A database is not copied.", fixes=("kind='frozen'", "kind='live'"))
    if kind is not SourceKind.COPY and (not location or has_dialect(location)):
        raise InvalidInput(
            "A file of texts, and a table in memory, are always copied.", fixes=("leave the kind out",)
        )
    return kind


def _check_same_kind(file: Path, dialect: Dialect | None) -> None:
    """A file that was sent is read as the one before: nobody confirmed another way to read it."""
    if dialect is None:
        fits, wanted = not has_dialect(file), "a Parquet file"
    else:
        fits = has_dialect(file) and is_sheet_file(file) == bool(dialect.sheet)
        wanted = "a file of Excel" if dialect.sheet else "a file of texts"
    if not fits:
        raise InvalidInput(
            f"These rows were read from {wanted}, and this file is of another kind.", fixes=(wanted,)
        )


def _check_several(rows: SourceRows, kind: SourceKind) -> None:
    """Several tables are said in their own words, and are in one database."""
    otherwise = (rows.table, rows.view, rows.person, rows.row_key, rows.rows_vary)
    if any(said is not None for said in otherwise) or rows.rows_per_person != 1 or rows.public:
        raise InvalidInput(
            "Several tables say by their keys whose rows they hold, and how many of them count.",
            fixes=("tables= alone", "table= or view= without tables="),
        )
    if kind is SourceKind.COPY:
        raise InvalidInput(
            "Several tables are those of one database; a file of rows is one table.",
            fixes=("a DuckDB or SQLite file with all of them", "the address of a database"),
        )


def _key_columns(tables: Tables) -> set[str]:
    """Keys, but for what is looked up: that may be a value like others."""
    declared = [table for _, table in tables.tables if not isinstance(table, Lookup)]
    named = {table.key for table in declared} | {each.by for each in declared if isinstance(each, Child)}
    return {name.lower() for name in named if name is not None}


def _check_views(backend: Backend) -> None:
    """What a view in the database shows could depend on anything, hidden values and other rows included."""
    views = backend.views()
    if views:
        raise InvalidInput(
            f"'{views[0]}' is a view in the database, or something else that computes values while they are "
            "read. Several tables are joined by us only where each of them holds its rows itself.",
            fixes=("the tables behind the view", "a dataset over this view alone: table= and rows_vary="),
        )


def _check_values(record: DatasetEntry) -> None:
    """Files that are read where they are hold nothing that cannot be read; a copy was looked through."""
    if record.copy is None and is_copied(record.location):
        check_readable(Path(record.location), f"'{record.location}'")


def _check_no_dialect(dialect: Dialect | None) -> None:
    if dialect is not None:
        raise InvalidInput("Only a file of texts has a dialect.", fixes=("leave it out",))
