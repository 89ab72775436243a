"""Shift: labeled items that are not a random sample of all.

```
traits.py         labeled and unlabeled part; P(class) of what classifiers give, traits with names
sampling_test.py  are the labeled items a random sample? an exact permutation test, and what differs
label_shift.py    the label model: class frequencies of the unlabeled items, posterior under them
label.py          label shift: are the frequencies different, is that all, weights by class
covariate.py      covariate shift: density-ratio weights of the labeled items
analysis.py       fl.shift: all of this, and what follows
correction.py     estimate(shift=...): weights and an adjusted posterior
```

The room is not called `shift`: importing it would then take the place of the function `fl.shift`.
"""
