"""The public names are a contract: added to, never renamed. Which they are is in ``texts/names.txt``."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import blowfishdb as bf
from tests.surface import names


def test_every_public_name_is_there_and_listed() -> None:
    assert set(dir(bf)) >= set(bf.__all__)
    listed = set(re.findall(r"^(?:class )?bf\.(\w+)", names.text(), flags=re.MULTILINE))
    assert listed == set(bf.__all__)


def test_what_people_hold_is_listed() -> None:
    """From the workspace at either end to the receipt of an answer."""
    classes = set(re.findall(r"^class (\w+)$", names.text(), flags=re.MULTILINE))
    assert {"Workspace", "Remote", "Dataset", "Columns", "Asking", "Quote", "Answer", "Receipt"} <= classes


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="banana"):
        _ = bf.banana


def test_importing_is_light() -> None:
    """Heavy libraries are imported by what needs them, not by `import blowfishdb`."""
    heavy = "('duckdb', 'sqlalchemy', 'numpy', 'scipy', 'altair', 'numba')"
    code = f"import blowfishdb, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_opening_a_workspace_is_light() -> None:
    """What takes a quarter of a second to load is loaded by the questions that need it."""
    heavy = "('scipy.optimize', 'scipy.stats', 'scipy.fft', 'altair', 'numba', 'pandas')"
    code = f"import blowfishdb.workspace.embedded, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
