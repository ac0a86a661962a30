"""doctor: is all here that BlowfishDB needs, has the noise the right shape, is the workspace whole?"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final, final

from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.plain import Message

_OLDEST: Final = (3, 11)
_NEEDED: Final = (
    "numpy",
    "scipy",
    "cryptography",
    "pyarrow",
    "altair",
    "sqlglot",
    "sqlalchemy",
    "alembic",
    "fastapi",
    "uvicorn",
    "httpx",
    "jinja2",
    "pwdlib",
    "yaml",
    "jsonschema",
    "vl_convert",
)
_DRAWS: Final = 40_000
_SCALE: Final = 5
_UNLIKELY: Final = 1e-6
"""A sound sampler fails this test once in a million runs."""


class State(Enum):
    """How a check went."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@final
@dataclass(frozen=True)
class Check(Message):
    """One line of the report: what was found, and what to do about it."""

    name: str
    state: State
    found: str
    todo: str = ""


def checks(workspace: str, witness: Path | None = None, *, repair: bool = False) -> Iterator[Check]:
    """Every check, one after the other; the workspace is only looked at if it is there.

    With ``repair``, what a crash or an older version left in it is mended first.
    """
    yield _python()
    yield _packages()
    yield _guarded("numba", _numba, "pip install --force-reinstall numba")
    yield _guarded("duckdb", _duckdb, "pip install --force-reinstall duckdb")
    yield _guarded(
        "randomness", _randomness, "check that the operating system offers getrandom or /dev/urandom"
    )
    yield _guarded("noise", _noise, "do not answer questions on this machine; report it with this output")
    yield from _optional()
    yield _guarded(
        "workspace", lambda: _workspace(workspace, witness), "restore a backup: blowfishdb restore PATH INTO"
    )
    if _is_here(workspace):
        yield _guarded("rows", lambda: _rows(workspace, repair), "blowfishdb refresh DATA")


def _guarded(name: str, check: Callable[[], Check], todo: str) -> Check:
    """A check that breaks has failed."""
    try:
        return check()
    except BlowfishError as error:
        return Check(name, State.FAIL, error.message, "; ".join(error.fixes) or todo)
    except Exception as error:
        return Check(name, State.FAIL, f"{type(error).__name__}: it does not work here", todo)


# --- what must be there ---------------------------------------------------------------------------


def _python() -> Check:
    running = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST:
        return Check("python", State.FAIL, running, "install Python 3.11 or newer")
    return Check("python", State.OK, running)


def _packages() -> Check:
    missing = [name for name in _NEEDED if not _importable(name)]
    if missing:
        return Check("packages", State.FAIL, f"missing: {', '.join(missing)}", "pip install blowfishdb")
    return Check(
        "packages", State.OK, f"blowfishdb {importlib.metadata.version('blowfishdb')}, all dependencies"
    )


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def _numba() -> Check:
    """The kernels are compiled once and kept; where nothing can be kept, every start takes seconds longer."""
    import numba

    double = numba.njit(lambda value: 2 * value)
    if double(21) != 42:
        return Check(
            "numba", State.FAIL, "compiled code gives wrong results", "pip install --force-reinstall numba"
        )
    folder = Path(__file__).parent.parent / "mechanisms"
    folders = (folder, Path.home())
    if not (os.environ.get("NUMBA_CACHE_DIR") or any(os.access(each, os.W_OK) for each in folders)):
        todo = "set NUMBA_CACHE_DIR to a folder that can be written"
        return Check("numba", State.WARN, f"{numba.__version__}, but compiled code cannot be kept", todo)
    return Check("numba", State.OK, f"{numba.__version__}, compiles")


def _duckdb() -> Check:
    import duckdb

    with duckdb.connect() as connection:
        row = connection.execute("SELECT sum(i)::BIGINT FROM range(10) t(i)").fetchone()
    if row != (45,):
        return Check("duckdb", State.FAIL, "it counts wrongly", "pip install --force-reinstall duckdb")
    return Check("duckdb", State.OK, str(duckdb.__version__))


# --- noise ----------------------------------------------------------------------------------------


def _randomness() -> Check:
    """Two keystreams must differ, and half of their bits must be set: about 131,072 of 262,144."""
    import numpy as np

    from blowfishdb.adapters.randomness import SecureBits

    first, second = (SecureBits().words(4_096) for _ in range(2))
    ones = int(np.unpackbits(first.view(np.uint8)).sum())
    if (first == second).any() or abs(ones - 131_072) > 1_600:  # more than six standard deviations
        return Check("randomness", State.FAIL, "the keystream is not random", "do not answer questions here")
    return Check("randomness", State.OK, "AES-256-CTR, keyed by the operating system")


def _noise() -> Check:
    """Goodness of fit of fresh noise to the discrete Laplace distribution."""
    from blowfishdb.noise import secure

    likely = fit(secure().discrete_laplace(_SCALE, _DRAWS))
    if likely < _UNLIKELY:
        return Check(
            "noise", State.FAIL, "it does not have the distribution that was proven", "do not answer here"
        )
    return Check(
        "noise", State.OK, f"{_DRAWS:,} draws fit the discrete Laplace distribution (p = {likely:.2f})"
    )


def fit(draws: Any) -> float:
    """How likely draws as far from the distribution as these are, if they come from it (χ² test)."""
    import numpy as np
    from scipy.stats import chi2

    from blowfishdb.core.accuracy import pmf, tail

    most = 4 * _SCALE
    inside = np.arange(-most, most + 1)
    expected = np.append(pmf(inside, _SCALE), tail(most, _SCALE)) * len(draws)
    seen = [np.count_nonzero(draws == value) for value in inside]
    observed = np.append(seen, np.count_nonzero(np.abs(draws) > most))
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(chi2.sf(statistic, df=len(expected) - 1))


# --- what may be there ----------------------------------------------------------------------------


def _optional() -> Iterator[Check]:
    yield _tool("postgresql", "psycopg", (), "to read PostgreSQL: pip install 'blowfishdb[postgres]'")
    yield _tool(
        "java", "pyspark", ("java",), "to read Spark: install Java 17 and pip install 'blowfishdb[spark]'"
    )
    yield _tool(
        "chromium",
        None,
        ("chromium", "chromium-browser", "google-chrome"),
        "for browser tests: apt install chromium",
    )


def _tool(name: str, package: str | None, programs: tuple[str, ...], todo: str) -> Check:
    runnable = any(shutil.which(program) for program in programs)
    absent = [package] if package is not None and importlib.util.find_spec(package) is None else []
    absent += [programs[0]] if programs and not runnable else []
    if absent:
        return Check(name, State.WARN, f"optional, not here: {', '.join(absent)}", todo)
    return Check(name, State.OK, "available")


def _is_here(address: str) -> bool:
    """Whether a workspace can be opened from here."""
    return not address.startswith(("http://", "https://")) and ("://" in address or Path(address).exists())


def _rows(address: str, repair: bool) -> Check:
    """Datasets are whole, their copies are those that were taken, and nobody else can read them."""
    from blowfishdb.workspace.embedded import Workspace

    with Workspace(address) as workspace:
        mended = workspace.repair() if repair else []
        problems = workspace.check_rows()
    done = "".join(f" {words}" for words in mended)
    if problems:
        todo = (
            "blowfishdb refresh DATA" if repair else "blowfishdb doctor --repair, or blowfishdb refresh DATA"
        )
        return Check("rows", State.WARN, " ".join(problems) + done, todo)
    return Check("rows", State.OK, f"every dataset is whole, and every copy has its hash.{done}")


def _workspace(address: str, witness: Path | None) -> Check:
    if address.startswith(("http://", "https://")):
        return Check("workspace", State.WARN, "it is behind a server", "run doctor where the workspace is")
    if "://" not in address and not Path(address).exists():
        return Check(
            "workspace", State.WARN, f"there is none at '{address}'", "blowfishdb import SOURCE --name NAME"
        )
    from blowfishdb.workspace.embedded import Workspace

    with Workspace(address) as workspace:
        audited, count = workspace.audit(witness=witness), len(workspace.datasets())
    if audited.problems:
        todo = "restore a backup: blowfishdb restore PATH INTO"
        return Check("workspace", State.FAIL, audited.problems[0], todo)
    words = f"{count} dataset{'' if count == 1 else 's'}; every hash adds up"
    if audited.witnessed is not None:
        words += f", and extends {audited.witnessed:,} heads of the witness file"
    return Check("workspace", State.OK, words)
