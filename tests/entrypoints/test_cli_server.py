"""serve and demo as programs: they start, answer, and end when they are told to."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.entrypoints.commands import people

PROGRAM = str(Path(sys.executable).with_name("blowfishdb"))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def healthy(address: str, process: subprocess.Popen[str]) -> httpx.Response:
    """The answer of a server that is starting."""
    while process.poll() is None:
        try:
            return httpx.get(f"{address}/api/v1/health")
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("the server ended before it answered")


def test_serve_answers_until_it_is_told_to_end(tmp_path: Path) -> None:
    shell, port = people(tmp_path), free_port()
    command = [PROGRAM, "-w", str(shell.workspace), "serve", "--host", "127.0.0.1", "--port", str(port)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([*command, "--workers", "1", "--no-open", "--json"], **pipes) as process:  # type: ignore[call-overload]
        try:
            assert healthy(f"http://127.0.0.1:{port}", process).status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
        told = json.loads(process.stdout.read())
        assert process.wait() in (0, -signal.SIGTERM)
    assert told == {
        "workspace": str(shell.workspace),
        "host": "127.0.0.1",
        "port": port,
        "workers": 1,
        "https": False,
    }
    assert shell.must("audit", "all", "--json").json["verified"]


def test_the_demonstration_listens_to_this_machine_only(tmp_path: Path) -> None:
    command = [
        PROGRAM,
        "demo",
        "--folder",
        str(tmp_path / "d"),
        "--host",
        "0.0.0.0",
        "--port",
        "0",
        "--no-open",
    ]
    done = subprocess.run(
        [*command, "--reset", "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "CI": "1"},
        check=False,
    )
    assert done.returncode == 2 and "this machine only" in json.loads(done.stderr)["detail"]
    assert not (tmp_path / "d").exists()
