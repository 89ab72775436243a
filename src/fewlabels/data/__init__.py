"""Files and frames to `Predictions`, and what is wrong with them: start with `read`.

The room stands on `predictions`, `checks` and `kernels`. What happens, in order:

1. `options`: arguments, `--model` texts and the TOML file become one `ColumnOptions`.
2. `sources`: a path becomes files of one kind, which `content` tells by their first bytes; standard
   input is kept as a file before.
3. `delimited`, `binary` (Parquet, Feather), `cells` (JSON, workbooks), `native` (frames): a
   `Source`, which knows the names of its columns. What Python has as values comes in through
   `cells`, which reads all at once; text comes in through `content`, which decompresses it and
   knows UTF-16. A CSV file read whole is its parts one after another, as `streaming.reading` takes
   them one by one.
4. `recognise` (with `profiles`): what nobody has said of the columns, by their values and names;
   two readings are refused.
5. `roles`: every column gets a role, by its native name or by the options.
6. The source reads those columns into a `Table`: numbers, or categories of texts.
7. `classes`: which classes there are, and which of them a text means.
8. `assemble`: the arrays of `Predictions`, which makes all checks of the numbers.
9. `joined`: votes, one per row, joined to these items as further classifiers; read the same
   way as a table (2 to 5), but before it, as they may be what says which classes there are.

NPZ files hold the arrays already (`binary`). `doctor` goes the same way and reports where it ends;
`streaming.diagnose_files` gives the same checks the facts of all parts and some of the rows.

Traps: 1, 1.0 and "1" are one class; a column of objects may hold several types; `Array.to_numpy`
of pyarrow imports pandas; a Parquet column is read when its numbers are asked for; messages speak
of rows of the file (from 1, after the header), Python objects of items (from 0).
"""

from fewlabels.data.doctor import Diagnosis, Finding, diagnose
from fewlabels.data.native import frame_kind
from fewlabels.data.options import parse_model_option, parse_model_options, parse_pairs
from fewlabels.data.read import column_names, read_predictions, read_reference

__all__ = [
    "Diagnosis",
    "Finding",
    "column_names",
    "diagnose",
    "frame_kind",
    "parse_model_option",
    "parse_model_options",
    "parse_pairs",
    "read_predictions",
    "read_reference",
]
