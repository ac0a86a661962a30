"""The doctor finds what is wrong, not only what is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from blowfishdb.entrypoints import doctor
from blowfishdb.entrypoints.doctor import State, checks, fit
from blowfishdb.noise import seeded


def test_the_noise_test_tells_right_from_nearly_right() -> None:
    noise = seeded(5)
    assert fit(noise.discrete_laplace(5, 40_000)) > 1e-4
    assert fit(noise.discrete_laplace(6, 40_000)) < 1e-6
    assert fit(noise.discrete_laplace(5, 40_000) + 1) < 1e-6


def test_a_missing_package_and_a_missing_program_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(doctor, "_NEEDED", ("numpy", "no_such_package"))
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {check.name: check for check in checks(str(tmp_path / "none.blowfish"))}
    assert found["packages"].state is State.FAIL and "no_such_package" in found["packages"].found
    assert found["java"].state is State.WARN and found["java"].todo
    assert found["workspace"].state is State.WARN
    assert found["noise"].state is State.OK and found["randomness"].state is State.OK


def test_a_server_is_not_a_workspace_to_look_into() -> None:
    (last,) = (check for check in checks("http://127.0.0.1:9") if check.name == "workspace")
    assert last.state is State.WARN and "where the workspace is" in last.todo
