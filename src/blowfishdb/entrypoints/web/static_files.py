"""What pages load: style, scripts and the chart library, each under an address that names its contents.

A file is never changed under the same address, so browsers keep it for a year. The chart library is made once
per machine from the package that also draws pictures on the server; nothing comes from outside.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final, final

from fastapi import APIRouter, Depends, Request, Response

from blowfishdb.charts.theme import DARK, LIGHT, config
from blowfishdb.core.errors import NotFound
from blowfishdb.entrypoints.api.access import Caller, Gate

router: Final = APIRouter(include_in_schema=False)

_KINDS: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_VEGA: Final = "vega.js"
_EXPORT: Final = "window.vegaEmbed = vegaEmbed;"
_THEMES: Final = "chart-themes.js"
_FOREVER: Final = "public, max-age=31536000, immutable"
_making: Final = threading.Lock()


@final
@dataclass(frozen=True)
class Asset:
    """A file as it is sent: as it is, and compressed."""

    kind: str
    body: bytes
    compressed: bytes

    @classmethod
    def of(cls, name: str, body: bytes) -> Asset:
        """The file called ``name``."""
        return cls(_KINDS[Path(name).suffix], body, gzip.compress(body, 9, mtime=0))


@final
class _NobodyInParticular(Gate):
    """Files without a secret in them: who asks is not looked up, so that a page costs one look, not six."""

    def __call__(self, request: Request) -> Caller | None:
        return None


Open = Annotated[Caller | None, Depends(_NobodyInParticular())]


@router.get("/static/{digest}/{name}")
def static_file(request: Request, digest: str, name: str, _: Open) -> Response:
    """One of our files. Under the address of another release it is sent too, but not kept."""
    found = vega() if name == _VEGA else _assets().get(name)
    if found is None:
        raise NotFound("There is no such file.")
    headers = {
        "Cache-Control": _FOREVER if digest == release() else "no-cache",
        "Vary": "Accept-Encoding",
    }
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(found.compressed, media_type=found.kind, headers=headers)
    return Response(found.body, media_type=found.kind, headers=headers)


def address(name: str) -> str:
    """Where a page finds a file."""
    return f"/static/{release()}/{name}"


@cache
def release() -> str:
    """What the files are, as a short text that differs whenever one of them does."""
    digest = hashlib.sha256(version("vl-convert-python").encode())
    for name, asset in sorted(_assets().items()):
        digest.update(name.encode() + b"\0" + asset.body)
    return digest.hexdigest()[:16]


@cache
def _assets() -> Mapping[str, Asset]:
    folder = files("blowfishdb.entrypoints.web").joinpath("static")
    ours = {
        each.name: Asset.of(each.name, each.read_bytes())
        for each in folder.iterdir()
        if Path(each.name).suffix in _KINDS
    }
    themes = {"light": config(LIGHT), "dark": config(DARK)}
    return {**ours, _THEMES: Asset.of(_THEMES, f"export const themes = {json.dumps(themes)};\n".encode())}


def vega() -> Asset:
    """The chart library; making it takes seconds, so it is kept on this machine."""
    with _making:
        return _vega()


@cache
def _vega() -> Asset:
    kept = _cache_folder() / f"vega-embed-{version('vl-convert-python')}.js.gz"
    try:
        compressed = kept.read_bytes()
        return Asset(_KINDS[".js"], gzip.decompress(compressed), compressed)
    except (OSError, EOFError):
        import vl_convert

        made = Asset.of(_VEGA, vl_convert.javascript_bundle(_EXPORT).encode())
        _keep(kept, made.compressed)
        return made


def _keep(file: Path, contents: bytes) -> None:
    """Half a file is never mistaken for it; a machine where nothing can be kept makes it anew."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(contents)
        part.replace(file)
    except OSError:
        return


def _cache_folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "blowfishdb"
