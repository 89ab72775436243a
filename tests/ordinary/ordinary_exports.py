"""Files that training code exports: probabilities, scores and hard predictions of classifiers."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
from ordinary_worlds import OrdinaryFile, Reading, World, both, family, save

_ANIMALS = ("bird", "cat", "dog")


def classes_out_of_order(folder: Path) -> Reading:
    world = World(201, _ANIMALS, n=400, labeled=60)
    logreg, forest = world.probabilities(0.9), world.probabilities(1.3)
    columns = {
        **family("logreg_", _ANIMALS, logreg, (1, 2, 0)),
        **family("forest_", _ANIMALS, forest, (1, 2, 0)),
        "y_true": world.labels(),
    }
    return world.read(
        save(folder / "predict_proba.csv", columns),
        world.probable(("logreg",), logreg),
        world.probable(("forest",), forest),
    )


def predict_proba(folder: Path) -> Reading:
    world = World(202, ("0", "1"), n=300, labeled=40)
    p = world.probabilities(1.2)
    columns = {
        "": range(world.n),
        "proba_0": p[:, 0].tolist(),
        "proba_1": p[:, 1].tolist(),
        "y_true": world.labels(names=(0.0, 1.0)),
    }
    return world.read(save(folder / "proba.csv", columns), world.probable((), p))


def probability_of_class_1(folder: Path) -> Reading:
    world = World(203, ("0", "1"), n=350, labeled=50)
    forest, svm = world.probabilities(1.0), world.scores(1.2)
    columns = {
        "Unnamed: 0": range(world.n),
        "rf_proba_class1": forest[:, 1].tolist(),
        "svm_decision": svm.tolist(),
        "y": world.labels(),
    }
    return world.read(
        save(folder / "scores.csv", columns),
        world.probable(("rf", "rf_proba", "rf_proba_class1"), forest),
        world.score(("svm", "svm_decision"), svm),
    )


def in_brackets(folder: Path) -> Reading:
    world = World(204, _ANIMALS, n=300, labeled=45)
    p = world.probabilities(1.0)
    columns: dict[str, Any] = {"image": [f"{i:05d}.png" for i in range(world.n)]}
    columns |= {f"P({_ANIMALS[k]})": p[:, k].tolist() for k in (1, 2, 0)}
    columns["class"] = world.labels()
    path = save(folder / "softmax.tsv", columns, delimiter="\t")
    return world.read(path, world.probable((), p))


def prob_in_the_name(folder: Path) -> Reading:
    world = World(205, ("ham", "spam"), n=300, labeled=40, shares=(0.6, 0.4))
    bayes, bert = world.probabilities(1.3), world.probabilities(0.8)
    columns = {
        "message_id": [f"<{i}@mail>" for i in range(world.n)],
        "nb_prob": bayes[:, 1].tolist(),
        "prob_bert": bert[:, 1].tolist(),
        "label": world.labels(),
    }
    return world.read(
        save(folder / "spam.csv", columns),
        world.probable(("nb", "nb_prob"), bayes),
        world.probable(("bert", "prob_bert"), bert),
    )


def submission(folder: Path) -> Reading:
    world = World(206, ("0", "1"), n=500, labeled=50)
    p = world.probabilities(1.1, decimals=6)
    columns = {
        "id": [f"ID_{i:06x}" for i in range(world.n)],
        "target": p[:, 1].tolist(),
        "label": world.labels(),
    }
    # The column of probabilities has a name that elsewhere is the label's.
    return world.read(
        save(folder / "submission_checked.csv", columns),
        world.probable((), p, "probabilities", "score"),
    )


def one_hot(folder: Path) -> Reading:
    world = World(207, _ANIMALS, n=300, labeled=50)
    predicted = world.predict(0.75)
    columns = {
        "file": [f"{i}.jpg" for i in range(world.n)],
        **family("pred_", _ANIMALS, np.eye(3, dtype=int)[predicted], (1, 2, 0)),
        "label": world.labels(),
    }
    classifier = world.probable(("pred",), np.eye(3)[predicted], "hard", "probabilities")
    return world.read(save(folder / "one_hot.csv", columns), classifier)


def logits(folder: Path) -> Reading:
    world = World(208, _ANIMALS, n=300, labeled=50)
    values = np.log(world.probabilities(1.0, decimals=9)) + world.rng.normal(2, 1, (world.n, 1))
    columns = {**family("resnet_", _ANIMALS, values.round(4)), "label": world.labels()}
    return world.read(save(folder / "logits.csv", columns))


def columns_by_number(folder: Path) -> Reading:
    world = World(209, _ANIMALS, n=300, labeled=50)
    p = world.probabilities(1.0)[:, [1, 2, 0]]
    columns = {**family("net_", ("0", "1", "2"), p), "label": world.labels()}
    return world.read(save(folder / "by_number.csv", columns))


def risk_score(folder: Path) -> Reading:
    world = World(210, ("no", "yes"), n=400, labeled=60, shares=(0.7, 0.3))
    risk = (100 / (1 + np.exp(1 - world.scores(1.3)))).round(1)
    columns = {
        "customer": [f"K{i:05d}" for i in range(world.n)],
        "risk_score": risk.tolist(),
        "defaulted": world.labels(),
    }
    classifier = world.score(("risk", "risk_score"), risk)
    return world.read(save(folder / "risk.csv", columns), classifier)


def percent_signs(folder: Path) -> Reading:
    world = World(211, ("ok", "toxic"), n=300, labeled=50)
    columns: dict[str, Any] = {"comment_id": range(world.n)}
    classifiers = []
    for model, noise in (("large", 0.8), ("small", 1.4)):
        p = world.probabilities(noise, decimals=3)
        columns[f"{model}_toxic"] = [f"{100 * value:.1f}%" for value in p[:, 1]]
        classifiers.append(world.probable((model, f"{model}_toxic"), p))
    columns["label"] = world.labels()
    return world.read(save(folder / "moderation_percent.csv", columns), *classifiers)


def sums_of_100(folder: Path) -> Reading:
    classes = ("safe", "spam", "toxic")
    world = World(212, classes, n=300, labeled=50)
    p = world.probabilities(1.0)
    columns = {
        "post": range(world.n),
        **family("net_", classes, (100 * p).round(2)),
        "moderator": world.labels(),
    }
    return world.read(save(folder / "moderation_100.csv", columns), world.probable(("net",), p))


def percent_in_the_name(folder: Path) -> Reading:
    world = World(213, ("ok", "toxic"), n=300, labeled=40)
    p = world.probabilities(1.1, decimals=3)
    columns = {
        "url": [f"https://example.org/{i}?a=1,2" for i in range(world.n)],
        "toxic_pct": (100 * p[:, 1]).round(1).tolist(),
        "reviewed_as": world.labels(),
    }
    classifier = world.probable((), p, "probabilities", "score")
    return world.read(save(folder / "toxic_pct.csv", columns), classifier)


def two_digits(folder: Path) -> Reading:
    world = World(214, _ANIMALS, n=400, labeled=60)
    columns: dict[str, Any] = {}
    classifiers = []
    for model, noise in (("vit", 0.8), ("cnn", 1.2)):
        p = world.probabilities(noise, decimals=2)
        columns |= family(f"{model}_", _ANIMALS, p)
        classifiers.append(world.probable((model,), p))
    columns["truth"] = world.labels()
    return world.read(save(folder / "rounded.csv", columns), *classifiers)


def all_labeled(folder: Path) -> Reading:
    world = World(215, ("no", "yes"), n=250, labeled=250)
    old, new = world.predict(0.8), world.probabilities(0.9)
    columns = {
        "row": range(world.n),
        "label": world.labels(),
        "old_model": world.text(old),
        **family("new_model_", world.classes, new),
    }
    return world.read(
        save(folder / "validation.csv", columns),
        world.hard(("old_model", "old"), old),
        world.probable(("new_model", "new"), new),
    )


def no_label(folder: Path) -> Reading:
    world = World(216, _ANIMALS, n=300)
    columns: dict[str, Any] = {"image": [f"{i:05d}.png" for i in range(world.n)]}
    classifiers = []
    for model, noise in (("vit", 0.8), ("cnn", 1.2), ("knn", 1.6)):
        p = world.probabilities(noise)
        columns |= family(f"{model}_", _ANIMALS, p, (2, 0, 1))
        classifiers.append(world.probable((model,), p))
    path = save(folder / "unlabeled.csv", columns)
    return world.read(path, *classifiers, labels=[None] * world.n)


def sampling_weights(folder: Path) -> Reading:
    weight = np.random.default_rng(2170).choice([0.5, 1.0, 4.0], 300)
    world = World(217, ("no", "yes"), n=300, labeled=60, weight=weight)
    p, rules = world.probabilities(1.1), world.predict(0.75)
    columns = {
        "weight": weight.tolist(),
        "label": world.labels(),
        "net_no": p[:, 0].tolist(),
        "net_yes": p[:, 1].tolist(),
        "rules": world.text(rules),
    }
    return world.read(
        save(folder / "survey.csv", columns),
        world.probable(("net",), p),
        world.hard(("rules",), rules),
    )


def fraud_first(folder: Path) -> Reading:
    world = World(218, ("legit", "fraud"), n=600, labeled=80, shares=(0.7, 0.3))
    boosted, rules = world.probabilities(1.0), world.predict(0.85)
    columns = {
        "transaction_id": range(70_000_000, 70_000_000 + world.n),
        "amount": world.rng.lognormal(4, 1, world.n).round(2).tolist(),
        "xgb_fraud": boosted[:, 1].tolist(),
        "rules": world.text(rules),
        "chargeback": world.labels(),
    }
    return world.read(
        save(folder / "transactions.csv", columns),
        world.probable(("xgb", "xgb_fraud"), boosted),
        world.hard(("rules",), rules),
    )


def identifiers(folder: Path) -> Reading:
    world = World(219, ("negative", "positive"), n=300, labeled=40)
    small, large = world.predict(0.7), world.predict(0.85)
    columns = {
        "uuid": [str(uuid.UUID(int=(i + 1) * 2**70 + i)) for i in range(world.n)],
        "id": range(5000, 5000 + world.n),
        "created_at": [f"2025-{1 + i % 12:02d}-{1 + i % 28:02d}T08:15:00Z" for i in range(world.n)],
        "split": ["test"] * world.n,
        "version": [2] * world.n,
        "text": [f'Well, "{i}",\nhe said; that\'s all.' for i in range(world.n)],
        "small": world.text(small),
        "large": world.text(large),
        "gold": world.labels(),
    }
    path = save(folder / "reviews.csv", columns)
    return world.read(path, world.hard(("small",), small), world.hard(("large",), large))


def features(folder: Path) -> Reading:
    world = World(220, ("benign", "malignant"), n=300, labeled=50)
    score = world.scores(1.4)
    columns = {
        "patient_id": [f"P{i:04d}" for i in range(world.n)],
        "age": world.rng.integers(25, 90, world.n).tolist(),
        "lesion_length_mm": world.rng.gamma(4, 3, world.n).round(1).tolist(),
        "ai_score": score.tolist(),
        "histology": world.labels(),
    }
    path = save(folder / "lesions.csv", columns)
    return world.read(path, world.score(("ai", "ai_score"), score))


def sensors(folder: Path) -> Reading:
    world = World(221, ("fault", "ok"), n=300, labeled=40)
    columns = {
        "temperature": (world.scores(1.0) * 4 + 60).round(1).tolist(),
        "pressure": (world.scores(0.5) + 9).round(2).tolist(),
        "state": world.labels(),
    }
    return world.read(save(folder / "sensors.csv", columns))


def groups_stay_groups(folder: Path) -> Reading:
    world = World(222, ("no", "yes"), n=400, labeled=60)
    small, large = world.predict(0.72), world.predict(0.85)
    columns = {
        "country": world.rng.choice(["DE", "US", "BR"], world.n).tolist(),
        "sex": world.rng.choice(["F", "M"], world.n).tolist(),
        "model_small": world.text(small),
        "model_large": world.text(large),
        "verified": world.labels(),
    }
    return world.read(
        save(folder / "by_country.csv", columns),
        world.hard(("model_small", "small"), small),
        world.hard(("model_large", "large"), large),
        groups=("country", "sex"),
    )


def unfinished_labels(folder: Path) -> Reading:
    world = World(223, ("ham", "spam"), n=300, labeled=60)
    p = both(world.probabilities(1.0)[:, 1])
    blanks = world.rng.choice(["N/A", "None", "unknown", "TODO", "?", ""], world.n)
    labels = [t or str(b) for t, b in zip(world.labels(), blanks, strict=True)]
    columns = {"subject": [f"Re: {i}" for i in range(world.n)], "label": labels}
    columns |= {"filter_ham": p[:, 0].round(4).tolist(), "filter_spam": p[:, 1].tolist()}
    return world.read(save(folder / "inbox.csv", columns), world.probable(("filter",), p))


FILES = (
    OrdinaryFile(
        "sklearn-unsorted",
        "Probabilities of two classifiers from a notebook, columns in the order cat, dog, bird.",
        classes_out_of_order,
    ),
    OrdinaryFile(
        "sklearn-predict-proba",
        "`predict_proba` saved by pandas with its index; y_true is 0.0, 1.0 or empty.",
        predict_proba,
    ),
    OrdinaryFile(
        "sklearn-class-1",
        "One column rf_proba_class1, decision values of a support vector machine, and y.",
        probability_of_class_1,
    ),
    OrdinaryFile(
        "softmax-brackets",
        "A softmax saved with tabs, in columns P(cat), P(dog), P(bird).",
        in_brackets,
    ),
    OrdinaryFile(
        "spam-prob",
        "Two spam filters, each with one column: nb_prob, prob_bert.",
        prob_in_the_name,
    ),
    OrdinaryFile(
        "kaggle-submission",
        "A Kaggle submission (id, target: a probability) joined with checked labels.",
        submission,
    ),
    OrdinaryFile(
        "one-hot", "One classifier's predictions as 0 and 1 in a column per class.", one_hot
    ),
    OrdinaryFile(
        "logits",
        "Logits, a column per class: is a softmax missing, or are these three scores?",
        logits,
        refusal=("softmax", "--score"),
    ),
    OrdinaryFile(
        "columns-by-number",
        "Probabilities net_0 to net_2 beside labels bird, cat, dog, in an unknown order.",
        columns_by_number,
        refusal=("net_0", "--classes"),
    ),
    OrdinaryFile("risk-score", "A bank's risk score from 0 to 100, and who defaulted.", risk_score),
    OrdinaryFile(
        "moderation-percent",
        "Moderation scores as a dashboard shows them: cells such as 66.6%.",
        percent_signs,
    ),
    OrdinaryFile(
        "moderation-of-100",
        "Moderation scores of three classes that sum to 100.",
        sums_of_100,
    ),
    OrdinaryFile(
        "toxic-pct",
        "One column `toxic_pct` from 0 to 100, and what reviewers said.",
        percent_in_the_name,
    ),
    OrdinaryFile(
        "two-digits",
        "Probabilities of three classes rounded to two digits, with sums from .99 to 1.01.",
        two_digits,
    ),
    OrdinaryFile(
        "all-labeled",
        "A validation set: every item is labeled, and labels come before the predictions.",
        all_labeled,
    ),
    OrdinaryFile(
        "no-label",
        "Probabilities of three classifiers and no label at all.",
        no_label,
    ),
    OrdinaryFile(
        "sampling-weights",
        "A survey with sampling weights, a network's probabilities and a rule.",
        sampling_weights,
    ),
    OrdinaryFile(
        "fraud-or-legit",
        "Transactions: amount, probability of fraud, a rule, and what was settled.",
        fraud_first,
    ),
    OrdinaryFile(
        "identifiers",
        "Reviews with uuid, number, date, constants and free text beside two classifiers.",
        identifiers,
    ),
    OrdinaryFile(
        "features",
        "A clinic's table: age and length of the lesion are no classifiers, ai_score is one.",
        features,
    ),
    OrdinaryFile(
        "sensors",
        "Temperature, pressure and state of machines: measurements, or scores to be judged?",
        sensors,
        refusal=("temperature", "--score"),
    ),
    OrdinaryFile(
        "groups",
        "Two classifiers' answers with country and sex of the person asked.",
        groups_stay_groups,
    ),
    OrdinaryFile(
        "unfinished-labels",
        "Mail of which most is not labeled yet: N/A, None, unknown, TODO, ? or nothing.",
        unfinished_labels,
    ),
)
