"""The loops of adaptive mechanisms."""

from __future__ import annotations

from typing import Any

import numpy as np

from blowfishdb.mechanisms.compiled import compiled


@compiled()
def items(answers, family, big, limit):  # type: ignore[no-untyped-def]
    item = np.empty(answers.size, np.int64)
    current, total = -1, 0
    for i in range(answers.size):
        joins = i > 0 and family[i] == family[i - 1] and not big[i] and not big[i - 1]
        if joins and total + answers[i] <= limit[family[i]]:
            total += answers[i]
        else:
            current += 1
            total = answers[i]
        item[i] = current
    return item


@compiled()
def up(first, counts, weighted, precision):  # type: ignore[no-untyped-def]
    values = np.zeros(counts.size)
    variances = np.full(counts.size, np.inf)
    for node in range(counts.size - 1, -1, -1):
        total, weight = weighted[node], precision[node]
        if counts[node] > 0:
            below, spread = 0.0, 0.0
            for child in range(first[node], first[node] + counts[node]):
                below += values[child]
                spread += variances[child]
            total += below / spread
            weight += 1.0 / spread
        if weight > 0:
            values[node] = total / weight
            variances[node] = 1.0 / weight
    return values, variances


def _simplex(estimates: Any, spread: Any, total: Any, active: Any) -> Any:
    shares = np.zeros(estimates.size)
    if total <= 0:
        return shares
    while True:
        held, weight = 0.0, 0.0
        for i in range(estimates.size):
            if active[i]:
                held += estimates[i]
                weight += spread[i]
        if weight == 0:  # a total that rounding has swallowed
            return shares
        level = (held - total) / weight
        fits = True
        for i in range(estimates.size):
            if active[i] and estimates[i] < level * spread[i]:
                active[i] = False
                fits = False
        if fits:
            break
    for i in range(estimates.size):
        if active[i]:
            shares[i] = estimates[i] - level * spread[i]
    return shares


def _drop_small(estimates: Any, spread: Any, total: Any, active: Any) -> Any:
    held = 0.0
    for i in range(estimates.size):
        active[i] = estimates[i] > 0
        if active[i]:
            held += estimates[i]
    if held <= 0:
        active[:] = True
        return
    for i in np.argsort(estimates / np.sqrt(spread)):
        if active[i]:
            if held - estimates[i] < total:
                break
            held -= estimates[i]
            active[i] = False


def _shrunk(estimates: Any, spread: Any, total: Any) -> Any:
    count = estimates.size
    mean = estimates.mean()
    differences = ((estimates - mean) ** 2).sum()
    share = 1.0
    if count > 3:
        share = max(0.0, 1.0 - (count - 3) * spread / differences) if differences > 0 else 0.0
    return _simplex(mean + share * (estimates - mean), np.ones(count), total, np.ones(count, np.bool_))


@compiled(_simplex, _drop_small, _shrunk)
def down(first, counts, values, variances, shares, single, sparse, smooth):  # type: ignore[no-untyped-def]
    for node in range(counts.size):
        if counts[node] == 0:
            continue
        begin, end = first[node], first[node] + counts[node]
        if shares[node] < 0:
            for child in range(begin, end):
                shares[child] = max(0.0, values[child])
            continue
        estimates, spread = values[begin:end], variances[begin:end]
        if smooth and single[begin:end].all():
            shares[begin:end] = _shrunk(estimates, spread[0], shares[node])
            continue
        active = np.ones(end - begin, np.bool_)
        if sparse:
            _drop_small(estimates, spread, shares[node], active)
        shares[begin:end] = _simplex(estimates, spread, shares[node], active)


@compiled()
def chain(answers, precision, sums, trust, total):  # type: ignore[no-untyped-def]
    blocks = sums.size
    pool = np.arange(blocks + 1)
    while True:
        last = pool[blocks]
        weight, right = np.zeros(last + 1), np.zeros(last + 1)
        link, step = np.zeros(last + 1), np.zeros(last + 1)  # between a pool and the one before it
        for j in range(1, blocks):
            weight[pool[j]] += precision[j]
            right[pool[j]] += precision[j] * answers[j]
        for j in range(blocks):
            if pool[j + 1] != pool[j]:
                link[pool[j + 1]] = trust[j]
                step[pool[j + 1]] = sums[j]
        places = np.zeros(last + 1)
        places[last] = total
        pivot = np.zeros(last + 1)
        for g in range(1, last):
            pivot[g] = weight[g] + link[g] + link[g + 1]
            right[g] += link[g] * step[g] - link[g + 1] * step[g + 1]
            if g + 1 == last:
                right[g] += link[g + 1] * total
            if g > 1:
                factor = link[g] / pivot[g - 1]
                pivot[g] -= factor * link[g]
                right[g] += factor * right[g - 1]
        for g in range(last - 1, 0, -1):
            after = link[g + 1] * places[g + 1] if g + 1 < last else 0.0
            places[g] = (right[g] + after) / pivot[g]
        renamed = np.zeros(last + 1, np.int64)
        for g in range(1, last + 1):
            renamed[g] = renamed[g - 1] + (places[g] >= places[g - 1])
        if renamed[last] == last:
            return places[pool]
        for j in range(blocks + 1):
            pool[j] = renamed[pool[j]]
