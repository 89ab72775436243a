"""Which promises a run of the tests did not check, for want of data."""

from __future__ import annotations

from collections.abc import Iterable

_FOR_DATA = ("FEWLABELS_DATA", "FEWLABELS_GOLDEN", "no data ", "no golden values", "no folder ")


def unchecked(skipped: Iterable[tuple[str, str]]) -> list[str]:
    """Lines that say which tests were left out for want of data, from (test, reason) of each."""
    files: dict[str, int] = {}
    for test, reason in skipped:
        if any(word in reason for word in _FOR_DATA):
            file = test.partition("::")[0]
            files[file] = files.get(file, 0) + 1
    if not files:
        return []
    total = sum(files.values())
    return [
        f"NOT CHECKED for want of data: {total} test{'s' * (total > 1)} of published numbers "
        "(FEWLABELS_DATA and FEWLABELS_GOLDEN name the folders)",
        *(f"  {file}: {count}" for file, count in sorted(files.items())),
    ]
