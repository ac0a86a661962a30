"""A real MariaDB server for tests: the system's own, on loopback and in a temporary folder."""

from __future__ import annotations

import getpass
import importlib.util
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from tests.postgres import free_port

_SECONDS = 60
_QUICK = (
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=4M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-fast-shutdown=2",
    "--performance-schema=OFF",
    "--skip-log-bin",
    "--skip-name-resolve",
)


class NoMariaDB(Exception):
    """There is nothing to start; the message says what to install."""


@final
@dataclass(frozen=True)
class Server:
    """A running server; ``tester`` may do everything."""

    port: int

    def url(self, database: str) -> str:
        """The address of a database."""
        return f"mysql://tester:pw@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str | None = None) -> Any:
        """A connection that commits every statement."""
        import pymysql

        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="tester",
            password="pw",
            database=database,
            charset="utf8mb4",
            autocommit=True,
        )

    def new_database(self) -> str:
        """An empty database, for the tables of a test."""
        name = f"s{uuid.uuid4().hex}"
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        return name


@contextmanager
def running() -> Iterator[Server]:
    """Start a server, and stop it in the end."""
    install, daemon = _programs()
    user = getpass.getuser() if getpass.getuser() != "root" else "mysql"
    folder = Path(tempfile.mkdtemp(prefix="blowfishdb-mariadb-"))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir(0o700)
    if user != getpass.getuser():
        shutil.chown(data, user)
    places = (f"--datadir={data}", f"--user={user}")
    try:
        # ``--no-defaults`` comes first: what the machine's own server is told is not meant for this one
        _run(install, "--no-defaults", *places, "--auth-root-authentication-method=normal", "--skip-test-db")
        first = folder / "first.sql"
        first.write_text(
            "CREATE USER tester@'127.0.0.1' IDENTIFIED BY 'pw';\nGRANT ALL ON *.* TO tester@'127.0.0.1';\n"
        )
        server = Server(free_port())
        process = subprocess.Popen(  # a statement of the first file is a line
            [
                *(daemon, "--no-defaults", *places, *_QUICK),
                *(f"--port={server.port}", "--bind-address=127.0.0.1", f"--socket={data}/socket"),
                *(f"--pid-file={data}/pid", f"--log-error={data}/log.err", f"--init-file={first}"),
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait(server, process)
            yield server
        finally:
            process.kill()  # nothing in it is needed any more
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> tuple[str, str]:
    if importlib.util.find_spec("pymysql") is None:
        raise NoMariaDB("no driver for MySQL: pip install 'blowfishdb[mysql]'")
    install = shutil.which("mariadb-install-db")
    daemon = shutil.which("mariadbd", path="/usr/sbin:/usr/libexec:/usr/bin") or shutil.which("mariadbd")
    if install is None or daemon is None:
        raise NoMariaDB("no MariaDB: as root, apt-get install --no-install-recommends mariadb-server")
    return install, daemon


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)


def _wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    import pymysql

    until = time.monotonic() + _SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            server.connect().close()
        except pymysql.Error:
            time.sleep(0.05)
        else:
            return
    raise NoMariaDB(f"MariaDB did not start within {_SECONDS} seconds.")
