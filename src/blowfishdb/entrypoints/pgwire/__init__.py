"""PostgreSQL's wire protocol: psql, drivers and tools ask private questions as if of a database.

Another door of the same server: accounts, grants, rates, the ledger and the stored answers are those of the
pages and of the interface for programs. Nothing is spent unless a ``max_cost`` allows it.
"""
