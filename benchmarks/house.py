"""The house in numbers and in one picture, from the code as it is: python -m benchmarks.house [--write].

Files, lines and import cycles; how many files, functions and types one question passes; how many modules a
client loads. With ``--write``, docs/figures/architecture.svg is drawn again from the imports.

What one ask passes is measured by running one: a fresh cumulative question on a file of 200 rows, after
another so that nothing is loaded on the way, with a profiler that sees every call. A file is passed if one of
its functions is called; a type is passed if one of its objects is made (its ``__init__`` is called), private
types too. Both are counted twice:

- on the *product path*: workspace, service, messages, adapters, core/questions. What somebody reads who
  follows a question from ``ask`` to SQL and back;
- in *planning*: mechanisms and the rest of core. What the candidates for a plan make of the question, most of
  which are not taken; how much there is depends on how many mechanisms there are.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import FrameType

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import blowfishdb as bf

PACKAGE = Path(inspect.getfile(bf)).parent
PICTURE = Path(__file__).parent.parent / "docs" / "figures" / "architecture.svg"
LAYERS = (
    ("entrypoints", ("entrypoints",), "how people come in"),
    ("workspace", ("workspace",), "what people type"),
    ("service", ("service",), "the seven steps, in order"),
    ("show", ("show",), "charts, tables, words"),
    ("messages", ("messages", "noise"), "what travels"),
    (
        "language · adapters · mechanisms",
        ("language", "adapters", "mechanisms"),
        "three that do not know each other",
    ),
    ("core", ("core",), "definitions, without effects"),
)
PRODUCT = ("workspace", "service", "messages", "adapters", "core/questions")
"""Where somebody reads who follows a question from ``ask`` to SQL and back."""
DRAWING = {
    ("messages.answers", "show.charts"),
    ("messages.answers", "show.exports"),
    ("messages.quotes", "show.exports"),
}
"""Answers and quotes draw themselves when a notebook asks: imported then, not before."""


def modules() -> dict[str, Path]:
    """Every module of the package by its name without the first word."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    names.pop("", None)  # the table of public names
    return names


def imports() -> set[tuple[str, str]]:
    """Who imports whom, anywhere in a file and for types alone too."""
    known, found = modules(), set()
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("blowfishdb."):
                within = (node.module or "").removeprefix("blowfishdb.")
                wholes = (f"{within}.{alias.name}" for alias in node.names)
                found |= {(name, whole if whole in known else within) for whole in wholes}
    return {(one, other) for one, other in found if one != other} - DRAWING


def cycles() -> list[list[str]]:
    """Groups of modules that import each other, except to draw."""
    names = sorted(modules())
    place = {name: number for number, name in enumerate(names)}
    ends = np.array([(place[one], place[other]) for one, other in imports()])
    table = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(names), len(names)))
    group = connected_components(table, directed=True, connection="strong")[1]
    together = [[names[k] for k in np.flatnonzero(group == which)] for which in np.unique(group)]
    return [each for each in together if len(each) > 1]


def kind_tests(base: str) -> int:
    """How often code asks of which kind a value is: ``isinstance`` or ``match`` on classes below ``base``."""
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in modules().items()}
    classes = {
        (name, node.name): {_last_name(parent) for parent in node.bases}
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    kinds = {tuple(base.rsplit(".", 1))}
    while below := {each for each, bases in classes.items() if bases & {kind for _, kind in kinds}} - kinds:
        kinds |= below
    homes, names = ({each[side] for each in kinds} for side in (0, 1))
    return sum(_tests(tree, name, homes, names) for name, tree in trees.items())


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _tests(tree: ast.Module, name: str, homes: set[str], kinds: set[str]) -> int:
    """The tests of one file, by the names under which it has the kinds: two may be called ``Product``."""
    packages = {home.rpartition(".")[0] for home in homes}
    own = {kind for kind in kinds if name in homes}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            within = (node.module or "").removeprefix("blowfishdb.")
            if within in homes | packages:
                own |= {alias.asname or alias.name for alias in node.names if alias.name in kinds}
    tested = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _last_name(node.func) == "isinstance":
            tested += bool(own & {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)})
        elif isinstance(node, ast.MatchClass):
            tested += _last_name(node.cls) in own
    return tested


# --- one question ---------------------------------------------------------------------------------


def passed_by_a_question() -> tuple[set[str], set[str], set[tuple[str, str]]]:
    """What one fresh ``.ask()`` passes, from the first dot on: files, functions, types with their modules."""
    files, functions, types = set(), set(), set[tuple[str, str]]()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(str(PACKAGE)):
            files.add(str(Path(code.co_filename).relative_to(PACKAGE)))
            functions.add(f"{code.co_filename}:{code.co_qualname}")
        if code.co_name == "__init__" and "self" in frame.f_locals:
            kind = type(frame.f_locals["self"])
            if kind.__module__.startswith("blowfishdb."):
                where = kind.__module__.removeprefix("blowfishdb.").replace(".", "/")
                types.add((where, kind.__name__))

    with TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.csv"
        rows.write_text("salary\n" + "\n".join(str(100 * i) for i in range(200)) + "\n")
        with bf.open(Path(folder) / "w.blowfish") as workspace:
            salary = bf.Integer(0, 99_999)
            people = workspace.add_dataset("people", rows, domain=bf.Domain(salary=salary))
            graph = bf.graphs.Threshold(salary.size, 1_000)
            people.publish(bf.Policy.by_column(people.schema, {"salary": graph}))
            people.budget.set("5")
            people["salary"].cumulative(bins=10).accurate_to(60).ask()  # whatever is loaded once is loaded
            sys.setprofile(look)
            try:
                people["salary"].cumulative(bins=20).accurate_to(50).ask()
            finally:
                sys.setprofile(None)
    return files, functions, types


def loaded_by_a_client() -> tuple[int, list[str]]:
    """How many modules of ours ``bf.connect`` loads, and which heavy ones of others."""
    program = """
import sys, blowfishdb
try: blowfishdb.connect("http://127.0.0.1:9", token="none")
except blowfishdb.errors.SourceError: pass
heavy = ("sqlalchemy", "sqlglot", "scipy.sparse", "scipy.optimize", "numba", "duckdb", "altair")
ours = sum(name.startswith("blowfishdb") for name in sys.modules)
print(ours, *(name for name in heavy if name in sys.modules))
"""
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    told = run.stdout.split()
    return int(told[0]), told[1:]


def _on_the_path(file: str) -> bool:
    """Whether a file is one of those where a question is followed, not where it is planned."""
    return file.startswith(tuple(f"{folder}/" for folder in PRODUCT))


def measures() -> Iterator[tuple[str, str]]:
    """What is watched, in words and numbers."""
    sizes = [len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")]
    files, functions, types = passed_by_a_question()
    ours, heavy = loaded_by_a_client()
    found = cycles()
    yield "Python files", f"{len(sizes):,}"
    yield "lines", f"{sum(sizes):,}"
    yield "median file", f"{median(sizes):.0f} lines"
    yield "longest file", f"{max(sizes):,} lines"
    yield "layers", f"{len(LAYERS)}"
    yield "import cycles, types counted", f"{len(found)} ({', '.join(' ↔ '.join(group) for group in found)})"
    yield "functions on the way of one ask", f"{len(functions)}"
    for what, where in (("the product path", True), ("planning", False)):
        passed = sorted(file for file in files if _on_the_path(file) == where)
        made = sorted(name for module, name in types if _on_the_path(module) == where)
        yield f"files of one ask, {what}", f"{len(passed)}: {', '.join(passed)}"
        yield f"types of one ask, {what}", f"{len(made)}: {', '.join(made)}"
    yield "tests of a policy graph's kind", f"{kind_tests('core.graphs.base.PolicyGraph')}"
    yield "tests of a workload's kind", f"{kind_tests('core.workloads.base.Workload')}"
    yield "our modules that connect loads", f"{ours}, and {', '.join(heavy) or 'nothing heavy'}"


# --- the picture ----------------------------------------------------------------------------------

_WIDTH, _LEFT, _ROOM, _LINE = 1180, 96, 14, 15


def picture() -> str:
    """The layers from top to bottom, the folders in each with their files, and who imports from whom."""
    drawn: list[str] = []
    middles: dict[str, float] = {}
    top = 20.0
    for title, folders, why in LAYERS:
        boxes = [box for folder in folders for box in _boxes(folder)]
        rows = list(_rows(boxes))
        height = 34 + sum(max(len(lines) for _, lines, _ in row) * _LINE + 34 for row in rows)
        drawn.append(_rect("layer", _LEFT, top, _WIDTH - _LEFT - 8, height))
        drawn.append(_text("title", _LEFT + 12, top + 20, title))
        drawn.append(_text("why", _WIDTH - 20, top + 20, why))
        y = top + 34
        for row in rows:
            tall = max(len(lines) for _, lines, _ in row) * _LINE
            x = _LEFT + 12.0
            for name, lines, width in row:
                drawn.append(_rect("box", x, y, width, tall + 24))
                drawn.append(_text("name", x + 8, y + 16, name))
                drawn += [_text("file", x + 8, y + 32 + k * _LINE, line) for k, line in enumerate(lines)]
                x += width + 10
            y += tall + 34
        middles[title] = top + height / 2
        top += height + _ROOM
    arrows = list(_arrows(middles))
    return _SVG.format(width=_WIDTH, height=int(top), arrows="\n".join(arrows), drawn="\n".join(drawn))


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{kind}" x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="5"/>'


def _text(kind: str, x: float, y: float, words: str) -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{escape(words)}</text>'


def _boxes(folder: str) -> Iterator[tuple[str, list[str], int]]:
    """A folder and the folders in it: a name, its files in lines, and a width."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, path in sorted(modules().items()):
        if name.split(".")[0] == folder and "migrations" not in path.parts:
            inside = path.parent.relative_to(PACKAGE).as_posix()
            found["noise" if inside == "." else inside].append(path.stem)
    for place, stems in sorted(found.items()):
        files = [stem for stem in stems if stem != "__init__"]
        width = 250 if len(files) > 6 else 160
        yield place.removeprefix(f"{folder}/") if "/" in place else place, list(_wrapped(files, width)), width


def _wrapped(words: list[str], width: int) -> Iterator[str]:
    line = ""
    for word in words:
        if line and len(line) + len(word) + 3 > width / 6.4:
            yield line
            line = ""
        line = f"{line} · {word}" if line else word
    yield line


def _rows(boxes: list[tuple[str, list[str], int]]) -> Iterator[list[tuple[str, list[str], int]]]:
    """As many boxes beside each other as there is room for."""
    row: list[tuple[str, list[str], int]] = []
    for box in boxes:
        if row and sum(width + 10 for *_, width in (*row, box)) > _WIDTH - _LEFT - 30:
            yield row
            row = []
        row.append(box)
    yield row


def _arrows(middles: dict[str, float]) -> Iterator[str]:
    """One arrow for every two layers of which the upper imports from the lower."""
    layer = {folder: title for title, folders, _ in LAYERS for folder in folders}
    titles = list(middles)
    pairs = {(layer[one.split(".")[0]], layer[other.split(".")[0]]) for one, other in imports()}
    for upper, lower in sorted(pairs, key=lambda pair: (titles.index(pair[0]), titles.index(pair[1]))):
        if upper == lower:
            continue
        far = titles.index(lower) - titles.index(upper)
        start, end, out = middles[upper] + 5 * far, middles[lower] - 5 * far, _LEFT - 8 - 13 * far
        drawn = f"M{_LEFT} {start:.0f} C{out} {start:.0f} {out} {end:.0f} {_LEFT - 2} {end:.0f}"
        yield f'<path class="arrow" d="{drawn}" marker-end="url(#tip)"/>'


_SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" \
role="img" aria-label="Seven layers; imports point downwards only">
<style>
svg {{ background: #fff }} .layer {{ fill: #f3f5f8; stroke: #c9d1dc }} .box {{ fill: #fff; stroke: #b5c0ce }}
.title {{ font-size: 14px; font-weight: 600; fill: #1b2733 }}
.why {{ font-size: 12px; fill: #5a6774; text-anchor: end }}
.name {{ font-size: 12px; font-weight: 600; fill: #0b5cad }} .file {{ font-size: 11px; fill: #33404d }}
.arrow {{ fill: none; stroke: #0b5cad; stroke-opacity: .55; stroke-width: 1.4 }}
</style>
<defs><marker id="tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">\
<path d="M0 0L6 3L0 6z" fill="#0b5cad"/></marker></defs>
{arrows}
{drawn}
</svg>
"""


def main() -> None:
    """Print the measures, or draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="draw docs/figures/architecture.svg again")
    if parser.parse_args().write:
        PICTURE.write_text(picture(), encoding="utf-8")
        return
    for what, number in measures():
        print(f"{what:34} {number}")


if __name__ == "__main__":
    main()
