"""New processes: the import, the help text of the command line, a workspace, beside Python itself.

python -m benchmarks.start_up [--repeats R]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.tables import show
from benchmarks.timing import seconds

COMMANDS = {
    "python -c pass": "pass",
    "import blowfishdb": "import blowfishdb",
    "blowfishdb --help": "import sys; sys.argv = ['blowfishdb', '--help']; "
    "from blowfishdb.entrypoints.cli import app; app()",
    "import and open a workspace": "import blowfishdb, tempfile; "
    "blowfishdb.open(tempfile.mkdtemp() + '/w.blowfish').close()",
}


def start_up(repeats: int) -> Iterator[dict[str, Any]]:
    """The best of some runs of each."""
    for label, code in COMMANDS.items():
        command = [sys.executable, "-c", code]
        times = [
            seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))  # noqa: B023
            for _ in range(repeats)
        ]
        yield {"start-up": label, "best ms": 1e3 * min(times)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a new process takes.")
    parser.add_argument("--repeats", type=int, default=3)
    show(list(start_up(parser.parse_args().repeats)))


if __name__ == "__main__":
    main()
