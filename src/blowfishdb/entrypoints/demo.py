"""The demonstration: two synthetic datasets, one user for each role, and a server for them on this machine.

It begins where every dataset begins, with everything hidden and nothing asked, and goes on where it was left.
Where nobody sits in front of it (a pipe, a build server), it checks itself and ends.
"""

from __future__ import annotations

import os
import webbrowser
from pathlib import Path
from typing import Any, Final

from rich.console import Console, Group
from rich.text import Text

from blowfishdb.adapters.accounts import Accounts, Role
from blowfishdb.adapters.backup import delete
from blowfishdb.adapters.private_files import private_folder
from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.background import THIS_MACHINE, address_of, listening, server_for
from blowfishdb.entrypoints.samples import SAMPLES
from blowfishdb.entrypoints.terminal import Framed, grid
from blowfishdb.workspace import Workspace

PASSWORDS: Final = {role: f"{role.value}-demo" for role in Role}
"""Known to everybody, so the demonstration listens to this machine only."""
WORKSPACE: Final = "demo.blowfish"
_LOG: Final = "server.log"
_HERE: Final = frozenset({THIS_MACHINE, "localhost", "::1"})


def run(
    folder: Path,
    out: Console,
    *,
    reset: bool = False,
    host: str = THIS_MACHINE,
    port: int = 8787,
    open_browser: bool = False,
) -> None:
    """Make what is missing and serve it until Ctrl-C; without a terminal, check it and end."""
    if host not in _HERE:
        raise InvalidInput(
            "The passwords of the demonstration are known to everybody, so it listens to this machine only.",
            fixes=("--host 127.0.0.1", "blowfishdb serve, for a workspace of your own"),
        )
    if reset:
        clear(folder)
    workspace = prepare(folder, out)
    if out.is_terminal and not os.environ.get("CI"):
        _serve(workspace, out, host=host, port=port, open_browser=open_browser)
        return
    from blowfishdb.entrypoints.demo_check import check

    check(workspace, out)
    out.print(_welcome(f"http://{host}:{port}", "In a terminal, `blowfishdb demo` serves this at"))


def clear(folder: Path) -> None:
    """Remove what the demonstration made, and nothing else that may be in its folder."""
    made = [sample.file(folder) for sample in SAMPLES]
    for file in [*made, folder / _LOG, *folder.glob(f"{WORKSPACE}*")]:
        file.unlink(missing_ok=True)


def start_over(place: Path) -> None:
    """Forget every answer and every change of policy; the data stays as it is."""
    delete(place)
    declare(place, place.parent)


def prepare(folder: Path, out: Console) -> Path:
    """The workspace of the demonstration: whatever of it is missing is made, whatever is there is kept."""
    private_folder(folder)
    for sample in SAMPLES:
        if not sample.file(folder).exists():
            with out.status(f"Making {sample.about} …"):
                sample.make(folder)
    place = folder / WORKSPACE
    declare(place, folder)
    return place


def declare(place: Path, folder: Path) -> None:
    """A workspace at ``place`` with both datasets, everything about them hidden, and a user for each role."""
    with Workspace(place, user=Role.CURATOR.value) as workspace:
        for sample in SAMPLES:
            if sample.name not in workspace:
                workspace.add_dataset(
                    sample.name, sample.file(folder), domain=sample.domain(), table=sample.name
                )
        accounts = Accounts(workspace.store)
        for role, password in PASSWORDS.items():
            if accounts.find(role.value) is None:
                accounts.add(role.value, role, password)


def _serve(workspace: Path, out: Console, *, host: str, port: int, open_browser: bool) -> None:
    from blowfishdb.entrypoints.api.app import create_app
    from blowfishdb.entrypoints.api.settings import Settings

    app = create_app(workspace, settings=Settings(demo=True), reset=start_over)
    with listening(host, port) as listener:
        address = address_of(listener)
        if port and not address.endswith(f":{port}"):
            out.print(Text(f"Port {port} is taken, so another one is used.", style="yellow"))
        out.print(_welcome(address, "Open"))
        out.print(Text(f"Requests are logged to {workspace.with_name(_LOG)}. Ctrl-C ends it.", style="dim"))
        if open_browser:
            webbrowser.open(f"{address}/")
        try:
            server_for(app, _logs(workspace.with_name(_LOG))).run(sockets=[listener])
        except KeyboardInterrupt:
            out.print(Text("Stopped. Answers and policies are kept; --reset starts over."))


def _welcome(address: str, lead: str) -> Framed:
    """Where it is, who can come in, and what to try."""
    people = grid("user", "password", "may")
    may = {
        Role.CURATOR: "decide what is hidden and what may be spent",
        Role.ANALYST: "ask, and see private answers only",
        Role.AUDITOR: "check what was spent",
    }
    for role, password in PASSWORDS.items():
        people.add_row(role.value, password, may[role])
    tries = (
        "1. As analyst: ask for cumulative(salary, bins=20) within ±50, and read its price before paying it.",
        "2. As curator: hide salaries within $1,000 of each other, not entirely, and see the price fall.",
        "3. As auditor: check the ledger; every answer, charge and policy change is in it.",
    )
    about = " and ".join(sample.about for sample in SAMPLES)
    return Framed(
        "BlowfishDB demonstration",
        Group(
            Text.assemble(f"{lead} ", (f"{address}/", "bold")),
            Text(f"{about}; about nobody.", style="dim"),
            Text(),
            people,
            Text("These accounts are for this demonstration only.", style="dim"),
            Text(),
            *map(Text, tries),
        ),
    )


def _logs(file: Path) -> dict[str, Any]:
    """What a server logs, into a file: the terminal is for the one who tries it."""
    from blowfishdb.entrypoints.serve import LOGS

    handlers = {
        name: {"class": "logging.FileHandler", "filename": str(file), "formatter": handler["formatter"]}
        for name, handler in LOGS["handlers"].items()
    }
    return {**LOGS, "handlers": handlers}
