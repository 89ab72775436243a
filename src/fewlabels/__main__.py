"""`python -m fewlabels` is the command `fewlabels`."""

import sys

from fewlabels.cli import main

if __name__ == "__main__":
    sys.exit(main())
