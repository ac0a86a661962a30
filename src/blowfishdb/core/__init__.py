"""The pure core: no I/O, no clock, no global randomness; numpy and scipy only."""
