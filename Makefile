# One word per chore. The first one makes .venv; the others use it again.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile -c constraints.txt

# Compiled modules are kept, whatever the shell says: a new process starts in a third of the time.
export PYTHONDONTWRITEBYTECODE =

# Processes with one thread each beat those that fight over both cores. Three keep two cores busy: each waits now and
# then, for a server, a browser or a disk.
test coverage audit: export OMP_NUM_THREADS = 1
test coverage audit: export OPENBLAS_NUM_THREADS = 1
# What is marked thorough belongs to the audit: a shorter test of the same stays here. Properties are tried with more examples there.
# A test that waits for ever fails after ten minutes, and says where it stood.
TESTS := $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder --timeout 600

# Where memory has room, what tests write is kept there until they end: waiting for a disk tests nothing.
ROOM := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 6000000 { print "/dev/shm" }')
SCRATCH := scratch=$$(mktemp -d -p "$(or $(ROOM),/tmp)") && chmod 1777 "$$scratch" && \
  trap 'rm -rf "$$scratch"' EXIT && TMPDIR="$$scratch"

.PHONY: demo test coverage audit browser mariadb clients lint format bench docs figures pictures screenshots clean

demo: $(INSTALLED)  ## one private question, end to end
	@$(BIN)/blowfishdb demo

test: $(READY) browser mariadb clients  ## the tests, on two cores; the long ones are in the audit
	@$(SCRATCH) $(TESTS) -m "not thorough" --durations=10

coverage: $(READY) browser mariadb clients  ## the same, and which lines they reach; takes half as long again
	@$(SCRATCH) $(TESTS) --cov --cov-report=term

MINUTES ?= 10
SEED ?= $(shell git rev-parse HEAD 2>/dev/null)
audit: export BLOWFISHDB_AUDIT_MINUTES = $(MINUTES)
audit: export BLOWFISHDB_AUDIT_SEED = $(SEED)
audit: $(READY) browser  ## other neighbouring databases than the tests have, for MINUTES, faults that must be found, and long tests
	@$(SCRATCH) $(BIN)/pytest -n 2 --dist worksteal --timeout $$(($(MINUTES) * 60 + 900)) -m "not thorough" tests/neighbours tests/seeded tests/pgwire/test_fuzz.py
	@$(SCRATCH) $(TESTS) -m "thorough or hypothesis" --ignore=tests/neighbours --ignore=tests/seeded

# Debian calls it chromium; the tests of pages drive it, and nothing else needs it.
browser:  ## the browser that tests of pages drive, installed where that is allowed
	@test -x /usr/bin/chromium || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "Installing chromium …" && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	  else \
	    echo "The tests of pages need /usr/bin/chromium: as root, apt-get install chromium" >&2; exit 1; \
	  fi; }

# The tests of databases start a server of their own, in a folder of its own; without it they are skipped, and say so.
mariadb:  ## the server that tests of databases start, installed where that is allowed
	@test -x /usr/sbin/mariadbd || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "Installing mariadb-server …" && \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y -qq --no-install-recommends mariadb-server >/dev/null; } || \
	  echo "Tests on MariaDB are skipped: as root, apt-get install --no-install-recommends mariadb-server" >&2

# The tests of the door for PostgreSQL clients drive real ones; those that are not there are skipped, and say so.
clients: $(READY)  ## psql, JDBC, ODBC and node-postgres, installed where that is allowed
	@{ command -v psql && test -e /usr/share/java/postgresql.jar && ls /usr/lib/*/odbc/psqlodbcw.so; } >/dev/null 2>&1 || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && echo "Installing PostgreSQL clients …" && \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    postgresql-client libpostgresql-jdbc-java odbc-postgresql unixodbc >/dev/null; } || \
	  echo "Tests with psql, JDBC and ODBC are skipped: as root, apt-get install postgresql-client libpostgresql-jdbc-java odbc-postgresql unixodbc" >&2
	@test -d $(VENV)/node_modules/pg || { command -v npm >/dev/null && \
	  npm install --silent --no-audit --no-fund --no-save --prefix $(VENV) pg@8 >/dev/null 2>&1; } || \
	  echo "Tests with node-postgres are skipped: there is no npm, or it reaches nothing" >&2

lint: $(READY)  ## style, types, layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY)  ## what lint would complain about, mended where a tool can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY)  ## the benchmarks, each a table of ratios within one run
	@$(BIN)/python -m benchmarks

docs: $(READY)  ## the documentation site, into build/site: no warning, and nothing from outside
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

figures: MINUTES = 60
figures: $(READY)  ## every figure of the papers again, for MINUTES, and docs/reproduction.md
	@$(BIN)/python -m benchmarks.reproduction --run --write --minutes $(MINUTES)

pictures: $(READY) browser  ## the pictures that the documentation shows
	@$(BIN)/python -m benchmarks.pictures
	@$(BIN)/python -m tests.web.readme_pictures

screenshots: $(READY) browser  ## every page in both themes and three widths, into build/screenshots
	@$(BIN)/python -m tests.web.screenshots

clean:
	rm -rf build $(VENV) .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo

# The product alone, which is all that the demonstration needs. Modules are compiled when they are first used.
$(INSTALLED): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing BlowfishDB into $(VENV): about a minute, 0.8 GB …"
	@$(PIP) -e .
	@touch $@

# With what tests, lint and benchmarks need.
$(READY): $(INSTALLED)
	@echo "Installing the tools of developers into $(VENV): some minutes, 1.5 GB more …"
	@$(PIP) -e ".[dev]"
	@touch $@
