"""The demonstration: two synthetic datasets, one user for each role, and a server for them on this machine.

It begins with nothing asked, one dataset under a policy and one that hides everything, and goes on where it
was left. Where nobody sits in front of it (a pipe, a build server), it checks itself and ends.

The demonstration's check of itself: a fresh one on the same rows, asked through a server as each user.

It is thrown away afterwards, so that the demonstration itself stays as it was left.

A server in this very process, beside whatever else it does: for the demonstration's check of itself.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx
from rich.console import Console, Group
from rich.text import Text

from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.copies import private_folder
from blowfishdb.adapters.store.backup import delete
from blowfishdb.adapters.tokens import Role
from blowfishdb.core.errors import InvalidInput, SourceError, WorkspaceError
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.policy.policy import Policy
from blowfishdb.entrypoints.demo_data import SAMPLES
from blowfishdb.show.terminal import Frame, answer_chart, budget_line, grid, quote_panel, receipt_line
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace
from blowfishdb.workspace.gateway import Gateway
from blowfishdb.workspace.remote import Remote, connect

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI


THIS_MACHINE: Final = "127.0.0.1"
_TRIED: Final = 20
_PATIENCE: Final = 10  # seconds that questions under way may take once the server is asked to end


def listening(host: str = THIS_MACHINE, port: int = 0) -> socket.socket:
    """A socket that already listens at ``port``, or at the next one that is free; 0 takes any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = [port, *range(port + 1, min(port + _TRIED, 65_536)), 0] if port else [0]
    for candidate in wanted:
        try:
            return socket.create_server((host, candidate), family=family, backlog=512)
        except OSError:
            continue
    raise SourceError(f"No port of {host} can be listened to.", fixes=("another host or port",))


def address_of(listener: socket.socket) -> str:
    """The address to type into a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_for(app: FastAPI, log_config: dict[str, Any] | None = None) -> uvicorn.Server:
    """The server of an app, on a socket that someone else opened: ``server.run(sockets=[…])``."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=log_config,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_PATIENCE,
        )
    )


@contextmanager
def serving(app: FastAPI, *, host: str = THIS_MACHINE, port: int = 0) -> Iterator[str]:
    """Serve an app while inside; the address is answered from the first moment on."""
    server = server_for(app)
    with listening(host, port) as listener:
        thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name="blowfishdb-server", daemon=True
        )
        thread.start()
        try:
            yield address_of(listener)
        finally:
            server.should_exit = True
            thread.join()


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
    check(workspace, out)
    out.print(_welcome(f"http://{host}:{port}", "In a terminal, `blowfishdb demo` serves this at"))


def clear(folder: Path) -> None:
    """Remove what the demonstration made, and nothing else that may be in its folder."""
    made = [sample.file(folder) for sample in SAMPLES]
    for file in [*made, folder / _LOG, *folder.glob(f"{WORKSPACE}*")]:
        if file.is_dir():  # copies of what was imported
            shutil.rmtree(file)
        else:
            file.unlink(missing_ok=True)


def start_over(file: Path) -> None:
    """Forget every answer and every change of policy; the data stays as it is."""
    delete(file)
    declare(file, file.parent)


def prepare(folder: Path, out: Console) -> Path:
    """The workspace of the demonstration: whatever of it is missing is made, whatever is there is kept."""
    private_folder(folder)
    for sample in SAMPLES:
        if not sample.file(folder).exists():
            with out.status(f"Making {sample.about} …"):
                sample.make(folder)
    file = folder / WORKSPACE
    declare(file, folder)
    return file


def declare(file: Path, folder: Path) -> None:
    """A workspace at ``place`` with both datasets and a user for each role.

    Check-ins open with a published policy, so that the first quote shows what one is good for; of salaries
    everything is hidden, so that the curator has something to decide.
    """
    with Workspace(file, user=Role.CURATOR.value) as workspace:
        for sample in SAMPLES:
            if sample.name not in workspace:
                made = workspace.add_dataset(sample.name, sample.file(folder), domain=sample.domain())
                made.introduce(title=sample.title, description=f"{sample.about}; about nobody.", listed=True)
                if sample.hidden_within:
                    made.publish(sample.policy())
        accounts = Accounts(workspace.store)
        for role, password in PASSWORDS.items():
            if accounts.find(role.value) is None:
                accounts.add(role.value, role, password)


def _serve(workspace: Path, out: Console, *, host: str, port: int, open_browser: bool) -> None:
    from blowfishdb.entrypoints.server.app import create_app
    from blowfishdb.entrypoints.server.server import Settings

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


def _welcome(address: str, lead: str) -> Frame:
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
    return Frame(
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


HIDE_WITHIN: Final = 1_000  # dollars


def check(workspace: Path, out: Console) -> None:
    """Sign in as everybody, ask, pay, loosen the policy, verify the ledgers; raise if anything is amiss."""
    from blowfishdb.entrypoints.server.app import create_app
    from blowfishdb.entrypoints.server.server import Settings

    with tempfile.TemporaryDirectory(prefix="blowfishdb-demo-") as folder:
        fresh = Path(folder) / workspace.name
        declare(fresh, workspace.parent)
        with serving(create_app(fresh, settings=Settings(demo=True, warm_up=False))) as address:
            _check_health(address)
            everyone = {role: sign_in(address, role) for role in Role}
            try:
                _tell(everyone, out)
            finally:
                for remote in everyone.values():
                    remote.close()
    with Workspace(workspace) as original:
        _check_books(original)
    out.print(Text("The ledger verifies: every charge and every hash adds up.", style="green"))
    out.print()


def sign_in(address: str, role: Role) -> Remote:
    """Sign in with the password of a demonstration's user, and take a token instead of it."""
    with httpx.Client(base_url=f"{address}/api/v1", timeout=60) as http:
        who = {"user": role.value, "password": PASSWORDS[role]}
        entered = http.post("/session", json=who)
        _check(entered, f"Signing in as {role.value}")
        http.headers["X-CSRF-Token"] = entered.json()["csrf"]
        token = http.post("/tokens", json={"label": "self-check", "days": 1})
        _check(token, f"A token for {role.value}")
        http.delete("/session")
    return connect(address, token=token.json()["token"])


def _check_health(address: str) -> None:
    _check(httpx.get(f"{address}/api/v1/health", timeout=60), "The server's health")


def _check(response: httpx.Response, what: str) -> None:
    if not response.is_success:
        raise WorkspaceError(
            f"{what} failed with status {response.status_code}.", fixes=("blowfishdb demo --reset",)
        )


def _tell(everyone: dict[Role, Remote], out: Console) -> None:
    curator, analyst, auditor = (everyone[role] for role in (Role.CURATOR, Role.ANALYST, Role.AUDITOR))
    out.print(Text("A first look, through a server, at a workspace that is thrown away afterwards."))
    salaries, checkins = analyst["salaries"], analyst["checkins"]
    incomes = salaries["salary"].cumulative(width=10_000).accurate_to(50, confidence=0.95)

    _head("Everything is hidden (plain differential privacy)", out)
    out.print(quote_panel(incomes.quote()))
    _head(f"Hidden are salaries within ${HIDE_WITHIN:,} of each other", out)
    _loosen(curator["salaries"])
    _ask(incomes, salaries, out)
    _head("The same question once more", out)
    _ask(incomes, salaries, out, chart=False)
    _head("Where people were seen", out)
    _ask(checkins["district"].histogram().accurate_to(50, confidence=0.95), checkins, out)
    _check_books(auditor)


def _check_books(books: Gateway) -> None:
    problems = books.verify()
    if problems:
        raise WorkspaceError(f"The ledger does not add up: {problems[0]}", fixes=("blowfishdb demo --reset",))


def _head(words: str, out: Console) -> None:
    out.print(Text(f"\n{words}", style="bold"))


def _loosen(salaries: Dataset) -> None:
    domain = salaries.schema
    salary = domain["salary"]
    hide = Threshold(salary.value_count, salary.threshold(HIDE_WITHIN))
    salaries.publish(Policy.by_column(domain, {"salary": hide}))


def _ask(asking: Asking, dataset: Dataset, out: Console, *, chart: bool = True) -> None:
    out.print(quote_panel(asking.quote()))
    answer = asking.ask()
    if chart:
        out.print(answer_chart(answer))
    out.print(receipt_line(answer.receipt))
    status = dataset.budget.status
    out.print(budget_line(status.total, status.remaining))
