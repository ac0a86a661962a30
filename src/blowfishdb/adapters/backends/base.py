"""Backend: the port through which counts come out of a database."""

from __future__ import annotations

from typing import Protocol

from blowfishdb.adapters.backends.prepared import Prepared
from blowfishdb.adapters.backends.prepared_clusters import PreparedClusters
from blowfishdb.adapters.sql_source import Source
from blowfishdb.core.cluster_projection import ClusterQuery
from blowfishdb.core.projection import CellQuery


class Backend(Protocol):
    """One dataset in one database: a source of rows and the declaration of its columns.

    Implementations are safe to share between threads and never write to the database.
    """

    source: Source

    def check(self) -> None:
        """The source is there, and has every declared column in a fitting type."""

    def prepare(self, query: CellQuery) -> Prepared:
        """The statement of a question. Everything that can fail without looking at a row fails here, before
        budget is reserved."""

    def prepare_clusters(self, query: ClusterQuery) -> PreparedClusters:
        """The same for clusters: what they are asked about, ready for one statement per round."""

    def views(self) -> list[str]:
        """The tables of the source that are views in the database, or at least not known to be tables."""

    def computed(self) -> frozenset[str]:
        """Columns of its tables that the database computes from others, in lower case."""

    def columns(self) -> dict[str, str]:
        """The columns of the source and their types in the database's own words, for the curator."""

    def close(self) -> None:
        """Let go of the database; a second call does nothing."""
