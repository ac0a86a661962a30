"""The same worlds behind a server: what comes over the wire is the same, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import Role, Tokens
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.workspace.embedded import Workspace
from blowfishdb.workspace.remote import Remote
from tests.entrypoints.server import CHEAP, PASSWORD, SETTINGS, client_of
from tests.neighbours.living import Door, arena
from tests.neighbours.runs import live_through
from tests.neighbours.worlds import AT_ONCE, EVERYTHING

WORLDS = 100
_OF_ITS_OWN = ("date", "x-request-id", "content-length", "idempotency-key")
"""Headers that differ between any two responses, or follow from a body with noise in it."""


class Heard(httpx.BaseTransport):
    """A wire on which everything is written down, but for the bodies of answers."""

    def __init__(self, wire: httpx.BaseTransport, heard: list[Any]) -> None:
        self.wire, self.heard = wire, heard

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """As the server answers it."""
        response = self.wire.handle_request(request)
        body = response.read().decode()
        said = "an answer" if '"values"' in body else body
        headers = sorted(line for line in response.headers.items() if line[0].lower() not in _OF_ITS_OWN)
        self.heard.append([request.method, request.url.path, response.status_code, headers, said])
        return response


def behind_a_server(path: Path) -> Door:
    """A workspace, reached over HTTP."""
    roles = {"curator": Role.CURATOR, "analyst": Role.ANALYST, "another": Role.ANALYST}
    with Workspace(path, user="curator") as workspace:
        accounts = Accounts(workspace.store, hasher=CHEAP)
        for name, role in roles.items():
            accounts.add(name, role, PASSWORD)
    app = create_app(path, settings=SETTINGS, hasher=CHEAP)
    inside: Workspace = app.state.server.workspace
    heard: list[Any] = []
    remotes = []
    for name in roles:
        token = Tokens(inside.store).issue(name, purpose="api", lifetime=timedelta(hours=1))[0]
        wire = Heard(client_of(app)._transport, heard)
        remotes.append(Remote("http://testserver", token, transport=wire))
    curator, *analysts = remotes
    return Door(inside, curator, lambda: tuple(analysts), ("analyst", "another"), heard)


def test_neighbours() -> None:
    with arena(door=behind_a_server) as place:
        scope = replace(EVERYTHING, acts=AT_ONCE)
        live_through(place, scope, WORLDS, share=0.12)
