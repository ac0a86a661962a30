"""What tools send by themselves when they connect and look around, as they write it: all of it is answered.

The statements are those of the tools, shortened where a list of columns goes on; none of the tools is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.pgwire.door import opened

GRAFANA = {
    "tables": """
        SELECT CASE WHEN quote_ident(table_schema) IN (
            SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
            FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1),
                array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i,
                string_to_array(current_setting('search_path'), ',') s)
          THEN quote_ident(table_name)
          ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
        FROM information_schema.tables
        WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog',
          '_timescaledb_cache', '_timescaledb_catalog')
        ORDER BY 1
    """,
    "columns": """
        SELECT quote_ident(column_name) AS "column", data_type AS "type"
        FROM information_schema.columns
        WHERE quote_ident(table_schema) || '.' || quote_ident(table_name) = 'salaries.salaries'
    """,
    "version": "SELECT current_setting('server_version_num')::int/100 AS version",
}
METABASE = {
    "schemas": """
        SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
    """,
    "tables": """
        SELECT n.nspname AS schema, c.relname AS name,
          CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW'
            WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS type,
          d.description AS description, NULLIF(stat.n_live_tup, 0) AS estimated_row_count
        FROM pg_catalog.pg_class AS c
        INNER JOIN pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid
        LEFT JOIN pg_catalog.pg_description AS d
          ON c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass
        LEFT JOIN pg_stat_user_tables AS stat ON n.nspname = stat.schemaname AND c.relname = stat.relname
        WHERE c.relnamespace = n.oid AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
          AND c.relkind IN ('r', 'p', 'v', 'f', 'm')
        ORDER BY type, schema, name
    """,
    "privileges": """
        WITH table_privileges AS (
          SELECT NULL AS role, t.schemaname AS schema, t.objectname AS table,
            pg_catalog.has_any_column_privilege(current_user,
              '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""')
              || '"', 'update') AS update,
            pg_catalog.has_any_column_privilege(current_user,
              '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""')
              || '"', 'select') AS select
          FROM (SELECT schemaname, tablename AS objectname FROM pg_catalog.pg_tables
                UNION SELECT schemaname, viewname AS objectname FROM pg_views
                UNION SELECT schemaname, matviewname AS objectname FROM pg_matviews) t
          WHERE t.schemaname !~ '^pg_' AND t.schemaname <> 'information_schema'
            AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage'))
        SELECT t.* FROM table_privileges t WHERE t.update OR t.select
    """,
    "columns": """
        SELECT c.column_name AS name, c.udt_name AS "database-type",
          c.ordinal_position - 1 AS "database-position", c.table_schema AS "table-schema",
          c.table_name AS "table-name", pk.column_name IS NOT NULL AS "pk?",
          COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST(c.table_schema AS TEXT), CAST(c.table_name AS TEXT))
            AS REGCLASS) AS OID), c.ordinal_position) AS "field-comment",
          ((column_default IS NULL OR LOWER(column_default) = 'null') AND is_nullable = 'NO')
            AS "database-required"
        FROM information_schema.columns AS c
        LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name
          FROM information_schema.table_constraints AS tc
          INNER JOIN information_schema.key_column_usage AS kc
            ON tc.constraint_name = kc.constraint_name AND tc.table_schema = kc.table_schema
          WHERE tc.constraint_type = 'PRIMARY KEY') AS pk
          ON c.table_schema = pk.table_schema AND c.table_name = pk.table_name
            AND c.column_name = pk.column_name
        WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_schema IN ('salaries')
        ORDER BY "table-schema", "table-name", "database-position"
    """,
}
DBEAVER = {
    "session": "SELECT current_schema(),session_user",
    "database": "SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datname='blowfishdb'",
    "schemas": """
        SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
        LEFT OUTER JOIN pg_catalog.pg_description d
          ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass
        ORDER BY nspname
    """,
    "types": """
        SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) AS base_type_name,
          d.description
        FROM pg_catalog.pg_type t
        LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem
        LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid
        LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
        WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c')
          AND (et.typcategory IS NULL OR et.typcategory <> 'C')
    """,
    "tables": """
        SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS partition_expr,
          pg_catalog.pg_get_partkeydef(c.oid) AS partition_key
        FROM pg_catalog.pg_class c
        LEFT OUTER JOIN pg_catalog.pg_description d
          ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass
        WHERE c.relnamespace=2000000 AND c.relkind NOT IN ('i','I','c')
    """,
    "columns": """
        SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value,dsc.description,
          dep.objid
        FROM pg_catalog.pg_attribute a
        INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)
        LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)
        LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
        LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i'
          AND dep.refobjsubid = a.attnum AND dep.classid = dep.refclassid
        WHERE NOT a.attisdropped AND c.relkind NOT IN ('i','I','c') AND c.relname = 'salaries'
        ORDER BY a.attnum
    """,
    "settings": "SELECT name, setting FROM pg_catalog.pg_settings ORDER BY name",
    "roles": "SELECT a.oid,a.* FROM pg_catalog.pg_roles a ORDER BY a.rolname",
}
JDBC = {
    "tables": """
        SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME,
          CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'
            WHEN true THEN 'SYSTEM TABLE'
            WHEN false THEN CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE NULL END
            ELSE NULL END AS TABLE_TYPE,
          d.description AS REMARKS
        FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c
        LEFT JOIN pg_catalog.pg_description d
          ON (c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass)
        WHERE c.relnamespace = n.oid AND c.relname LIKE 'salar%'
        ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME
    """,
    "columns": """
        SELECT * FROM (SELECT n.nspname,c.relname,a.attname,a.atttypid,
          a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull,a.atttypmod,a.attlen,t.typtypmod,
          row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum,
          nullif(a.attidentity, '') as attidentity, nullif(a.attgenerated, '') as attgenerated,
          pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc,dsc.description,t.typbasetype,t.typtype
        FROM pg_catalog.pg_namespace n
        JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid)
        JOIN pg_catalog.pg_attribute a ON (a.attrelid=c.oid)
        JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid)
        LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid=def.adrelid AND a.attnum = def.adnum)
        LEFT JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
        LEFT JOIN pg_catalog.pg_class dc ON (dc.oid=dsc.classoid AND dc.relname='pg_class')
        LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace=dn.oid AND dn.nspname='pg_catalog')
        WHERE c.relkind in ('r','p','v','f','m') and a.attnum > 0 AND NOT a.attisdropped
          AND n.nspname LIKE 'salaries') c
        WHERE true AND attname LIKE '%' ORDER BY nspname,c.relname,attnum
    """,
    "keys": """
        SELECT result.TABLE_CAT, result.TABLE_SCHEM, result.TABLE_NAME, result.COLUMN_NAME, result.KEY_SEQ,
          result.PK_NAME
        FROM (SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME,
            a.attname AS COLUMN_NAME,
            (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME,
            information_schema._pg_expandarray(i.indkey) AS KEYS, a.attnum AS A_ATTNUM
          FROM pg_catalog.pg_class ct
          JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid)
          JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid)
          JOIN pg_catalog.pg_index i ON ( a.attrelid = i.indrelid)
          JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid)
          WHERE true AND ct.relname = 'salaries' AND i.indisprimary) result
        where result.A_ATTNUM = (result.KEYS).x
        ORDER BY result.table_name, result.pk_name, result.key_seq
    """,
}
OTHERS = {
    "Tableau": "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('r', 'v', 'f', 'm', 'p') AND has_table_privilege(c.oid, 'SELECT')",
    "Power BI": "select character_set_name from INFORMATION_SCHEMA.character_sets",
    "Power BI tables": "select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables "
    "where TABLE_SCHEMA not in ('information_schema', 'pg_catalog') order by TABLE_SCHEMA, TABLE_NAME",
    "Power BI keys": "select i.CONSTRAINT_SCHEMA || '_' || i.CONSTRAINT_NAME as INDEX_NAME, ii.COLUMN_NAME, "
    "ii.ORDINAL_POSITION, case when i.CONSTRAINT_TYPE = 'PRIMARY KEY' then 'Y' else 'N' end as PRIMARY_KEY "
    "from INFORMATION_SCHEMA.table_constraints i inner join INFORMATION_SCHEMA.key_column_usage ii "
    "on i.CONSTRAINT_SCHEMA = ii.CONSTRAINT_SCHEMA and i.CONSTRAINT_NAME = ii.CONSTRAINT_NAME "
    "where i.TABLE_SCHEMA = 'salaries' and i.CONSTRAINT_TYPE in ('PRIMARY KEY', 'UNIQUE')",
    "Looker Studio": "SELECT schema_name FROM information_schema.schemata ORDER BY schema_name",
    "pgAdmin": "SELECT db.oid as did, db.datname, db.datallowconn, "
    "pg_encoding_to_char(db.encoding) AS serverencoding, "
    "has_database_privilege(db.oid, 'CREATE') as cancreate, datistemplate "
    "FROM pg_catalog.pg_database db WHERE db.datname = current_database()",
    "pgAdmin roles": "SELECT roles.oid as id, roles.rolname as name, roles.rolsuper as is_superuser, "
    "CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END as can_create_role "
    "FROM pg_catalog.pg_roles as roles WHERE rolname = current_user",
    "DataGrip": "select N.oid::bigint as id, N.xmin as state_number, nspname as name, "
    'D.description, pg_catalog.pg_get_userbyid(N.nspowner) as "owner" from pg_catalog.pg_namespace N '
    "left join pg_catalog.pg_description D on N.oid = D.objoid "
    "order by case when nspname = pg_catalog.current_schema() then -1::bigint else N.oid::bigint end",
    "Hex": "SELECT table_catalog, table_schema, table_name, column_name, data_type, ordinal_position "
    "FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema')",
    "pgcli": "SELECT n.nspname schema_name, c.relname table_name FROM pg_catalog.pg_class c "
    "LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = ANY('{r,p,f}') "
    "OR c.relkind = ANY('{v,m}') ORDER BY 1,2",
    "pgcli functions": "SELECT n.nspname schema_name, p.proname func_name, p.proargnames, "
    "COALESCE(proallargtypes::regtype[], proargtypes::regtype[])::text[], p.proargmodes, "
    "prorettype::regtype::text return_type, p.prokind = 'a' is_aggregate, p.prokind = 'w' is_window, "
    "p.proretset is_set_returning, d.deptype = 'e' is_extension, "
    "pg_get_expr(proargdefaults, 0) AS arg_defaults FROM pg_catalog.pg_proc p "
    "INNER JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace "
    "LEFT JOIN pg_depend d ON d.objid = p.oid and d.deptype = 'e' "
    "WHERE p.prorettype::regtype != 'trigger'::regtype ORDER BY 1, 2",
    "pgcli path": "SELECT * FROM unnest(current_schemas(true))",
    "Npgsql": "SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid FROM ( "
    "SELECT typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, "
    "typ.typelem AS elemtypoid FROM pg_type AS typ LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid) "
    "WHERE typ.typtype IN ('b', 'r', 'm', 'e', 'd') OR typ.typname = 'record') AS t "
    "JOIN pg_namespace AS ns ON (ns.oid = t.typnamespace)",
    "ODBC": "select relname, nspname, relkind from pg_catalog.pg_class c, pg_catalog.pg_namespace n "
    "where relkind in ('r', 'v', 'm', 'f', 'p') and n.oid = relnamespace "
    "and nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'pg_temp_1') "
    "order by nspname, relname",
    "health": "SELECT 1; SELECT 'DBD::Pg ping test'",
    "dates": "SELECT EXTRACT(year FROM now()) > 2000, date_trunc('day', now()) <= now()",
}
SENT = {
    f"{tool}: {what}": sent
    for tool, each in (
        ("Grafana", GRAFANA),
        ("Metabase", METABASE),
        ("DBeaver", DBEAVER),
        ("JDBC", JDBC),
        ("", OTHERS),
    )
    for what, sent in each.items()
}
FINDING = (
    "Grafana: tables",
    "Metabase: tables",
    "DBeaver: tables",
    "JDBC: tables",
    ": Tableau",
    ": Power BI tables",
    ": pgcli",
    ": ODBC",
)
COLUMNS = ("Grafana: columns", "Metabase: columns", "DBeaver: columns", "JDBC: columns", ": Hex")


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[psycopg.Connection[Any]]:
    with opened(tmp_path_factory.mktemp("tools")) as there, there.connect() as connection:
        yield connection


@pytest.mark.parametrize("sent", SENT)
def test_what_tools_send_is_answered(line: psycopg.Connection[Any], sent: str) -> None:
    told = line.execute(SENT[sent].encode())
    assert told.description
    said = repr(told.fetchall())
    assert ("salaries" in said) or sent not in FINDING
    assert all(name in said for name in ("age", "salary", "region")) or sent not in COLUMNS


@pytest.mark.parametrize("path", ["salaries", "salaries, public", '"$user", public', "public"])
def test_views_are_found_whatever_the_search_path(line: psycopg.Connection[Any], path: str) -> None:
    line.execute(f"SET search_path = {path}".encode())
    try:
        for sent in FINDING:
            assert "salaries" in repr(line.execute(SENT[sent].encode()).fetchall()), sent
        assert line.execute("SELECT COUNT(*) FROM salaries").fetchall()
        assert line.execute("SELECT pg_table_is_visible('salaries.salaries'::regclass)").fetchone() == (True,)
    finally:
        line.execute("RESET search_path")


def test_columns_have_the_names_that_postgresql_gives_them(line: psycopg.Connection[Any]) -> None:
    for sent, names in {
        "SELECT 1 UNION SELECT 2": ["?column?"],
        "VALUES (1, 'a'), (2, 'b')": ["column1", "column2"],
        "SELECT generate_series(1, 3)": ["generate_series"],
        "SELECT now(), version(), current_user": ["now", "version", "current_user"],
    }.items():
        described = line.execute(sent.encode()).description
        assert described is not None and [column.name for column in described] == names
