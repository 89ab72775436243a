"""Questions beyond single estimates: curves, thresholds, comparisons, scores, what to label next.

The room imports `annotations`, `checks`, `comparison`, `data`, `errors`, `estimates`, `estimating`,
`evaluation`, `kernels`, `methods`, `metrics`, `pipeline`, `posterior`, `predictions` and `report`.
Start with `question.py`.

```
question.py   the arguments all share -> Question (which classifier and class, the posterior,
              trust); what all results share
counts.py     Question -> draws of the weighted confusion counts at every cut, in chunks -> rates,
              and curves on a grid of 100 places
curve.py      fl.curve, fl.curves    threshold.py  fl.threshold
calibration_curve.py                 fl.calibration_curve
label_next.py fl.label_next: the questions; next_items.py: what a label says about them, and how
              items are drawn
compare.py    fl.compare             score.py      fl.score        backtest.py    fl.backtest
rank.py       fl.rank: contestants are the classifiers, people's verdicts the labels
anytime.py    an interval that holds at every look                 demo.py        fewlabels demo
```

An item is called positive where its score is at least the threshold, everywhere.
"""
