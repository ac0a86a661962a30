"""Copies of rows: a file is read once, when it is declared, and never again until its curator says so."""
