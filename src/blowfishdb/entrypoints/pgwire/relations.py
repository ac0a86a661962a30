"""What the catalogue says: every dataset is a table, with its declared columns and their types.

All of it follows from the declarations. Nothing here has seen a row: no sizes, no counts, no statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from blowfishdb.entrypoints.pgwire import types
from blowfishdb.entrypoints.pgwire.results import typed
from blowfishdb.entrypoints.pgwire.settings import USUAL
from blowfishdb.entrypoints.pgwire.types import PgType
from blowfishdb.language.selected import declared
from blowfishdb.messages.policies import DatasetInfo

DATABASE: Final = "blowfishdb"
OWNER: Final = "blowfishdb"
SOMEONE: Final = "$user"
"""Stands for whoever is connected."""
_OWNER_ID: Final = 10
_USER_ID: Final = 16_000
_CATALOG: Final = 11
_PUBLIC: Final = 2200
_INFORMATION: Final = 13_000
_FIRST: Final = 16_384

CLASSES: Final = {
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_authid": 1260,
    "pg_database": 1262,
    "pg_tablespace": 1213,
    "pg_namespace": 2615,
    "pg_constraint": 2606,
    "pg_attrdef": 2604,
    "pg_trigger": 2620,
    "pg_extension": 3079,
    "pg_description": 2609,
    "pg_index": 2610,
    "pg_inherits": 2611,
    "pg_rewrite": 2618,
    "pg_am": 2601,
    "pg_language": 2612,
    "pg_collation": 3456,
}
"""The tables of the catalogue by their numbers, which clients have learned by heart."""

_FORMATTED: Final = {
    "bool": "boolean",
    "int8": "bigint",
    "int2": "smallint",
    "int4": "integer",
    "float4": "real",
    "float8": "double precision",
    "varchar": "character varying",
    "bpchar": "character",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
}
_CATEGORIES: Final = {
    "bool": "B",
    "date": "D",
    "timestamp": "D",
    "timestamptz": "D",
    "text": "S",
    "varchar": "S",
    "bpchar": "S",
    "name": "S",
    "unknown": "X",
    "json": "U",
}
Row = dict[str, Any]


def formatted(kind: PgType) -> str:
    """The name of a type as SQL has it."""
    if kind.name.startswith("_"):
        element = kind.name[1:]
        return _FORMATTED.get(element, element) + "[]"
    return _FORMATTED.get(kind.name, kind.name)


@final
@dataclass(frozen=True)
class Relations:
    """Rows for the tables of the catalogue, by table."""

    datasets: tuple[DatasetInfo, ...]

    def pg_catalog(self) -> dict[str, list[Row]]:
        """What ``pg_catalog`` says."""
        return {
            "pg_namespace": [
                {"oid": _CATALOG, "nspname": "pg_catalog", "nspowner": _OWNER_ID},
                {"oid": _PUBLIC, "nspname": "public", "nspowner": _OWNER_ID},
                {"oid": _INFORMATION, "nspname": "information_schema", "nspowner": _OWNER_ID},
            ],
            "pg_class": [self._class(at, info) for at, info in enumerate(self.datasets)],
            "pg_attribute": [row for at, info in enumerate(self.datasets) for row in _attributes(at, info)],
            "pg_description": [row for at, info in enumerate(self.datasets) for row in _described(at, info)],
            "pg_type": [_type(kind) for kind in types.BY_OID.values()],
            "pg_database": [_database()],
            "pg_roles": [_role(_OWNER_ID, OWNER, own=True), _role(_USER_ID, SOMEONE)],
            "pg_authid": [_role(_OWNER_ID, OWNER, own=True), _role(_USER_ID, SOMEONE)],
            "pg_user": [_user(_OWNER_ID, OWNER, own=True), _user(_USER_ID, SOMEONE)],
            "pg_am": [{"oid": 2, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}],
            "pg_tablespace": [{"oid": 1663, "spcname": "pg_default", "spcowner": _OWNER_ID}],
            "pg_language": [
                {"oid": 14, "lanname": "sql", "lanowner": _OWNER_ID, "lanispl": False, "lanpltrusted": True}
            ],
            "pg_collation": [
                {
                    "oid": 100,
                    "collname": "default",
                    "collnamespace": _CATALOG,
                    "collowner": _OWNER_ID,
                    "collprovider": "d",
                    "collisdeterministic": True,
                    "collencoding": -1,
                }
            ],
            "pg_settings": [
                {"name": name, "setting": value, "context": "user", "vartype": "string", "source": "default"}
                for name, value in USUAL.items()
            ],
            "pg_tables": [
                {
                    "schemaname": "public",
                    "tablename": info.name,
                    "tableowner": OWNER,
                    "hasindexes": False,
                    "hasrules": False,
                    "hastriggers": False,
                    "rowsecurity": False,
                }
                for info in self.datasets
            ],
        }

    def _class(self, at: int, info: DatasetInfo) -> Row:
        numbers = ("reltype", "reloftype", "reltablespace", "reltoastrelid", "relrewrite", "relfrozenxid")
        never = ["relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass"]
        never += ["relrowsecurity", "relforcerowsecurity", "relispartition"]
        return {
            "oid": _FIRST + at,
            "relname": info.name,
            "relnamespace": _PUBLIC,
            "relowner": _OWNER_ID,
            "relam": 2,
            "relfilenode": _FIRST + at,
            "relpages": 0,
            "reltuples": -1.0,  # nobody has counted
            "relallvisible": 0,
            "relpersistence": "p",
            "relkind": "r",
            "relnatts": len(info.domain),
            "relchecks": 0,
            "relispopulated": True,
            "relreplident": "n",
            "relminmxid": 0,
            **dict.fromkeys(numbers, 0),
            **dict.fromkeys(never, False),
        }

    def information_schema(self) -> dict[str, list[Row]]:
        """What ``information_schema`` says."""
        schemas = ("pg_catalog", "public", "information_schema")
        tables = [
            {"table_catalog": DATABASE, "table_schema": "public", "table_name": i.name} for i in self.datasets
        ]
        privilege = {"grantor": OWNER, "privilege_type": "SELECT", "is_grantable": "NO"}
        return {
            "information_schema_catalog_name": [{"catalog_name": DATABASE}],
            "schemata": [
                {"catalog_name": DATABASE, "schema_name": name, "schema_owner": OWNER} for name in schemas
            ],
            "tables": [
                {**table, "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}
                for table in tables
            ],
            "columns": [
                row
                for info, table in zip(self.datasets, tables, strict=True)
                for row in _columns(info, table)
            ],
            "table_privileges": [
                {**privilege, **table, "grantee": SOMEONE, "with_hierarchy": "NO"} for table in tables
            ],
            "enabled_roles": [{"role_name": SOMEONE}],
            "character_sets": [
                {
                    "character_set_name": "UTF8",
                    "character_repertoire": "UCS",
                    "form_of_use": "UTF8",
                    "default_collate_catalog": DATABASE,
                    "default_collate_schema": "pg_catalog",
                    "default_collate_name": "C.UTF-8",
                }
            ],
        }


def _kinds(info: DatasetInfo) -> Sequence[tuple[str, PgType, bool, str]]:
    """The columns of a dataset: name, type, whether values may be missing, and its declaration in words."""
    return [
        (name, typed(declared(attribute)), bool(attribute.has_missing_cell), attribute.describe())
        for name, attribute in info.domain.columns
    ]


def _attributes(at: int, info: DatasetInfo) -> list[Row]:
    return [
        {
            "attrelid": _FIRST + at,
            "attname": name,
            "atttypid": kind.oid,
            "attstattarget": -1,
            "attlen": kind.size,
            "attnum": number,
            "attndims": 0,
            "attcacheoff": -1,
            "atttypmod": -1,
            "attbyval": kind.size > 0,
            "attalign": "i",
            "attstorage": "p" if kind.size > 0 else "x",
            "attcompression": "",
            "attnotnull": not missing,
            "atthasdef": False,
            "atthasmissing": False,
            "attidentity": "",
            "attgenerated": "",
            "attisdropped": False,
            "attislocal": True,
            "attinhcount": 0,
            "attcollation": 100 if kind is types.TEXT else 0,
        }
        for number, (name, kind, missing, _) in enumerate(_kinds(info), start=1)
    ]


def _described(at: int, info: DatasetInfo) -> list[Row]:
    place = {"objoid": _FIRST + at, "classoid": CLASSES["pg_class"]}
    whole = f"Private: rows are counted, never shown. {info.policy.describe()}"
    return [
        {**place, "objsubid": 0, "description": whole},
        *(
            {**place, "objsubid": number, "description": words}
            for number, (_, _, _, words) in enumerate(_kinds(info), start=1)
        ),
    ]


def _columns(info: DatasetInfo, table: Row) -> list[Row]:
    precision = {"int2": 16, "int4": 32, "int8": 64, "float8": 53}
    return [
        {
            **table,
            "column_name": name,
            "ordinal_position": number,
            "is_nullable": "YES" if missing else "NO",
            "data_type": formatted(kind),
            "numeric_precision": precision.get(kind.name),
            "numeric_precision_radix": 2 if kind.name in precision else None,
            "numeric_scale": 0 if kind.name.startswith("int") else None,
            "datetime_precision": {"date": 0, "timestamp": 6}.get(kind.name),
            "character_octet_length": 2**30 if kind is types.TEXT else None,
            "udt_catalog": DATABASE,
            "udt_schema": "pg_catalog",
            "udt_name": kind.name,
            "dtd_identifier": str(number),
            "is_self_referencing": "NO",
            "is_identity": "NO",
            "identity_cycle": "NO",
            "is_generated": "NEVER",
            "is_updatable": "NO",
        }
        for number, (name, kind, missing, _) in enumerate(_kinds(info), start=1)
    ]


def _type(kind: PgType) -> Row:
    array = types.ARRAYS.get(kind.oid)
    element = next((oid for oid, each in types.ARRAYS.items() if each is kind), 0)
    base = kind.name.lstrip("_")
    routine = {"timestamptz": "timestamptz_", "bpchar": "bpchar"}.get(base, base)
    named = f"array_{'in'}" if element else f"{routine}in".replace("_in", "_in")
    receive = "array_recv" if element else f"{base}recv" if base != "date" else "date_recv"
    return {
        "oid": kind.oid,
        "typname": kind.name,
        "typnamespace": _CATALOG,
        "typowner": _OWNER_ID,
        "typlen": kind.size,
        "typbyval": kind.size > 0,
        "typtype": "p" if kind is types.UNKNOWN else "b",
        "typcategory": "A" if element else _CATEGORIES.get(base, "N"),
        "typispreferred": base in ("text", "float8", "bool", "oid", "timestamptz"),
        "typisdefined": True,
        "typdelim": ",",
        "typrelid": 0,
        "typsubscript": "array_subscript_handler" if element else "-",
        "typelem": element,
        "typarray": 0 if array is None else array.oid,
        "typinput": named,
        "typoutput": named.removesuffix("in") + "out",
        "typreceive": receive,
        "typsend": receive.removesuffix("recv") + "send",
        "typmodin": "-",
        "typmodout": "-",
        "typanalyze": "-",
        "typalign": "i",
        "typstorage": "p" if kind.size > 0 else "x",
        "typnotnull": False,
        "typbasetype": 0,
        "typtypmod": -1,
        "typndims": 0,
        "typcollation": 100 if _CATEGORIES.get(base) == "S" and not element else 0,
    }


def _database() -> Row:
    return {
        "oid": 5,
        "datname": DATABASE,
        "datdba": _OWNER_ID,
        "encoding": 6,
        "datlocprovider": "c",
        "datistemplate": False,
        "datallowconn": True,
        "datconnlimit": -1,
        "datfrozenxid": 0,
        "datminmxid": 0,
        "dattablespace": 1663,
        "datcollate": "C.UTF-8",
        "datctype": "C.UTF-8",
    }


def _role(oid: int, name: str, *, own: bool = False) -> Row:
    rights = ("rolsuper", "rolcreaterole", "rolcreatedb", "rolreplication", "rolbypassrls")
    said = {"oid": oid, "rolname": name, "rolinherit": True, "rolcanlogin": not own, "rolconnlimit": -1}
    return {**said, **dict.fromkeys(rights, False)}


def _user(oid: int, name: str, *, own: bool = False) -> Row:
    del own
    rights = ("usecreatedb", "usesuper", "userepl", "usebypassrls")
    return {"usesysid": oid, "usename": name, "passwd": "********", **dict.fromkeys(rights, False)}
