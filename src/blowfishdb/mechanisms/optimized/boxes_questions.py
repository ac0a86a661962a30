"""Workloads on a grid as sums of products, so that their errors follow from one small tensor.

If the noise of a plan has covariance Σ C[r₁ … r_d]·(Q¹_r₁ ⊗ … ⊗ Q^d_r_d), a product question q₁ ⊗ … ⊗ q_d has
variance Σ C[r]·Π (q_iᵀQ^i_{r_i}q_i), and all questions of a product workload together
Σ C[r]·Π tr(M_i Q^i_{r_i}) with M_i the Gram matrix of axis i. So 10⁹ rectangles are never listed.

Plans whose errors separate over the axes of a grid.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray
from blowfishdb.core.domain.bins import LIMIT
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.workloads import Histogram, Marginals, Ranges, Rectangles, Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.plan import Plan

_CHUNK = 2 * 10**6
_CLEARLY = 1e-6
_ROUNDING = 1e-11


class AxisForms(ABC):
    """Quadratic forms q ↦ qᵀQ_r q on the questions of one axis."""

    @abstractmethod
    def of_rows(self, rows: FloatArray) -> FloatArray:
        """One line per question, one column per form."""

    @abstractmethod
    def of_gram(self, gram: FloatArray) -> FloatArray:
        """tr(M·Q_r): the sum over all questions with Gram matrix M."""


@final
@dataclass(frozen=True, eq=False)
class Term:
    """One workload per axis: every combination of their questions, or one question per position."""

    factors: tuple[Workload, ...]
    paired: bool = False
    _known: dict[tuple[int, AxisForms], FloatArray] = field(default_factory=dict, repr=False)

    @property
    def count(self) -> int:
        """How many questions there are."""
        return self.factors[0].count if self.paired else math.prod(factor.count for factor in self.factors)

    def features(self, forms: Sequence[AxisForms]) -> list[FloatArray]:
        """For every axis and every question of it, the quadratic forms."""
        return [
            np.concatenate([form.of_rows(rows) for rows in _rows(factor)])
            for factor, form in zip(self.factors, forms, strict=True)
        ]

    def present(self, forms: Sequence[AxisForms]) -> list[BoolArray]:
        """For every axis the forms that are not zero, per question if paired, else over all of them."""
        if self.paired:
            return [_shares(features) > _ROUNDING for features in self.features(forms)]
        masks = []
        for factor, form, sums in zip(self.factors, forms, self.sums(forms), strict=True):
            present = sums > _CLEARLY * sums.sum()
            if not present.all():
                present = np.any(
                    [(_shares(form.of_rows(rows)) > _ROUNDING).any(axis=0) for rows in _rows(factor)], axis=0
                )
            masks.append(np.asarray(present)[None])
        return masks

    def sums(self, forms: Sequence[AxisForms]) -> list[FloatArray]:
        """The same, summed over all questions of an axis."""
        return [self._sum(axis, form) for axis, form in enumerate(forms)]

    def _sum(self, axis: int, form: AxisForms) -> FloatArray:
        """Kept, because plans that are compared ask for the same sums again; equal axes share them."""
        first = next(at for at, factor in enumerate(self.factors) if factor == self.factors[axis])
        if (first, form) not in self._known:
            self._known[first, form] = form.of_gram(self._grams[first])
        return self._known[first, form]

    @cached_property
    def _grams(self) -> dict[int, FloatArray]:
        firsts = {next(at for at, other in enumerate(self.factors) if other == f) for f in self.factors}
        return {
            at: np.asarray(self.factors[at].gram(), dtype=np.float64) / self.factors[at].denominator ** 2
            for at in firsts
        }


@final
@dataclass(frozen=True, eq=False)
class Questions:
    """A workload as a list of terms, in the order of its questions."""

    shape: tuple[int, ...]
    terms: tuple[Term, ...]

    @staticmethod
    def of(workload: Workload, shape: tuple[int, ...]) -> Questions | None:
        """The workload over the axes ``shape``; None if it is not a sum of products."""
        if workload.one_per_cell and workload.size == math.prod(shape):
            return Questions(shape, (Term(tuple(Histogram(n) for n in shape)),))
        if workload.axes and workload.axes != shape:
            return None
        if workload.factors:
            return Questions(shape, (Term(workload.factors),))
        if isinstance(workload, Marginals):
            return Questions(shape, tuple(Term(part.factors) for part in workload.parts()))
        if isinstance(workload, Rectangles):
            corners = zip(shape, workload.lows.T, workload.highs.T, strict=True)
            sides = tuple(Ranges(n, low, high) for n, low, high in corners)
            return Questions(shape, (Term(sides, paired=True),))
        return Questions(shape, (Term((workload,)),)) if shape == (workload.size,) else None

    def moments(self, forms: Sequence[AxisForms]) -> FloatArray:
        """Σ over questions of ⊗_i (forms of axis i): what a total error is linear in."""
        total = np.zeros(1)
        for term in self.terms:
            if term.paired:
                features = term.features(forms)
                tensor = features[0]
                for more in features[1:]:
                    tensor = np.einsum("q...,qr->q...r", tensor, more)
                total = total + tensor.sum(axis=0)
            else:
                sums = term.sums(forms)
                tensor = sums[0]
                for more in sums[1:]:
                    tensor = np.multiply.outer(tensor, more)
                total = total + tensor
        return np.asarray(total)

    def needed(self, forms: Sequence[AxisForms]) -> BoolArray:
        """Which products of forms some question has a part in, by each question's own measure.

        A sum over questions cannot tell: a part that is small in total may be all of one small question.
        """
        total = np.zeros(1, dtype=np.bool_)
        for term in self.terms:
            parts = term.present(forms)
            tensor = parts[0]
            for more in parts[1:]:
                tensor = tensor[..., None] & more.reshape(len(more), *(1,) * (tensor.ndim - 1), -1)
            total = total | tensor.any(axis=0)
        return np.asarray(total)

    def each(self, forms: Sequence[AxisForms], core: FloatArray) -> FloatArray:
        """Σ_r C[r]·Π (q_iᵀQ_{r_i}q_i) for every question."""
        if sum(term.count for term in self.terms) > LIMIT:
            raise TooLarge(
                f"Listing the errors of {sum(term.count for term in self.terms):,} questions is above the "
                f"limit of {LIMIT:,}.",
                fixes=("use the total error", "ask fewer questions"),
            )
        return np.concatenate([_contract(term, forms, core) for term in self.terms])


def _contract(term: Term, forms: Sequence[AxisForms], core: FloatArray) -> FloatArray:
    tensor: FloatArray = core
    if term.paired:
        for axis, features in enumerate(term.features(forms)):
            tensor = (
                np.einsum("qr,r...->q...", features, tensor)
                if axis == 0
                else np.einsum("qr,qr...->q...", features, tensor)
            )
        return np.asarray(tensor)
    for features in term.features(forms):
        tensor = np.tensordot(tensor, features, axes=(0, 1))  # the axis moves to the end: order is kept
    return np.asarray(tensor).ravel()


def _shares(features: FloatArray) -> FloatArray:
    """Each form as a part of all of them."""
    return np.asarray(features / np.maximum(features.sum(axis=1, keepdims=True), 1e-300))


def _rows(factor: Workload) -> Iterator[FloatArray]:
    """The questions of one axis written out, some at a time."""
    rows = factor.sparse()
    step = max(1, _CHUNK // factor.size)
    for start in range(0, factor.count, step):
        yield rows[start : start + step].toarray().astype(np.float64) / factor.denominator


class SeparablePlan(Plan):
    """A plan whose noise has covariance Σ C[r]·⊗ Q^i_{r_i}: exact errors without listing questions."""

    questions: Questions

    @property
    @abstractmethod
    def forms(self) -> Sequence[AxisForms]:
        """The quadratic forms of every axis."""

    @abstractmethod
    def core(self, of_noise: FloatArray) -> FloatArray:
        """The tensor C, given the variance of every noise variable."""

    @abstractmethod
    def certified(self, measured: Numbers, total: int) -> Numbers:
        """A·x + N·η, in whole numbers: all that is private of the noisy measurements."""

    @property
    def refinable(self) -> bool:
        return False

    def published(self, measured: Numbers, totals: Numbers | None) -> Numbers:
        """Flows with noise stay inside: only what they add up to may be seen."""
        assert totals is not None  # grids have one component and a public total
        return self.certified(measured, int(totals.sum()))

    @cached_property
    def _moments(self) -> FloatArray:
        return self.questions.moments(self.forms)

    def total_variance(self, of_noise: FloatArray) -> float:
        """The variance of all answers together, given the variance of every noise variable."""
        return float(np.sum(self._moments * self.core(of_noise)))

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return np.maximum(0.0, self.questions.each(self.forms, self.core(of_noise)))

    @property
    def one_to_one(self) -> bool:
        return False
