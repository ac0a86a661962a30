"""Policies: what must stay hidden, in data and in words."""
