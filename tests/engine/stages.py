"""Stages of an answer: told as they are reached, or with something that happens in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def around(reach: Callable[[str], None], owner: type, name: str, before: str, after: str) -> None:
    """Let ``reach`` know before and after every call of a method, from now on in this process."""
    inner = getattr(owner, name)

    def wrapped(*args: Any, **options: Any) -> Any:
        reach(before)
        result = inner(*args, **options)
        reach(after)
        return result

    setattr(owner, name, wrapped)


@contextmanager
def just_before(owner: type, name: str, act: Callable[[], object]) -> Iterator[None]:
    """Something happens once, in the middle of something else."""
    inner, done = getattr(owner, name), list[bool]()

    def wrapped(*args: object, **options: object) -> object:
        if not done:
            done.append(True)  # what is done may come here itself
            act()
        return inner(*args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, wrapped)
        yield
