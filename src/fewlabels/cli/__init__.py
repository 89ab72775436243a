"""The command line: parses and prints only; may import every other room.

Start with `app.py` and `estimate.py`. `options` makes click options from records, `input` holds
those that commands share, `output` and `files` write results; the other files hold the commands.
"""

from fewlabels.cli.app import main

__all__ = ["main"]
