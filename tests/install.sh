#!/bin/sh
# Install the wheel without extras into a scratch environment and run what the core promises there.
# With the constraints of the extras these are installed as well, and the tests that use them run.
# Usage: tests/install.sh PYTHON [CONSTRAINTS [CONSTRAINTS_OF_EXTRAS]]
set -eu
cd "$(dirname "$0")/.."
python=$1
constraints=${2:-}
extras=${3:-}
repository=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bin=$scratch/venv/bin

fail() {
    echo "error: $1" >&2
    exit 1
}

# Quiet: no output on stderr is part of what is promised.
quiet() {
    "$@" >"$scratch/out" 2>"$scratch/err" || { cat "$scratch/err" >&2; fail "failed: $*"; }
    [ ! -s "$scratch/err" ] || { cat "$scratch/err" >&2; fail "not silent: $*"; }
}

"$python" -m venv "$scratch/venv"
"$python" -m venv "$scratch/tools"
pip() { "$bin/python" -m pip -qq --disable-pip-version-check "$@"; }
pip install --upgrade "pip>=25.1"
"$scratch/tools/bin/python" -m pip -qq --disable-pip-version-check install build twine check-wheel-contents
# The wheel is made from the source archive: what that lacks, nobody gets.
"$scratch/tools/bin/python" -m build --outdir "$scratch" . >"$scratch/out" 2>&1 || { cat "$scratch/out" >&2; fail "no build"; }
quiet "$scratch/tools/bin/twine" check --strict "$scratch"/fewlabels-*
quiet "$scratch/tools/bin/check-wheel-contents" "$scratch"/fewlabels-*.whl
pip install ${constraints:+--constraint "$constraints"} "$scratch"/fewlabels-*.whl
for extra in pandas polars matplotlib numba starlette; do
    ! "$bin/python" -c "import $extra" 2>/dev/null || fail "$extra is there without its extra"
done

cd "$scratch"
# Warnings are errors, but those that old releases give of one another.
[ -n "$constraints" ] || export PYTHONWARNINGS=error
quiet "$bin/python" -c "import fewlabels as fl; [getattr(fl, name) for name in fl.__all__]"
quiet "$bin/fewlabels" --help
quiet "$bin/python" -m fewlabels --version
quiet "$bin/fewlabels" demo --out demo.html --json demo.json --save-data data.parquet
quiet "$bin/fewlabels" doctor data.parquet
quiet "$bin/fewlabels" estimate data.parquet --html report.html --json estimates.json
quiet "$bin/fewlabels" estimate data.parquet --to sqlite:///results.db#estimates
quiet "$bin/python" -c "
import fewlabels as fl
estimates = fl.estimate(fl.read_predictions('data.parquet'), metrics=['accuracy'])
print(estimates.summary(), estimates.to_frame())
"
# What needs an extra says which, in one line.
lacks() {
    code=0
    "$bin/fewlabels" "$@" >out 2>err || code=$?
    [ "$code" -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q "pip install 'fewlabels\[" err ||
        { cat err >&2; fail "does not name its extra: $*"; }
}
lacks doctor "$repository/tests/ordinary/files/excel/Review.xlsx"
lacks estimate data.parquet --engine dask
lacks estimate data.parquet --to duckdb:///results.db#estimates
lacks estimate postgresql://ann@localhost:1/reviews#items
lacks label "$repository/examples/comments.csv" --show comment --classes toxic,fine
code=0
"$bin/fewlabels" estimate missing.csv 2>err || code=$?
[ "$code" -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] || fail "bad input must exit 2 with one line"
for file in demo.html demo.json report.html estimates.json; do
    [ -s "$file" ] || fail "$file was not written"
done
echo "ok: core install${constraints:+ with $constraints}: $("$bin/python" -c "
import numpy, pyarrow, scipy, sklearn
print(f'numpy {numpy.__version__}, scipy {scipy.__version__}, '
      f'scikit-learn {sklearn.__version__}, pyarrow {pyarrow.__version__}')")"

unset PYTHONWARNINGS
[ -n "$extras" ] || exit 0
cd "$repository"
pip install --constraint "$constraints" --constraint "$extras" "$(echo "$scratch"/fewlabels-*.whl)[all]" \
    "pytest>=9" "hypothesis>=6.100" "pytest-xdist>=3.5"
# Old releases warn of newer ones that they meet (matplotlib of pyparsing); that is not ours to mend.
"$bin/python" -m pytest -m "not slow" -W ignore::DeprecationWarning -W ignore:::pyparsing \
    tests/data/test_formats.py tests/data/test_tables_in_memory.py tests/data/test_read_predictions.py \
    tests/labeling tests/report/test_report_figure.py tests/methods/test_bee_gibbs.py tests/streaming/test_executors.py
echo "ok: all extras with $extras"
