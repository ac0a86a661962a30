"""Which workspace a command is about, who runs it, and in which form it speaks.

What a failure looks like: its exit code, its words on standard error, and its JSON.

How a function becomes a command, and the headings under which help lists them: who mostly uses them.

Questions to whoever sits at the terminal. They go to standard error, so that answers can be piped.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, cast, final, get_type_hints

import typer

from blowfishdb.core import errors
from blowfishdb.core.errors import BlowfishError, InvalidInput, WorkspaceError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from blowfishdb.workspace.datasets import Datasets
    from blowfishdb.workspace.embedded import Workspace


OTHER: Final = 1
USAGE: Final = 2
BUDGET: Final = 3
FORBIDDEN: Final = 4
INFEASIBLE: Final = 5

USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""The base of everything that is wrong with what was typed, which typer does not export."""

# The first class that fits decides.
_EXIT_CODES: Final[tuple[tuple[type[BlowfishError], int], ...]] = (
    (errors.BudgetExhausted, BUDGET),
    (errors.MaxCostExceeded, BUDGET),
    (errors.NotAllowed, FORBIDDEN),
    (errors.NotSignedIn, FORBIDDEN),
    (errors.TooManyAttempts, FORBIDDEN),
    (errors.PolicyConflict, FORBIDDEN),
    (errors.NotOpen, FORBIDDEN),
    (errors.NotProven, FORBIDDEN),
    (errors.NoGuarantee, FORBIDDEN),
    (errors.Infeasible, INFEASIBLE),
    (errors.UnsupportedSql, USAGE),
    (errors.InvalidInput, USAGE),
)


def exit_code(error: BlowfishError) -> int:
    """2 usage, 3 budget, 4 permission or policy, 5 infeasible accuracy, 1 everything else."""
    return next((code for kind, code in _EXIT_CODES if isinstance(error, kind)), OTHER)


def problem(error: BlowfishError) -> dict[str, Any]:
    """The failure as a problem object, as the API words it."""
    kebab, title = (_apart(type(error).__name__, gap) for gap in "- ")
    return {
        "type": f"urn:blowfishdb:problem:{kebab}",
        "title": title.capitalize(),
        "detail": error.message,
        "charged": error.charged,
        "fixes": list(error.fixes),
        "exit_code": exit_code(error),
    }


def usage_problem(message: str) -> dict[str, Any]:
    """The same for something that was typed wrongly."""
    return problem(errors.InvalidInput(message, fixes=("--help",)))


def _apart(name: str, gap: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", gap, name).lower()


def show(error: BlowfishError) -> None:
    """What happened and what to try, on standard error."""
    typer.secho(error.message, fg=typer.colors.RED, err=True)
    for fix in error.fixes:
        typer.echo(f"  try: {fix}", err=True)
    if error.charged:
        typer.echo("  The budget was charged although no answer came back.", err=True)


DEFAULT_WORKSPACE: Final = "workspace.blowfish"
TOKEN: Final = "BLOWFISHDB_TOKEN"  # noqa: S105 (the name of a variable)


@final
@dataclass
class Session:
    """What was said in front of the command; ``json`` is said behind it."""

    workspace: str
    user: str | None
    token_file: Path | None
    json: bool = False

    @classmethod
    def of(cls, ctx: typer.Context) -> Session:
        """The one of this run."""
        return cast("Session", ctx.obj)

    @property
    def is_server(self) -> bool:
        """Whether the workspace is behind an address."""
        return self.workspace.startswith(("http://", "https://"))

    # --- workspaces -----------------------------------------------------------------------------

    @contextmanager
    def gateway(self, *, create: bool = False) -> Iterator[Datasets]:
        """The workspace, here or on a server."""
        if not self.is_server:
            with self.embedded("this command", create=create) as workspace:
                yield workspace
            return
        from blowfishdb.workspace.remote import connect

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
        from blowfishdb.workspace.embedded import Workspace

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
        from blowfishdb.show.terminal import console

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
            typer.echo(json.dumps(problem(error), indent=2, ensure_ascii=False), err=True)
        else:
            show(error)
        return typer.Exit(exit_code(error))


def _speak_json(ctx: typer.Context, wanted: bool) -> bool:
    if wanted and ctx.obj is not None:
        Session.of(ctx).json = True
    return wanted


AsJson = Annotated[
    bool, typer.Option("--json", help="Machine-readable output with stable keys.", callback=_speak_json)
]
Function = TypeVar("Function", bound=Callable[..., None])
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


CURATOR: Final = "Curator: import data, decide what stays hidden"
ANALYST: Final = "Analyst: ask, look, compare"
AUDITOR: Final = "Auditor: what was promised and what was spent"
SYSTEM: Final = "System"


@final
class Commands:
    """Commands that help lists under one heading, or that one word stands before: ``policy show``.

    ``@commands("blowfishdb show 12")`` makes a function a command, with examples of its use. It gets the
    session as ``here``; the workspace as ``gateway``, or, where only its file will do, as ``workspace``,
    with what ``embedded`` says about it; and what was typed. A parameter that is a dataclass stands for an
    option for each of its fields. ``--json`` can be said behind every command.
    """

    def __init__(self, panel: str = SYSTEM, name: str = "", about: str = "") -> None:
        self._panel, self._name, self._about = panel, name, about
        self._added: list[tuple[Callable[..., None], dict[str, Any]]] = []

    def __call__(
        self, *lines: str, name: str | None = None, panel: str = "", embedded: str = "", create: bool = False
    ) -> Callable[[Function], Function]:
        """A decorator; ``name`` is for a function that is called otherwise."""
        title = "Examples:" if len(lines) > 1 else "Example:"
        listed = "\n\n".join((title, *(f"  {line}" for line in lines)))
        heading = None if self._name else panel or self._panel

        def add(function: Function) -> Function:
            run = _command(function, embedded, create=create)
            self._added.append((run, {"name": name, "epilog": listed, "rich_help_panel": heading}))
            return function

        return add

    def add_to(self, app: typer.Typer) -> None:
        """Add the commands to a program, in the order of their definition."""
        home = typer.Typer(help=self._about, no_args_is_help=True) if self._name else app
        for run, options in self._added:
            home.command(**options)(run)
        if self._name:
            app.add_typer(home, name=self._name, rich_help_panel=self._panel)


def _command(function: Callable[..., None], embedded: str, *, create: bool) -> Callable[..., None]:
    """The function as typer calls it: by options alone, those of a group one by one."""
    given = [name for name in ("here", "gateway", "workspace") if function.__annotations__.pop(name, None)]
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    options = [Parameter("ctx", Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for name, each in signature(function).parameters.items():
        if name in groups:
            inside = get_type_hints(groups[name], include_extras=True)
            members = [(field.name, field.default, inside[field.name]) for field in fields(groups[name])]
        else:
            members = [] if name in given else [(name, each.default, hints[name])]
        options += [Parameter(n, Parameter.KEYWORD_ONLY, default=d, annotation=h) for n, d, h in members]
    options.append(Parameter("_json", Parameter.KEYWORD_ONLY, default=False, annotation=AsJson))

    def run(ctx: typer.Context, _json: bool, **typed: Any) -> None:
        here = Session.of(ctx)
        for name, group in groups.items():
            typed[name] = group(**{field.name: typed.pop(field.name) for field in fields(group)})
        with ExitStack() as stack:
            if "gateway" in given:
                typed["gateway"] = stack.enter_context(here.gateway())
            elif "workspace" in given:
                typed["workspace"] = stack.enter_context(here.embedded(embedded, create=create))
            function(here=here, **typed)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {option.name: option.annotation for option in options}
    cast("Any", run).__signature__ = Signature(options)
    return run


def confirm(question: str, *, otherwise: str) -> None:
    """Go on only after a yes; ``otherwise`` is what to pass where nobody can be asked."""
    try:
        agreed = typer.confirm(question, default=False, err=True)
    except typer.Abort:
        raise _unanswered(otherwise) from None
    if not agreed:
        typer.echo("Nothing was done.", err=True)
        raise typer.Exit(1)


def ask(question: str, *, default: str, otherwise: str) -> str:
    """A line of text; Enter for the default."""
    try:
        return str(typer.prompt(question, default=default, err=True)).strip()
    except typer.Abort:
        raise _unanswered(otherwise) from None


def ask_password(name: str) -> str:
    """A password, typed twice, or the first line of a pipe."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    return str(typer.prompt(f"Password for {name}", hide_input=True, confirmation_prompt=True, err=True))


def _unanswered(otherwise: str) -> Exception:
    """Someone who interrupts means it; a pipe that ends cannot be asked."""
    if sys.stdin.isatty():
        return typer.Abort()
    return InvalidInput(
        "This needs a confirmation, and nobody is there to give it. Nothing was done.", fixes=(otherwise,)
    )
