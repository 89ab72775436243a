"""How many files and functions an estimate passes through: a budget, raised with a reason alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

FILES, FUNCTIONS = 91, 844
"""Of `fewlabels estimate examples/moderation.csv`, from the command line to its last line. Three of
the files tell a table from the log of a tool; twelve functions read arrays of any kind, freeze the
results, and look for sampling weights; fourteen add up labels and rankings, compiled or not; in one
file fifteen count what rows are worth, of clusters or not. One file looks for labels that look
wrong, one for groups, one for vectors in cells, and one tells files of this machine from those of
stores; four say which rows of them are read; two are the document and its terminal.
What a page alone has is not made."""

OF_DATA = 100
"""Functions of the room of files alone, of a file with native names; what is wanted is 100."""

PRINTING = 75
"""Functions that say what the finished estimates are: none of them computes a statistic."""

TRACE = """
import sys, threading
from pathlib import Path
import fewlabels
from fewlabels.cli import app
from fewlabels.report import shown

source = str(Path(fewlabels.__file__).parent)
seen, printed, printing = set(), set(), []

def profile(frame, event, argument):
    code = frame.f_code
    # Functions alone: bodies of modules, classes and comprehensions are not entered by a call.
    if event != "call" or not code.co_filename.startswith(source) or code.co_name.startswith("<"):
        return
    if code.co_flags & 2:
        where = (code.co_filename, code.co_qualname)
        (printed if printing else seen).add(where)

formatted = shown.render_text

def render_text(*arguments, **more):
    printing.append(True)
    try:
        return formatted(*arguments, **more)
    finally:
        printing.clear()

shown.render_text = render_text
threading.setprofile(profile)
sys.setprofile(profile)
try:
    app.main(["estimate", sys.argv[1]])
finally:
    sys.setprofile(None)
    every = seen | printed
    rooms = {Path(f).relative_to(source).parts[0] for f, _ in printed}
    print(len({f for f, _ in every}), len(every), len(printed), *sorted(rooms), file=sys.stderr)
"""


READ = """
import sys
from pathlib import Path
import fewlabels as fl
from fewlabels import data

source, seen = str(Path(data.__file__).parent), set()
fl.read_predictions

def profile(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(source) and code.co_flags & 2:
        if not code.co_name.startswith("<"):
            seen.add((code.co_filename, code.co_qualname))

sys.setprofile(profile)
items = fl.read_predictions(sys.argv[1])
sys.setprofile(None)
print(items.n_items, len(seen))
"""


def test_the_path_of_a_native_file(tmp_path: Path) -> None:
    path = tmp_path / "native.csv"
    rows = (f"{'' if i % 3 else i % 2},{i % 10 / 10},{i % 2}\n" for i in range(1_000))
    path.write_text("label,p__net__1,y__rule\n" + "".join(rows), encoding="utf-8")
    run = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    items, functions = map(int, done.stdout.split())
    assert items == 1_000
    assert functions <= OF_DATA


def test_the_path_of_an_estimate() -> None:
    """Printing passes through the report's room and the estimates; nothing is evaluated in it."""
    run = [sys.executable, "-c", TRACE, str(ROOT / "examples" / "moderation.csv")]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    files, functions, printing, *rooms = done.stderr.splitlines()[-1].split()
    assert set(rooms) <= {"report", "estimates.py", "errors.py"}
    assert int(files) <= FILES
    assert int(functions) <= FUNCTIONS
    assert int(printing) <= PRINTING
