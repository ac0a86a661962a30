"""The tables of PostgreSQL's catalogue that clients look into: their names, their columns and their types.

A line begins with the name of a table and goes on with its columns; indented lines belong to the one above.
What follows a colon is its type: ``o`` an oid, ``i``, ``s`` and ``l`` whole numbers of 4, 2 and 8 bytes,
``b`` a truth value, ``f`` a number, capitals a list of them; everything else is text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

PG_CATALOG: Final = """\
pg_am oid:o amname amhandler amtype
pg_attrdef oid:o adrelid:o adnum:s adbin
pg_attribute attrelid:o attname atttypid:o attstattarget:i attlen:s attnum:s attndims:i attcacheoff:i
  atttypmod:i attbyval:b attalign attstorage attcompression attnotnull:b atthasdef:b atthasmissing:b
  attidentity attgenerated attisdropped:b attislocal:b attinhcount:i attcollation:o attacl:T attoptions:T
  attfdwoptions:T attmissingval
pg_auth_members roleid:o member:o grantor:o admin_option:b
pg_authid oid:o rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b
  rolbypassrls:b rolconnlimit:i rolpassword rolvaliduntil
pg_cast oid:o castsource:o casttarget:o castfunc:o castcontext castmethod
pg_class oid:o relname relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o reltablespace:o
  relpages:i reltuples:f relallvisible:i reltoastrelid:o relhasindex:b relisshared:b relpersistence relkind
  relnatts:s relchecks:s relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b
  relforcerowsecurity:b relispopulated:b relreplident relispartition:b relrewrite:o relfrozenxid:o
  relminmxid:o relacl:T reloptions:T relpartbound
pg_collation oid:o collname collnamespace:o collowner:o collprovider collisdeterministic:b collencoding:i
  collcollate collctype colliculocale collversion
pg_constraint oid:o conname connamespace:o contype condeferrable:b condeferred:b convalidated:b conrelid:o
  contypid:o conindid:o conparentid:o confrelid:o confupdtype confdeltype confmatchtype conislocal:b
  coninhcount:i connoinherit:b conkey:S confkey:S conpfeqop:O conppeqop:O conffeqop:O confdelsetcols:S
  conexclop:O conbin
pg_conversion oid:o conname connamespace:o conowner:o conforencoding:i contoencoding:i conproc condefault:b
pg_database oid:o datname datdba:o encoding:i datlocprovider datistemplate:b datallowconn:b datconnlimit:i
  datfrozenxid:o datminmxid:o dattablespace:o datcollate datctype daticulocale datcollversion datacl:T
pg_db_role_setting setdatabase:o setrole:o setconfig:T
pg_depend classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype
pg_description objoid:o classoid:o objsubid:i description
pg_enum oid:o enumtypid:o enumsortorder:f enumlabel
pg_event_trigger oid:o evtname evtevent evtowner:o evtfoid:o evtenabled evttags:T
pg_extension oid:o extname extowner:o extnamespace:o extrelocatable:b extversion extconfig:O extcondition:T
pg_foreign_data_wrapper oid:o fdwname fdwowner:o fdwhandler:o fdwvalidator:o fdwacl:T fdwoptions:T
pg_foreign_server oid:o srvname srvowner:o srvfdw:o srvtype srvversion srvacl:T srvoptions:T
pg_foreign_table ftrelid:o ftserver:o ftoptions:T
pg_index indexrelid:o indrelid:o indnatts:s indnkeyatts:s indisunique:b indnullsnotdistinct:b indisprimary:b
  indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b indisready:b indislive:b
  indisreplident:b indkey:S indcollation:O indclass:O indoption:S indexprs indpred
pg_indexes schemaname tablename indexname tablespace indexdef
pg_inherits inhrelid:o inhparent:o inhseqno:i inhdetachpending:b
pg_language oid:o lanname lanowner:o lanispl:b lanpltrusted:b lanplcallfoid:o laninline:o lanvalidator:o
  lanacl:T
pg_matviews schemaname matviewname matviewowner tablespace hasindexes:b ispopulated:b definition
pg_namespace oid:o nspname nspowner:o nspacl:T
pg_opclass oid:o opcmethod:o opcname opcnamespace:o opcowner:o opcfamily:o opcintype:o opcdefault:b
  opckeytype:o
pg_operator oid:o oprname oprnamespace:o oprowner:o oprkind oprcanmerge:b oprcanhash:b oprleft:o oprright:o
  oprresult:o oprcom:o oprnegate:o oprcode oprrest oprjoin
pg_partitioned_table partrelid:o partstrat partnatts:s partdefid:o partattrs:S partclass:O partcollation:O
  partexprs
pg_policy oid:o polname polrelid:o polcmd polpermissive:b polroles:O polqual polwithcheck
pg_proc oid:o proname pronamespace:o proowner:o prolang:o procost:f prorows:f provariadic:o prosupport
  prokind prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile proparallel pronargs:s
  pronargdefaults:s prorettype:o proargtypes:O proallargtypes:O proargmodes:T proargnames:T proargdefaults
  protrftypes:O prosrc probin prosqlbody proconfig:T proacl:T
pg_publication oid:o pubname pubowner:o puballtables:b pubinsert:b pubupdate:b pubdelete:b pubtruncate:b
  pubviaroot:b
pg_publication_namespace oid:o pnpubid:o pnnspid:o
pg_publication_rel oid:o prpubid:o prrelid:o prqual prattrs:S
pg_range rngtypid:o rngsubtype:o rngmultitypid:o rngcollation:o rngsubopc:o rngcanonical rngsubdiff
pg_rewrite oid:o rulename ev_class:o ev_type ev_enabled is_instead:b ev_qual ev_action
pg_roles rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b
  rolconnlimit:i rolpassword rolvaliduntil rolbypassrls:b rolconfig:T oid:o
pg_sequence seqrelid:o seqtypid:o seqstart:l seqincrement:l seqmax:l seqmin:l seqcache:l seqcycle:b
pg_sequences schemaname sequencename sequenceowner data_type start_value:l min_value:l max_value:l
  increment_by:l cycle:b cache_size:l last_value:l
pg_settings name setting unit category short_desc extra_desc context vartype source min_val max_val
  enumvals:T boot_val reset_val sourcefile sourceline:i pending_restart:b
pg_shadow usename usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil useconfig:T
pg_shdescription objoid:o classoid:o description
pg_stat_activity datid:o datname pid:i leader_pid:i usesysid:o usename application_name client_addr
  client_hostname client_port:i backend_start xact_start query_start state_change wait_event_type wait_event
  state backend_xid:o backend_xmin:o query_id:l query backend_type
pg_stat_user_tables relid:o schemaname relname seq_scan:l seq_tup_read:l idx_scan:l idx_tup_fetch:l
  n_tup_ins:l n_tup_upd:l n_tup_del:l n_tup_hot_upd:l n_live_tup:l n_dead_tup:l n_mod_since_analyze:l
  n_ins_since_vacuum:l last_vacuum last_autovacuum last_analyze last_autoanalyze vacuum_count:l
  autovacuum_count:l analyze_count:l autoanalyze_count:l
pg_statistic_ext oid:o stxrelid:o stxname stxnamespace:o stxowner:o stxstattarget:i stxkeys:S stxkind:T
  stxexprs
pg_tables schemaname tablename tableowner tablespace hasindexes:b hasrules:b hastriggers:b rowsecurity:b
pg_tablespace oid:o spcname spcowner:o spcacl:T spcoptions:T
pg_trigger oid:o tgrelid:o tgparentid:o tgname tgfoid:o tgtype:s tgenabled tgisinternal:b tgconstrrelid:o
  tgconstrindid:o tgconstraint:o tgdeferrable:b tginitdeferred:b tgnargs:s tgattr:S tgargs tgqual tgoldtable
  tgnewtable
pg_ts_config oid:o cfgname cfgnamespace:o cfgowner:o cfgparser:o
pg_ts_dict oid:o dictname dictnamespace:o dictowner:o dicttemplate:o dictinitoption
pg_ts_parser oid:o prsname prsnamespace:o prsstart prstoken prsend prsheadline prslextype
pg_ts_template oid:o tmplname tmplnamespace:o tmplinit tmpllexize
pg_largeobject_metadata oid:o lomowner:o lomacl:T
pg_type oid:o typname typnamespace:o typowner:o typlen:s typbyval:b typtype typcategory typispreferred:b
  typisdefined:b typdelim typrelid:o typsubscript typelem:o typarray:o typinput typoutput typreceive typsend
  typmodin typmodout typanalyze typalign typstorage typnotnull:b typbasetype:o typtypmod:i typndims:i
  typcollation:o typdefaultbin typdefault typacl:T
pg_user usename usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil useconfig:T
pg_views schemaname viewname viewowner definition
pg_timezone_names name abbrev utc_offset is_dst:b
pg_locks locktype database:o relation:o page:i tuple:s virtualxid transactionid:o classid:o objid:o
  objsubid:s virtualtransaction pid:i mode granted:b fastpath:b waitstart
pg_available_extensions name default_version installed_version comment
pg_group groname grosysid:o grolist:O
pg_subscription oid:o subdbid:o subskiplsn subname subowner:o subenabled:b subbinary:b substream:b
  subtwophasestate subdisableonerr:b subconninfo subslotname subsynccommit subpublications:T
pg_user_mappings umid:o srvid:o srvname umuser:o usename umoptions:T
pg_aggregate aggfnoid aggkind aggnumdirectargs:s aggtransfn
"""
"""What ``pg_catalog`` holds."""

INFORMATION_SCHEMA: Final = """\
schemata catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema
  default_character_set_name sql_path
tables table_catalog table_schema table_name table_type self_referencing_column_name reference_generation
  user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into is_typed
  commit_action
columns table_catalog table_schema table_name column_name ordinal_position:i column_default is_nullable
  data_type character_maximum_length:i character_octet_length:i numeric_precision:i
  numeric_precision_radix:i numeric_scale:i datetime_precision:i interval_type interval_precision:i
  character_set_catalog character_set_schema character_set_name collation_catalog collation_schema
  collation_name domain_catalog domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog
  scope_schema scope_name maximum_cardinality:i dtd_identifier is_self_referencing is_identity
  identity_generation identity_start identity_increment identity_maximum identity_minimum identity_cycle
  is_generated generation_expression is_updatable
views table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into
  is_trigger_updatable is_trigger_deletable is_trigger_insertable_into
table_constraints constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name
  constraint_type is_deferrable initially_deferred enforced nulls_distinct
key_column_usage constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name
  column_name ordinal_position:i position_in_unique_constraint:i
referential_constraints constraint_catalog constraint_schema constraint_name unique_constraint_catalog
  unique_constraint_schema unique_constraint_name match_option update_rule delete_rule
constraint_column_usage table_catalog table_schema table_name column_name constraint_catalog
  constraint_schema constraint_name
routines specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name
  routine_type module_catalog module_schema module_name udt_catalog udt_schema udt_name data_type
parameters specific_catalog specific_schema specific_name ordinal_position:i parameter_mode is_result
  as_locator parameter_name data_type character_maximum_length:i
sequences sequence_catalog sequence_schema sequence_name data_type numeric_precision:i
  numeric_precision_radix:i numeric_scale:i start_value minimum_value maximum_value increment cycle_option
triggers trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog
  event_object_schema event_object_table action_order:i action_condition action_statement action_orientation
  action_timing action_reference_old_table action_reference_new_table action_reference_old_row
  action_reference_new_row created
domains domain_catalog domain_schema domain_name data_type character_maximum_length:i
character_sets character_set_catalog character_set_schema character_set_name character_repertoire
  form_of_use default_collate_catalog default_collate_schema default_collate_name
table_privileges grantor grantee table_catalog table_schema table_name privilege_type is_grantable
  with_hierarchy
column_privileges grantor grantee table_catalog table_schema table_name column_name privilege_type
  is_grantable
role_table_grants grantor grantee table_catalog table_schema table_name privilege_type is_grantable
  with_hierarchy
applicable_roles grantee role_name is_grantable
enabled_roles role_name
information_schema_catalog_name catalog_name
element_types object_catalog object_schema object_name object_type collection_type_identifier data_type
check_constraints constraint_catalog constraint_schema constraint_name check_clause
constraint_table_usage table_catalog table_schema table_name constraint_catalog constraint_schema
  constraint_name
"""
"""What ``information_schema`` holds."""

_TYPES: Final = {
    "o": "UINTEGER",
    "i": "INTEGER",
    "s": "SMALLINT",
    "l": "BIGINT",
    "b": "BOOLEAN",
    "f": "FLOAT",
    "": "VARCHAR",
}


def tables(listed: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The name of each table, and its columns with their types in DuckDB."""
    for line in listed.replace("\n  ", " ").splitlines():
        name, *columns = line.split()
        yield name, [_column(column) for column in columns]


def _column(written: str) -> tuple[str, str]:
    name, _, code = written.partition(":")
    listed = "[]" if code.isupper() else ""
    return name, _TYPES["" if code == "T" else code.lower()] + listed


TABLES: Final = {name: dict(columns) for name, columns in tables(PG_CATALOG)}
"""The tables of ``pg_catalog``, each with the types of its columns."""
INFORMATION: Final = {name: dict(columns) for name, columns in tables(INFORMATION_SCHEMA)}
"""Those of ``information_schema``."""
PG, IS = "bf_pg", "bf_is"
"""What the engine calls the two."""


def names_catalogue(schema: str, name: str) -> bool:
    """Whether a table is one of the catalogue."""
    if schema.casefold() == "information_schema":
        return name.casefold() in INFORMATION
    return schema.casefold() in ("", "pg_catalog") and name.casefold() in TABLES
