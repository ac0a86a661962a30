"""A real PostgreSQL for the tests: the system's own programs, on a free port, under the temp directory."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[4]))
    if found:
        return found[-1].parent
    elsewhere = shutil.which("initdb")
    return Path(elsewhere).parent if elsewhere else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """A function that makes an empty database and returns its address."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'blowfishdb[postgres]'")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: no /usr/lib/postgresql/*/bin/initdb")
    as_user: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        if shutil.which("runuser") is None:
            pytest.skip("PostgreSQL does not run as root, and there is no runuser")
        as_user = ["runuser", "-u", "postgres", "--"]
    user = "postgres" if as_user else getpass.getuser()
    folder = Path(tempfile.mkdtemp(prefix="blowfishdb-", dir="/tmp"))  # a socket's path must be short
    if as_user:
        shutil.chown(folder, user)
    port, log = _free_port(), tmp_path_factory.mktemp("postgres") / "log"

    def run(program: str, *arguments: str) -> None:
        with log.open("ab") as output:
            subprocess.run(
                [*as_user, str(programs / program), *arguments],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder,
                timeout=120,
            )

    data = str(folder / "data")
    settings = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=200"
    numbers = count()

    def database() -> str:
        name = f"workspace{next(numbers)}"
        run("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", user, name)
        return f"postgresql+psycopg://{user}@127.0.0.1:{port}/{name}"

    try:
        run("initdb", "-D", data, "-U", user, "-A", "trust", "-N", "--encoding=UTF8", "--locale=C")
        run("pg_ctl", "-D", data, "-o", settings, "-w", "-t", "60", "-l", str(folder / "server.log"), "start")
        yield database
    finally:
        with contextlib.suppress(subprocess.SubprocessError):
            run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)
