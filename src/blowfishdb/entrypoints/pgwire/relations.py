"""What the catalogue says: every dataset is a schema with a view, with its declared columns and their types.

All of it follows from the declarations. Nothing here has seen a row: no sizes, no counts, no statistics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

from blowfishdb.core.policy.words import sentences
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
_SCHEMAS: Final = 2_000_000
_TAKEN: Final = frozenset({"pg_catalog", "information_schema", "public"})
DEFINITION: Final = " -- private: rows are counted, and never shown"
"""What is told of the definition of every view."""

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


class View(NamedTuple):
    """A view, by its number: where it is, of what, and whether its name alone is enough."""

    oid: int
    schema: str
    name: str
    info: DatasetInfo
    visible: bool


def formatted(kind: PgType) -> str:
    """The name of a type as SQL has it."""
    if kind.name.startswith("_"):
        element = kind.name[1:]
        return _FORMATTED.get(element, element) + "[]"
    return _FORMATTED.get(kind.name, kind.name)


def schema_and_view(info: DatasetInfo) -> tuple[str, str]:
    """Where a dataset is found: a schema of its name, with a view for each of its tables."""
    schema = info.part_of or info.name
    view = info.name.removeprefix(f"{schema}.")
    return ("public" if schema.casefold() in _TAKEN else schema), view


@final
@dataclass(frozen=True)
class Relations:
    """Rows for the tables of the catalogue, by table."""

    datasets: tuple[DatasetInfo, ...]

    @property
    def schemas(self) -> dict[str, int]:
        """The schemas by their numbers: PostgreSQL's own, and one for each dataset."""
        own = {"pg_catalog": _CATALOG, "public": _PUBLIC, "information_schema": _INFORMATION}
        named = dict.fromkeys(schema_and_view(info)[0] for info in self.datasets)
        return own | {name: _SCHEMAS + at for at, name in enumerate(named) if name not in own}

    @property
    def views(self) -> list[View]:
        """The views by their numbers."""
        found = [schema_and_view(info) for info in self.datasets]
        whole = {info.name.casefold() for info in self.datasets if info.part_of is None}
        names = Counter(view.casefold() for _, view in found)
        return [
            View(
                _FIRST + at,
                schema,
                name,
                info,
                visible=info.part_of is None
                or (names[name.casefold()] == 1 and name.casefold() not in whole),
            )
            for at, ((schema, name), info) in enumerate(zip(found, self.datasets, strict=True))
        ]

    def pg_catalog(self) -> dict[str, list[Row]]:
        """What ``pg_catalog`` says."""
        schemas, views = self.schemas, self.views
        return {
            "pg_namespace": [
                {"oid": oid, "nspname": name, "nspowner": _OWNER_ID} for name, oid in schemas.items()
            ],
            "pg_class": [_class(view, schemas[view.schema]) for view in views],
            "pg_attribute": [row for view in views for row in _attributes(view)],
            "pg_description": [row for view in views for row in _described(view)]
            + [row for view in views for row in _described_schema(view, schemas[view.schema])],
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
            "pg_views": [
                {"schemaname": v.schema, "viewname": v.name, "viewowner": OWNER, "definition": DEFINITION}
                for v in views
            ],
        }

    def information_schema(self) -> dict[str, list[Row]]:
        """What ``information_schema`` says."""
        views = [(view, _named(view)) for view in self.views]
        privilege = {"grantor": OWNER, "grantee": SOMEONE, "privilege_type": "SELECT", "is_grantable": "NO"}
        granted: list[Row] = [{**privilege, **named, "with_hierarchy": "NO"} for _, named in views]
        never = ("is_updatable", "is_insertable_into", "is_trigger_updatable", "is_trigger_deletable")
        return {
            "information_schema_catalog_name": [{"catalog_name": DATABASE}],
            "schemata": [
                {"catalog_name": DATABASE, "schema_name": name, "schema_owner": OWNER}
                for name in self.schemas
            ],
            "tables": [
                {**named, "table_type": "VIEW", "is_insertable_into": "NO", "is_typed": "NO"}
                for _, named in views
            ],
            "views": [
                {
                    **named,
                    "view_definition": DEFINITION,
                    "check_option": "NONE",
                    "is_trigger_insertable_into": "NO",
                    **dict.fromkeys(never, "NO"),
                }
                for _, named in views
            ],
            "columns": [row for view, named in views for row in _columns(view.info, named)],
            "table_privileges": granted,
            "role_table_grants": granted,
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


def _named(view: View) -> Row:
    return {"table_catalog": DATABASE, "table_schema": view.schema, "table_name": view.name}


def _class(view: View, schema: int) -> Row:
    numbers = ["reltype", "reloftype", "reltablespace", "reltoastrelid", "relrewrite", "relfrozenxid"]
    numbers += ["relam", "relfilenode", "relpages", "relallvisible", "relchecks", "relminmxid"]
    never = ["relhasindex", "relisshared", "relhasrules", "relhastriggers", "relhassubclass"]
    never += ["relrowsecurity", "relforcerowsecurity", "relispartition"]
    return {
        "oid": view.oid,
        "relname": view.name,
        "relnamespace": schema,
        "relowner": _OWNER_ID,
        "reltuples": -1.0,  # nobody has counted
        "relpersistence": "p",
        "relkind": "v",
        "relnatts": len(view.info.domain),
        "relispopulated": True,
        "relreplident": "n",
        **dict.fromkeys(numbers, 0),
        **dict.fromkeys(never, False),
    }


def _kinds(info: DatasetInfo) -> Sequence[tuple[str, PgType, bool, str]]:
    """The columns of a dataset: name, type, whether values may be missing, and its declaration in words."""
    return [
        (name, typed(declared(attribute)), bool(attribute.has_missing_cell), attribute.describe())
        for name, attribute in info.domain.columns
    ]


def _attributes(view: View) -> list[Row]:
    return [
        {
            "attrelid": view.oid,
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
        for number, (name, kind, missing, _) in enumerate(_kinds(view.info), start=1)
    ]


def _described_schema(view: View, schema: int) -> list[Row]:
    """The title of a dataset, which is said of its schema; that of several tables has one for each."""
    if schema < _SCHEMAS or view.info.part_of is not None:
        return []
    said = {"objoid": schema, "classoid": CLASSES["pg_namespace"], "objsubid": 0}
    return [{**said, "description": view.info.title}]


def _described(view: View) -> list[Row]:
    info, place = view.info, {"objoid": view.oid, "classoid": CLASSES["pg_class"]}
    whole = " ".join(("Private: rows are counted, never shown.", *sentences(info.policy)))
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
