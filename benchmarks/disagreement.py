"""Label histograms: losses without bias, disagreement, and what calibration makes of them.

    python -m benchmarks disagreement all | debiasing | truth | protocol | oracle | temperature |
        penalty | joined | maps | items | network ...

The page is docs/benchmarks/disagreement.md, and figures are beside it.
"""

from __future__ import annotations

from disagreement_joined import JOINED
from disagreement_maps import ITEMS, MAPS
from disagreement_network import NETWORK
from disagreement_protocol import PENALTY, PROTOCOL, TEMPERATURE
from disagreement_truth import DEBIASING, ORACLE, TRUTH
from parts import run_page

PARTS = {
    "debiasing": DEBIASING,
    "truth": TRUTH,
    "protocol": PROTOCOL,
    "oracle": ORACLE,
    "temperature": TEMPERATURE,
    "penalty": PENALTY,
    "joined": JOINED,
    "maps": MAPS,
    "items": ITEMS,
    "network": NETWORK,
}


if __name__ == "__main__":
    run_page(__doc__, "disagreement", PARTS, PARTS)
