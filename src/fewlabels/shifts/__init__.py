"""Shift: labeled items that are not a random sample of all.

The room stands on `methods`, `metrics`, `predictions` and `posterior`. Start with `analysis.py`.

```
sampling_test.py  are the labeled items a random sample, by what the classifiers say of them?
label_shift.py    label shift: its label model, the frequencies of the unlabeled items, is it all?
analysis.py       fl.shift: all of this, and what follows; estimate(shift=...): the corrections, by
                  importance weights of the labeled items
```

The room is not called `shift`: importing it would then take the place of
the function `fl.shift`.
"""
