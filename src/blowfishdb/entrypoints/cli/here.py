"""Which workspace a command is about, who runs it, and in which form it speaks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast, final

import typer

from blowfishdb.core.errors import BlowfishError, InvalidInput, WorkspaceError
from blowfishdb.entrypoints.cli import failing

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from blowfishdb.gateway import Gateway
    from blowfishdb.workspace import Workspace

DEFAULT_WORKSPACE: Final = "workspace.blowfish"
TOKEN: Final = "BLOWFISHDB_TOKEN"  # noqa: S105 (the name of a variable)


@final
@dataclass
class Here:
    """What was said in front of the command; ``json`` is said behind it."""

    workspace: str
    user: str | None
    token_file: Path | None
    json: bool = False

    @classmethod
    def of(cls, ctx: typer.Context) -> Here:
        """The one of this run."""
        return cast("Here", ctx.obj)

    @property
    def is_server(self) -> bool:
        """Whether the workspace is behind an address."""
        return self.workspace.startswith(("http://", "https://"))

    # --- workspaces -----------------------------------------------------------------------------

    @contextmanager
    def gateway(self, *, create: bool = False) -> Iterator[Gateway]:
        """The workspace, here or on a server."""
        if not self.is_server:
            with self.embedded("this command", create=create) as workspace:
                yield workspace
            return
        from blowfishdb.entrypoints.client import connect

        with connect(self.workspace, token=self._token()) as remote:
            yield remote

    @contextmanager
    def embedded(self, what: str, *, create: bool = False) -> Iterator[Workspace]:
        """The workspace in its file, for what cannot be done through a server."""
        if self.is_server:
            raise InvalidInput(
                f"{what.capitalize()} needs the workspace itself, not a server in front of it.",
                fixes=("run it where the workspace is, with --workspace PATH",),
            )
        if not create and "://" not in self.workspace and not Path(self.workspace).exists():
            raise WorkspaceError(
                f"There is no workspace '{self.workspace}'.",
                fixes=(
                    "blowfishdb --workspace PATH …, if it is elsewhere",
                    "blowfishdb import SOURCE --name NAME, which makes one",
                ),
            )
        from blowfishdb.workspace import Workspace

        with Workspace(self.workspace, self.user) as workspace:
            yield workspace

    def _token(self) -> str:
        if self.token_file is not None:
            try:
                return self.token_file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError):
                raise InvalidInput(f"The token file '{self.token_file}' cannot be read.") from None
        token = os.environ.get(TOKEN, "")
        if not token:
            raise InvalidInput(
                "A server asks who you are, and no token was given.",
                fixes=(f"set {TOKEN}", "--token-file PATH", "blowfishdb token issue USER, on the server"),
            )
        return token

    # --- output ---------------------------------------------------------------------------------

    def say(self, plain: Any, *shown: RenderableType) -> None:
        """``plain`` as JSON if that is wanted, otherwise what people read."""
        if self.json:
            typer.echo(json.dumps(plain, indent=2, ensure_ascii=False, default=str))
            return
        from rich.text import Text

        out = self.console()
        for part in shown:
            out.print(Text(part) if isinstance(part, str) else part)  # a name may look like markup

    def console(self, *, stderr: bool = False) -> Console:
        """Where people read."""
        from blowfishdb.entrypoints.terminal import console

        return console(stderr=stderr)

    @contextmanager
    def progress(self, words: str) -> Iterator[Callable[[int, int], None] | None]:
        """A bar on standard error where someone can see it."""
        screen = self.console(stderr=True)
        if not screen.is_terminal:
            yield None
            return
        from rich.progress import Progress

        with Progress(console=screen, transient=True) as bar:
            task = bar.add_task(words, total=None)
            yield lambda done, of: bar.update(task, completed=done, total=of)

    def fail(self, error: BlowfishError) -> typer.Exit:
        """The failure on standard error, and the way out of the program."""
        if self.json:
            typer.echo(json.dumps(failing.problem(error), indent=2, ensure_ascii=False), err=True)
        else:
            failing.show(error)
        return typer.Exit(failing.exit_code(error))


def _speak_json(ctx: typer.Context, wanted: bool) -> bool:
    if wanted and ctx.obj is not None:
        Here.of(ctx).json = True
    return wanted


AsJson = Annotated[
    bool, typer.Option("--json", help="Machine-readable output with stable keys.", callback=_speak_json)
]
Data = Annotated[str, typer.Argument(metavar="DATA", help="The name of a dataset.", show_default=False)]
WitnessFile = Annotated[
    Path | None,
    typer.Option(
        "--witness",
        metavar="FILE",
        envvar="BLOWFISHDB_WITNESS",
        help="A file outside the workspace with heads of its books.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def read_text(file: Path) -> str:
    """The content of a file that was named on the command line."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"The file '{file}' is not there, or is not text in UTF-8.") from None
