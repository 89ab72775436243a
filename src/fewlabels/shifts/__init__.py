"""Shift: labeled items that are not a random sample of all.

```
traits.py         labeled and unlabeled part; P(class) of what classifiers give, traits with names
sampling_test.py  are the labeled items a random sample? an exact permutation test, and what differs
label_shift.py    label shift: do the class frequencies differ, is that all, weights by class
label_shift_model.py  its label model: frequencies of the unlabeled items, posterior under them
covariate.py      covariate shift: density-ratio weights of the labeled items
analysis.py       fl.shift: all of this, and what follows
correction.py     estimate(shift=...): weights and an adjusted posterior
```

The room is not called `shift`: importing it would then take the place of the function `fl.shift`.
"""
