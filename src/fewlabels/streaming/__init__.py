"""Files of more rows than memory: read in units, in batches, by several workers.

What happens, in order:

1. `units`: a file or folder becomes units, which are pieces of work in the order of the rows.
2. `reading`: a unit becomes batches of `Predictions`.
3. What is known of one unit is a small state; states are merged in the order of the units, so
   that neither the number of workers nor their kind shows in the answer.
4. `two_passes`: all units are scanned, the label model is fitted to a sample, all are tallied, and
   `measure` finishes the tally. `stream` has the units of files, `in_memory` slices of arrays, and
   `external` leaves it to others who has them.

Start with `two_passes`. The room stands on data, methods, evaluation and `pipeline`.

Traps: a number of a row counts from the start of its file, not of its batch or unit; a byte range
of CSV does not know it; files of a folder may hold one column in several types.
"""
