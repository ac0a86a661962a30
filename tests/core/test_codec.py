"""Plain data and back: what is stored is what was declared."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blowfishdb.core import graphs
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.policy import Policy
from tests.core import oracle
from tests.seeds import seeds

DOMAIN = Domain.of(
    {
        "age": Integer(18, 90, 2, outside="drop"),
        "weight": Real("0.5", "200", "0.1", missing="drop"),
        'sex "or" 🐡': Category(["f", "m", "other"], ordered=True, missing="value"),
        "born": Date("1930-01-01", "2020-12-31"),
        "seen": Date("2020-01-01T00:00", "2020-01-02T00:00", "hour"),
        "member": Boolean(missing="value"),
    }
)


def test_domains_survive() -> None:
    assert codec.domain(json.loads(json.dumps(codec.plain(DOMAIN)))) == DOMAIN


@seeds(60)
def test_graphs_survive(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, table = oracle.boxes_graph(rng, oracle.random_shape(rng))
    if seed % 5 == 0:
        graph, table = oracle.apart_graph(rng, 6)
    if seed % 3 == 0:
        graph, table = oracle.with_presence((graph, table))
    stored = json.loads(json.dumps(codec.plain(graph)))
    assert (oracle.adjacency(codec.graph(stored)) == table).all()


@pytest.mark.parametrize("seed", range(30))
def test_bins_survive(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bins = oracle.random_bins(rng, 9)
    if seed % 2:
        bins = Bins.product(bins, oracle.random_bins(rng, 4))
    again = codec.partition(json.loads(json.dumps(codec.plain(bins))))
    assert (again.assignment() == bins.assignment()).all()


def test_policies_survive_without_being_written_out() -> None:
    domain = Domain(salary=Integer(0, 10**9), sex=Category(["f", "m"]))
    policy = Policy.by_column(domain, {"salary": graphs.Threshold(10**9 + 1, 1000)}, hide_presence=True)
    text = codec.canonical(codec.plain(policy))
    assert len(text) < 1000
    again = codec.policy(json.loads(text))
    assert codec.canonical(codec.plain(again)) == text and again.hides_presence


def test_unknown_kinds_are_refused() -> None:
    for read in (codec.attribute, codec.partition, codec.graph):
        with pytest.raises(InvalidInput, match="kind"):
            read({"kind": "banana"})
    with pytest.raises(InvalidInput, match="cannot be stored"):
        codec.plain(object())


def test_digests_tell_data_apart() -> None:
    one, other = codec.plain(Integer(0, 5)), codec.plain(Integer(0, 5, outside="drop"))
    assert codec.digest(one) == codec.digest(dict(reversed(one.items()))) != codec.digest(other)
