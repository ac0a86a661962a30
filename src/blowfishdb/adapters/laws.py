"""Laws of noise in a folder: what one worker has simulated, the others look up.

One file for each law, named by the digest of everything that the law follows from, with numbers in it and
nothing else. A file that is damaged, of another version or of another law counts as none: what cannot be
believed is simulated again, and no price comes from it. There are at most so many files, the newest ones.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, final

_MOST: Final = 512
_LONGEST: Final = 2**20
_SUFFIX: Final = ".law"


@final
class LawFolder:
    """A folder that the workers of one server share."""

    def __init__(self, folder: str | Path, version: str, most: int = _MOST) -> None:
        self._folder = Path(folder)
        self._version = version
        self._most = most

    def recall(self, key: str) -> Mapping[str, tuple[float, ...]]:
        """Everything that is known under a digest, by name; nothing if there is any doubt about it."""
        try:
            with (self._folder / f"{key}{_SUFFIX}").open("rb") as file:
                text = file.read(_LONGEST + 1)
            return self._read(text, key) if len(text) <= _LONGEST else {}
        except (OSError, ValueError, TypeError, KeyError):
            return {}

    def keep(self, key: str, numbers: Mapping[str, tuple[float, ...]]) -> None:
        """Tell the others; what cannot be kept is simulated again."""
        together = {**self.recall(key), **numbers}
        text = self._written(together, key)
        if len(text) > _LONGEST:
            text = self._written(numbers, key)
        new = self._folder / f"{secrets.token_hex(8)}.new"
        try:
            new.write_bytes(text)
            new.replace(self._folder / f"{key}{_SUFFIX}")
            self._tidy()
        except OSError:
            with suppress(OSError):
                new.unlink()

    def _tidy(self) -> None:
        files = list(self._folder.glob(f"*{_SUFFIX}"))
        if len(files) > self._most:
            for file in sorted(files, key=lambda file: file.stat().st_mtime)[: -self._most]:
                file.unlink(missing_ok=True)

    def _written(self, numbers: Mapping[str, tuple[float, ...]], key: str) -> bytes:
        body = json.dumps({"version": self._version, "key": key, "numbers": numbers}, sort_keys=True)
        return json.dumps({"body": body, "sum": _sum(body)}).encode()

    def _read(self, text: bytes, key: str) -> dict[str, tuple[float, ...]]:
        """The numbers, if they are whole, of this version and of this law; otherwise nothing."""
        stored = json.loads(text)
        if _sum(stored["body"]) != stored["sum"]:
            return {}
        body = json.loads(stored["body"])
        if body["version"] != self._version or body["key"] != key:
            return {}
        return {str(name): tuple(map(float, listed)) for name, listed in body["numbers"].items()}


def _sum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
