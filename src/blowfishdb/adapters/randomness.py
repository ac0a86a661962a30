"""Uniform words from an AES-256-CTR keystream.

AES in counter mode makes 6 GB/s here, twice as much as ChaCha20. Its output cannot be told from uniform words
by anyone without the key, and the key comes from the operating system and exists only in this process.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from typing import Final, NoReturn, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

_KEY: Final = 32
_BLOCK: Final = 16
_ZEROS: Final = memoryview(bytes(2**18))
_WORDS_PER_KEY: Final = 2**33  # 2^32 blocks: telling them from uniform has advantage below 2^-64


def _keystream(key: bytes, counter: bytes) -> CipherContext:
    return Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor()


def _draw(keystream: CipherContext, count: int) -> NDArray[np.uint64]:
    words = np.empty(count + 2, np.uint64)  # the cipher wants room for a block more than it writes
    room = words.view(np.uint8).data
    for start in range(0, 8 * count, len(_ZEROS)):
        keystream.update_into(_ZEROS[: 8 * count - start], room[start:])
    return words[:count]


@final
class SecureBits:
    """Words for real releases: unpredictable, never repeated, safe to share between threads.

    Each key and starting counter are drawn from the operating system and used once. A forked child draws
    its own before its first word, so that it never replays its parent's noise; the difference of two answers
    with the same noise would be the truth. The state is neither shown nor serialised.
    """

    __slots__ = ("__weakref__", "_keystream", "_left", "_lock", "_pid", "_words_per_key")

    def __init__(self, *, words_per_key: int = _WORDS_PER_KEY) -> None:
        self._words_per_key = words_per_key
        self._start()
        _live.add(self)

    def words(self, count: int) -> NDArray[np.uint64]:
        """``count`` independent uniform words that no other call has returned or will return."""
        with self._lock:
            # The fork hook has re-keyed already, unless the fork went around Python.
            if self._pid != os.getpid() or self._left < count:
                self._rekey()
            self._left -= count
            return _draw(self._keystream, count)

    def _start(self) -> None:
        self._lock = threading.Lock()  # a fork may copy a lock that another thread holds for ever
        self._rekey()

    def _rekey(self) -> None:
        self._keystream = _keystream(os.urandom(_KEY), os.urandom(_BLOCK))
        self._left = self._words_per_key
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return "SecureBits(…)"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A secure source of noise cannot be copied or serialised: a copy would repeat its words."
        )


_live: Final[weakref.WeakSet[SecureBits]] = weakref.WeakSet()


def _restart_all() -> None:
    for source in tuple(_live):
        source._start()


if hasattr(os, "register_at_fork"):  # absent on Windows, where nothing forks
    os.register_at_fork(after_in_child=_restart_all)


@final
class SeededBits:
    """Words that a seed determines, for tests and benchmarks only: who knows the seed removes the noise."""

    __slots__ = ("_keystream", "_lock", "_seed")

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._lock = threading.Lock()
        self._keystream = _keystream(hashlib.sha256(f"blowfishdb {seed}".encode()).digest(), bytes(_BLOCK))

    def words(self, count: int) -> NDArray[np.uint64]:
        """The next ``count`` words of the seed's stream."""
        with self._lock:
            return _draw(self._keystream, count)

    def __repr__(self) -> str:
        return f"SeededBits({self._seed})"
