"""The interface for programs: one file for each group of routes."""
