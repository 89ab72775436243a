"""Files of more rows than memory: read in units, in batches, by several workers.

What happens, in order:

1. `units`: a file or folder becomes units, which are pieces of work in the order of the rows.
2. `reading`: a unit becomes batches of `Predictions`.
3. A small state holds what is known of a unit; states are merged in the order of the units, so that
   neither the number of workers nor their kind affects the result.
4. `two_passes`: all units are scanned, the label model is fitted to a sample, all are tallied, and
   `measure` finishes the tally. `stream` has the units of files, `in_memory` slices of arrays; in
   `external` the caller has the rows.

Start with `two_passes`. The room imports `annotations`, `checks`, `data`, `errors`, `estimates`,
`evaluation`, `kernels`, `methods`, `metrics`, `pipeline`, `posterior`, `predictions` and `tasks`.

Traps: row numbers count from the start of the file, not of the batch or unit, and a byte range of a
CSV file does not know at which row it starts; files of a folder may hold one column in several
types.
"""
