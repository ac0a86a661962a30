"""New processes: the import, the help text of the command line, a workspace, a first quote, beside Python.

    python -m benchmarks.start_up [--repeats R]

``processor ms`` is what the process took of a processor, which says more than the clock on a busy machine.
Modules and kernels are compiled by a run that is not counted.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import blowfishdb as bf
from benchmarks.tables import show
from benchmarks.timing import seconds
from blowfishdb.entrypoints.demo_data import salary_domain, write_salaries

COMMANDS = {
    "python -c pass": "pass",
    "import blowfishdb": "import blowfishdb",
    "blowfishdb --help": "import sys; sys.argv = ['blowfishdb', '--help']; "
    "from blowfishdb.entrypoints.cli import app; app()",
    "import and open a workspace": "import blowfishdb, tempfile; "
    "blowfishdb.open(tempfile.mkdtemp() + '/w.blowfish').close()",
    "import, open, first quote": "import blowfishdb, sys; of = blowfishdb.open(sys.argv[1])['salaries']; "
    "of['salary'].cumulative(bins=20).accurate_to(50).quote()",
}


def start_up(place: Path, repeats: int) -> Iterator[dict[str, Any]]:
    """The best of some runs of each."""
    for label, code in COMMANDS.items():
        times = [_run([sys.executable, "-c", code, str(place)]) for _ in range(repeats + 1)][1:]
        clock, processor = zip(*times, strict=True)
        yield {"start-up": label, "best ms": 1e3 * min(clock), "processor ms": 1e3 * min(processor)}


def _run(command: list[str]) -> tuple[float, float]:
    """How long a process takes: by the clock, and of a processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    clock = seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What a new process takes.")
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        show(list(start_up(_workspace(Path(folder)), repeats)))


def _workspace(folder: Path) -> Path:
    """A workspace with a dataset that can be asked."""
    source, place, domain = folder / "salaries.duckdb", folder / "start.blowfish", salary_domain()
    write_salaries(source, 1_000)
    hide = bf.graphs.Threshold(domain["salary"].size, domain["salary"].threshold(1_000))
    with bf.open(place, user="curator") as made:
        salaries = made.add_dataset("salaries", source, domain=domain, table="salaries")
        salaries.publish(bf.Policy.by_column(domain, {"salary": hide}))
    return place


if __name__ == "__main__":
    main()
