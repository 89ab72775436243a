"""From numpy arrays: two scikit-learn classifiers, 500 new items, 25 of them labeled."""

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

# Shape (items, classifiers, classes); -1 where the label is not known.
probabilities = np.stack([c.predict_proba(new) for c in classifiers.values()], axis=1)
labels = np.full(len(new), -1)
labels[:25] = hidden[:25]

predictions = fl.Predictions(probabilities, labels, models=list(classifiers))
estimates = fl.estimate(predictions, metrics=["accuracy"])
for name, classifier in classifiers.items():
    row = estimates.get(name, "accuracy")
    print(
        f"{name}: {row.value:.3f}, between {row.low:.3f} and {row.high:.3f}; "
        f"with all labels {classifier.score(new, hidden):.3f}"
    )
