"""Adaptive trees: what is measured next depends, privately, on what was measured before."""
