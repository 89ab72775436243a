"""Shift: labeled items that are not a random sample of all.

```
label_shift.py  label shift: its label model, the frequencies of the unlabeled items, is it all?
weights.py      importance weights of the labeled items: by their scores, or by class
analysis.py     fl.shift: all of this, and what follows; estimate(shift=...): the corrections
```

Whether the labeled items are a random sample at all is told from the data
(`data/sampling_test.py`). The room is not called `shift`: importing it would then take the place of
the function `fl.shift`.
"""
