"""demo, serve, backup, restore, delete, doctor: the program and its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.cli import session as prompts
from blowfishdb.entrypoints.cli.session import SYSTEM, Commands, Session, WitnessFile, Yes

if TYPE_CHECKING:
    from blowfishdb.adapters.store.backup import Copy
    from blowfishdb.workspace.embedded import Workspace

Host = Annotated[str, typer.Option(help="The address to listen on; 127.0.0.1 is this machine only.")]
Port = Annotated[int, typer.Option(min=0, max=65_535, help="The port; 0 takes a free one.")]
Open = Annotated[bool, typer.Option("--open/--no-open", help="Open the pages in a browser.")]
Place = Annotated[Path, typer.Argument(metavar="PATH", help="A workspace file.", show_default=False)]


commands = Commands(SYSTEM)


@commands("blowfishdb demo --reset")
def demo(
    here: Session,
    folder: Annotated[Path, typer.Option(help="Where the demonstration keeps its data.")] = Path("demo"),
    reset: Annotated[bool, typer.Option("--reset", help="Start over: new data, empty ledger.")] = False,
    host: Host = "127.0.0.1",
    port: Port = 8787,
    open_browser: Open = False,
) -> None:
    """Try everything on synthetic data: a server with a curator, an analyst and an auditor."""
    from blowfishdb.entrypoints import demo as demonstration

    screen = here.console(stderr=here.json)
    demonstration.run(folder, screen, reset=reset, host=host, port=port, open_browser=open_browser)
    if here.json:
        here.say({"workspace": str(folder / demonstration.WORKSPACE), "host": host, "port": port})


@commands(
    "blowfishdb serve --open",
    "blowfishdb -w people.blowfish serve --port 8000 --workers 4",
    "blowfishdb serve --host 0.0.0.0 --tls-cert fullchain.pem --tls-key key.pem",
    "blowfishdb serve --pgwire 5433",
)
def serve(
    here: Session,
    host: Host = "127.0.0.1",
    port: Port = 8787,
    workers: Annotated[int, typer.Option(min=1, help="How many processes answer.")] = 1,
    open_browser: Open = False,
    tls_cert: Annotated[
        Path | None, typer.Option(help="A certificate in PEM form: the server speaks TLS itself.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of the certificate.")] = None,
    https_behind_proxy: Annotated[
        bool, typer.Option("--https-behind-proxy", help="People reach it by TLS at a server in front.")
    ] = False,
    trust_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A server in front whose X-Forwarded-For counts; this machine with --https-behind-proxy.",
        ),
    ] = None,
    witness: WitnessFile = None,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLACE",
            help="A folder or a host whose rows curators may declare; 'data' beside the workspace otherwise.",
        ),
    ] = None,
    pgwire: Annotated[
        int | None,
        typer.Option(
            min=0, max=65_535, metavar="PORT", help="Let psql and other PostgreSQL clients in at this port."
        ),
    ] = None,
) -> None:
    """Serve the workspace to browsers and programs until Ctrl-C."""
    from blowfishdb.entrypoints.serve import Doors
    from blowfishdb.entrypoints.server.server import Settings

    doors = Doors.of(
        certificate=tls_cert, key=tls_key, behind_proxy=https_behind_proxy, proxies=trust_proxy or ()
    )
    with here.embedded("serving", create=True):
        pass  # a wrong path is told before anything is started
    if here.json:
        told = {"workspace": here.workspace, "host": host, "port": port, "workers": workers}
        here.say({**told, "https": doors.https, **({} if pgwire is None else {"pgwire": pgwire})})
    from blowfishdb.entrypoints.serve import serve as run

    known = "" if witness is None else str(witness.resolve())
    settings = Settings(witness=known, sources=tuple(sources or ()))
    run(here.workspace, host, port, workers, open_browser, settings, doors, pgwire)


@commands(
    "blowfishdb proxy",
    "blowfishdb proxy --port 6432 --host 0.0.0.0 --tls-cert fullchain.pem --tls-key key.pem",
)
def proxy(
    here: Session,
    host: Host = "127.0.0.1",
    port: Port = 5433,
    tls_cert: Annotated[
        Path | None, typer.Option(help="A certificate in PEM form, for clients on other machines.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of the certificate.")] = None,
    witness: WitnessFile = None,
) -> None:
    """Serve psql and other PostgreSQL clients alone, without pages, until Ctrl-C."""
    from blowfishdb.entrypoints.pgwire.proxy import run
    from blowfishdb.entrypoints.serve import Doors, WireDoor
    from blowfishdb.entrypoints.server.server import Settings

    door = WireDoor.of(host, port, Doors.of(certificate=tls_cert, key=tls_key))
    with here.embedded("serving", create=True):
        pass  # a wrong path is told before anything is started
    if here.json:
        here.say({"workspace": here.workspace, "host": host, "port": port})
    run(here.workspace, door, Settings(witness="" if witness is None else str(witness.resolve())))


@commands("blowfishdb backup monday.blowfish", embedded="a backup")
def backup(here: Session, workspace: Workspace, path: Place) -> None:
    """Copy the workspace to a new file, as it is at one moment, while others go on writing."""
    _tell_copy(here, workspace.backup(path), "Copied")


@commands("blowfishdb restore monday.blowfish new.blowfish")
def restore(
    here: Session,
    path: Place,
    into: Annotated[
        Path, typer.Argument(metavar="INTO", help="Where to make the workspace.", show_default=False)
    ],
) -> None:
    """Make a workspace from a backup, where there is none. What was charged since is not in it."""
    from blowfishdb.adapters.store.backup import restore as restored

    _tell_copy(here, restored(path, into), "Restored")


def _tell_copy(here: Session, copy: Copy, done: str) -> None:
    until = copy.until or "the beginning"
    here.say(
        {"path": str(copy.path), "events": copy.events, "until": copy.until},
        f"{done} to {copy.path}: it remembers {copy.events:,} events, until {until}.",
    )


@commands("blowfishdb delete old.blowfish")
def delete(here: Session, path: Place, yes: Yes = False) -> None:
    """Remove a workspace for good, with its answers and everything that it knows to be spent."""
    from blowfishdb.adapters.store.backup import delete as remove

    if not path.is_file():
        raise InvalidInput(f"There is no workspace '{path}'.")
    if not yes:
        question = f"Delete '{path}'? What was spent on its datasets would be forgotten."
        prompts.confirm(question, otherwise="--yes")
    remove(path)
    here.say({"path": str(path), "deleted": True}, f"'{path}' is gone.")


@commands("blowfishdb --workspace people.blowfish doctor")
def doctor(
    here: Session,
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what a crash or an older version left in the workspace.")
    ] = False,
    witness: WitnessFile = None,
) -> None:
    """Check this installation, its noise and the workspace. Fails if something must be mended."""
    from rich.text import Text

    from blowfishdb.entrypoints.doctor import State, checks
    from blowfishdb.show.terminal import grid

    colours = {State.OK: "green", State.WARN: "yellow", State.FAIL: "bold red"}
    table = grid("", "check", "found", wrap=(2,))
    results = list(checks(here.workspace, witness, repair=repair))
    for check in results:
        table.add_row(
            Text(check.state.value, style=colours[check.state]), check.name, check.found, check.todo
        )
    failed = any(check.state is State.FAIL for check in results)
    here.say({"ok": not failed, "checks": [check.to_plain() for check in results]}, table)
    if failed:
        raise typer.Exit(1)
