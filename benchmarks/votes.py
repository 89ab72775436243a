"""Error rates and labels from votes, measured against labels and known truth.

    python -m benchmarks votes all | nell | brain | honest | settings ...
        [--data DIR] [--work DIR] [--workers N] [--fresh] [--quick]

Every part consists of cells (mostly a data set and a method, or a replicate), which are kept as
lines of JSON in the folder --work, outside the repository; another run goes on where one stopped,
and with --fresh starts anew, as it should after a change of the code. The tables go between the
marks of docs/benchmarks/votes.md. With --quick there are a few cells of each part, and the page is
a copy in the folder.
"""

from __future__ import annotations

from parts import run_page
from votes_honest import HONEST
from votes_nell import BRAIN, NELL
from votes_settings import SETTINGS_PART

PARTS = {
    "nell": NELL,
    "brain": BRAIN,
    "honest": HONEST,
    "settings": SETTINGS_PART,
}


if __name__ == "__main__":
    run_page(__doc__, "votes", PARTS, {"nell", "brain", "honest"})
