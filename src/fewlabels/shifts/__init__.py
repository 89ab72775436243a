"""Shift: labeled items that are not a random sample of all.

```
traits.py         what each classifier gives -> P(class), points in score space, traits with names
sampling_test.py  are the labeled items a random sample? an exact permutation test, and what differs
label.py          label shift: frequencies of the classes, whether they differ, whether that is all
covariate.py      covariate shift: density-ratio weights of the labeled items
correction.py     estimate(shift=...): weights and an adjusted posterior
analysis.py       fl.shift: all of this, and what follows    warning.py  one sentence in estimate
```

The room is not called `shift`: importing it would then take the place of the function `fl.shift`.
"""
