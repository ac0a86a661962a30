"""Workspaces as earlier code wrote them: what is in them stays readable, and stays the same."""
