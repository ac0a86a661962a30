"""The command line: one file for each group of commands; what is heavy is imported by the command itself."""

from blowfishdb.entrypoints.cli.app import app

__all__ = ["app"]
