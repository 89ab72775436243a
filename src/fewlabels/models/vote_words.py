"""What the Gibbs-sampled models of votes have in common, in words."""

from __future__ import annotations

SOURCE = "Platanios, Dubey, Mitchell (2016)"

ASSUMES = (
    "classifiers err independently of each other, given the label",
    "a classifier errs equally often in every class",
    "most classifiers are right more often than wrong",
)

CONFUSION_ASSUMES = (
    "classifiers err independently of each other, given the label",
    "most classifiers are right more often than wrong in every class",
)

FAILS = (
    "classifiers make the same mistakes: their agreement then looks like accuracy",
    "fewer than three classifiers vote on the same items and no label is known",
    "most classifiers are worse than a guess: right and wrong trade places",
)

CONFUSION_HOW = (
    "Every item has an unknown label, and every classifier has a confusion matrix: how often it "
    "predicts each class for items of each class. Labels, matrices and class shares are drawn in "
    "turns, from several chains. Known labels stay. Probabilities are not used, only what is "
    "predicted."
)

DIAGNOSTICS = {
    "error_rate": "mean error rate of every classifier (in every domain); none where nothing "
    "is known of it",
    "class_share": "mean share of the items in each class (in every domain)",
    "vote_patterns": "distinct combinations of domain, votes and labels",
    "chains": "chains that were run",
    "r_hat": "largest ratio of spread between chains to spread within (1: they agree)",
    "effective_draws": "least effective number of draws of any rate",
}

COUPLED_DIAGNOSTICS = {
    **DIAGNOSTICS,
    "concentration": "mean concentration alpha: larger means more groups",
    "top_concentration": "mean concentration gamma (hcbee): larger means fewer shared error rates",
    "clusters": "mean number of groups that share rates",
    "domain_similarity": "probability that two domains share a classifier's rates",
    "classifier_similarity": "probability that two classifiers share rates in a domain",
    "partition": "the most probable partition into groups that share rates",
    "partition_probability": "share of the draws that have it",
}
