"""A warm process that forks askers and kills them: `python -m tests.engine.killing DATA`.

Every line on its input is a job, every line on its output what became of it. The process imports everything
and answers one question first, so that a child spends its time in ``ask``; it has no connection and no second
thread when it forks.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.workspace.embedded import Workspace
from tests.engine.forking import forked, was_killed
from tests.engine.people import make_workspace, question
from tests.engine.stages import around

STAGES = ("ask", "reserve", "reading", "count", "counted", "settle", "settled")


@dataclass(frozen=True)
class Job:
    """Ask question ``number``, and die ``delay`` seconds after a stage, or exactly at one; or live."""

    workspace: str
    number: int
    delay: float | None = None
    since: str = "ask"
    at: str | None = None


@dataclass(frozen=True)
class Fate:
    """The stages that were reached, the answer if it came out, and the seconds from ``since`` to the end."""

    stages: list[str]
    answer: list[float] | None
    seconds: float
    killed: bool


def _child(job: Job, report: Callable[[object], object]) -> None:
    def reach(stage: str) -> None:
        report(stage)
        if stage == job.at:
            os.kill(os.getpid(), signal.SIGKILL)

    around(reach, Ledger, "reserve_all", "reserve", "reading")
    around(reach, Prepared, "count", "count", "counted")
    around(reach, Ledger, "settle", "settle", "settled")
    with Workspace(job.workspace, user="ana") as workspace:
        asking = question(workspace["people"], job.number)
        workspace._rows.backend(workspace._records["people"])
        reach("ask")
        report(asking.ask().raw.tolist())


def run(job: Job) -> Fate:
    """Fork, kill, and read what the child said until then."""
    child, source = forked(lambda report: _child(job, lambda said: report(json.dumps(said))))
    heard = b""
    while f'"{job.since}"\n'.encode() not in heard and (more := os.read(source, 1 << 16)):
        heard += more
    start = time.perf_counter()
    if job.delay is not None:
        while (left := start + job.delay - time.perf_counter()) > 0:
            time.sleep(left)
        os.kill(child, signal.SIGKILL)
    while more := os.read(source, 1 << 16):
        heard += more
    seconds = time.perf_counter() - start
    os.close(source)
    killed = was_killed(child)
    said = [json.loads(line) for line in heard.decode().splitlines()]
    answers = [value for value in said if isinstance(value, list)]
    stages = [value for value in said if isinstance(value, str)]
    return Fate(stages, answers[0] if answers else None, seconds, killed)


def warm_up(data: Path) -> None:
    """Import and compile everything by asking one question, and leave nothing open."""
    with tempfile.TemporaryDirectory() as folder:
        make_workspace(f"{folder}/warm.blowfish", data, "1")
        with Workspace(f"{folder}/warm.blowfish") as workspace:
            question(workspace["people"], 0).ask()
    threads = len(list(Path("/proc/self/task").iterdir()))
    if threads != 1:
        raise RuntimeError(f"{threads} threads: a fork would not be safe.")


def main() -> None:
    """Warm up, then work."""
    warm_up(Path(sys.argv[1]))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(asdict(run(Job(**json.loads(line))))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
