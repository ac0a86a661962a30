"""`make pictures`: draws the pictures that the documentation shows, from real answers with fresh noise."""

from __future__ import annotations

import tempfile
from pathlib import Path

import vl_convert

import blowfishdb as bf
from blowfishdb.core.policy.policy import Policy
from blowfishdb.entrypoints.demo_data import salary_domain, write_salaries
from blowfishdb.messages.answers import Answer

IMAGES = Path(__file__).parent.parent / "docs" / "images"


def answers(folder: Path) -> dict[str, Answer]:
    """A histogram and a cumulative histogram of the demonstration's salaries."""
    write_salaries(folder / "salaries.duckdb")
    domain = salary_domain()
    with bf.open(folder / "demo.blowfish", user="analyst") as workspace:
        salaries = workspace.add_dataset(
            "salaries", folder / "salaries.duckdb", domain=domain, table="salaries"
        )
        hide = bf.graphs.Threshold(domain["salary"].size, domain["salary"].threshold(1_000))
        salaries.publish(Policy.by_column(domain, {"salary": hide}))
        return {
            "histogram": salaries["salary"].histogram(width=5_000).accurate_to(1_500).ask(),
            "cumulative": salaries["salary"].cumulative(width=10_000).accurate_to(50).ask(),
        }


def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, answer in answers(Path(folder)).items():
            svg = vl_convert.vegalite_to_svg(answer.plot().to_json())
            (IMAGES / f"{name}.svg").write_text(svg)
            print(f"docs/images/{name}.svg")


if __name__ == "__main__":
    main()
