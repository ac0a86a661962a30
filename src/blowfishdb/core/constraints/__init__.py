"""Constraints: what the world already knows, and what that does to privacy ([B14] §3.2, §8).

``declared`` is what a curator writes; ``known_cells`` the same over cells; ``bound`` how much an answer can
change between neighbours; ``determined`` what the known counts give away, ``under_policy`` what they mean
for a policy and make better.
"""

from blowfishdb.core.constraints.declared import Constraints, Count, Marginal, Range, Reading

__all__ = ["Constraints", "Count", "Marginal", "Range", "Reading"]
