"""Class names: which of two is positive, which are synonyms, which mean unknown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from fewlabels.errors import listed
from fewlabels.kernels.arrays import Floats


def _words(text: str) -> frozenset[str]:
    """The words of a list with commas."""
    return frozenset(word.strip() for word in text.split(","))


# Two-class answers of people, programs and forms. The words of one line mean the same, so that a
# judge's TRUE and a person's "yes" are one class where both columns hold nothing but such words.
_YES = _words("""
    1, true, t, yes, y, pass, passed, correct, right, positive, pos, good, accept, accepted,
    present, detected, on, ja, oui, si, sí, sim, da, vrai, wahr
""")
_NO = _words("""
    0, false, f, no, n, fail, failed, incorrect, wrong, negative, neg, bad, reject, rejected,
    absent, undetected, off, nein, non, nee, não, nao, faux, falsch
""")

# What somebody looks for, whatever the other class is called.
_SOUGHT = _words("""
    spam, toxic, fraud, fraudulent, malignant, abnormal, anomaly, anomalous, attack, malware,
    malicious, phishing, hate, hateful, offensive, abusive, harmful, unsafe, nsfw, obscene, violent,
    sick, ill, diseased, disease, infected, cancer, tumor, tumour, defect, defective, faulty,
    broken, churn, churned, default, defaulted, relevant, duplicate, clickbait, sarcastic,
    hallucination, hallucinated, jailbreak, suspicious, bot, fake, guilty, case, event, risk,
    critical, urgent
""")

_NOT = re.compile(r"(?i)(?:not|non|no|un|in)(?:[ _-]+|(?=\w{4}))(.+)")

NO_LABEL = _words("""
    , na, n/a, n.a., #n/a, <na>, nan, null, nil, -1, ?, ??, ???, -, --, todo, to do, tbd, tba,
    unlabeled, unlabelled, not labeled, not labelled, no label, (blank), k.a., k. a., ., .., …, -99,
    -999, -9999
""")
"""Texts, folded, that stand for an unknown label unless a class is declared by that name."""

MAYBE_NO_LABEL = _words("""
    none, unknown, unk, missing, skip, skipped, pending, blank, unbekannt, unsure, unclear
""")
"""The same, but these may be classes: they are where both labels and classifiers say so."""


_CODED = re.compile(r"(?:label|class)[ _-]?(\d+)")
"""How libraries name classes that have only numbers: LABEL_0."""


_BESIDE = re.compile(r"^\d+:(?=\W+$)|^__label__(?=.)|(?<=\w\w)\.$")
"""The code before a mark that is no class, as in 1:? beside 1:cat; what fastText writes before a
class, and the full stop behind an answer."""


def folded(text: str) -> str:
    """A text without case, outer blanks and repeated blanks, by which spellings are compared.

    Examples
    --------
    >>> folded(" Not  Spam. "), folded("1:?"), folded("__label__spam")
    ('not spam', '?', 'spam')
    """
    return " ".join(_BESIDE.sub("", text.strip()).casefold().split())


def spelling(text: str, among: Collection[str]) -> str:
    """What texts of one class share: the folded text, or the number behind LABEL_ if it is one.

    Examples
    --------
    >>> spelling("LABEL_1", ["0", "1", "LABEL_1"]), spelling(" Cat", ["cat"])
    ('1', 'cat')
    """
    coded = _CODED.fullmatch(folded(text))
    return coded[1] if coded and coded[1] in among else folded(text)


def polarity(text: str) -> bool | None:
    """Whether a text is one of the usual words for yes (True) or for no (False); else None.

    Examples
    --------
    >>> polarity("PASS"), polarity("0"), polarity("cat")
    (True, False, None)
    """
    word = folded(text)
    return True if word in _YES else False if word in _NO else None


def same_answer(text: str, classes: Collection[str]) -> str | None:
    """The class that a text means: the one written so but for case and blanks, or its synonym.

    Synonyms (true, yes, pass, 1 ...) only among classes that are all such words.

    Examples
    --------
    >>> same_answer("TRUE", ["fail", "pass"]), same_answer("yes", ["ham", "spam"])
    ('pass', None)
    """
    if text in classes:
        return text
    alike = [c for c in classes if folded(c) == folded(text)]
    if len(alike) == 1:
        return alike[0]
    if spelling(text, classes) in classes:
        return spelling(text, classes)
    sides = [polarity(c) for c in classes]
    if alike or not 0 < len(sides) <= 2 or None in sides or len(set(sides)) < len(sides):
        return None
    side = polarity(text)
    return next((c for c, s in zip(classes, sides, strict=True) if s is side), None)


def positive_index(classes: Sequence[Any], *, sure: bool = False) -> int:
    """Which of two classes is positive: by known words, else the last.

    If `sure`, -1 where neither words of both nor numbers say so.

    Examples
    --------
    >>> [positive_index(two) for two in (["fraud", "legit"], ["a", "b"], ["yes", "no"])]
    [0, 1, 0]
    """
    first, last = (folded(str(c)) for c in classes)
    sought = (first in _SOUGHT, last in _SOUGHT)
    if sought[0] != sought[1]:
        return sought.index(True)
    for one, other, index in ((first, last, 0), (last, first, 1)):
        negated = _NOT.fullmatch(other)
        if negated and folded(negated[1]) == one:
            return index
    if (sides := (polarity(first), polarity(last))) in ((True, False), (False, True)):
        return sides.index(True)
    if sure and numbers_of(classes) is None:
        return -1
    # Not of numbers and letters: 1 and 2 are two codes.
    polarities = [s if len(w) > 1 else None for s, w in zip(sides, (first, last), strict=True)]
    if polarities[0] is True or polarities[1] is False:
        return 0
    return 1


def have_order(classes: Sequence[Any]) -> bool:
    """Whether classes are numbers, or words in an order other than that of the alphabet."""
    names = [str(c) for c in classes]
    return numbers_of(classes) is not None or names != sorted(names)


def alphabetical(classes: Sequence[Any]) -> str | None:
    """What to say of metrics that count steps between words nobody has put in order; None else."""
    if len(classes) < 3 or have_order(classes):
        return None
    return (
        "steps between classes, whose order is that of the alphabet "
        f"({listed([str(c) for c in classes], 5)}); say theirs with --classes, worst first, as in "
        "--classes low,medium,high"
    )


_NUMBERED = re.compile(r"(\D*)(\d+(?:\.\d+|,\d{1,2})?)(?![.,\d])(.*)", re.DOTALL)


def numbers_of(classes: Iterable[Any]) -> Floats | None:
    """The numbers that classes are called by, (K,); None unless all are different numbers.

    The same words may stand around all of them, as in Grade 8, 22% and 3/4, and a comma before at
    most two digits is a point.

    Examples
    --------
    >>> numbers_of(["8%", "100%"]), numbers_of(["2,5", "10,0"]), numbers_of(["low", "high"])
    (array([  8., 100.]), array([ 2.5, 10. ]), None)
    """
    texts = [str(c) for c in classes]
    try:
        values = np.array([float(text) for text in texts])
    except ValueError:
        found = [m for m in map(_NUMBERED.fullmatch, texts) if m]
        if len(found) < len(texts) or len({(folded(m[1]), folded(m[3])) for m in found}) != 1:
            return None
        values = np.array([float(m[2].replace(",", ".")) for m in found])
    apart = np.isfinite(values).all() and len(np.unique(values)) == len(values)
    return values if apart else None
