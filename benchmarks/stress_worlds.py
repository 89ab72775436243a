"""Worlds that break estimators of classifiers' metrics: items with known truth, drawn at will.

Each world is a function of (number of items, generator). Its docstring is what the page says of it.
They stand here and not in the package, so that other versions of the package meet the same worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import isfunction
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, softmax

import fewlabels as fl

Array = np.ndarray
Generator = np.random.Generator


class Sample(NamedTuple):
    """Items: true classes (n,), and by name of a classifier what it says of each.

    `probabilities` (n,) of class 1 or (n, K), NaN missing; `votes` (n,), -1 missing; `scores` (n,).
    `groups` (n,) by name, in which classifiers are judged as well. `learned` (n,) is what a
    classifier says of items whose labels it was trained on, `annotated` (n,) are the labels if
    these are not all right.
    """

    truth: Array
    probabilities: Mapping[str, Array] = {}
    votes: Mapping[str, Array] = {}
    scores: Mapping[str, Array] = {}
    groups: Mapping[str, Array] = {}
    n_classes: int = 2
    learned: Mapping[str, Array] = {}
    annotated: Array | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the classifiers."""
        return (*self.probabilities, *self.votes, *self.scores)

    def predictions(self, n_labeled: int) -> fl.Predictions:
        """What the package is given: the labels of the first items, which are as good as any."""
        n, models, k = len(self.truth), self.models, self.n_classes
        blocks: dict[str, Any] = {
            "probabilities": np.full((n, len(models), k), np.nan),
            "votes": np.full((n, len(models)), -1),
            "scores": np.full((n, len(models)), np.nan),
        }
        labeled = np.arange(n) < n_labeled
        labels = self.truth if self.annotated is None else self.annotated
        for kind, block in blocks.items():
            for name, said in getattr(self, kind).items():
                if name in self.learned:
                    said = np.where(labeled, self.learned[name], said)
                binary = kind == "probabilities" and said.ndim == 1
                block[:, models.index(name)] = np.c_[1 - said, said] if binary else said
        return fl.Predictions(
            labels=np.where(labeled, labels, -1), groups=dict(self.groups),
            models=models, classes=tuple(range(k)),
            **{kind: block for kind, block in blocks.items() if getattr(self, kind)},
        )  # fmt: skip


World = Callable[[int, Generator], Sample]


def _binary(n: int, share: float, rng: Generator) -> Array:
    return (rng.random(n) < share).astype(int)


def _noise(n: int, models: int, common: float, rng: Generator) -> Array:
    """Gaussian errors (n, M) of variance 1 and correlation `common`."""
    own, shared = rng.normal(size=(n, models)), rng.normal(size=(n, 1))
    return np.sqrt(common) * shared + np.sqrt(1 - common) * own


def _log_odds(
    truth: Array, strengths: Sequence[float], share: float, common: float, rng: Generator
) -> Array:
    """Calibrated log odds (n, M) of class 1 by scores that are Gaussian given the class.

    A score's classes lie `strength` standard deviations apart; its accuracy at equal shares is
    Phi(strength / 2).
    """
    d = np.array(strengths)
    scores = d * (truth[:, None] - 0.5) + _noise(len(truth), len(d), common, rng)
    return d * scores + logit(share)


def _classes(
    truth: Array, strengths: Sequence[float], shares: Array, common: float, rng: Generator
) -> Array:
    """Calibrated log probabilities (n, M, K), but for a constant."""
    k, d = len(shares), np.array(strengths)[:, None]
    shape = (len(truth), 1, k)
    noise = np.sqrt(common) * rng.normal(size=shape)
    noise = noise + np.sqrt(1 - common) * rng.normal(size=(len(truth), len(d), k))
    return d * (d * np.eye(k)[truth][:, None] + noise) + np.log(shares)


def _by_name(names: str, block: Array) -> dict[str, Array]:
    return {name: block[:, j] for j, name in enumerate(names.split())}


def _judges(names: str, truth: Array, right: Any, rng: Generator) -> dict[str, Array]:
    """Votes of two classes by P(right) of each item and judge (n, M)."""
    return _by_name(
        names, np.where(rng.random(right.shape) < right, truth[:, None], 1 - truth[:, None])
    )


def _rates(truth: Array, *rates: tuple[float, float]) -> Array:
    """P(right) (n, M) by the specificity and sensitivity of each judge."""
    return np.array(rates).T[truth]


def _scored(
    about: str, names: str, share: float, strengths: Sequence[float], common: float = 0.3,
    say: Callable[[Array, Generator], Array] = lambda odds, rng: expit(odds),
) -> World:  # fmt: skip
    """A world of two classes, and of probabilities that are made of calibrated log odds."""

    def draw(n: int, rng: Generator) -> Sample:
        truth = _binary(n, share, rng)
        odds = _log_odds(truth, strengths, share, common, rng)
        return Sample(truth, _by_name(names, say(odds, rng)))

    draw.__doc__ = about
    return draw


def _judged(about: str, names: str, share: float, *rates: tuple[float, float]) -> World:
    """A world of two classes, and of judges who err independently of each other."""

    def draw(n: int, rng: Generator) -> Sample:
        truth = _binary(n, share, rng)
        return Sample(truth, votes=_judges(names, truth, _rates(truth, *rates), rng))

    draw.__doc__ = about
    return draw


def _first_missing(p: Array, rows: Array) -> Array:
    """The first classifier was not asked about some rows."""
    p[rows, 0] = np.nan
    return p


one_strong = _scored(
    "Four ordinary classifiers and a new one that is right 97% of the time.",
    "new a b c d", 0.3, (3.6, 1.2, 1.4, 1.0, 1.3),
)  # fmt: skip
wild_calibration = _scored(
    "Five classifiers whose probabilities mean different things: far too sure, far too timid.",
    "times8 tenth times3 third plain", 0.3, (2.0, 1.6, 1.8, 1.4, 2.2),
    say=lambda odds, rng: expit(odds * (8, 0.1, 3, 0.3, 1) + (2, 0, -2, 1, 0)),
)  # fmt: skip
one_reversed = _scored(
    "One of five columns was exported as P(class 0).",
    "reversed a b c d", 0.3, (1.8, 1.5, 2.0, 1.4, 1.6),
    say=lambda odds, rng: expit(odds * (-1, 1, 1, 1, 1)),
)  # fmt: skip
one_constant = _scored(
    "One of five classifiers failed and says .3 of every item.",
    "constant a b c d", 0.3, (1.8, 1.5, 2.0, 1.4, 1.6),
    say=lambda odds, rng: np.where(np.arange(5) == 0, 0.3, expit(odds)),
)  # fmt: skip
shared_mistakes = _scored(
    "Five classifiers trained on the same features err on the same items (correlation .95).",
    "a b c d e", 0.3, (1.3, 1.5, 1.4, 1.2, 1.6), 0.95,
)  # fmt: skip
rare_shifted = _scored(
    "1.2% of the items are positive; the classifiers were trained on balanced data.",
    "a b c d e", 0.012, (2.5, 2.0, 2.2, 1.8, 2.8), say=lambda odds, rng: expit(odds + 4),
)  # fmt: skip


def judge_beside_scores(n: int, rng: Generator) -> Sample:
    """A language model's verdicts, 95% right, beside two weak retrieval scores."""
    truth = _binary(n, 0.3, rng)
    odds = _log_odds(truth, (0.8, 1.0), 0.3, 0.2, rng)
    judge = _judges("judge", truth, _rates(truth, (0.95, 0.95)), rng)
    return Sample(truth, votes=judge, scores=_by_name("bm25 cosine", odds))


votes_independent = _judged(
    "Five judges of pass or fail who err independently of each other.",
    "a b c d e", 0.4, (0.9, 0.8), (0.75, 0.85), (0.85, 0.7), (0.95, 0.65), (0.7, 0.75),
)  # fmt: skip
votes_one_good = _judged(
    "One judge who is right 95% of the time among four who are little better than a coin.",
    "good a b c d", 0.5, (0.95, 0.95), (0.6, 0.55), (0.55, 0.65), (0.6, 0.6), (0.5, 0.65),
)  # fmt: skip


def votes_copies(n: int, rng: Generator) -> Sample:
    """Three of five judges are prompts of one language model and make the same mistakes."""
    truth = _binary(n, 0.5, rng)
    votes = _judges("model x y", truth, _rates(truth, (0.7, 0.75), (0.88, 0.82), (0.85, 0.85)), rng)
    prompts = np.abs(votes.pop("model")[:, None] - (rng.random((n, 3)) < 0.02))
    return Sample(truth, votes=_by_name("prompt1 prompt2 prompt3", prompts) | votes)


def votes_lenient(n: int, rng: Generator) -> Sample:
    """Four language models pass nearly everything, and the same bad answers fool them."""
    truth = _binary(n, 0.7, rng)
    bad = expit((-0.9, -0.3, -0.6, 0.4) - 1.5 * rng.normal(size=(n, 1)))
    right = np.where(truth[:, None] == 1, (0.98, 0.96, 0.97, 0.9), bad)
    return Sample(truth, votes=_judges("a b c strict", truth, right, rng))


votes_rare = _judged(
    "Five moderators look for what 3% of the posts are.",
    "a b c d e", 0.03, (0.98, 0.6), (0.95, 0.8), (0.99, 0.5), (0.97, 0.7), (0.9, 0.85),
)  # fmt: skip


def votes_four_classes(n: int, rng: Generator) -> Sample:
    """Five annotators of four classes, the last two of which everybody mixes up."""
    truth = rng.choice(4, n, p=(0.4, 0.3, 0.2, 0.1))
    y = truth[:, None]
    mixed = (y >= 2) & (rng.random((n, 5)) < 0.7)
    wrong = np.where(mixed, 5 - y, (y + rng.integers(1, 4, (n, 5))) % 4)
    right = np.array([0.85, 0.75, 0.8, 0.65, 0.9]) * np.where(y >= 2, 0.75, 1)
    votes = np.where(rng.random((n, 5)) < right, y, wrong)
    return Sample(truth, votes=_by_name("a b c d e", votes), n_classes=4)


def votes_sparse(n: int, rng: Generator) -> Sample:
    """Forty crowd workers, four or so an item; three of them always say yes."""
    truth = _binary(n, 0.4, rng)
    skill = np.linspace(0.55, 0.95, 40)
    rates = np.stack([skill, np.roll(skill, 7)], axis=1)
    rates[[5, 17, 29]] = (0, 1)
    names = " ".join(f"w{j:02d}" for j in range(40))
    votes = _judges(names, truth, _rates(truth, *rates), rng)
    return Sample(truth, votes={w: np.where(rng.random(n) < 0.1, v, -1) for w, v in votes.items()})


def votes_hard_items(n: int, rng: Generator) -> Sample:
    """Five judges; on a third of the items all of them guess, mostly the same way."""
    truth = _binary(n, 0.5, rng)
    hard, pull = rng.random((n, 1)) < 0.35, rng.normal(0, 1.5, (n, 1))
    skill = logit(np.array([0.95, 0.92, 0.9, 0.87, 0.97]))
    right = expit(np.where(hard, pull + 0.1 * skill, skill))
    return Sample(truth, votes=_judges("a b c d e", truth, right, rng))


def verdict_beside_probabilities(n: int, rng: Generator) -> Sample:
    """A language model's verdict, 88% right, beside three trained classifiers."""
    truth = _binary(n, 0.35, rng)
    odds = _log_odds(truth, (1.5, 1.8, 1.3), 0.35, 0.5, rng)
    verdict = _judges("verdict", truth, _rates(truth, (0.9, 0.85)), rng)
    return Sample(truth, _by_name("a b c", expit(1.3 * odds)), votes=verdict)


def score_beside_probabilities(n: int, rng: Generator) -> Sample:
    """A score of hundreds or thousands without a scale beside three probabilities."""
    truth = _binary(n, 0.25, rng)
    odds = _log_odds(truth, (1.6, 1.9, 1.4, 2.3), 0.25, 0.4, rng)
    score = {"score": 400 * np.exp(0.6 * odds[:, 3])}
    return Sample(truth, _by_name("a b c", expit(odds[:, :3])), scores=score)


def vote_score_probability(n: int, rng: Generator) -> Sample:
    """Three vendors: one answers yes or no, one gives a score, one a probability."""
    truth = _binary(n, 0.4, rng)
    odds = _log_odds(truth, (1.2, 2.2), 0.4, 0.2, rng)
    vote = _judges("vote", truth, _rates(truth, (0.75, 0.9)), rng)
    p, score = expit(2 * odds[:, 0]), -3 + 0.2 * odds[:, 1]
    return Sample(truth, {"probability": p}, vote, {"score": score})


def grades(n: int, rng: Generator) -> Sample:
    """Three language models grade answers from 1 to 5, one strictly, one hardly using the scale."""
    truth = _binary(n, 0.6, rng)
    odds = _log_odds(truth, (1.8, 1.4, 2.2), 0.6, 0.4, rng)
    grade = np.clip(np.round(odds * (0.8, 0.7, 0.3) + (3, 2, 4)), 1, 5)
    return Sample(truth, scores=_by_name("plain strict kind", grade))


def siblings(n: int, rng: Generator) -> Sample:
    """Five networks of one architecture that differ by their seed, nearly calibrated."""
    odds = rng.normal(-1, 2.5, size=(n, 1))
    truth = _binary(n, expit(odds[:, 0]), rng)
    said = odds + 0.4 * rng.normal(size=(n, 1)) + (0.4, 0.4, 0.5, 0.4, 0.5) * _noise(n, 5, 0, rng)
    return Sample(truth, _by_name("seed1 seed2 seed3 seed4 seed5", expit(1.1 * said)))


equal = _scored(
    "Four classifiers that are equally good.",
    "a b c d", 0.4, [1.7] * 4,
)  # fmt: skip


def five_classes(n: int, rng: Generator) -> Sample:
    """Four classifiers of five classes; one is far too sure, one favours the first class."""
    shares = np.array([0.35, 0.25, 0.2, 0.12, 0.08])
    truth = rng.choice(5, n, p=shares)
    log_p = _classes(truth, (1.6, 1.9, 1.4, 1.7), shares, 0.3, rng)
    log_p[:, 1] *= 4
    log_p[:, 2, 0] += 1.5
    return Sample(truth, _by_name("a sure biased d", softmax(log_p, axis=2)), n_classes=5)


def best_class_alone(n: int, rng: Generator) -> Sample:
    """Two classifiers of five classes, equally good: one gives only its best class."""
    shares = np.array([0.35, 0.25, 0.2, 0.1, 0.1])
    truth = rng.choice(5, n, p=shares)
    log_p = _classes(truth, (2.2, 2.2), shares, 0.0, rng)
    sure, said = softmax(0.6 * log_p[:, 0], axis=1), log_p[:, 1].argmax(axis=1)
    return Sample(truth, {"probabilities": sure}, {"class alone": said}, n_classes=5)


def ten_classes(n: int, rng: Generator) -> Sample:
    """Five image networks of ten classes that fail on the same pictures, all too sure."""
    shares = np.full(10, 0.1)
    truth = rng.choice(10, n, p=shares)
    log_p = _classes(truth, (3.2, 3.0, 3.4, 2.6, 3.1), shares, 0.7, rng)
    return Sample(truth, _by_name("a b c small e", softmax(1.8 * log_p, axis=2)), n_classes=10)


few_predictions = _scored(
    "An expensive classifier was asked about 30% of the items, taken at random.",
    "expensive a b c", 0.35, (2.6, 1.5, 1.7, 1.3),
    say=lambda odds, rng: _first_missing(expit(odds), rng.random(len(odds)) > 0.3),
)  # fmt: skip
cascade = _scored(
    "A large model is asked only where the small one is unsure.",
    "large small other", 0.4, (2.6, 1.7, 1.5), 0.4,
    say=lambda odds, rng: _first_missing(p := expit(odds), np.abs(p[:, 1] - 0.5) > 0.25),
)  # fmt: skip
five_levels = _scored(
    "Four classifiers whose probabilities are rounded to 0, .25, .5, .75 and 1.",
    "a b c d", 0.4, (1.5, 1.8, 1.3, 2.1), say=lambda odds, rng: np.round(4 * expit(odds)) / 4,
)  # fmt: skip
trees = _scored(
    "Three full-grown trees, whose probabilities are 0 or 1, beside a logistic regression.",
    "tree1 tree2 tree3 logistic", 0.3, (1.4, 1.6, 1.3, 2.0), 0.4,
    say=lambda odds, rng: np.where(np.arange(4) < 3, expit(odds) > 0.5, expit(odds)),
)  # fmt: skip
imbalance = _scored(
    "4% of payments are fraud; four calibrated classifiers hardly ever say more than a half.",
    "a b c d", 0.04, (1.8, 2.2, 1.5, 2.6), 0.4,
)  # fmt: skip


def heavy_tails(n: int, rng: Generator) -> Sample:
    """Outliers everywhere: three probabilities pressed against 0 and 1, and a margin."""
    truth = _binary(n, 0.35, rng)
    noise = 0.6 * rng.standard_t(2, (n, 1)) + 0.8 * rng.standard_t(2, (n, 4))
    scores = np.array([2.5, 3.0, 2.2, 3.5]) * (truth[:, None] - 0.5) + noise
    p, margin = expit(2.5 * scores[:, :3]), {"margin": scores[:, 3]}
    return Sample(truth, _by_name("a b c", p), scores=margin)


def two_sided(n: int, rng: Generator) -> Sample:
    """Faults make a reading too high or too low; two of four detectors only look for too high."""
    truth = _binary(n, 0.3, rng)
    side = np.where(rng.random(n) < 0.65, 1, -1)
    reading = (2.2 * truth * side)[:, None] + _noise(n, 2, 0.5, rng)
    odds = _log_odds(truth, (1.3, 1.7), 0.3, 0.2, rng)
    return Sample(truth, _by_name("high1 high2 c d", expit(np.c_[1.5 * reading - 1.5, odds])))


def hard_items(n: int, rng: Generator) -> Sample:
    """Half of the items tell all five classifiers next to nothing; these are as sure as ever."""
    truth = _binary(n, 0.4, rng)
    ease = np.where(rng.random((n, 1)) < 0.5, 0.2, 1.8)
    d = np.array([1.7, 1.9, 1.5, 2.1, 1.4])
    scores = d * ease * (truth[:, None] - 0.5) + _noise(n, 5, 0.4, rng)
    return Sample(truth, _by_name("a b c d e", expit(1.8 * scores)))


def blind_spot(n: int, rng: Generator) -> Sample:
    """A third of the frauds are of a new kind, which all four classifiers take for harmless."""
    truth = _binary(n, 0.3, rng)
    seen = np.where(rng.random(n) < 1 / 3, 0, truth)
    odds = _log_odds(seen, (2.4, 2.8, 2.2, 2.6), 0.3, 0.3, rng)
    return Sample(truth, _by_name("a b c d", expit(odds)))


alone = _scored(
    "One binary classifier, too sure of itself.",
    "network", 0.4, (1.7,), 0, say=lambda odds, rng: expit(3 * odds),
)  # fmt: skip


def alone_four_classes(n: int, rng: Generator) -> Sample:
    """One classifier of four classes, too sure of itself."""
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    truth = rng.choice(4, n, p=shares)
    log_p = _classes(truth, (1.8,), shares, 0, rng)[:, 0]
    return Sample(truth, {"network": softmax(2.5 * log_p, axis=1)}, n_classes=4)


def failing_group(n: int, rng: Generator) -> Sample:
    """The best of four classifiers only guesses at the new clinic, a fifth of the items."""
    truth = _binary(n, 0.35, rng)
    new = rng.random(n) < 0.2
    odds = _log_odds(truth, (2.4, 1.8, 1.5, 1.7), 0.35, 0.3, rng)
    odds[new, 0] = rng.permutation(odds[new, 0])
    clinic = np.where(new, "new", "old")
    return Sample(truth, _by_name("best a b c", expit(odds)), groups={"clinic": clinic})


def outsider(n: int, rng: Generator) -> Sample:
    """A better voter of another kind beside nine that share a training set and its mistakes."""
    truth = _binary(n, 0.45, rng)
    alike = 1.1 * (2 * truth[:, None] - 1) / 2 + _noise(n, 9, 0.85, rng) > 0
    best = _judges("outsider", truth, _rates(truth, (0.76, 0.7)), rng)
    return Sample(truth, votes=best | _by_name("a b c d e f g h i", alike.astype(int)))


copies = _scored(
    "One of four classifiers was uploaded five times under different names.",
    "a1 a2 a3 a4 a5 b c d", 0.3, (1.3, 1.9, 1.6, 2.1),
    say=lambda odds, rng: expit(odds)[:, [0, 0, 0, 0, 0, 1, 2, 3]],
)  # fmt: skip
rare_uncalibrated = _scored(
    "6% of the scans have the finding; five networks give it .2 to .4 nearly everywhere.",
    "a b c d e", 0.06, (1.3, 1.1, 1.4, 1.2, 1.0), 0.8,
    say=lambda odds, rng: expit(0.35 * odds + (0.2, -0.2, 0, 0.3, -0.1)),
)  # fmt: skip


def degrading(n: int, rng: Generator) -> Sample:
    """One classifier over eight weeks: from the sixth on half of the harmless mail is new to it."""
    week, truth = rng.integers(1, 9, n), _binary(n, 0.2, rng)
    odds = _log_odds(truth, (3.0,), 0.2, 0, rng)[:, 0]
    odds = odds + np.where((week >= 6) & (truth == 0) & (rng.random(n) < 0.5), 3.5, 0)
    weeks = np.char.add("2026-W0", week.astype(str))
    return Sample(truth, {"filter": expit(odds)}, groups={"week": weeks})


def _fifth_first(n: int, surest: bool, rng: Generator) -> Sample:
    truth = _binary(n, 0.4, rng)
    odds = _log_odds(truth, (1.7, 2.0, 1.5, 2.2), 0.4, 0.5, rng)
    sure = np.abs(odds.mean(axis=1)).argsort()
    sure = sure[::-1] if surest else sure
    order = np.r_[rng.permutation(sure[: n // 5]), sure[n // 5 :]]
    return Sample(truth[order], _by_name("a b c d", expit(1.5 * odds)[order]))


def surest_labeled(n: int, rng: Generator) -> Sample:
    """Labels were only given to the fifth of the items of which the classifiers are surest."""
    return _fifth_first(n, True, rng)


def unsure_labeled(n: int, rng: Generator) -> Sample:
    """Labels were only given to the fifth of the items of which the classifiers are least sure."""
    return _fifth_first(n, False, rng)


def trained_on_labels(n: int, rng: Generator) -> Sample:
    """One of five classifiers was trained on the labeled items, and is right about all of them."""
    truth = _binary(n, 0.3, rng)
    p = expit(_log_odds(truth, (1.5, 1.8, 1.4, 2.0, 1.6), 0.3, 0.3, rng))
    learned = np.where(truth == 1, 1, -1) * (3 + np.abs(rng.normal(size=n)))
    return Sample(truth, _by_name("leaked a b c d", p), learned={"leaked": expit(learned)})


def wrong_labels(n: int, rng: Generator) -> Sample:
    """A tenth of the labels are wrong; the five classifiers are good and mostly sure."""
    truth = _binary(n, 0.4, rng)
    p = expit(_log_odds(truth, (3.2, 3.6, 3.0, 3.4, 2.8), 0.4, 0.4, rng))
    annotated = np.where(rng.random(n) < 0.1, 1 - truth, truth)
    return Sample(truth, _by_name("a b c d e", p), annotated=annotated)


WORLDS: Mapping[str, World] = {
    name.replace("_", "-"): function
    for name, function in list(globals().items())
    if isfunction(function) and function.__module__ == __name__ and not name.startswith("_")
}
"""All worlds by name, in the order of the page."""
