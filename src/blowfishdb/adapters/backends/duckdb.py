"""DuckDB: database files, and CSV and Parquet files through DuckDB, always read-only."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self, final

import numpy as np

from blowfishdb.adapters.sql import Statement, cell_statement, mentioned
from blowfishdb.adapters.sql_source import Source
from blowfishdb.adapters.sql_values import SqlColumn
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import QueryFailed, SourceCorrupt, SourceError, SourceMissing, UnknownColumn
from blowfishdb.core.projection import CellQuery
from blowfishdb.core.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

DIALECT = "duckdb"
