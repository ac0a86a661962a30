"""Eight processes of eight threads, all asking at once: `python -m tests.engine.racing DATA WORKSPACE`.

They are forked from one process that is warm and holds no connection, and start together; the outcome of
every question is written to the output.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from blowfishdb.core.errors import BudgetExhausted
from blowfishdb.workspace.embedded import Workspace
from tests.engine.killing import warm_up
from tests.engine.people import question

PROCESSES = 8
THREADS = 8


def attempt(workspace: Workspace, number: int) -> str:
    """Ask one question: what it cost, or that the budget did not reach."""
    try:
        return str(question(workspace["people"], number).ask().receipt.cost)
    except BudgetExhausted as refusal:
        return "charged" if refusal.charged else "refused"


def attempts(workspace: Workspace, numbers: Iterable[int], threads: int) -> list[str]:
    """Ask many at once."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda number: attempt(workspace, number), numbers))


def _racer(place: str, share: int, ready: int, go: int, sink: int) -> None:
    with Workspace(place, user=f"analyst {share}") as workspace:
        workspace._rows.backend(workspace._records["people"])
        os.write(ready, b".")
        os.read(go, 1)
        numbers = range(share * THREADS, (share + 1) * THREADS)
        os.write(sink, "".join(f"{o}\n" for o in attempts(workspace, numbers, THREADS)).encode())


def race(place: str) -> list[str]:
    """The outcome of every question."""
    (ready, is_ready), (go, let_go), (source, sink) = os.pipe(), os.pipe(), os.pipe()
    children = []
    for share in range(PROCESSES):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _racer(place, share, is_ready, go, sink)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    for end in (is_ready, go, sink):
        os.close(end)
    started = b""
    while len(started) < PROCESSES and (more := os.read(ready, PROCESSES)):
        started += more
    os.write(let_go, b"." * PROCESSES)
    with os.fdopen(source) as lines:
        outcomes = lines.read().splitlines()
    codes = {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children}
    if codes != {0}:
        raise RuntimeError(f"The racers ended with {sorted(codes)}.")
    return outcomes


if __name__ == "__main__":
    warm_up(Path(sys.argv[1]))
    sys.stdout.write(json.dumps(race(sys.argv[2])))
