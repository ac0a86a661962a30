"""A workspace with all that belongs to it in one packed file, and beside it what it says, as text."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).parent / "workspaces"
WORKSPACE: Final = "workspace.blowfish"


def pack(name: str, folder: Path, facts: dict[str, Any]) -> list[Path]:
    """Keep every file of ``folder``: the workspace, copies of rows, databases that it reads."""
    packed = _FOLDER / f"{name}.tar.xz"
    with tarfile.open(packed, "w:xz", preset=9) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                body = path.read_bytes()
                entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
                entry.size = len(body)
                archive.addfile(entry, io.BytesIO(body))
    said = _FOLDER / f"{name}.json"
    said.write_text(_lines(facts) + "\n", encoding="utf-8")
    return [packed, said]


def unpack(name: str, folder: Path) -> dict[str, Any]:
    """Put a workspace into ``folder``, for nobody but its owner to read, and say what it must say."""
    with tarfile.open(_FOLDER / f"{name}.tar.xz", "r:xz") as archive:
        for entry in archive:
            path = folder / entry.name
            for above in reversed(path.relative_to(folder).parents):
                (folder / above).mkdir(mode=0o700, exist_ok=True)
            body = archive.extractfile(entry)
            assert body is not None
            path.write_bytes(body.read())
            path.chmod(0o600)
    facts: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return facts


def files() -> list[Path]:
    """Everything that is kept."""
    return sorted(_FOLDER.iterdir())


def _lines(facts: dict[str, Any]) -> str:
    """JSON with one line for each fact, answer and question."""
    parts = [f'"{key}": {_listed(value)}' for key, value in facts.items()]
    return "{\n" + ",\n".join(parts) + "\n}"


def _listed(value: Any) -> str:
    if isinstance(value, list):
        return "[\n" + ",\n".join(_text(each) for each in value) + "\n]"
    if isinstance(value, dict):
        return "{\n" + ",\n".join(f"{_text(key)}: {_text(each)}" for key, each in value.items()) + "\n}"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
