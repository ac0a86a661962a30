"""`make bench`: every benchmark in turn."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = {
    "peers": "OpenDP, diffprivlib, SmartNoise SQL and APEx's translation beside this, as ratios",
    "noise_rate": "samples per second of exact noise, beside OpenDP and unsafe floats",
    "range_error": "range queries: ordered hierarchical as published, corrected, and optimised",
    "bound_ratios": "squared error over the lower bound",
    "grid_ratios": "two dimensions and marginals: squared error over the lower bound",
    "dawa": "DAWA as proven and matching: error on real histograms, time against the number of cells",
    "line_histograms": "histograms under the line policy: the figures of [A], all as proven",
    "dawa_figures": "the figures of the DAWA paper, with every algorithm as its proof has it",
    "synthesis": "synthetic tables: distances, cumulative counts, and models trained on them",
    "kmeans": "k-means: Figure 1 of [B14], as published (not private), corrected, and from a histogram",
    "latency": "ask beside the same SELECT: latency, memory, and what a quote takes",
    "concurrency": "eight analysts at once, beside as many who send the SELECT",
    "server": "32 clients of a server with two workers: requests per second, and how long they wait",
    "scale": "ask against the number of rows, and a ledger that many want at once",
    "several": "Spark with two executors, and two servers over one ledger in PostgreSQL",
    "doors": "the privacy loss of whole answers from outside: library, REST, PostgreSQL's protocol",
    "history": "what a quote, an answer and a page cost after ten and after thousands of answers",
    "pgwire": "SELECT 1 and stored answers by PostgreSQL's protocol, beside a real PostgreSQL",
    "start_up": "what a new process takes",
    "crashes": "thousands of kill -9 at random points of ask, and what they leave behind",
    "pages": "pages in a real browser: first paint, live quotes, bytes",
    "adaptive": "data-dependent trees on real histograms: error beside what does not look, and time",
    "adaptive_choice": "what Adaptive takes under which policy, and its error over the best that is promised",
    "reuse_time": "reading an answer from stored ones, beside planning it afresh",
    "prices": "what analysts pay who explore, beside an earlier version",
    "plan_time": "time to plan and to quote, against the number of cells",
}


def main() -> None:
    chosen = sys.argv[1:] or list(BENCHMARKS)
    sys.argv = sys.argv[:1]
    for name in chosen:
        print(f"\n== {name}: {BENCHMARKS[name]}\n", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
