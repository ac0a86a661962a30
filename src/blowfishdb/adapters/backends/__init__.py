"""Databases that can be asked for counts."""
