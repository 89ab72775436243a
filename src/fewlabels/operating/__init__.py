"""Where to operate one classifier: its curves with bands, a threshold, what to label next.

```
question.py   which classifier, which class, by which method  ->  Question (scores and a posterior)
points.py     Question  ->  draws of the weighted confusion counts at every cut, in chunks
grid.py       counts  ->  a curve on a grid of 100 places            rates.py  counts  ->  rates
curve.py      fl.curve, fl.curves            threshold.py  fl.threshold, by condition.py
label_next.py fl.label_next                  answer.py     what all their results share
```

An item is called positive where its score is at least the threshold, everywhere.
"""
