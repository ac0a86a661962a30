"""Where the papers are wrong: the smallest case of each, by brute force, in a second.

    python -m benchmarks.counterexamples [--write]

With ``--write``, docs/counterexamples.md is written again. Nothing that is claimed here needs to be believed:
a claim of a paper is set beside what going through all neighbours of a tiny database finds, and beside what
this package uses instead. Seeds: [B14] Blowfish Privacy (SIGMOD 2014), [D14] DAWA (VLDB 2014), [H15] Haney et
al. (VLDB 2015), [BDB] BlowfishDB.
"""

from __future__ import annotations

import argparse
import itertools
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from tests.core.known_counts import Database, most_change

import blowfishdb as bf
from blowfishdb.core.questions.clusters import FINE, Centroids, PointSpace
from blowfishdb.mechanisms.kmeans.crossing import round_facts

Number = Fraction | float
Edge = tuple[int, int]


@dataclass(frozen=True)
class Counterexample:
    """One claim, what is true of the smallest case, and what we use there."""

    name: str
    source: str
    words: str
    """What is wrong, in a sentence that stands alone."""
    case: str
    quantity: str
    claimed: Number
    true: Number
    ours: Number
    proof: str
    """The note in docs/ that says more."""


# --- what brute force needs -------------------------------------------------------------------------


def line(size: int, theta: int) -> list[Edge]:
    return [(u, v) for u, v in itertools.combinations(range(size), 2) if v - u <= theta]


def worst_loss(rows: Iterable[tuple[range, Fraction]], edges: Iterable[Edge]) -> Fraction:
    """The loss of noisy counts of sets, each with its scale: the largest sum, over edges, of 1/scale."""
    counts = list(rows)
    return max(
        sum((1 / scale for cells, scale in counts if (u in cells) != (v in cells)), Fraction(0))
        for u, v in edges
    )


def largest_change(matrix: np.ndarray, edges: Iterable[Edge]) -> float:
    """The largest L1 change of matrix · x when one record moves along an edge."""
    return max(float(np.abs(matrix[:, u] - matrix[:, v]).sum()) for u, v in edges)


def histogram_change(
    size: int,
    edges: list[Edge],
    known: list[set[int]],
    people: int,
    firsts: frozenset[Database] | None = None,
) -> Fraction:
    """The largest change of the histogram between neighbours by [B14] Definition 4.1, all of them listed."""
    table = np.zeros((size, size), dtype=bool)
    for u, v in edges:
        table[u, v] = table[v, u] = True
    counts = np.array([[int(value in each) for value in range(size)] for each in known])
    return most_change(np.eye(size, dtype=int), table, counts, people, firsts=firsts)


# --- the cases --------------------------------------------------------------------------------------


def ordered_hierarchical() -> Counterexample:
    half = Fraction(1, 2)  # ε_S = ε_H = 1/2, so ε = 1; height h = 1
    published = [
        (range(2), Fraction(2)),  # s_1, the root of H_1: 2h/ε
        (range(1), Fraction(2)),  # the leaves of H_1: 2h/ε
        (range(1, 2), Fraction(2)),
        (range(4), 1 / half),  # s_2: 1/ε_S
        (range(2, 3), 2 / half),  # the leaves of H_2: 2h/ε_H
        (range(3, 4), 2 / half),
    ]
    graph = bf.graphs.Threshold(4, 2)
    plan = bf.mechanisms.OrderedHierarchical(fanout=2, split=half).plan(bf.workloads.AllRanges(4), graph)
    return Counterexample(
        name="The budget of the ordered hierarchical mechanism",
        source="[B14] §7.2",
        words="A record that moves across the border of the first block changes the root of the first "
        "tree as "
        "well, and that root has the noise of a tree node: the sum of what the nodes cost is more than ε, "
        "however ε is divided.",
        case="four cells, θ = 2, fan-out 2, ε = 1",
        quantity="privacy loss",
        claimed=Fraction(1),
        true=worst_loss(published, line(4, 2)),
        ours=plan.certificate(epsilon=1).worst_loss(graph),
        proof="proofs/ordered_hierarchical.md",
    )


def sums_of_clusters() -> Counterexample:
    sums = np.array([[value if (value < 5) == left else 0 for value in range(10)] for left in (True, False)])
    space = PointSpace.cells(10)
    cut = Centroids(space, FINE * np.array([[2], [7]]))
    return Counterexample(
        name="The sums of k-means",
        source="[B14] Lemma 6.1",
        words="A record that crosses from one cluster into the next leaves one sum with its whole value and "
        "enters the other with its whole value, however short the way is: from 4 to 5 the sums change by "
        "4 + 5, not by 2θ.",
        case="values 0 … 9, clusters 0–4 and 5–9, θ = 1",
        quantity="sensitivity of the sums",
        claimed=Fraction(2),
        true=largest_change(sums, line(10, 1)),
        ours=round_facts(cut, bf.graphs.Threshold(10, 1)).change.sums,
        proof="proofs/kmeans.md",
    )


CELLS = list(itertools.product(range(2), repeat=3))
ONE_ATTRIBUTE = [
    (u, v)
    for u, v in itertools.combinations(range(8), 2)
    if sum(a != b for a, b in zip(CELLS[u], CELLS[v], strict=True)) == 1
]


def known_tables() -> Counterexample:
    known = [{u for u, cell in enumerate(CELLS) if cell[a] == value} for a in (0, 1) for value in (0, 1)]
    graph = bf.graphs.Product(*(bf.graphs.Full(2),) * 3, joint=False)
    return Counterexample(
        name="Known tables, one attribute at a time",
        source="[B14] Theorem 8.5",
        words="If two tables of one attribute are known, a hidden change of one value forces others to "
        "change so "
        "that both tables still add up, and these need not move along edges: three people change six counts.",
        case="three attributes with two values, the first two tables known, 3 people",
        quantity="sensitivity of the histogram",
        claimed=Fraction(4),
        true=histogram_change(8, ONE_ATTRIBUTE, known, 3),
        ours=_sensitivity(graph, bf.Constraints(marginals=[0, 1])),
        proof="proofs/constraints.md",
    )


def known_table_equality() -> Counterexample:
    cells = list(itertools.product(range(3), range(2)))
    edges = [
        (u, v)
        for u, v in itertools.combinations(range(6), 2)
        if sum(a != b for a, b in zip(cells[u], cells[v], strict=True)) == 1
    ]
    known = [{u for u, cell in enumerate(cells) if cell[0] == value} for value in range(3)]
    graph = bf.graphs.Product(bf.graphs.Full(3), bf.graphs.Full(2), joint=False)
    return Counterexample(
        name="Known tables, the other way",
        source="[B14] Theorem 8.5",
        words="Nor is it an equality: wherever three people could move in a ring, two of them could "
        "swap their "
        "places instead, which hides less, and by the definition only the least changes make neighbours.",
        case="3 × 2 values, the first table known, 3 people",
        quantity="sensitivity of the histogram",
        claimed=Fraction(6),
        true=histogram_change(6, edges, known, 3),
        ours=_sensitivity(graph, bf.Constraints(marginals=[0])),
        proof="proofs/constraints.md",
    )


def known_ranges() -> Counterexample:
    ranges = [(0, 1), (3, 4), (6, 7)]
    known = [set(range(low, high + 1)) for low, high in ranges]
    return Counterexample(
        name="Known ranges far from each other",
        source="[B14] Theorem 8.6",
        words="Ranges that no edge joins are said not to matter to each other; but whoever leaves one "
        "range along "
        "an edge must be replaced, and replacements may come from any range in a ring.",
        case="a line of 8, θ = 1, counts of [0,1], [3,4], [6,7] known, 4 people (from the database 6, "
        "0, 2, 3)",
        quantity="sensitivity of the histogram",
        claimed=Fraction(4),
        true=histogram_change(8, line(8, 1), known, 4, frozenset({(6, 0, 2, 3)})),
        ours=_sensitivity(bf.graphs.Threshold(8, 1), bf.Constraints(ranges=ranges)),
        proof="proofs/constraints.md",
    )


def known_count() -> Counterexample:
    return Counterexample(
        name="One known count",
        source="[B14] Corollary 8.3",
        words="A path from nobody to nobody through the constraint graph has up to |Q| + 1 edges, not "
        "|Q|: one "
        "record leaves the counted values, another enters them, and four counts change.",
        case="values 0 … 3, all pairs hidden, how many are in {0, 1} known, 2 people",
        quantity="sensitivity of the histogram",
        claimed=Fraction(2),
        true=histogram_change(4, line(4, 3), [{0, 1}], 2),
        ours=_sensitivity(bf.graphs.Full(4), bf.Constraints(counts=[{0, 1}])),
        proof="proofs/constraints.md",
    )


def _sensitivity(graph: bf.graphs.PolicyGraph, known: bf.Constraints) -> Fraction:
    return Fraction(bf.sensitivity(bf.workloads.Histogram(graph.size), graph, known))


def noise_of_dawa() -> Counterexample:
    """All cells alone: every wider bucket must be dearer than its cells, which have no noise, independently.

    A bucket of L cells costs max(0, dev + Z) + 1, its cells L, so it loses iff dev + Z > L − 1. Beyond zero
    the tail of Laplace noise is ½·e^{−t/λ}, so the log of the ratio is a sum of (change of dev)/λ.
    """
    with_record = (0, 1, 0, 0)
    loss = Fraction(0)
    for start, length in [(0, 2), (1, 2), (2, 2), (0, 4)]:
        bucket = [Fraction(count) for count in with_record[start : start + length]]
        deviation = sum((abs(count - sum(bucket) / length) for count in bucket), Fraction(0))
        assert deviation <= length - 1  # the event is in the tail with and without the record
        scale = (2 + Fraction(2 * (length - 1), length)) / 2  # half of what the proof has; ε₁ = 1
        loss += deviation / scale
    return Counterexample(
        name="The noise of DAWA's partition",
        source="the experiments of [D14]",
        words="Half the noise of the proof, none on single cells and costs cut off at zero: then every "
        "bucket that "
        "holds the new record tells of it at once, and whether all cells stay alone betrays more than ε₁.",
        case="four empty cells against one record in the second, ε₁ = ε₂ = 1",
        quantity="privacy loss of stage one",
        claimed=Fraction(1),
        true=loss,
        ours=_loss_of_proven_dawa(with_record),
        proof="proofs/dawa.md",
    )


def _loss_of_proven_dawa(with_record: tuple[int, ...]) -> float:
    from tests.mechanisms.partition_laws import Calibration, log_ratios

    from blowfishdb.mechanisms.dawa.partition import Candidates

    candidates = Candidates.powers_of_two(len(with_record))
    scales = tuple((length, candidates.scale(length, Fraction(1))) for length in candidates.lengths)
    law = Calibration(scales, candidates.units, candidates.units)
    return max(log_ratios((0,) * len(with_record), with_record, law).values())


def edge_coordinates() -> Counterexample:
    edges = [(0, 1), (1, 2), (2, 3), (0, 3)]
    incidence = np.zeros((4, 4))
    for column, (u, v) in enumerate(edges):
        incidence[u, column], incidence[v, column] = 1, -1
    ring = bf.graphs.Explicit(4, edges)
    plan = bf.mechanisms.EdgeNoise().plan(bf.workloads.Histogram(4), ring)
    return Counterexample(
        name="Noise of scale 1/ε on P_G⁺x",
        source="[H15], [BDB]",
        words="On a tree a move along an edge changes one coordinate by one; on a ring it also runs the "
        "other way "
        "round, and the coordinates change by more than one together.",
        case="a ring of four values, ε = 1",
        quantity="privacy loss",
        claimed=Fraction(1),
        true=Fraction(largest_change(np.linalg.pinv(incidence), edges)).limit_denominator(1000),
        ours=plan.certificate(epsilon=1).worst_loss(ring),
        proof="proofs/edge_noise.md",
    )


def one_or_the_other() -> Counterexample:
    cells = list(itertools.product(range(2), repeat=2))
    everyone = list(itertools.combinations(range(4), 2))
    composed = [(u, v) for u, v in everyone if (cells[u][0] == cells[v][0]) != (cells[u][1] == cells[v][1])]
    tables = np.array([[int(cell[a] == value) for cell in cells] for a in (0, 1) for value in (0, 1)])
    scale = Fraction(largest_change(tables, composed))  # calibrated to the composed policy, at ε = 1
    full = (bf.graphs.Full(2),) * 2
    ours = bf.sensitivity(
        bf.workloads.Marginals((2, 2), [(0,), (1,)]), bf.graphs.Product(*full)
    )  # the joint product, which is the default
    return Counterexample(
        name="One attribute or the other",
        source="[BDB] Definition 3.2",
        words="If policies of attributes are composed so that one attribute or the other moves, "
        "“everything is "
        "hidden” on both is not differential privacy: a record in which both differ is two edges away, and "
        "what is calibrated to the edges loses twice as much about it.",
        case="two attributes with two values, all pairs of each hidden, both tables released, ε = 1",
        quantity="privacy loss between any two records",
        claimed=Fraction(1),
        true=Fraction(largest_change(tables, everyone)) / scale,
        ours=Fraction(largest_change(tables, everyone)) / Fraction(ours),
        proof="decisions/0002-joint-products.md",
    )


CASES: tuple[Callable[[], Counterexample], ...] = (
    ordered_hierarchical,
    sums_of_clusters,
    known_tables,
    known_table_equality,
    known_ranges,
    known_count,
    noise_of_dawa,
    edge_coordinates,
    one_or_the_other,
)


PAGE = Path(__file__).parent.parent / "docs" / "counterexamples.md"
HEADING = """# Where the papers are wrong, on the smallest cases

BlowfishDB implements four papers, and several of their statements do not hold. Each is here with the smallest
case that refutes it: go through all neighbours of a tiny database and look. `python -m
benchmarks.counterexamples` does so in a second and prints this page, `tests/test_counterexamples.py` checks
that it still holds, and `--write` writes it again.

[B14] is *Blowfish Privacy* (SIGMOD 2014), [D14] *DAWA* (VLDB 2014), [H15] Haney, Machanavajjhala and Ding
(VLDB 2015), [BDB] *BlowfishDB*. A privacy loss is said to be at most ε = 1; a sensitivity is what one
neighbour changes. Where we are below the truth (2), the sums are taken from the middle of each cluster; where
we are above it (3, 4), it is a bound that is proven for every number of people.
"""


def _shown(number: Number) -> str:
    return f"{float(number):.4g}"


def page() -> str:
    """docs/counterexamples.md, from what brute force finds now."""
    found = [case() for case in CASES]
    lines = [HEADING, "| | claimed | by brute force | BlowfishDB |", "|---|---|---|---|"]
    for number, each in enumerate(found, 1):
        numbers = f"{_shown(each.claimed)} | **{_shown(each.true)}** | {_shown(each.ours)}"
        lines.append(f"| [{number}](#{number}) {each.source}: {each.quantity} | {numbers} |")
    for number, each in enumerate(found, 1):
        more = f"[{Path(each.proof).stem.replace('_', ' ')}]({each.proof})"
        lines += [
            f'\n## <a id="{number}"></a>{number}. {each.name}\n',
            textwrap.fill(f"{each.words} {each.source}.", 110),
            f"\n*Case*: {each.case}.",
            f"*{each.quantity[0].upper()}{each.quantity[1:]}*: claimed {_shown(each.claimed)}, by brute "
            f"force {_shown(each.true)}; here {_shown(each.ours)} ({more}).",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Where the papers are wrong, on the smallest cases.")
    parser.add_argument("--write", action="store_true", help="write docs/counterexamples.md")
    text = page()
    if parser.parse_args().write:
        PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
