"""Files and frames to `Predictions`, and what is wrong with them: start with `read`.

The room imports `checks`, `errors`, `kernels`, `predictions` and `report`. What happens, in order:

1. `options`: arguments, `--model` texts and the TOML file become one `ColumnOptions`.
2. `sources`: a path becomes files of one kind, which `content` tells by their first bytes; standard
   input is kept as a file before. Files may lie in a store (`stores`), rows in a database
   (`databases`); `where` chooses rows, and rules out files by their folders before they are opened.
3. `delimited`, `binary` (Parquet, Feather), `cells` (JSON, workbooks), `native` (frames): a
   `Source`, which knows the names of its columns. Formats that yield Python values are read by
   `cells`, all at once; text is read by `content`, which decompresses it and detects UTF-16. A CSV
   file read whole is its parts one after another, as `streaming.reading` takes them one by one.
   `shapes` makes columns of what one cell or several columns hold: vectors, objects, one-hot
   labels; `joined_files` joins a file per classifier, by the items that `keys` finds.
4. `recognise`: guesses what no option says about the columns, from their values and names
   (`profiles`, `words.toml`), which are `evidence`; `families` are columns of one classifier's
   probabilities, `row_votes` rows that are votes. If two readings are possible, it refuses the
   file; if none is, `unread` says what the columns are seen to hold. `reading_lines` say what was
   recognised.
5. `roles`: every column gets a role, by its native name or by the options.
6. The source reads those columns into a `Table`: numbers, or categories of texts.
7. `classes`: which classes there are, and which of them a text means.
8. `assemble`: the arrays of `Predictions`, which makes all checks of the numbers.
9. `joined`: votes (further classifiers) or labels kept in another file, joined to these items. They
   are read before the columns of the table are recognised (4), because they may be what defines
   the classes.

What a message proposes is tried on the first rows before it is said (`proposals`).
NPZ files hold the arrays already (`binary`). `doctor` goes the same way and reports where it ends;
`streaming.diagnose_files` runs the same checks on large files, from facts about all parts and a
sample of rows.

Traps: 1, 1.0 and "1" are one class; a column of objects may hold several types; `Array.to_numpy`
of pyarrow imports pandas; a Parquet column is read when its numbers are asked for; messages speak
of rows of the file (from 1, after the header), Python objects of items (from 0).
"""
