"""Benchmarks: tables of ratios within one run, because machines are noisy and seconds do not travel."""
