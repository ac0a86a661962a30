"""The whole engine under stress: kills, races, faults."""
