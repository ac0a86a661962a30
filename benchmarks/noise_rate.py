"""How fast is exact noise? Our discrete Laplace sampler beside OpenDP's and numpy's floating-point one.

    python benchmarks/noise_rate.py [--samples N] [--opendp-samples N] [--repeats R]

All three run on one core in the same run. numpy's continuous Laplace is the *unsafe floor*: floating-point
noise from a predictable generator, which must never protect anyone. OpenDP's sampler is exact like ours; its
rate includes the passage of a list of integers through its Python binding, as any caller would pay it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from blowfishdb.core.noise import Noise
from blowfishdb.noise import secure

SINGLE: dict[str, int | Fraction] = {
    "1": 1,
    "10": 10,
    "1000": 1000,
    "10^6": 10**6,
    "10^9/118300000": Fraction(10**9, 118_300_000),
}


@dataclass(frozen=True, slots=True)
class Row:
    scale: str
    ours: float
    unsafe: float
    opendp: float | None

    def __str__(self) -> str:
        unsafe = f"{self.unsafe:>14,.0f} {self.ours / self.unsafe:>6.2f}×"
        opendp = f"{'–':>12} {'–':>9}"
        if self.opendp is not None:
            opendp = f"{self.opendp:>12,.0f} {self.ours / self.opendp:>8,.0f}×"
        return f"{self.scale:<28} {self.ours:>12,.0f} {opendp} {unsafe}"


HEADER = f"{'scale':<28} {'ours/s':>12} {'OpenDP/s':>12} {'ratio':>9} {'numpy float/s':>14} {'ratio':>7}"


def rate(draw: Callable[[], object], count: int, repeats: int) -> float:
    """Samples per second in the best of several runs, after one that warms the caches."""
    draw()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        draw()
        best = min(best, time.perf_counter() - start)
    return count / best


def opendp_sampler(scale: float) -> Callable[[int], object] | None:
    """OpenDP's integer Laplace measurement, or nothing if OpenDP is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement = dp.m.make_laplace(*space, scale=scale)
    return lambda count: measurement([0] * count)


def single(noise: Noise, name: str, scale: int | Fraction, args: argparse.Namespace) -> Row:
    generator = np.random.default_rng(0)
    theirs = opendp_sampler(float(scale))
    return Row(
        name,
        rate(lambda: noise.discrete_laplace(scale, args.samples), args.samples, args.repeats),
        rate(lambda: generator.laplace(0, float(scale), args.samples), args.samples, args.repeats),
        rate(lambda: theirs(args.opendp_samples), args.opendp_samples, args.repeats) if theirs else None,
    )


def distinct(noise: Noise, name: str, scales: object, args: argparse.Namespace) -> Row:
    """One scale per sample; OpenDP has no such measurement."""
    generator = np.random.default_rng(0)
    floats = np.asarray(scales, dtype=np.float64)
    return Row(
        name,
        rate(lambda: noise.discrete_laplace(scales), args.samples, args.repeats),  # type: ignore[call-overload]
        rate(lambda: generator.laplace(0, floats), args.samples, args.repeats),
        None,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Rates of exact and unsafe Laplace noise, in samples per second."
    )
    parser.add_argument("--samples", type=int, default=2**20, help="samples per measurement (default 2^20)")
    parser.add_argument(
        "--opendp-samples", type=int, default=20_000, help="samples from OpenDP (default 20000)"
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs per measurement, best kept (default 3)")
    args = parser.parse_args()

    noise = secure()
    if opendp_sampler(1.0) is None:
        print("OpenDP is not installed, so its column is empty. Try: pip install opendp\n")
    print(HEADER)
    for name, scale in SINGLE.items():
        print(single(noise, name, scale, args))
    integers = np.random.default_rng(1).integers(1, 10**6, args.samples)
    nano = np.random.default_rng(2).integers(10**6, 10**9, args.samples)
    fractions = np.array([Fraction(10**9, int(epsilon)) for epsilon in nano], dtype=object)
    print(distinct(noise, "distinct ints below 10^6", integers, args))
    print(distinct(noise, "distinct Fractions 10^9/nano", fractions, args))


if __name__ == "__main__":
    main()
