"""Faults put back on purpose, one function each: the harness of neighbours has to find every one of them."""
