"""Secret: no ordinary operation shows, copies, compares or stores a true value."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import operator
import pickle
import pprint
import traceback

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfishdb.core.errors import BlowfishError, SecretLeak
from blowfishdb.core.secret import Secret

TRUE = 471_147
secrets = (Secret(TRUE), Secret([TRUE]), Secret(np.array([TRUE, 2])), Secret({"count": TRUE}))


@given(st.one_of(st.integers(), st.text(), st.lists(st.integers())))
def test_only_reveal_gives_the_value_back(value: object) -> None:
    assert Secret(value).reveal() == value
    array = np.arange(3)
    assert Secret(array).reveal() is array


@pytest.mark.parametrize("secret", secrets)
def test_text_is_redacted(secret: Secret[object]) -> None:
    @dataclasses.dataclass
    class Holder:
        inner: Secret[object]

    shown = (
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret!r:>30}",
        f"{secret:>30}",
        "%s %r" % (secret, secret),  # noqa: UP031
        repr([secret]),
        repr(Holder(secret)),
        pprint.pformat({"x": secret}),
        logging.LogRecord("x", 20, "x", 1, "%s", (secret,), None).getMessage(),
        repr(dir(secret)),
    )
    assert not any(str(TRUE) in text for text in shown)
    assert repr(secret) == "Secret(…)"


@pytest.mark.parametrize("secret", secrets)
@pytest.mark.parametrize(
    "leak",
    [
        copy.copy,
        copy.deepcopy,
        lambda secret: copy.deepcopy({"deep": [secret]}),
        pickle.dumps,
        lambda secret: secret.__getstate__(),
        bool,
        lambda secret: not secret,
        lambda secret: "yes" if secret else "no",
        len,
        iter,
        list,
        lambda secret: [*secret],
        int,
        float,
        complex,
        operator.index,
        range,
        np.asarray,
        np.sum,
        lambda secret: np.add(secret, 1),
        hash,
        lambda secret: {secret},
        lambda secret: {secret: 1},
        lambda secret: secret == secret,  # noqa: PLR0124
        lambda secret: secret != secret,  # noqa: PLR0124
        lambda secret: secret == TRUE,
        lambda secret: TRUE == secret,  # noqa: SIM300
        lambda secret: secret < 5,
        lambda secret: secret <= 5,
        lambda secret: secret > 5,
        lambda secret: secret >= 5,
        lambda secret: max(secret, Secret(5)),
        lambda secret: sorted([secret, secret]),
        lambda secret: secret in [TRUE],
    ],
)
def test_every_leak_is_refused(secret: Secret[object], leak) -> None:
    with pytest.raises(SecretLeak) as caught:
        leak(secret)
    assert str(TRUE) not in "".join(traceback.format_exception(caught.value))
    assert isinstance(caught.value, BlowfishError)


@pytest.mark.parametrize("secret", secrets)
@pytest.mark.parametrize(
    "use",
    [
        json.dumps,
        np.array,
        lambda secret: dict([secret]),
        lambda secret: secret + 1,
        lambda secret: 1 + secret,
        lambda secret: secret * 2,
        lambda secret: -secret,
        lambda secret: secret[0],
        lambda secret: secret(),
        lambda secret: "%d" % secret,  # noqa: UP031
        bytes,
        vars,
        round,
        memoryview,
        lambda secret: TRUE in secret,
        dataclasses.asdict,
    ],
)
def test_nothing_else_works_either(secret: Secret[object], use) -> None:
    with pytest.raises(TypeError) as caught:
        use(secret)
    assert str(TRUE) not in str(caught.value)


def test_nothing_can_be_attached() -> None:
    with pytest.raises(AttributeError):
        Secret(1).note = "x"  # type: ignore[attr-defined]
    assert not hasattr(Secret(1), "__dict__")
    assert not hasattr(Secret(1), "value")
