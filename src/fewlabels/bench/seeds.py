"""Seeds that depend on what a draw is for, not on when or where it is made."""

from __future__ import annotations

import hashlib
import json

import numpy as np


def seed_of(*parts: str | int) -> int:
    """A seed below 2^63: the same for equal parts on every machine and in every process."""
    text = json.dumps(parts).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def generator(*parts: str | int) -> np.random.Generator:
    """A generator of its own for these parts."""
    return np.random.default_rng(np.random.SeedSequence(seed_of(*parts)))
