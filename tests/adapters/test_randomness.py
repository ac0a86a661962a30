"""The keystream: unpredictable, never repeated (not after a fork, not between threads), never shown."""

from __future__ import annotations

import ast
import copy
import os
import pickle
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import blowfishdb
from blowfishdb.adapters.randomness import SecureBits, SeededBits
from blowfishdb.core.noise import Noise
from blowfishdb.noise import secure, seeded

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def words_of_a_child(source: SecureBits, count: int) -> NDArray[np.uint64]:
    """What a forked child draws from its copy of the source."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)  # a child that hangs fails the test instead of outliving it
        try:
            os.write(writer, source.words(count).tobytes())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        drawn = np.frombuffer(pipe.read(), np.uint64)
    os.waitpid(pid, 0)
    return drawn


@pytest.mark.parametrize("source", [SecureBits(), SeededBits(0)], ids=["secure", "seeded"])
@pytest.mark.parametrize("count", [0, 1, 3, 4096, 2**15 + 1, 2**16])
def test_words_have_the_right_form(source: SecureBits | SeededBits, count: int) -> None:
    words = source.words(count)
    assert words.shape == (count,)
    assert words.dtype == np.uint64
    assert np.unique(words).size == count


@pytest.mark.parametrize("source", [SecureBits(), SeededBits(3)], ids=["secure", "seeded"])
def test_words_are_uniform_byte_by_byte(source: SecureBits | SeededBits) -> None:
    observed = np.bincount(source.words(2**17).view(np.uint8), minlength=256)
    assert stats.chisquare(observed).pvalue > 1e-9


def test_two_secure_streams_differ() -> None:
    assert not np.isin(SecureBits().words(1000), SecureBits().words(1000)).any()
    assert secure().discrete_laplace(10**6, 20).tolist() != secure().discrete_laplace(10**6, 20).tolist()


def test_a_stream_does_not_repeat_itself() -> None:
    source = SecureBits()
    assert not np.isin(source.words(1000), source.words(1000)).any()


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_replay_its_parent() -> None:
    source = SecureBits()
    source.words(5)
    children = [words_of_a_child(source, 100) for _ in range(2)]
    assert [child.size for child in children] == [100, 100]
    parent = source.words(100)
    assert np.unique(np.concatenate([parent, *children])).size == 300


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_while_the_lock_is_held_does_not_hang() -> None:
    source = SecureBits()
    with source._lock:
        child = words_of_a_child(source, 10)
    assert child.size == 10


def test_a_fork_that_goes_around_python_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SecureBits()
    source.words(1)
    before = source._keystream
    monkeypatch.setattr(os, "getpid", lambda: -1)
    source.words(1)
    assert source._keystream is not before


def test_a_key_is_retired_after_its_words() -> None:
    source = SecureBits(words_per_key=8)
    first = source._keystream
    source.words(8)
    assert source._keystream is first
    source.words(1)
    assert source._keystream is not first


def test_every_key_and_counter_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bytes] = []
    real = os.urandom

    def recording(count: int) -> bytes:
        drawn.append(real(count))
        return drawn[-1]

    monkeypatch.setattr(os, "urandom", recording)
    source = SecureBits(words_per_key=1)
    for _ in range(3):
        source.words(1)
    assert sorted(map(len, drawn)) == [16] * 3 + [32] * 3
    assert len(set(drawn)) == 6


@pytest.mark.parametrize("source", [SecureBits(), SeededBits(1)], ids=["secure", "seeded"])
def test_threads_never_get_the_same_words(source: SecureBits | SeededBits) -> None:
    drawn: list[NDArray[np.uint64]] = []
    start = threading.Barrier(4)

    def draw() -> None:
        start.wait()
        own = [source.words(17) for _ in range(1000)]
        drawn.extend(own)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = np.concatenate(drawn)
    assert np.unique(together).size == together.size == 4 * 17 * 1000


@pytest.mark.parametrize("source", [SecureBits(), SeededBits(1)], ids=["secure", "seeded"])
def test_a_draw_waits_for_the_one_before(source: SecureBits | SeededBits) -> None:
    done = threading.Event()

    def draw() -> None:
        source.words(1)
        done.set()

    thread = threading.Thread(target=draw)
    with source._lock:
        thread.start()
        assert not done.wait(0.05)
    assert done.wait(5)
    thread.join()


def test_the_key_is_neither_shown_nor_kept() -> None:
    source = SecureBits()
    assert repr(source) == "SecureBits(…)"
    assert repr(Noise(source)) == "Noise()"
    kept = [getattr(source, name) for name in SecureBits.__slots__ if name != "__weakref__"]
    assert not any(isinstance(value, bytes | bytearray | memoryview) for value in kept)


@pytest.mark.parametrize("value", [SecureBits(), secure()], ids=["bits", "noise"])
def test_a_secure_source_cannot_be_serialised_or_copied(value: object) -> None:
    with pytest.raises(TypeError, match="cannot be copied or serialised"):
        pickle.dumps(value)
    with pytest.raises(TypeError, match="cannot be copied or serialised"):
        copy.deepcopy(value)


def test_the_same_seed_gives_the_same_words_however_they_are_asked_for() -> None:
    whole = SeededBits(42).words(100)
    source = SeededBits(42)
    pieces = [source.words(count) for count in (1, 2, 3, 44, 50)]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    assert not np.isin(SeededBits(43).words(100), whole).any()
    assert repr(source) == "SeededBits(42)"


def test_seeded_noise_says_that_it_protects_nobody() -> None:
    assert "TESTS AND BENCHMARKS ONLY" in str(seeded.__doc__)


def test_no_entrypoint_can_reach_a_seed() -> None:
    package = Path(blowfishdb.__file__).parent
    folders = [package / name for name in ("entrypoints", "workspace", "service")]
    for file in [file for folder in folders for file in folder.rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            words = {getattr(node, field, None) for field in ("id", "attr", "name", "asname", "arg")}
            assert not words & {"seeded", "SeededBits"}, f"{file.name} refers to seeded noise"
