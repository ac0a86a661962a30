"""DAWA: data- and workload-aware answers ([D14]), with the noise that its proof needs."""

from blowfishdb.mechanisms.dawa.mechanism import Dawa

__all__ = ["Dawa"]
