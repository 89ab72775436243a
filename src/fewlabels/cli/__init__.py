"""The command line: a subject per file; parses and prints only."""

from fewlabels.cli.app import main

__all__ = ["main"]
