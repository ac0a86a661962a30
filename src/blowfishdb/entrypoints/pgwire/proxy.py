"""The door alone: a process that serves database clients and nothing else."""

from __future__ import annotations

import asyncio
import logging.config
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from blowfishdb.entrypoints.serve import LOGS, WireDoor
from blowfishdb.entrypoints.server.api.datasets import usual_places
from blowfishdb.entrypoints.server.middleware import Metrics
from blowfishdb.entrypoints.server.server import Server, Settings
from blowfishdb.entrypoints.server.waiting import leave_within

_LAST_WORDS: Final = 1.5
_LEAVING: Final = 8.0


def run(workspace: str, door: WireDoor, settings: Settings) -> None:
    """Serve a workspace to database clients until the process is asked to end."""
    logging.config.dictConfig(LOGS)
    address = workspace if "://" in workspace else str(Path(workspace).resolve())
    asyncio.run(_serve(address, door, replace(settings, sources=usual_places(address))))


async def _serve(workspace: str, wire: WireDoor, settings: Settings) -> None:
    server = Server.open(workspace, settings)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(name, ended.set)
    try:
        door = await wire.opened(server, Metrics(lambda: server.workspace))
        await ended.wait()
        leave_within(_LEAVING)
        server.underway.stop()
        await door.close()
        await loop.run_in_executor(None, server.underway.wait, _LAST_WORDS)
    finally:
        server.close()
