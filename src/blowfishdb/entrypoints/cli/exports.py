"""Answers as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from blowfishdb.adapters.private_files import private_file
from blowfishdb.core.errors import InvalidInput, SourceError

if TYPE_CHECKING:
    from blowfishdb.answers import Answer


def write(answer: Answer, path: Path, form: str) -> None:
    """Write an answer to a file in one of the formats."""
    from blowfishdb.exports import export

    try:
        private_file(path)
        path.write_bytes(export(answer, form).body)
    except OSError as error:
        raise SourceError(
            f"'{path}' cannot be written ({error.strerror}); the answer is stored and can be exported.",
            fixes=(f"blowfishdb export {answer.number} --format csv -o PATH",),
        ) from None


def check_place(path: Path) -> str:
    """The format that a file name stands for; known before anything is paid for."""
    form = check_format(path.suffix.removeprefix(".").lower())
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder '{path.parent}'.")
    return form


def check_format(form: str) -> str:
    """A format that can be written."""
    from blowfishdb.exports import FORMATS

    if form not in FORMATS:
        raise InvalidInput(f"An answer is not written as '{form}'.", fixes=tuple(FORMATS))
    return form
