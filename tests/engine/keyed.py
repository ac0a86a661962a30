"""A warm process that forks servers and kills them while they answer: `python -m tests.engine.keyed`.

Every line on its input is a request under a key, every line on its output the stages that it reached.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.once import Idempotency
from blowfishdb.entrypoints.server.app import create_app
from tests.engine.forking import forked, was_killed
from tests.engine.stages import around
from tests.entrypoints.server import CHEAP, SETTINGS, client_of


@dataclass(frozen=True)
class Sent:
    """Send ``body`` to ``path`` under ``key``, and die when a stage is reached for the nth time."""

    workspace: str
    token: str
    path: str
    body: dict[str, Any]
    key: str
    at: str
    nth: int = 1


def _child(sent: Sent, report: Callable[[str], object]) -> None:
    seen = Counter[str]()

    def reach(stage: str) -> None:
        seen[stage] += 1
        report(stage)
        if (stage, seen[stage]) == (sent.at, sent.nth):
            os.kill(os.getpid(), signal.SIGKILL)

    around(reach, Ledger, "reserve_all", "reserve", "reading")
    around(reach, Ledger, "mark_reading", "mark", "marked")
    around(reach, Ledger, "settle", "settle", "settled")
    around(reach, Idempotency, "keep", "keep", "kept")
    app = create_app(sent.workspace, settings=SETTINGS, hasher=CHEAP)
    client = client_of(app, sent.token)
    response = client.post(sent.path, json=sent.body, headers={"Idempotency-Key": sent.key})
    report(f"{response.status_code}")


def run(sent: Sent) -> list[str]:
    """Fork, and read what the child said until it died."""
    child, source = forked(lambda report: _child(sent, report))
    with os.fdopen(source) as lines:
        said = lines.read().split()
    was_killed(child)
    return said


def main() -> None:
    """One line after the other."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(Sent(**json.loads(line)))) + "\n")
        sys.stdout.flush()


def to_line(sent: Sent) -> str:
    """A job as a line."""
    return json.dumps(asdict(sent)) + "\n"


if __name__ == "__main__":
    main()
