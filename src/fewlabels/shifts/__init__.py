"""Shift: labeled items that are not a random sample of all.

The room imports `checks`, `data`, `errors`, `kernels`, `methods`, `posterior`, `predictions` and
`report`. Start with `analysis.py`.

```
sampling_test.py  are the labeled items a random sample, by what the classifiers say of them?
label_shift.py    label shift: its label model; class frequencies of the unlabeled items; a test
                  whether label shift explains the whole difference
analysis.py       fl.shift: all of this, and what follows; estimate(shift=...): the corrections, by
                  importance weights of the labeled items
```

The room is not called `shift`: importing it would then take the place of
the function `fl.shift`.
"""
