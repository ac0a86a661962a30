"""The two sources of noise: `secure` for every release, `seeded` for tests and benchmarks only."""

from __future__ import annotations

from blowfishdb.adapters.randomness import SecureBits, SeededBits
from blowfishdb.core.noise import Noise

__all__ = ["Noise", "secure", "seeded"]


def secure() -> Noise:
    """Exact noise on a cryptographic keystream with a fresh key from the operating system.

    Safe to share between threads and across forks; it cannot be pickled, copied or replayed.
    """
    return Noise(SecureBits())


def seeded(seed: int) -> Noise:
    """The same noise for the same seed, FOR TESTS AND BENCHMARKS ONLY.

    It protects nobody: whoever knows or guesses the seed can subtract the noise. No entrypoint can reach it.
    """
    return Noise(SeededBits(seed))
