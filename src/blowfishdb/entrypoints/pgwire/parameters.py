"""Parameters of statements: of what type each is, and how a value in its place is written."""

from __future__ import annotations

import re
from typing import Any, Final

from sqlglot import exp

from blowfishdb.core.domain.domain import Domain
from blowfishdb.entrypoints.pgwire import types
from blowfishdb.entrypoints.pgwire.catalogue import parameter_type
from blowfishdb.entrypoints.pgwire.errors import UNKNOWN_SETTING, Refusal
from blowfishdb.entrypoints.pgwire.reader import parsed
from blowfishdb.entrypoints.pgwire.relations import formatted
from blowfishdb.entrypoints.pgwire.results import typed
from blowfishdb.entrypoints.pgwire.statements import filled, without_max_cost
from blowfishdb.entrypoints.pgwire.types import PgType
from blowfishdb.language.extensions import split_extensions
from blowfishdb.language.selected import declared
from blowfishdb.language.text import quoted_text, sql_value


def literal(value: Any) -> str:
    """A parameter as SQL."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(literal, value))}]"
    return quoted_text(value) if isinstance(value, str) else sql_value(value)


def stand_in(kind: PgType) -> str:
    """A value of a type."""
    moments = (types.DATE, types.TIMESTAMP, types.TIMESTAMPTZ)
    value = (
        "'2000-01-01'" if kind in moments else "'x'" if kind.size < 0 and kind is not types.NUMERIC else "0"
    )
    return "NULL" if kind.name.startswith("_") else f"CAST({value} AS {formatted(kind)})"


def stated_type(name: str) -> PgType:
    """The type of a name as SQL has it."""
    found = _STATED.get(name)
    if found is None:
        raise Refusal(UNKNOWN_SETTING, f'type "{name[:60]}" does not exist')
    return found


def places(text: str, count: int) -> dict[int, tuple[str, PgType | None]]:
    """The column that each parameter is compared with, and its type where that is said.

    ``*`` stands for a number of rows, ``#`` for a whole number, ``region[]`` for a list of what is compared
    with the column.
    """
    if not count:
        return {}
    marked = filled(text, {number: f"'bf\x01{number}'" for number in range(1, count + 1)}, casts=True)
    tree = parsed(split_extensions(without_max_cost(marked)[0]).select)
    found: dict[int, tuple[str, PgType | None]] = {}
    for node in tree.find_all(exp.Literal):
        if not node.is_string or not node.name.startswith("bf\x01"):
            continue
        above: exp.Expr | None = node.parent
        stated: PgType | None = None
        below: exp.Expr = node
        listed = ""
        while isinstance(above, exp.Paren | exp.Cast | exp.Tuple | exp.Neg) or _of_a_list(above):
            listed = "[]" if _of_a_list(above) else listed
            if isinstance(above, exp.Cast) and stated is None:
                name = above.to.sql("postgres").lower()
                stated = types.TEXT if "reg" in name else _STATED.get(name)
            assert above is not None
            below, above = above, above.parent
        number = int(node.name[3:])
        if isinstance(above, exp.Limit | exp.Offset):
            found[number] = "*", stated
        elif isinstance(above, exp.Predicate | exp.In | exp.Between | exp.Binary):
            column = above.find(exp.Column)
            beside = above.args.get("expression") if above.this is below else above.this
            told = next((told for kinds, told in _TOLD if isinstance(beside, kinds)), None)
            found[number] = told or (column.name + listed if column is not None else ""), stated
        else:
            found[number] = "", stated
    for each in _IDS.finditer(text):
        number = int(each[1])
        found[number] = found.get(number, ("", None))[0], types.ARRAYS[types.OID.oid]
    return found


_IDS: Final = re.compile(r"\$(\d+)\s*::\s*oid\s*\[\s*\]", re.IGNORECASE)
"""Lists of numbers of the catalogue, which the parser has no word for."""


_STATED: Final = {
    **{formatted(kind): kind for kind in types.BY_OID.values()},
    **{kind.name: kind for kind in types.BY_OID.values()},
    "int": types.INT4,
    "decimal": types.NUMERIC,
    "varchar": types.VARCHAR,
    "timestamp": types.TIMESTAMP,
}


def _of_a_list(node: exp.Expr | None) -> bool:
    """``ANY(…)`` or ``ALL(…)``."""
    return isinstance(node, exp.Any | exp.All) or (
        isinstance(node, exp.Anonymous) and str(node.this).upper() in ("ANY", "ALL")
    )


_TOLD: Final[tuple[tuple[tuple[type[exp.Expr], ...], str], ...]] = (
    ((exp.Extract, exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Length, exp.StrPosition), "#"),
)
"""What is computed from a column of another type."""


def meant(column: str, domain: Domain | None) -> tuple[PgType, str]:
    """The type of what is compared with a column, and a value that may stand there."""
    if column in ("*", "#"):
        return types.INT8, "1"
    if column.endswith("[]"):
        kind, value = meant(column.removesuffix("[]"), domain)
        return types.ARRAYS.get(kind.oid, types.ARRAYS[types.TEXT.oid]), f"ARRAY[{value}]"
    if domain is None:
        return parameter_type(column.casefold()), "NULL"
    name = next((known for known in domain.names if known.casefold() == column.casefold()), None)
    if name is None:
        return types.TEXT, "1"
    return typed(declared(domain[name])), sql_value(domain[name].at(0))
