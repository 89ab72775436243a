"""What a column looks like: how full, how many different values, numbers or words, and its name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from fewlabels.checks.class_words import NO_LABEL, folded, same_answer
from fewlabels.data.options import ColumnOptions
from fewlabels.data.table import Names, Table, class_text
from fewlabels.errors import InputError
from fewlabels.kernels.arrays import Bools, Floats, Ints

WORD = re.compile(r"[0-9a-zA-Z\u0080-\uffff]+")
"""A word of a column's name."""

_NEGATIONS = {"not", "non", "no"}
_OF_A_CLASS = re.compile(
    r"(?i)(.*[^a-z])?(p|pr|prob|proba|probs|probability|class|cls|label|y|c|is)"
)
"""What stands before a number that is a class, not the number of a fold or of a model."""


class Part(NamedTuple):
    """The class that a column's name says, and what is left of the name."""

    name: str
    rest: str


def tokens(name: str) -> list[str]:
    """The words of a column's name.

    Examples
    --------
    >>> tokens("rf P(not toxic)")
    ['rf', 'P', 'not', 'toxic']
    """
    return WORD.findall(name)


def class_of_name(column: str, classes: Sequence[str]) -> Part | None:
    """The class that a column's name ends in, else begins with: the longest one, whole words.

    Examples
    --------
    >>> class_of_name("rf_not_toxic", ["not toxic", "toxic"])
    Part(name='not toxic', rest='rf')
    >>> class_of_name("cat_prob", ["cat", "dog"]), class_of_name("rf", ["cat", "dog"])
    (Part(name='cat', rest='prob'), None)
    """
    shown = tokens(column)
    words = tuple(folded(word) for word in shown)
    names, sizes = _by_words(tuple(classes))
    sizes = [k for k in sizes if k <= len(words)]
    at_end = ((names.get(words[-k:], ""), shown[:-k], True) for k in sizes)
    at_start = ((names.get(words[:k], ""), shown[k:], False) for k in sizes)
    for name, rest, is_end in chain(at_end, at_start):
        if not name:
            continue
        if is_end and len(classes) == 2 and rest and folded(rest[-1]) in _NEGATIONS:
            return Part(classes[1 - list(classes).index(name)], "_".join(rest[:-1]))
        return Part(name, "_".join(rest))
    return None


@lru_cache(8)
def _by_words(classes: tuple[str, ...]) -> tuple[dict[tuple[str, ...], str], list[int]]:
    """The class of each sequence of folded words, and how many words there are, most first."""
    words = ((tuple(map(folded, tokens(name))), name) for name in reversed(classes))
    names = {of: name for of, name in words if of}
    return names, sorted(set(map(len, names)), reverse=True)


def by_names(columns: Sequence[str], classes: Sequence[str]) -> dict[str, str] | None:
    """Class -> column of a classifier, where the names say so one to one; else None.

    Examples
    --------
    >>> by_names(["rf_dog", "rf_cat"], ["cat", "dog"])
    {'dog': 'rf_dog', 'cat': 'rf_cat'}
    """
    found = [class_of_name(column, classes) for column in columns]
    named = [None if part is None else part.name for part in found]
    if None in named:
        # no and yes for 0 and 1: synonyms, where all that differs between the names is that.
        named = [same_answer(name, classes) for name in differences(columns) or ()]
    if len(named) != len(classes) or None in named or len(set(named)) < len(named):
        return None
    return {name: column for name, column in zip(named, columns, strict=True) if name is not None}


def class_of_one(column: str, classes: Sequence[str]) -> str | None:
    """Which of two classes a single column is of, if its name says so.

    A number counts only behind a word such as "proba": `fold_0` is no column of class 0.
    """
    part = class_of_name(column, classes)
    if part is None:
        return None
    if part.name.isdigit() and not _OF_A_CLASS.fullmatch(part.rest):
        return None
    return part.name


def differences(columns: Sequence[str]) -> tuple[str, ...] | None:
    """What differs between names, whole words: the classes that columns of one classifier name.

    None where it is nothing for some name, or the same for two.

    Examples
    --------
    >>> differences(["net_cat", "net_cow"]), differences(["P(a)", "P(b)"]), differences(["x"])
    (('cat', 'cow'), ('a', 'b'), None)
    """
    words = [tokens(column) for column in columns]
    if len(words) < 2:
        return None
    shortest = min(map(len, words))
    head = 0
    while head < shortest and len({folded(w[head]) for w in words}) == 1:
        head += 1
    tail = 0
    while tail < shortest - head and len({folded(w[-1 - tail]) for w in words}) == 1:
        tail += 1
    left = tuple(class_text("_".join(w[head : len(w) - tail])) for w in words)
    return left if all(left) and len(set(map(folded, left))) == len(left) else None


MOST_CLASSES = 200
"""A column of more different values holds no classes."""


_SOME = 200
"""Values that are looked at to tell names from sentences."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TRUTH = _words(
    "gold truth true ytrue human target expert adjudicated reference biopsy pathology consensus "
    "groundtruth actual confirmed manual labeled annotated standard"
)
_LABEL = _words("label labels class outcome verdict answer diagnosis status y category result")
_PREDICTED = _words(
    "pred preds predicted prediction predictions predict yhat hat verdict judge judgment judgement "
    "vote votes model classifier clf output hard reader rater annotator worker coder grader "
    "detector filter score scores prob proba probs probability conf confidence logit logits margin "
    "decision rating grade risk flag flagged pct percent percentage birads likert stars"
)
_PROBABILITY = _words("p pr prob proba probs probability probabilities pct percent percentage")
_SCORE = _words(
    "score scores prob proba probs probability conf confidence logit logits margin decision rating "
    "grade risk similarity likelihood birads likert stars severity"
)
_MODELS = re.compile(
    r"(gpt|claude|llama|gemini|mistral|mixtral|qwen|deepseek|grok|palm|phi|gemma|bert|roberta|"
    r"distilbert|deberta|electra|t5|xgb|lgbm|lightgbm|catboost|svm|svc|logreg|logistic|forest|"
    r"randomforest|knn|mlp|cnn|rnn|lstm|resnet|vit|gbm|boost|bayes|perspective|detoxify|openai|"
    r"llm|keyword|keywords|regex|rules?|baseline|ensemble|o1|o3|o4|haiku|sonnet|opus|turbo|moderation)\d*[a-z]?"
)
_SHORT_MODELS = _words("rf nb lr dt gb nn et lda qda lgb ai net")
_RIGHT = _words("correct match matches right wrong error errors acc accuracy agrees agree ok")
_NO_TRUTH = _RIGHT | _words(
    "pseudo weak silver noisy auto automatic heuristic previous prior earlier old"
)
_SURENESS = _words("conf confidence sure sureness certain certainty")
_LOGPROB = _words("logprob logprobs")
_TOP = _words("max maximum top top1 winning best")
OF_ITSELF = _LOGPROB | _TOP | _words("softmax self own level")
"""Words around a score of what a classifier itself predicts, not of which classifier: max_prob."""

_AGREES = _words("agree agrees agreed agreement disagree disagrees disagreed disagreement")
_CONFIRMED = _words("confirmed verified validated")
_DONE = _CONFIRMED | _words(
    "reviewed checked processed audited seen done labeled labelled annotated inspected completed"
)
_BY_WHOM = _words("is was has been by human humans manual manually hand expert person already")
_YES_OR_NO = _words("1 0 yes no y n true false t f ja nein oui non")
_PERCENT = _words("pct percent percentage percentages")
_FEATURE = _words(
    "age length len count n num number size time latency tokens token words chars characters price "
    "amount cost year month day date timestamp id idx index duration seconds lat lon latitude "
    "longitude temperature seed epoch step height income salary views likes followers zip phone "
    "fold round turn position order row ms bytes width weight bmi dose usd eur dollars discount "
    "tenure balance"
)
_GROUP = _words(
    "sex gender female male race ethnicity country region state city lang language source site "
    "hospital domain type split dataset batch segment platform device group subgroup category "
    "weekend married smoker department team channel topic task subset"
)
_ITEM = _words(
    "item items task question doc document example image unit comment tweet post message text "
    "sample case id qid uid sentence utterance review patient scan instance object exam customer "
    "account user url file filename path name page paper ticket order transaction img photo video"
)
_UNITS = _words(
    "item items id uid uuid qid case row record sample example instance doc document "
    "image unit patient subject participant respondent customer conversation dialog dialogue "
    "session study exam scan video"
)
"""Last words of names of what is judged, or of what several rows may be of."""

_ASKED = _ITEM | _words("prompt input query instruction passage title headline")

_ANNOTATOR = _words(
    "annotator worker rater user coder labeler labeller turker reviewer judge annotatorid workerid "
    "raterid rater_id crowdworker assessor reader model system llm classifier engine candidate"
)
_ANSWER = _words(
    "label answer vote response rating category choice judgment judgement class annotation value "
    "verdict decision prediction predicted pred output"
)


def name_words(name: str) -> list[str]:
    """The words of a column's name in lower case, humps taken apart.

    Examples
    --------
    >>> name_words("HumanLabel_2"), name_words("y_true")
    (['human', 'label', '2'], ['y', 'true'])
    """
    humps = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", name)
    return [folded(word) for word in tokens(humps)]


def predicts_in_name(words: Collection[str]) -> bool:
    """Whether the words of a name are of a classifier, or of something that one says."""
    return any(w in _PREDICTED or _MODELS.fullmatch(w) or w in _SHORT_MODELS for w in words)


def item_in_name(name: str) -> int:
    """How much a name is that of items: 2 numbers them or what they are of, 1 is their text."""
    words = name_words(name)
    if set(words[-1:]) & _UNITS or {"id", "uuid"} & set(words):
        return 2
    return int(bool(_ASKED & set(words)) and not set(words) & (_GROUP | _FEATURE))


def names_truth(name: str) -> bool:
    """Whether a name has a word that only labels have."""
    return bool(set(name_words(name)) & _TRUTH)


def is_role(name: str, also: Collection[str] = ()) -> bool:
    """Whether a name says what a column holds, and not of which classifier."""
    return all(folded(word) in _ROLE_WORDS or folded(word) in also for word in tokens(name))


def truth_in_name(name: str) -> int:
    """How much a name is that of labels: 3 surely, 2 likely, 1 perhaps, 0 not at all.

    Examples
    --------
    >>> [truth_in_name(name) for name in ("human_label", "outcome", "verdict", "gpt4_label")]
    [3, 2, 1, 0]
    """
    words = name_words(name)
    if set(words) & _AGREES:
        return 0
    if set(words) & _TRUTH and not set(words) & {"pred", "predicted", "prediction"}:
        return 3
    if predicts_in_name(words):
        return 1 if words in (["verdict"], ["rating"], ["grade"], ["decision"]) else 0
    if words in (["label"], ["labels"], ["y"], ["class"], ["target"]):
        return 3
    return 2 if set(words) & _LABEL or words[:1] == ["is"] else 0


@dataclass(frozen=True)
class Profile:
    """One column: its values, and what its name says.

    `counts` are texts of classes and how many rows have each, without those for no label; None
    where there are too many. `codes` (n,) are into `texts`, -1 = none. `numbers` (n,) are its
    numbers, None where it holds others. `wordy` says that its values are sentences.
    """

    name: str
    rows: int
    filled: int
    distinct: int
    counts: Mapping[str, int] | None
    numbers: Floats | None
    codes: Ints
    texts: tuple[str, ...] = ()
    wordy: bool = False

    def without(self, words: Collection[str]) -> Profile:
        """The same column, where some texts (folded) are none of its values."""
        if self.counts is None or not any(folded(t) in words for t in self.counts):
            return self
        kept = {t: rows for t, rows in self.counts.items() if folded(t) not in words}
        return replace(self, counts=kept, distinct=len(kept), filled=sum(kept.values()))

    @property
    def unique(self) -> bool:
        """Whether no value comes twice."""
        return self.filled > 1 and self.distinct == self.filled

    @property
    def sparse(self) -> bool:
        """Whether it is mostly empty."""
        return 0 < self.filled <= 0.6 * self.rows

    @property
    def whole(self) -> bool:
        """Whether all its numbers are whole."""
        known = self.known
        return bool(len(known)) and bool((known == np.round(known)).all())

    @cached_property
    def known(self) -> Floats:
        """Its numbers, without those that are missing."""
        return np.empty(0) if self.numbers is None else self.numbers[~np.isnan(self.numbers)]

    @property
    def in_unit(self) -> bool:
        """Whether all its numbers are from 0 to 1."""
        known = self.known
        return bool(len(known)) and bool(known.min() >= 0 and known.max() <= 1)

    @cached_property
    def words(self) -> list[str]:
        """The words of its name."""
        return name_words(self.name)

    def says(self, words: Collection[str]) -> bool:
        """Whether its name has one of these words."""
        return any(word in words for word in self.words)

    @property
    def like_truth(self) -> int:
        """How much its name is that of labels; see `truth_in_name`."""
        return truth_in_name(self.name)

    @property
    def like_prediction(self) -> bool:
        """Whether its name is that of a classifier, or of something that one says."""
        return predicts_in_name(self.words)

    @property
    def like_score(self) -> bool:
        """Whether its name is that of a score."""
        return self.says(_SCORE)

    @property
    def like_probability(self) -> bool:
        """Whether its name says that it holds probabilities."""
        return self.says(_PROBABILITY)

    @property
    def like_group(self) -> bool:
        """Whether its name is that of a group or of a feature."""
        return self.says(_GROUP) or self.says(_FEATURE)

    @property
    def judges_another(self) -> bool:
        """Whether its name says that it tells if something else is right: gpt_correct."""
        return len(self.words) > 1 and self.words[-1] in _RIGHT

    @property
    def yes_or_no(self) -> bool:
        """Whether all its values are plain words for yes and no."""
        return bool(self.counts) and all(folded(t) in _YES_OR_NO for t in self.counts or ())

    @property
    def agrees(self) -> bool:
        """Whether yes and no say, by its name, that somebody agrees."""
        return self.yes_or_no and self.says(_AGREES)

    @property
    def done(self) -> bool:
        """Whether yes and no say, by its name, what was done with an item: reviewed, is_labeled."""
        return self.yes_or_no and self.says(_DONE) and set(self.words) <= _DONE | _BY_WHOM

    @property
    def confirms(self) -> bool:
        """Whether yes and no say perhaps that a verdict is right: human_agrees, verified."""
        return self.agrees or (self.done and self.says(_CONFIRMED))

    @property
    def of_itself(self) -> bool:
        """Whether its name is that of how sure a classifier is of what it predicts."""
        top = self.says(_TOP) and self.says(_SCORE | {"softmax"})
        return self.says(_SURENESS) or self.says(_LOGPROB) or top

    @property
    def not_truth(self) -> bool:
        """Whether its name says that it judges something else, or labels of another kind."""
        words = set(self.words)
        return bool(words & _NO_TRUTH) and not words & _TRUTH and not words & {"answer", "answers"}

    @property
    def ends_in_feature(self) -> bool:
        """Whether the last word of its name is that of a feature: a cost, a time, a count."""
        return bool(self.words) and self.words[-1] in _FEATURE

    def pairs(self, other: Profile, rows: Bools | slice = slice(None)) -> int:
        """How many different pairs of values some rows of two columns hold."""
        return np.unique(np.stack([self.codes[rows], other.codes[rows]]), axis=1).shape[1]

    def names_alike(self, other: Profile) -> bool:
        """Whether two columns tell the same rows apart."""
        return self.distinct == other.distinct == self.pairs(other)

    @property
    def like_item(self) -> bool:
        """Whether its name is that of an item."""
        return self.says(_ITEM) or not self.words or self.words[0] == "unnamed"

    @property
    def asks(self) -> bool:
        """Whether it holds texts, by its name those that are judged: a question, a prompt."""
        return self.says(_ASKED)

    @property
    def like_annotator(self) -> bool:
        """Whether its name is that of an annotator."""
        return self.says(_ANNOTATOR)

    @property
    def like_answer(self) -> bool:
        """Whether its name is that of what an annotator says."""
        return self.says(_ANSWER)


def profile(table: Table, name: str, options: ColumnOptions) -> Profile:
    """Look at one column of a table, which has been read as it stands."""
    declared = set(map(class_text, options.classes or ()))
    none = NO_LABEL - set(map(folded, declared)) | {folded(text) for text in options.no_label}

    def text_of(value: Any) -> str | None:
        text = class_text(value)
        text = options.same.get(text, text)
        return None if folded(text) in none else text

    try:
        names = Names.of(table, name, text_of)
    except InputError:
        return Profile(name, table.n_rows, 0, 0, None, None, np.full(table.n_rows, -1))
    held = names.counts()
    numbers = None
    try:
        numbers = table.numbers(name)
    except InputError:
        pass
    else:
        if not (~np.isnan(numbers)).any() or np.isinf(numbers).any():
            numbers = None
    small = held if len(held) <= MOST_CLASSES else None
    some = list(held)[:_SOME]
    wordy = sum(len(text.split()) > 2 for text in some) > len(some) / 2
    return Profile(
        name, table.n_rows, sum(held.values()), len(held), small, numbers, names.codes, names.texts,
        wordy,
    )  # fmt: skip


def names_chance(name: str) -> bool:
    """Whether a name says that numbers are how likely something is, and not how sure one is."""
    words = set(name_words(name)) - _PERCENT
    return bool(words & (_PROBABILITY | _SCORE | _PREDICTED)) and not words & _SURENESS


def names_percentages(name: str) -> bool:
    """Whether a column's name says that it holds percentages."""
    return "%" in name or bool(_PERCENT & set(name_words(name)))


def without_role(name: str, also: Collection[str] = ()) -> str:
    """A classifier's name: that of its column without the words for what the column holds.

    `also` are further such words.

    Examples
    --------
    >>> without_role("gpt4_verdict"), without_role("y_pred_rf"), without_role("label_a")
    ('gpt4', 'rf', 'a')
    """
    words = list(WORD.finditer(name))
    role = [folded(word[0]) in _ROLE_WORDS or folded(word[0]) in also for word in words]
    first, last = 0, len(words) - 1
    while first < last and role[last]:
        last -= 1
    while first < last and role[first]:
        first += 1
    if not words or role[first]:
        return name
    # What stands outside the words, such as a bracket, stays where no word goes.
    start = words[first].start() if first else 0
    return name[start : words[last].end()] if last < len(words) - 1 else name[start:]


_ROLE_WORDS = _words(
    "y p pr pred preds predicted prediction predictions verdict label vote votes hard score scores "
    "prob proba probs probability probabilities conf confidence class judgment judgement decision "
    "rating grade output logit logits answer is of pct percent percentage classification certainty "
    "sureness"
)
