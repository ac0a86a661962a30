"""Policies as files: what is written is read back edge by edge, and mistakes name their line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from jsonschema import Draft202012Validator

import blowfishdb as bf
from blowfishdb.core import graphs
from blowfishdb.core.errors import InvalidBins, InvalidGraph, InvalidInput
from blowfishdb.core.graphs.inclusion import includes
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.columns import column_graph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.policy.words import difference
from blowfishdb.language.policy_file import (
    policy_document,
    read_groups,
    read_policy,
    write_policy,
)
from blowfishdb.language.yaml import policy_schema, read_yaml, written_text
from tests.core import oracle
from tests.seeds import seeds

GUIDE = (Path(__file__).parents[2] / "docs" / "policy-files.md").read_text(encoding="utf-8")

DOMAIN = bf.Domain(
    age=bf.Integer(0, 120),
    district=bf.Category(["a", "b", "c"]),
    level=bf.Category(["low", "mid", "high"], ordered=True, missing="value"),
    x=bf.Integer(0, 9),
    y=bf.Integer(0, 4),
)


# --- the guide ----------------------------------------------------------------------------------


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, flags=re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_example_of_the_guide() -> None:
    names: dict[str, bf.Domain] = {}
    exec(block("python"), {"bf": bf}, names)  # the documentation is ours
    domain = names["domain"]
    policy = read_policy(block("yaml"), domain, dataset="survey")
    assert policy.graph == graphs.Product(
        graphs.Threshold(200_000, 1_000),
        graphs.Threshold(domain["born"].size, 7),
        graphs.Partitioned([0] * 18 + [1] * 103),
        graphs.Partitioned(bf.Bins.width(10_000, 100)),
        graphs.Partitioned([0, 1, 0]),
        graphs.Explicit(2, ()),
        graphs.Explicit(3, [(0, 1), (1, 2)]),
        graphs.Full(2),
        graphs.Grid((100, 100), 3),
    )
    assert difference(policy, read_policy(write_policy(policy, dataset="survey"), domain)).same


def test_the_guide_names_every_word_of_the_schema() -> None:
    schema = policy_schema()
    words = [
        *schema["properties"],
        *schema["$defs"]["column"]["properties"],
        *schema["$defs"]["area"]["properties"],
    ]
    for words_of in (schema["properties"]["hide"], schema["properties"]["presence"]):
        words += words_of["enum"]
    assert [word for word in words if f"`{word}" not in GUIDE and f"{{{word}" not in GUIDE] == []


def test_the_schema_is_a_schema_and_fits_ordinary_yaml_too() -> None:
    Draft202012Validator.check_schema(policy_schema())
    Draft202012Validator(policy_schema()).validate(yaml.safe_load(block("yaml")))


# --- round trips --------------------------------------------------------------------------------


def random_attribute(rng: np.random.Generator) -> bf.Integer | bf.Real | bf.Category | bf.Date | bf.Boolean:
    missing = "value" if rng.random() < 0.3 else "clamp"
    size = int(rng.integers(1, 6))
    odd = ["no", "a: b", "007", "x..y", " ", "#1", "é", "-", '"q"', "line\nbreak", "null", "[", "1e3"]
    kinds = (
        lambda: bf.Integer(-2, 3 * size - 3, 3, missing=missing),
        lambda: bf.Real("-0.5", f"{(size - 5) / 10:.1f}", "0.1", missing=missing),
        lambda: bf.Category(
            [str(v) for v in rng.permutation(odd)[:size]], ordered=bool(rng.random() < 0.5), missing=missing
        ),
        lambda: bf.Category([int(v) for v in rng.permutation(9)[:size]], missing=missing),
        lambda: bf.Date("2024-02-27", f"2024-03-0{size}", missing=missing),
        lambda: bf.Date("2024-01-01T00:00", f"2024-01-01T0{size}:00", "hour", missing=missing),
        lambda: bf.Boolean(missing=missing),
    )
    return kinds[rng.integers(0, len(kinds))]()


@seeds(150)
def test_policies_by_column_survive(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = ("salary", "no", 'odd: "name"\n# 🐡')[: rng.integers(1, 4)]
    domain = bf.Domain.of({name: random_attribute(rng) for name in names})
    named = [name for name in names if rng.random() < 0.8]
    policy = Policy.by_column(
        domain,
        {name: oracle.line_graph(rng, domain[name].value_count)[0] for name in named},
        joint=bool(rng.random() < 0.5),
        hide_presence=bool(rng.random() < 0.3),
    )
    text = write_policy(policy, dataset="odd: 'name' #")
    for again in (
        read_policy(text, domain, dataset="odd: 'name' #"),
        read_policy(json.dumps(policy_document(policy, dataset="d"), ensure_ascii=False), domain),
    ):
        assert again.hides_presence == policy.hides_presence
        assert includes(policy.graph, again.graph) and includes(again.graph, policy.graph), text
        if domain.size < 60:
            assert (oracle.adjacency(again.graph) == oracle.adjacency(policy.graph)).all(), text
    assert write_policy(again, dataset="odd: 'name' #") == text


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("hide_presence", [True, False])
def test_areas_and_whole_records_survive_as_they_are(joint: bool, hide_presence: bool) -> None:
    pair = bf.Domain(x=bf.Integer(0, 9), y=bf.Integer(0, 4))
    uneven = bf.Domain(x=bf.Integer(0, 9), y=bf.Real(0, 1, "0.5"))
    cases: list[tuple[bf.Domain, graphs.PolicyGraph]] = [
        (DOMAIN, graphs.Full(DOMAIN.size)),
        (pair, graphs.Grid((10, 5), 3)),
        (uneven, graphs.Grid((10, 3), 2)),
        (
            DOMAIN,
            graphs.Product(
                graphs.Threshold(121, 5),
                graphs.Full(3),
                graphs.Cone(graphs.Threshold(3, 1), graphs.Apex.MISSING),
                graphs.Grid((10, 5), 3),
                joint=joint,
            ),
        ),
    ]
    for domain, graph in cases:
        policy = Policy(domain, graph.hide_presence() if hide_presence else graph)
        again = read_policy(write_policy(policy, dataset="d"), domain)
        assert codec.plain(again) == codec.plain(policy)


def test_large_columns_stay_short() -> None:
    domain = bf.Domain(salary=bf.Integer(0, 199_999, missing="value"))
    for graph in (graphs.Threshold(200_000, 10**4), graphs.Partitioned(bf.Bins.width(200_000, 10))):
        policy = Policy.by_column(domain, {"salary": graph})
        text = write_policy(policy, dataset="salaries")
        assert len(text) < 500 and read_policy(text, domain).graph == policy.graph


def test_policies_that_no_file_can_hold() -> None:
    domain = bf.Domain(a=bf.Integer(0, 3), b=bf.Integer(0, 3))
    with pytest.raises(InvalidGraph, match="several columns"):
        write_policy(Policy(domain, graphs.Explicit(16, [(0, 5)])), dataset="d")
    own_way = bf.Domain(a=bf.Integer(0, 3, missing="value"))
    with pytest.raises(InvalidGraph, match="missing"):
        write_policy(Policy(own_way, graphs.Threshold(5, 1)), dataset="d")


# --- short files --------------------------------------------------------------------------------


def test_what_is_left_out() -> None:
    head = "blowfishdb: policy/1\n"
    assert read_policy(head, DOMAIN).graph == graphs.Full(DOMAIN.size)
    assert read_policy(head + "columns:\nareas:\n", DOMAIN).graph == graphs.Full(DOMAIN.size)
    listed = read_policy(head + "columns: {age: {hide within: 5}}", DOMAIN)
    assert isinstance(listed.graph, graphs.Product) and listed.graph.joint
    assert read_policy(head + "presence: hidden", DOMAIN).hides_presence
    assert read_policy(
        '{"blowfishdb": "policy/1", "columns": {"age": {"hide within": 5}}}', DOMAIN
    ).graph == (listed.graph)


def test_groups_alone() -> None:
    ages = column_graph(DOMAIN["age"], groups=read_groups("young: [0..17]\nold: [18..120]"))
    assert ages.components().count == 2
    districts = column_graph(DOMAIN["district"], groups=read_groups("- [a, c]\n- [b]"))
    assert districts == graphs.Partitioned([0, 1, 0])
    with pytest.raises(InvalidInput, match="lists of values"):
        read_groups("a")
    with pytest.raises(InvalidBins, match="cover"):
        column_graph(DOMAIN["district"], groups=read_groups("- [a]"))


# --- mistakes -----------------------------------------------------------------------------------

HEAD = "blowfishdb: policy/1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "begins with 'blowfishdb: policy/1'"),
        ("- a", "begins with 'blowfishdb: policy/1'"),
        ("dataset: d", "'blowfishdb' is missing"),
        ("blowfishdb: policy/2", "Line 1, blowfishdb: this must be 'policy/1'"),
        (HEAD + "banana: [3]", "Line 2, banana: this is not known here"),
        (HEAD + "known: [3]", "Line 2, known: this must be a mapping"),
        (HEAD + "hide: banana", "Line 2, hide: this must be one of: whole record"),
        (HEAD + "hide: whole record\ncolumns: {age: {hide: nothing}}", "Line 2, hide: 'whole record' hides"),
        (HEAD + "dataset: other", "Line 2, dataset: this is for 'other'"),
        (HEAD + "dataset: []", "Line 2, dataset: this must be a text"),
        (HEAD + "columns: [age]", "Line 2, columns: this must be a mapping"),
        (HEAD + "columns:\n  agee: {hide: nothing}", "Line 3, columns › agee: There is no column"),
        (HEAD + "columns:\n  age: {hide witin: 3}", "Line 3, columns › age › hide witin: this is not known"),
        (HEAD + "columns:\n  age: {hide: nothing, hide within: 3}", "Line 3, columns › age: say exactly one"),
        (HEAD + "columns:\n  age: {}", "Line 3, columns › age: say exactly one thing"),
        (HEAD + "columns:\n  age:\n    hide within: far", "Line 3, columns › age: A distance"),
        (HEAD + "columns:\n  age:\n    hide within: 1e999999999", "Line 3, columns › age: A distance"),
        (HEAD + "columns: {district: {hide within: 1}}", "no distance"),
        (HEAD + "columns: {district: {hide within groups: [[a, b]]}}", "without a group: c"),
        (HEAD + "columns: {district: {hide within groups: [[a, b, z], [c]]}}", "In the group 1: 'z' is not"),
        (HEAD + "columns: {district: {hide within groups: []}}", "this list is empty"),
        (HEAD + "columns: {district: {hide between: [[a]]}}", "entry 1: this must be two values"),
        (HEAD + "columns: {district: {hide between: [[a, a]]}}", "nothing to hide"),
        (HEAD + "areas: [{columns: [x, age], hide within: 3}]", "next to each other"),
        (HEAD + "areas: [{columns: [x, y]}]", "say exactly one thing"),
        (HEAD + "areas: [{columns: [x], hide within: 3}]", "this must be two values"),
        (HEAD + "areas: [{hide within: 3, hide within cells: 3}]", "'columns' is missing"),
        (HEAD + "areas: [{columns: [district, level], hide within: 3}]", "'district' cannot be part"),
        (HEAD + "areas: [{columns: [x, y], hide within cells: few}]", "whole number"),
        (HEAD + "columns: {x: {hide: nothing}}\nareas: [{columns: [x, y], hide within: 3}]", "one area only"),
        (HEAD + HEAD, "Line 2: 'blowfishdb' is written twice"),
        (HEAD + "---\n" + HEAD, "Line 2: a second document"),
        (HEAD + "columns: &all {age: {hide: nothing}}\n", "Line 2: anchors"),
        ("a: *b", "Line 1: anchors"),
        ("a: !!python/object:os.system x", "Line 1: tags"),
        ("? [a]\n: b", "Line 1: a key must be"),
        ("a: [1\nb: 2", "this cannot be read as YAML"),
        ("[" * 500, "nested too deeply"),
        ("a: \x00", "YAML does not allow|cannot be read as YAML"),
        ("#" * 4_000_001, "longer than"),
    ],
)
def test_mistakes_say_where_and_what(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words.replace("[", r"\[")) as refused:
        read_policy(text, DOMAIN, dataset="d")
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("compiled", [True, False])
def test_either_yaml_parser_will_do(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled and not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(yaml, "__with_libyaml__", compiled)
    assert read_policy(HEAD + "columns:\nareas:\npresence: 'public'", DOMAIN).graph == graphs.Full(
        DOMAIN.size
    )
    for text in ("[" * 500, "a: *b", "a: &b c", "a: !!str c", "a: [1\nb: 2", "a: \x00", "a: 'b"):
        with pytest.raises(InvalidInput):
            read_policy(text, DOMAIN)


def test_uneven_cells_need_cells() -> None:
    uneven = bf.Domain(x=bf.Integer(0, 9), y=bf.Real(0, 1, "0.5"))
    with pytest.raises(InvalidInput, match="equally wide"):
        read_policy(HEAD + "areas: [{columns: [x, y], hide within: 3}]", uneven)


def test_json_names_its_place_too() -> None:
    document = {"blowfishdb": "policy/1", "columns": {"age": {"hide within": -1}}}
    with pytest.raises(InvalidInput, match=r"^Line 1, columns › age: A distance"):
        read_policy(json.dumps(document), DOMAIN)
    with pytest.raises(InvalidInput, match="begins with"):
        read_policy("null", DOMAIN)


@pytest.mark.parametrize(
    "text",
    ["a", "-5", "- 5", "...", "no", "Null", "~", "a: b", "#", "é", "\n", "'", '"', "1e3", "", " a", "7 days"],
)
def test_texts_are_read_as_they_were_written(text: str) -> None:
    for form in ("- {}", "[{}]", "a: {{b: {}}}"):
        content = read_yaml(form.format(written_text(text))).content
        assert content in ([text], {"a": {"b": text}})
