"""Whether a classifier is worse than chance on the items whose labels are known."""

from __future__ import annotations

import numpy as np

from fewlabels.kernels.arrays import Array, Floats


def below_chance_by_rank(scores: Floats, positive: Array) -> float:
    """P-value of "no worse than chance" against a smaller AUC, by the Mann-Whitney test.

    Parameters
    ----------
    scores
        Scores of labeled items, (n,).
    positive
        Which of them are positive, (n,).
    """
    from scipy.stats import mannwhitneyu

    if not positive.any() or positive.all():
        return 1.0
    return float(mannwhitneyu(scores[positive], scores[~positive], alternative="less").pvalue)


def below_chance_by_agreement(labels: Array, hard: Array, times: Floats, n_classes: int) -> float:
    """P-value of "no worse than chance" against less agreement than permuted predictions have.

    With n_k items of class k and m_l predictions of class l, the number S of agreements under a
    random permutation has the mean sum_k n_k m_k / n and, with d_kl = [k = l] - m_k/n - n_l/n +
    sum_c n_c m_c / n^2, the variance sum_kl n_k m_l d_kl^2 / (n - 1) (Hoeffding's combinatorial
    central limit theorem); normal, with a continuity correction.

    Parameters
    ----------
    labels, hard, times
        Class of each labeled item, the predicted one, and how many items the row stands for, (n,).
    """
    from scipy.stats import norm

    n = float(times.sum())
    of_label = np.bincount(labels, weights=times, minlength=n_classes)
    of_hard = np.bincount(hard, weights=times, minlength=n_classes)
    agreed = float(times[labels == hard].sum())
    mean = float(of_label @ of_hard) / n
    d = np.eye(n_classes) - of_hard[:, None] / n - of_label[None, :] / n + mean / n
    variance = float((of_label[:, None] * of_hard[None, :] * d**2).sum()) / max(n - 1, 1)
    if variance <= 0:
        return 1.0
    return float(norm.cdf((agreed + 0.5 - mean) / np.sqrt(variance)))
