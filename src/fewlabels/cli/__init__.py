"""The command line: one command per file; parses and prints only."""

from fewlabels.cli.app import main

__all__ = ["main"]
