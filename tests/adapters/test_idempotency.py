"""A request that is sent again gets the same response, and the work is done once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sqlalchemy import func, select

from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.once import Idempotency
from blowfishdb.adapters.store.tables import idempotency
from blowfishdb.core.errors import AnswerInProgress, InvalidInput, KeyReused
from blowfishdb.core.policy.codec import digest
from tests.adapters.workspaces import HandClock, make_format_1

ONE, TWO = digest({"question": 1}), digest({"question": 2})


@pytest.fixture
def requests(store: Store, clock: HandClock) -> Idempotency:
    return Idempotency(store, clock)


def test_the_same_request_gets_the_same_response(
    requests: Idempotency, address: str, clock: HandClock
) -> None:
    assert requests.once("ana", "k", ONE) is None
    requests.keep("ana", "k", ONE, '{"answer": [1]}')
    assert requests.once("ana", "k", ONE) == '{"answer": [1]}'
    with closing(Store.open(address)) as other:  # as another process would
        assert Idempotency(other, clock).once("ana", "k", ONE) == '{"answer": [1]}'
    requests.keep("ana", "k", ONE, "another")
    requests.give_up("ana", "k")
    assert requests.once("ana", "k", ONE) == '{"answer": [1]}'


def test_keys_belong_to_a_user_and_a_request(requests: Idempotency) -> None:
    assert requests.once("ana", "k", ONE) is None
    with pytest.raises(KeyReused, match="another request"):
        requests.once("ana", "k", TWO)
    requests.keep("ana", "k", TWO, "not mine")
    requests.keep("ana", "k", ONE, "mine")
    with pytest.raises(KeyReused):
        requests.once("ana", "k", TWO)
    assert requests.once("ana", "k", ONE) == "mine"
    assert requests.once("bo", "k", TWO) is None
    assert requests.once("ana", "k2", TWO) is None


def test_a_request_under_way_is_not_begun_again(requests: Idempotency, clock: HandClock) -> None:
    assert requests.once("ana", "k", ONE) is None
    with pytest.raises(AnswerInProgress, match="right now"):
        requests.once("ana", "k", ONE)
    requests.give_up("ana", "k")
    assert requests.once("ana", "k", ONE) is None
    clock.move(seconds=59)
    with pytest.raises(AnswerInProgress) as refused:
        requests.once("ana", "k", ONE)
    assert refused.value.wait == 1 and requests.alive("ana", "k")
    requests.renew("ana", "k")
    clock.move(seconds=59)
    with pytest.raises(AnswerInProgress):  # still at work
        requests.once("ana", "k", ONE)
    clock.move(seconds=1)
    assert not requests.alive("ana", "k")
    assert requests.once("ana", "k", ONE) is None  # the first one was abandoned
    requests.keep("ana", "k", ONE, "first")
    requests.keep("ana", "k", ONE, "second")
    assert requests.once("ana", "k", ONE) == "first"


def test_one_of_many_does_the_work(address: str) -> None:
    done, ready = [], threading.Barrier(6)
    Store.open(address).close()

    def send(number: int) -> str:
        with closing(Store.open(address)) as mine:
            requests = Idempotency(mine)
            ready.wait()
            while True:
                try:
                    stored = requests.once("ana", "k", ONE)
                except AnswerInProgress:
                    continue
                if stored is not None:
                    return stored
                done.append(number)
                requests.keep("ana", "k", ONE, f"by {number}")

    with ThreadPoolExecutor(6) as pool:
        responses = set(pool.map(send, range(6)))
    assert len(done) == 1 and responses == {f"by {done[0]}"}


def test_old_responses_are_removed_on_writing(requests: Idempotency, store: Store, clock: HandClock) -> None:
    requests.keep("ana", "k", ONE, "old")
    clock.move(days=6, hours=23)
    assert requests.once("ana", "k", ONE) == "old"
    clock.move(hours=1)
    assert requests.once("ana", "new", TWO) is None
    with store.reading() as connection:
        assert connection.execute(select(func.count()).select_from(idempotency)).scalar() == 1
    assert requests.once("ana", "k", TWO) is None


@pytest.mark.parametrize(
    ("user", "key", "request_digest"),
    [("", "k", ONE), ("ana", "", ONE), ("ana", "x" * 256, ONE), ("ana", "a\x00", ONE), ("ana", "k", "short")],
)
def test_keys_that_cannot_be(requests: Idempotency, user: str, key: str, request_digest: str) -> None:
    with pytest.raises(InvalidInput):
        requests.once(user, key, request_digest)
    with pytest.raises(InvalidInput):
        requests.keep(user, key, request_digest, "body")


def test_a_workspace_of_format_1_keeps_responses_too(address: str) -> None:
    make_format_1(address)
    with closing(Store.open(address)) as store:
        requests = Idempotency(store)
        assert requests.once("ana", "k", ONE) is None
        requests.keep("ana", "k", ONE, "body")
        assert requests.once("ana", "k", ONE) == "body"
