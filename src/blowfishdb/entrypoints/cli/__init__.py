"""The command line: one file for each group of commands, and everything heavy imported by the command itself."""

from blowfishdb.entrypoints.cli.app import app

__all__ = ["app"]
