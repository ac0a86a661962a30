"""The figures of the DAWA paper ([D14] §5), drawn again with every algorithm as its proof has it.

    python -m benchmarks.dawa_figures [--data ../shared/data] [--figure 3] [--side 64] [--quick] [--write]

Figure 3 and Table 2: interval workloads. Figures 4–6: parts of DAWA. Figure 7: grids. Five workloads with
three releases each, as there; records come and go. docs/benchmarks-dawa.md says what came out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import dawa_grids, dawa_intervals, dawa_parts
from benchmarks.dawa_setting import Trials, line_data


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(__file__).parent.parent.parent / "shared" / "data")
    parser.add_argument("--figure", choices=("3", "4", "7"), action="append", help="4 stands for 4–6")
    parser.add_argument(
        "--side",
        type=int,
        default=dawa_grids.SIDE,
        help="cells along a grid: 64, 128, 256; finer ones get two releases",
    )
    parser.add_argument("--quick", action="store_true", help="one workload, one release: rough, no errors")
    parser.add_argument("--write", action="store_true", help="write docs/figures/dawa_*.csv and .svg")
    chosen = parser.parse_args()
    if not (chosen.data / "dpbench").is_dir():
        print(f"{chosen.data / 'dpbench'} is not there: these figures need the data sets of the paper.")
        return
    trials = Trials(1, 1) if chosen.quick else Trials()
    fewer = Trials(1, 2) if chosen.side > dawa_grids.SIDE and not chosen.quick else trials
    wanted = chosen.figure or ["3", "4", "7"]
    data = line_data(chosen.data)
    if "3" in wanted:
        dawa_intervals.figures(data, trials, save=chosen.write)
    if "4" in wanted:
        dawa_parts.figures(data, trials, save=chosen.write)
    if "7" in wanted:
        dawa_grids.figures(chosen.data, fewer, save=chosen.write, side=chosen.side)


if __name__ == "__main__":
    main()
