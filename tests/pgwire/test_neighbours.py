"""The worlds of the neighbour harness, looked at through the door for PostgreSQL: nothing free differs.

Two neighbouring databases live through the same history behind a server. After every few questions someone
looks around: the catalogue, prices, refusals, budgets, policies, guarantees, and what is answered for
nothing. All of it must be the same in both, but for noisy numbers, which are paid for.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg

from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import Role, Tokens
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.language.text import quoted_name
from blowfishdb.workspace.embedded import Workspace
from blowfishdb.workspace.remote import Remote
from tests.entrypoints.server import CHEAP, PASSWORD, SETTINGS, Running, client_of
from tests.neighbours.living import Door, arena
from tests.neighbours.runs import live_through
from tests.neighbours.test_over_http import Heard
from tests.neighbours.worlds import AT_ONCE, EVERYTHING
from tests.pgwire.door import Opened, door_of

WORLDS = 3
EVERY = 5
_OF_ITS_OWN = re.compile(r"as of [^)]*|receipt \d+|reference [0-9a-f]+")
CATALOGUE = (
    "SELECT * FROM information_schema.columns",
    "SELECT relname, reltuples, relpages, obj_description(oid) FROM pg_class",
    "SHOW blowfishdb.budget",
    "SHOW POLICY",
    "SHOW GUARANTEE",
)


def statements(dataset: str, columns: tuple[str, ...]) -> list[str]:
    """What someone tries who wants to know more than is told."""
    name, one, last = quoted_name(dataset), quoted_name(columns[0]), quoted_name(columns[-1])
    return [
        *CATALOGUE,
        f"SELECT * FROM {name}",
        f"SELECT DISTINCT {one} FROM {name}",
        f"SELECT MIN({last}), MAX({last}) FROM {name}",
        f"SELECT {one} FROM {name} LIMIT 1",
        f"EXPLAIN SELECT COUNT(*) FROM {name} WITH ERROR 3",
        f"EXPLAIN SELECT {one}, COUNT(*) FROM {name} GROUP BY {one} WITH ERROR 3",
        f"EXPLAIN (FORMAT JSON) SELECT AVG({last}) FROM {name} WITH EPSILON 0.1",
        f"SELECT {one}, COUNT(*) FROM {name} GROUP BY {one} WITH ERROR 3",
        f"SELECT COUNT(*) FROM {name} WHERE {last} IS NULL WITH ERROR 3",
    ]


def looked(there: Opened, workspace: Workspace) -> list[Any]:
    """What the wire says to each of them; of noisy rows only how many there are, and what they are of."""
    said: list[Any] = []
    with there.connect() as connection:
        notes: list[str] = []
        connection.add_notice_handler(lambda d: notes.append(f"{d.message_primary} {d.message_detail}"))
        for dataset in workspace.datasets():
            for statement in statements(dataset, workspace.facts(dataset).domain.names):
                try:
                    cursor = connection.execute(statement)
                except psycopg.Error as error:
                    diag = error.diag
                    told = [diag.sqlstate, diag.message_primary, diag.message_hint, diag.message_detail]
                    said.append([statement, *(_OF_ITS_OWN.sub("", str(part)) for part in told)])
                    continue
                names = [column.name for column in cursor.description or ()]
                rows: Any = cursor.fetchall()
                if (
                    statement.startswith("SELECT")
                    and "information" not in statement
                    and "pg_" not in statement
                ):
                    rows = [len(rows), [_OF_ITS_OWN.sub("", note) for note in notes]]
                said.append([statement, names, rows])
                notes.clear()
    return said


class Watched(Heard):
    """A wire beside which someone looks through the other door, after every few questions."""

    def __init__(self, wire: httpx.BaseTransport, heard: list[Any], there: Opened, inside: Workspace) -> None:
        super().__init__(wire, heard)
        self.there, self.inside, self.asked = there, inside, 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """As the server answers it."""
        response = super().handle_request(request)
        if request.method == "POST" and request.url.path.endswith(("/answers", "/batches")):
            self.asked += 1
            if self.asked % EVERY == 1:
                self.heard.append(looked(self.there, self.inside))
        return response


def test_nothing_that_is_free_differs_through_this_door() -> None:
    with ExitStack() as opened_doors:

        def with_both_doors(path: Path) -> Door:
            roles = {"curator": Role.CURATOR, "analyst": Role.ANALYST, "another": Role.ANALYST}
            with Workspace(path, user="curator") as workspace:
                accounts = Accounts(workspace.store, hasher=CHEAP)
                for name, role in {**roles, "auditor": Role.AUDITOR}.items():
                    accounts.add(name, role, PASSWORD)
            app = create_app(path, settings=SETTINGS, hasher=CHEAP)
            inside: Workspace = app.state.server.workspace
            nobody = client_of(app)
            web = Running(app, inside, nobody, nobody, nobody, nobody, path.parent)
            there = opened_doors.enter_context(door_of(web))
            heard: list[Any] = []
            remotes = []
            for name in roles:
                token = Tokens(inside.store).issue(name, purpose="api", lifetime=timedelta(hours=1))[0]
                wire = Watched(client_of(app)._transport, heard, there, inside)
                remotes.append(Remote("http://testserver", token, transport=wire))
            curator, *analysts = remotes
            return Door(inside, curator, lambda: tuple(analysts), ("analyst", "another"), heard)

        with arena(door=with_both_doors) as place:
            live_through(place, replace(EVERYTHING, acts=AT_ONCE), WORLDS, share=0.02)
