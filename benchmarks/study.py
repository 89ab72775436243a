"""The coverage and error study, and its page.

    python -m benchmarks study [--data DIR] [--out FILE] [--runs N] [--sets NAME,..]
        [--methods NAME,..] [--n-labeled N,..] [--n-unlabeled N] [--seed N] [--workers N]
        [--page FILE] [--page-only]

Sets are names or families, "real" or "made"; real ones that are not below DIR are left out. Cells
are kept in the file --out, a line each: it can be stopped at any time, and the same command goes
on; other methods, sets and more runs are added to what there is. `--page-only` writes the page from
what is finished. The page ends with the table of peers, where `peers` has written it beside.
"""

from __future__ import annotations

from functools import partial

from runs import DATA, ROOT, WORKERS, command_line, numbers, read_lines, run_missing, split
from study import sets, trial
from study.page import render, render_text

OUT, PAGE = ROOT / "build" / "study.jsonl", ROOT / "docs" / "benchmarks" / "coverage-study.md"


def main() -> None:
    """Run, or go on with, the study, and write its page."""
    given = command_line(
        __doc__, data=DATA, out=OUT, page=PAGE, runs=trial.RUNS, sets=split, methods=split,
        n_labeled=numbers, n_unlabeled=trial.UNLABELED, seed=0, workers=WORKERS, page_only=False,
    ).parse_args()  # fmt: skip
    if given.page_only:
        lines = read_lines(given.out)
    else:
        cells = trial.cells(
            sets.chosen(given.sets or [], given.data), given.methods or trial.METHODS,
            given.n_labeled or trial.N_LABELED, given.n_unlabeled, given.runs, given.seed,
        )  # fmt: skip
        run = partial(trial.run_cell, data=given.data.resolve())
        lines = run_missing(given.out, run, cells, given.workers)
    lines = [line for line in lines if line["seed"] == given.seed]
    peers = given.out.with_name("peers.md")
    rows, facts = trial.table(lines), {line["set"]: line["facts"] for line in lines}
    facts = {name: facts[name] for name in dict.fromkeys(rows["set"])}
    more = [peers.read_text(encoding="utf-8")] if peers.exists() else []
    text = render(rows, facts, given.seed, more)
    if given.page.exists():  # several pages have this form, and each keeps its title
        title = given.page.read_text(encoding="utf-8").partition("\n")[0]
        text = title + text[text.index("\n") :]
    given.page.write_text(text, encoding="utf-8")
    print(f"{render_text(rows)}\nwrote {given.page}")


if __name__ == "__main__":
    main()
