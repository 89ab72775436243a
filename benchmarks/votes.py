"""Error rates and labels from votes, measured against labels and known truth.

    python -m benchmarks votes all | nell | brain | honest | settings ...

The page is docs/benchmarks/votes.md.
"""

from __future__ import annotations

from parts import run_page
from votes_honest import HONEST
from votes_nell import BRAIN, NELL
from votes_settings import SETTINGS_PART

PARTS = {"nell": NELL, "brain": BRAIN, "honest": HONEST, "settings": SETTINGS_PART}


if __name__ == "__main__":
    run_page(__doc__, "votes", PARTS, {"nell", "brain", "honest"})
