"""Commands that messages propose: found in a text, and run as they stand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection
from pathlib import Path

Run = Callable[..., tuple[int, str, str]]

VALUE = r"""(?:[^\s';()"]|'[^']*'|"'")+"""
OPTION = rf"--(?:votes|no-header)\b|--[a-z][a-z-]*(?:=| (?!--)){VALUE}"
OF_COLUMNS = {"label", "item", "annotator", "answer", "domain", "weight", "cluster", "by", "model",
              "logits", "hard", "score", "confidence"}  # fmt: skip
OTHERS = {"same", "no-label", "positive", "duplicates", "votes", "no-header"}


def proposed(text: str, names: Collection[str]) -> list[list[str]]:
    """The options that a text proposes of columns of these names; placeholders are none."""
    found, end = list[list[str]](), -1
    for option in re.finditer(OPTION, text):
        words = shlex.split(option[0].rstrip(",.:"))
        flag, _, value = " ".join(words)[2:].replace(" ", "=", 1).partition("=")
        columns = {value, *value.split("=")[-1].split(","), *value.partition("=")[2].split(",")}
        if flag in OF_COLUMNS and not (columns - {""}) & {*names}:
            continue
        if flag not in OF_COLUMNS | OTHERS or value.endswith(("=CLASS", "=NAME")):
            continue
        if text[end : option.start()] == " ":
            found[-1] += words
        else:
            found.append(words)
        end = option.start() + len(option[0].rstrip(",.:"))
    return found


def run_all(texts: Collection[str], names: Collection[str], file: Path, run: Run) -> int:
    """Run what texts propose on a file; how many that were. The doctor's code is `estimate`'s."""
    wanted = {shlex.join(options) for text in texts for options in proposed(text, names)}
    for options in sorted(wanted):
        words = shlex.split(re.sub(r"--by [^ ]+", "", options))  # which the doctor has not
        code, _, err = run("doctor", file, *words)
        assert code == 0, (file.name, options, err)
    return len(wanted)
