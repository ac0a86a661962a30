"""What a form sent, read field by field."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import FormData


async def sent(request: Request) -> FormData:
    """The fields of the form; the page's gate has already read them."""
    return await request.form()


Sent = Annotated[FormData, Depends(sent)]
"""A dependency that yields the form: ``def save(form: Sent, caller: PageCurator)``."""


def text(form: FormData, name: str, default: str = "") -> str:
    """A field as a text without spaces around it; a file is none."""
    value = form.get(name, default)
    return value.strip() if isinstance(value, str) else default


def texts(form: FormData, name: str) -> list[str]:
    """All texts that were sent under one name, as ticked boxes are."""
    return [value.strip() for value in form.getlist(name) if isinstance(value, str)]


def ticked(form: FormData, name: str) -> bool:
    """Whether a box was ticked."""
    return bool(text(form, name))
