"""From the format of an older workspace to this one: alembic's scripts, without its configuration files.

A script in ``versions/`` is called after its number. The format that a workspace has stands in its own table
``blowfish_meta``, so a fresh workspace, which is made whole, never loads alembic.

One script for each format; a script is never changed once it was published.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Final

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

FOLDER: Final = Path(__file__).parent


def upgrade(connection: Connection, found: int, wanted: int) -> None:
    """Run every script above ``found`` up to ``wanted``, in the transaction that is open."""
    steps = _scripts(found, wanted)
    with Operations.context(MigrationContext.configure(connection)):
        for step in steps:
            step.upgrade()


def _scripts(found: int, wanted: int) -> list[ModuleType]:
    """The scripts of the revisions found+1 … wanted, in order; a gap is a mistake in this package."""
    library = ScriptDirectory(str(FOLDER))
    chosen = [library.get_revision(str(number)) for number in range(found + 1, wanted + 1)]
    for number, revision in enumerate(chosen, start=found + 1):
        if revision.down_revision != (str(number - 1) if number > 1 else None):
            raise RuntimeError(f"Revision {number} does not follow revision {number - 1}.")
    return [revision.module for revision in chosen]
