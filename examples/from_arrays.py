"""
From arrays: scikit-learn classifiers
=====================================

Two classifiers are trained on 300 items. They predict 500 new ones, of which 25 are labeled. Here
all labels are known, so the estimate can be held against the truth.
"""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import fewlabels as fl

items, truth = make_classification(800, n_informative=5, flip_y=0.1, random_state=0)
classifiers = {
    "logistic": LogisticRegression().fit(items[:300], truth[:300]),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0).fit(items[:300], truth[:300]),
}
new, hidden = items[300:], truth[300:]

# %%
# Probabilities by the name of the classifier, and labels; NaN is an unknown label.
labels = np.full(len(new), np.nan)
labels[:25] = hidden[:25]
probabilities = {name: c.predict_proba(new) for name, c in classifiers.items()}
estimates = fl.estimate(probabilities, y_true=labels, metrics=["accuracy"])

for name, classifier in classifiers.items():
    row = estimates.get(name, "accuracy")
    print(
        f"{name}: {row.value:.3f}, between {row.low:.3f} and {row.high:.3f}; "
        f"with all labels {classifier.score(new, hidden):.3f}"
    )

# %%
# The same as a figure:
estimates.plot("accuracy")
