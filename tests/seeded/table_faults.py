"""Faults where several tables meet: what is joined, looked up and left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from tests.seeded.planting import Fault


def _inner(original: Any) -> Any:
    """A row whose key leads nowhere is left out, as by JOIN."""

    def query(self: Any) -> Any:
        select = original(self)
        for join in select.args.get("joins") or []:
            join.set("side", None)
        return select

    return query


def _filtered_first(original: Any) -> Any:
    """Rows for which something is missing are left out before it is decided which count."""

    def limit(self: Any, relation: Any, types: Any, engine: Any) -> Any:
        found = original(self, relation, types, engine)
        if not any(name.startswith("codes.") for name in types):
            return found
        inner = found.this.args["from_"].this.this
        inner.where(exp.Not(this=sql.is_null(sql.column("codes.code", sql.SOURCE))), copy=False)
        return found

    return limit


def _chosen_by_value(original: Any) -> Any:
    """Which rows of a person count is decided by what is looked up for them."""

    def order(self: Any, key: str, engine: Any) -> Any:
        return original(replace(self, key="codes.a"), "codes.a" if key == "visits.row_key" else key, engine)

    return order


def _one_row_of_each(original: Any) -> Any:
    return lambda self: 1 if self.part_of is not None else original(self)


FAULTS = (
    Fault(
        "leads nowhere",
        "a row whose key leads nowhere is left out, so what is looked up decides how many rows there are",
        "Joined.query",
        _inner,
        "tables",
    ),
    Fault(
        "filtered first",
        "rows for which nothing is found are left out before it is decided which of a person's rows count",
        "Unit.limit",
        _filtered_first,
        "tables of people",
    ),
    Fault(
        "chosen by value",
        "which rows of a person count is decided by what is looked up for them",
        "Unit._order",
        _chosen_by_value,
        "tables of people",
    ),
    Fault(
        "one row of each table",
        "a question about one of several tables is priced as if each person had one row in it",
        "DatasetEntry.rows_per_person",
        _one_row_of_each,
        "tables of people",
    ),
)
