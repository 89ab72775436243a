"""Which column is what in a file that nobody has described: evidence, then one assignment.

A column has log-odds for each role: those of its name plus those of its values, all weights in
`words.toml`; a column that is not used has 0. Given the labels, which say what the classes are, and
the columns that together are a classifier's probabilities, every other column has its role by
itself: so the best joint assignment is that of the best labels and of each column's best role, and
the second best differs from it in one choice. A choice within `MARGIN` is not made: the file is
refused, and the message shows how each reading is said.
"""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np

from fewlabels.checks.class_words import folded, polarity, positive_index, same_answer
from fewlabels.data.agreement import cut_apart, no_better_than_chance, no_labels, ranked_apart
from fewlabels.data.classes import of_two_signs
from fewlabels.data.evidence import (
    AGREE,
    APART,
    MANY_ITEMS,
    MARGIN,
    NEARLY_ALL,
    AmbiguousError,
    ColumnEvidence,
    Reading,
    Sheet,
    beyond_chance,
    class_indices,
    consensus_of,
    fits,
    made_with,
    separates,
    strays,
    weigh,
    weight_evidence,
)
from fewlabels.data.families import (
    LEAST_TOGETHER,
    MODEL,
    apart_in,
    largest,
    like_shares,
    named_families,
    sums,
)
from fewlabels.data.options import ColumnOptions
from fewlabels.data.profiles import (
    LIKELY,
    SURELY,
    Profile,
    by_names,
    class_of_name,
    class_of_one,
    is_role,
    name_evidence,
    name_words,
    names_chance,
    names_items,
    names_measure,
    names_percentages,
    names_result,
    names_role,
    names_truth,
    of_a_run,
    profile,
    tokens,
    without_role,
    words_table,
)
from fewlabels.data.reading_lines import (
    DRAWN,
    WEIGHT_LINE,
    doubts,
    label_line,
    reading_lines,
    spoiled,
    weight_line,
)
from fewlabels.data.roles import missing_column, places, split_native
from fewlabels.data.row_votes import votes_in_rows
from fewlabels.data.shapes import telling
from fewlabels.data.table import Names, Source, in_order
from fewlabels.data.unread import other_rows, refuse_numbers, refuse_total, refuse_unread
from fewlabels.errors import InputError, listed, quoted
from fewlabels.kernels.arrays import Ints

_USUAL = {"label", "item", "domain", "weight"}
"""Names that say what they hold, beside those of native predictions."""

_OF_CLASSIFIERS = "probability", "confidence", "score"

_SURE = 3.5
"""What a name says of sampling weights from which it surely is that of weights."""

_EXCLUDED = 20.0
"""Log-odds against a role that no name outweighs."""


def recognise(
    source: Source, options: ColumnOptions, *, joined: Collection[str] | None = None
) -> Reading:
    """Complete what the caller says of the columns, where native names do not say it all."""
    # `joined` are the classes of votes that are joined to this table, which may then lack both.
    others = [name for name in source.names if split_native(name) is None]
    if len(others) < len(source.names) and _USUAL.issuperset(others) and "label" in others:
        return Reading(options)
    weight, perhaps = _weights(source, options)
    with telling(source):
        found = _recognised(
            source, options if weight is None else replace(options, weight=weight), joined=joined
        )
    if found.votes:  # which have no weights
        return replace(found, options=replace(found.options, weight=options.weight))
    lines = found.lines
    if weight is not None and not any(line.startswith(WEIGHT_LINE) for line in lines):
        lines = (*lines, weight_line(weight))
    return replace(found, options=replace(found.options, perhaps_weights=perhaps), lines=lines)


def _weights(source: Source, options: ColumnOptions) -> tuple[str | None, tuple[str, ...]]:
    """The column of sampling weights, where one surely holds them, and those to ask of."""
    said = {options.label, options.domain, options.item, *(options.keep or ())}
    said |= options.of_classifiers
    names = [n for n in source.names if names_role(n, "weight") and n not in said]
    names = [n for n in names if source.names.count(n) == 1]
    if options.weight is not None or "weight" in source.names or not names:
        return None, ()
    table = source.read((), names)
    scores = {name: weight_evidence(profile(table, name, options)).score for name in names}
    perhaps = [name for name, score in scores.items() if score > -_EXCLUDED]
    sure = [name for name in perhaps if scores[name] >= _SURE]
    return (sure[0], ()) if len(sure) == 1 else (None, tuple(perhaps))


def evidence_table(source: Source, options: ColumnOptions) -> tuple[ColumnEvidence, ...]:
    """The evidence for the role of each column of a file that nobody has described."""
    names = [name for name in source.names if name]
    if len(set(names)) < len(names):
        return ()
    sheet = _Recognition(source.read((), names), names, options)
    decided = False
    with suppress(InputError):
        sheet.reading()
        decided = True
    return sheet.table_of_evidence(decided=decided)


def _recognised(
    source: Source, options: ColumnOptions, *, joined: Collection[str] | None
) -> Reading:
    """Complete the options, if nothing says which columns hold predictions."""
    names = [name for name in source.names if name]
    native = [name for name in names if split_native(name) is not None]
    alone = not (native or options.names_classifiers or joined is not None)
    named = [
        ("--label", options.label), ("--domain", options.domain), ("--weight", options.weight),
        ("--item", options.item), ("--stratum", options.stratum),
        *(("a group", name) for name in options.keep or ()),
        *(("--cluster", name) for name in options.cluster),
    ]  # fmt: skip
    for what, asked in named:
        if asked is not None and asked not in names:
            if alone:
                raise InputError(missing_column(asked, names, what))
            return Reading(options)  # `assign_roles` says that there is no such column
    if len(set(names)) < len(names):
        return Reading(options)  # `assign_roles` refuses it in better words
    if alone:
        table = source.read((), names)
        sheet = _Recognition(table, names, options)
        return replace(sheet.reading(), sheet=sheet) if table.n_rows else Reading(options)
    reading = _label_by_name(source, names, options)
    if joined is not None and not (native or options.names_classifiers):
        with suppress(InputError):
            sure = replace(reading.options, classes=options.classes or in_order(joined))
            found = _Recognition(source.read((), names), names, sure).reading()
            lines = (line for line in found.lines if line.startswith("probabilities: "))
            options = replace(reading.options, models=found.options.models)
            return Reading(options, (*reading.lines, *lines))
    if joined is not None or reading.options.label is not None or not options.names_classifiers:
        return reading
    if "label" in names:
        rest = [n for n in names if n != "label" and n not in options.of_classifiers]
        others = [n for n in rest if name_evidence(n, "label") >= SURELY and n not in native]
        if others and not native:
            both = listed(map(quoted, ["label", *others]))
            raise AmbiguousError(
                f"columns {both} may each hold the known labels",
                [["--label", name] for name in ["label", *others][:3]],
            )
        return reading
    # Whoever names the classifiers has not said that there are no labels.
    table = source.read((), names)
    if not table.n_rows:
        return reading
    return _Recognition(table, names, reading.options).labels_beside_named()


def _label_by_name(source: Source, names: Sequence[str], options: ColumnOptions) -> Reading:
    """The label, where a column is named like one and nothing else is; and the items' names."""
    named = [name for name in names if names_items(name)]
    if options.item is None and "item" not in names and len(named) == 1:
        found = profile(source.read((), named), named[0], options)
        if found.unique and found.filled == found.rows:
            options = replace(options, item=named[0])
    if options.label is not None or "label" in names:
        return Reading(options)
    claimed = {*options.of_classifiers, options.domain, options.weight, options.item}
    claimed |= {*options.cluster, options.stratum}
    free = [n for n in names if n not in claimed and split_native(n) is None]
    alike = [n for n in free if name_evidence(n, "label") >= SURELY]
    if len(alike) != 1:
        return Reading(options)
    table = source.read((), alike)
    found = profile(table, alike[0], options)
    if found.counts is None or not found.filled or found.confirms:
        return Reading(options)
    parts = {n: p for n in names if (p := split_native(n))}
    classes = {folded(of) for kind, _, of in parts.values() if kind in "ph"}
    hard = [] if classes else [n for n, (kind, _, _) in parts.items() if kind == "y"]
    if hard:
        held = source.read((), hard)
        classes |= {t for column in hard for t in profile(held, column, options).counts or ()}
    strangers = [t for t in found.counts if same_answer(t, sorted(classes)) is None]
    if len(strangers) > (2 if not classes else 1 if len(classes) == 1 else 0):
        return Reading(options)
    return Reading(replace(options, label=alike[0]), (label_line(found, table),))


def _called(label: Profile | None) -> str | None:
    """The one of two classes that labels are called by: low, of low and normal."""
    classes = () if label is None else in_order(label.counts or ())
    named = [c for c in classes if label is not None and folded(c) == folded(label.name)]
    return named[0] if len(classes) == 2 and named else None


class _Recognition(Sheet):
    """The best assignment of roles to the columns of a sheet."""

    def reading(self) -> Reading:
        """The best assignment, unless another one is about as good."""
        refuse_total(self)
        if results := self._results():
            raise InputError(
                f"columns {listed(quoted(p.name) for p in results)} are measures of how good "
                "something is, by their names: a summary, whose rows are no items; give the file "
                "with a row for every item"
            )
        votes = votes_in_rows(self)
        if votes is not None:
            return votes
        item = self._item()
        label = self._find_label()
        classes = self._classes(label)
        if label is not None:
            self._drawn(label, classes)
        self._families(classes)
        self._hard(label, classes)
        self._one_classifier()
        numbers = self._numbers(classes)
        if label is None:
            self._refuse_sure()
        if not (self.models or self.hard or self.scores):
            held = {} if label is None else Names.of(self.table, label.name).counts()
            if label is not None and (said := of_two_signs(label.name, held, self.options)):
                raise InputError(said)
            if bad := list(spoiled(self)):
                raise InputError(f"no prediction columns: {'; '.join(bad)}")
            lone = votes_in_rows(self, lone=True) if label is None else None
            if lone is None:
                refuse_unread(self, numbers)
            # Else `assign_roles` says that there are no predictions.
            return lone or Reading(self.options)
        self._drop_shared_prefix()
        for name in self.markers:
            if self.roles.get(name) in _OF_CLASSIFIERS:
                p, marker = self.columns[name], self.markers[name]
                rows = (self.table.numbers(name) == marker).sum()
                raise AmbiguousError(
                    f"column {quoted(name)} holds {marker:g} in {rows:,} rows, and else numbers "
                    f"from {p.known.min():g} to {p.known.max():g}: perhaps no score is known "
                    "there, and these rows are left out, perhaps it is one",
                    [["--where", other_rows(p, f"{marker:g}")], self.said()],
                )
        if label is not None and label in self.derived:
            hard = {without_role(label.name): label.name}
            what = "is in every row what a classifier predicts, and may be where that is written"
            if "predicts" not in self.evidence[label.name]["label"].reason:
                what = "holds the classes of the probabilities, and no name says more of it"
            ways = [self.said(), self.said(labeled=False, hard=hard)]
            # What else holds these classes is as likely the truth, where it says something else.
            other = (n for n, c in self.hard.items() if not label.names_alike(self.columns[c]))
            for name in itertools.islice(other, 1):
                column = self.hard[name]
                rest = {n: c for n, c in self.hard.items() if n != name}
                truth = ColumnOptions(
                    column, models=self.models, hard=rest | hard, scores=self.scores,
                    confidence=self.confidence,
                )  # fmt: skip
                ways.insert(0, truth.arguments())
            rename = ", and then to be renamed" * (label.name == "label")
            raise AmbiguousError(
                f"column {quoted(label.name)} {what}: a classifier's hard predictions{rename}, or "
                "the known labels",
                ways[:1] if rename else ways,
            )
        scores = [self.columns[c].numbers for c in self.scores.values()]
        alone = label is None and scores and not (self.models or self.hard)
        if alone and (why := no_labels([np.asarray(one) for one in scores])):
            shown = f"{listed(map(quoted, self.scores.values()))}: {why}"
            said = "; ".join([f"{shown}; join labels with --labels FILE", *doubts(self)])
            refuse_numbers(self, [self.columns[c] for c in self.scores.values()], said)
        options = replace(
            self.options, label=None if label is None else label.name, item=item,
            models=self.models, hard=self.hard, scores=self.scores, confidence=self.confidence,
            positive=self.options.positive or _called(label),
        )  # fmt: skip
        return Reading(options, tuple(reading_lines(self, label, item)))

    def _results(self) -> list[Profile]:
        """Columns of a summary: several measures of few rows or beside settings, or four counts."""
        free = [p for p in self.columns.values() if p.numbers is not None]
        outcomes = words_table().says["outcomes"]  # TP
        counts = [p for p in free if p.whole and "".join(p.words) in outcomes]
        if len({tuple(p.words) for p in counts}) >= 4 and max(p.known.max() for p in counts) > 1:
            return counts
        results = [p for p in free if names_result(p.name) and p.name not in self.roles]
        few = bool(results) and results[0].rows < MANY_ITEMS
        return results if len(results) > 1 and (few or any(map(of_a_run, self.names))) else []

    def labels_beside_named(self) -> Reading:
        """The labels and the items' names, where the caller has named the classifiers alone."""
        # What nobody has named is taken for the labels only if its values go with what the
        # classifiers say, and its name is like theirs, or these give numbers alone and it is mostly
        # empty, of words that are in no other column; else a line says how to name it.
        try:
            label = self._find_label()
        except AmbiguousError as error:
            return Reading(self.options, (f"labels: none used, as {error}",))
        named = label is not None and (label.of("label") >= LIKELY or self._is_told(label))
        if label is not None and (label in self.derived or not named):
            del self.roles[label.name]
            self.doubted.append(label)
            label = None
        if label is None:
            return Reading(self.options, tuple(doubts(self)))
        item = self._item()
        named_by = [] if item is None else [f"items: named by column {quoted(item)}"]
        lines = (label_line(label, self.table), *named_by)
        return Reading(replace(self.options, label=label.name, item=item), lines)

    def _drop_shared_prefix(self) -> None:
        """Take off what all names of classifiers begin with up to a dot, as in judges.gpt4."""
        names = {*self.models, *self.hard, *self.scores, *self.confidence}
        parts = zip(*(name.split(".")[:-1] for name in names), strict=False)
        shared = list(itertools.takewhile(lambda words: len(set(words)) == 1, parts))
        if len(names) < 2 or not shared:
            return
        cut = sum(len(words[0]) + 1 for words in shared)
        for kind in ("models", "hard", "scores", "confidence"):
            setattr(self, kind, {name[cut:].strip(): c for name, c in getattr(self, kind).items()})

    def _item(self) -> str | None:
        """The column that names the items: all different, and named so or text."""
        if self.options.item is not None:
            return self.options.item
        found: list[tuple[float, str]] = []
        for p in self.free():
            named = p.of("item") > 0 or not p.words
            fits = p.unique and p.filled == p.rows and (p.numbers is None or p.whole)
            if fits and named and not p.wordy and p.name not in self.claimed:
                found.append((self.weigh(p, "item", "all differ"), p.name))
        self.roles |= {name: "item" for _, name in found}
        best = max(found, key=lambda one: one[0], default=(0.0, ""))[1]
        return best if best.strip() else None

    # Labels -------------------------------------------------------------------------------------

    def _find_label(self) -> Profile | None:
        """The column of known labels."""
        if self.options.label is not None:
            return self.label
        candidates = [
            (score, p) for p in self.free() if (score := self._label_evidence(p)) is not None
        ]
        most = max((score for score, _ in candidates), default=0.0)
        best = [p for score, p in candidates if score > max(most - MARGIN, 0)] or self.derived[:1]
        if not best or (len(best) > 2 and all(p in self._annotators for p in best)):
            return None
        if len(best) > 1:
            best.sort(key=lambda p: -self.evidence[p.name]["label"].score)
            raise AmbiguousError(
                f"columns {listed(quoted(p.name) for p in best)} may each hold the known labels",
                [["--label", p.name] for p in best],
            )
        self.label = best[0]
        self.roles[self.label.name] = "label"
        return self.label

    def _label_evidence(self, p: Profile) -> float | None:
        """Log-odds that a column holds the known labels; None where it cannot."""
        name = p.of("label")
        person = p.says("person") and bool(self._classifiers - {p.name})
        facts = [
            *(["mostly empty"] if p.sparse else []),
            *(["a person beside a classifier"] if person else []),
            *(["what most of the others say"] if p.name in self._consensus else []),
        ]
        if p.name in (*self.claimed, self.options.stratum) or not p.counts:
            return None
        if not (p.numbers is None or p.whole):
            return None
        of_family = p.few and not p.measures and self._family_of(p) is not None
        facts += ["the classes of probabilities"] if of_family and not p.predicts else []
        if (name <= 0 and not facts) or weigh(p, "label", *facts).score <= 0:
            return None
        if of_family and self._tells_right(p):
            facts.append("where a column says that it is right")
        if any(not fits(p, tuple(q.counts or ())) for q in self._named_by_shares):
            facts.append("not the classes of the probabilities")
        if sparser := self._sparser(p):
            alone = not self._predicts_beside(p, sparser)
            facts.append("a sparser column predicts alone" if alone else "a sparser column says it")
        if p.done:
            facts.append("says what was done")
        if of_family or self._recurs(p):
            facts.append("its values recur")
        elif name >= SURELY and not p.unique and self._has_numbers(p):
            facts.append("numbers beside it")
        elif self._words_beside_numbers(p):
            facts.append("words beside numbers")
        else:
            facts.append("nothing has its values")
        one = len(self._judges) - (p in self._judges) == 1
        if p.agrees or (p.confirms and one and self._goes_with(p) is not True):
            facts.append("says if another is right")
            self.doubted.append(p)
        elif name < SURELY and self._goes_with(p) is False:
            facts.append("goes with no prediction")
            self.doubted.append(p)
        elif not names_truth(p.name) and weigh(p, "label", *facts).score > 0:
            if self._is_said(p):
                facts.append("what a classifier predicts, in every row")
                self.derived.append(p)
            elif of_family and name <= 0 and weigh(p, "label", *facts).score <= LIKELY + MARGIN:
                self.derived.append(p)
        return self.weigh(p, "label", *facts)

    def _family_of(self, p: Profile) -> Ints | None:
        """The class of the largest number in each row, of columns that name a column's values."""
        classes = tuple(p.counts or ())
        if len(classes) < 2 or all(text.isdigit() for text in classes):
            return None
        names = "\n".join("".join(tokens(q.name)) for q in self._shares).casefold()
        if not all("".join(tokens(text)).casefold() in names for text in classes):
            return None
        families = named_families(self._shares, classes).values()
        named = (by_names([q.name for q in columns], classes) for columns in families)
        found = next(filter(None, named), None)
        return None if found is None else largest([self.columns[found[c]] for c in classes])

    @cached_property
    def _shares(self) -> list[Profile]:
        """Columns of numbers that may be probabilities."""
        return [p for p in self.free() if p.numbers is not None and not (p.measures or p.whole)]

    def _tells_right(self, p: Profile) -> bool:
        """Whether a column of yes and no says of each row if the largest probability is of it."""
        right = self._family_of(p) == class_indices(p, tuple(p.counts or ()))
        return any(
            q.says("right") and q.yes_or_no and q.filled >= MANY_ITEMS
            and bool(((class_indices(q, ("0", "1")) == right) | (q.codes < 0)).all())
            for q in self.free()
        )  # fmt: skip

    @cached_property
    def _named_by_shares(self) -> list[Profile]:
        """Columns whose values are the classes that columns of probabilities name."""
        free = [p for p in self.free() if p.few and not (p.predicts or p.measures)]
        return [p for p in free if self._family_of(p) is not None]

    def _sparser(self, p: Profile) -> Profile | None:
        """A mostly empty column that agrees with a full one, as truth does with a prediction."""
        classes = tuple(p.counts or ())
        if names_truth(p.name) or p.filled < NEARLY_ALL * p.rows:
            return None
        for q in self.free():
            other = q.predicts or q.measures or q.done or q.agrees or q.says("person")
            if not (q.sparse and q.few and q.coded) or other or not fits(q, classes):
                continue
            if fits(p, tuple(q.counts or ())) and (beyond_chance(p, q, classes) or 0.0) > AGREE:
                return q
        return None

    def _predicts_beside(self, *two: Profile) -> bool:
        """Whether another column than two predicts by its name, and not how sure one of them is."""
        classes = tuple(two[0].counts or ())
        names = {p.name for p in two}
        rest = [q for q in self.free() if q.name not in names and q.predicts]
        shares = [q for q in rest if q.numbers is not None and not (q.whole or q.of_itself)]
        return any(fits(q, classes) for q in rest) or any(
            not q.never_below_half for q in shares if not q.measures
        )

    @cached_property
    def _consensus(self) -> set[str]:
        """Columns of what most people said, beside what each of them said."""
        return consensus_of([p for p in self.free() if p.few and p.coded and not p.measures])

    def _is_said(self, p: Profile) -> bool:
        """Whether nearly every row of many has it, and in all it is what one classifier says."""
        # So it is where numbers separate two classes in many rows, whatever they are cut at.
        classes = tuple(p.counts or ())
        if len(classes) < 2 or p.filled < max(MANY_ITEMS, NEARLY_ALL * p.rows):
            return False
        own = class_indices(p, classes)
        others = [
            class_indices(q, classes) for q in self.free()
            if q.name != p.name and q.predicts and not q.judges_another and fits(q, classes)
        ]  # fmt: skip
        numbers = [q for q in self._shares if q.in_unit or q.predicts]
        if len(classes) == 2 and any(separates(q, own) for q in numbers):
            return True
        of_family = self._family_of(p)
        others += [] if of_family is None else [of_family]
        return any(
            (both := (own >= 0) & (other >= 0)).sum() >= NEARLY_ALL * p.filled
            and bool((own == other)[both].all())
            for other in others
        )

    @cached_property
    def _annotators(self) -> list[Profile]:
        """Columns of people whom no name tells from the truth: each has seen items of its own."""
        free = [p for p in self.free() if p.sparse and p.few and p.coded and p.of("label") <= 0]
        free = [p for p in free if not names_measure(p.name)]
        return free if len({(p.codes < 0).tobytes() for p in free}) > 2 else []

    @cached_property
    def _classifiers(self) -> set[str]:
        """Columns that are of classifiers by their names, and not of persons."""
        return {n for n, p in self.columns.items() if p.predicts and not p.says("person")}

    @cached_property
    def _judges(self) -> list[Profile]:
        """Columns of verdicts of a classifier, by their names."""
        judges = [p for p in self.columns.values() if p.yes_or_no or p.of("score") <= 0]
        return [p for p in judges if len(p.counts or ()) > 1 and p.predicts]

    def _words_beside_numbers(self, p: Profile) -> bool:
        """Whether it is a mostly empty column of words beside numbers, which do not say classes."""
        words = p.numbers is None or set(p.counts or ()) <= {"0", "1"}
        several = p.sparse and p.few
        return words and several and not names_measure(p.name) and self._has_numbers(p)

    def _is_told(self, p: Profile) -> bool:
        """Whether it is words of its own, mostly empty, that go with classifiers' numbers alone."""
        alone = not (self.options.hard or self._recurs(p))
        return alone and self._words_beside_numbers(p) and self._goes_with(p) is True

    def _goes_with(self, label: Profile) -> bool | None:
        """Whether known labels go with some prediction beyond chance; None: nothing tells."""
        # Labels that no classifier predicts better than chance are perhaps none.
        found = []
        classes = tuple(label.counts or ())
        for p in self.columns.values():
            if p.name == label.name or p.name in self.roles.keys() - self.claimed or not p.filled:
                continue
            if len(p.counts or ()) > 1 and fits(p, classes):
                agreement = beyond_chance(p, label, classes)
                found += [] if agreement is None else [agreement > AGREE]
            elif p.numbers is not None and len(classes) == 2 and not p.measures:
                gap = ranked_apart(p.numbers, class_indices(label, classes))
                found += [] if gap is None else [gap > APART]
        return any(found) if found else None

    def _recurs(self, label: Profile) -> bool:
        """Whether its values recur in another column, or in the names of columns."""
        classes = list(label.counts or ())
        own = set(map(folded, classes))
        for other in self.free():
            if other.name == label.name or not other.counts or other.measures:
                continue
            if len(other.counts) > 1 and fits(other, classes):
                return True
            if label.of("label") >= SURELY and own < set(map(folded, other.counts)):
                return True
        if len(classes) < 2:
            return False
        numbers = [p.name for p in self.free() if p.numbers is not None]
        named = {part.name for n in numbers if (part := class_of_name(n, classes)) is not None}
        return bool(named - {c for c in classes if c.isdigit()}) or len(named) > 1

    def _has_numbers(self, label: Profile) -> bool:
        """Whether there are other columns that may be scores or probabilities."""
        return any(
            p.name != label.name and p.numbers is not None and not names_measure(p.name)
            and (p.predicts or (p.in_unit and not p.whole))
            for p in self.free()
        )  # fmt: skip

    def _classes(self, label: Profile | None) -> tuple[str, ...]:
        """The classes: those of the labels, which may not show all of them, or none."""
        if self.options.classes is not None:
            return tuple(map(str, self.options.classes))
        if label is None or label.counts is None:
            return ()
        spelled: dict[str, str] = {}
        for text in sorted(label.counts, key=lambda t: -label.counts[t] if label.counts else 0):
            spelled.setdefault(folded(text), text)
        if len(spelled) > 1:
            return in_order(spelled.values())
        # Few labels of one class: hard predictions may say what the others are.
        sure = label.of("label") >= SURELY
        for p in self.free():
            wider = p.counts and set(spelled) < set(map(folded, p.counts))
            if wider and p.counts and (p.predicts or (sure and not names_measure(p.name))):
                return in_order({*spelled.values(), *p.counts})
        return ()

    # Probabilities ------------------------------------------------------------------------------

    def _drawn(self, label: Profile, classes: tuple[str, ...]) -> None:
        """Shares that by their names are how likely an item was to be labeled: no classifier's."""
        for p in (p for p in self.free() if names_role(p.name, "drawn") and p.in_unit):
            # p_included beside the labels included and excluded is a classifier's.
            named = class_of_one(p.name, classes) or not {*p.words}.isdisjoint(label.words)
            if not named and p.known.min() > 0:
                self.roles[p.name] = DRAWN

    def _families(self, classes: tuple[str, ...]) -> None:
        """Columns of numbers that are named by class, family by family."""
        fitting = [p for p in self.free() if p.numbers is not None and not p.measures]
        for stem, columns in named_families(fitting, classes).items():
            self._take_family(stem, columns)
        for p in fitting if len(classes) == 2 else ():
            one = class_of_one(p.name, classes)
            if p.name not in self.roles and one is not None and like_shares(p):
                stem = (class_of_name(p.name, classes) or (one, ""))[1]
                self._take_family(p.name if is_role(stem) else stem, [p])

    def _take_family(self, stem: str, columns: Sequence[Profile]) -> None:
        stem = places([p.name for p in columns]) or stem
        name = without_role(stem) if stem else columns[0].name
        if name.isdigit():
            name = MODEL
        while name in self.models:
            name += "_"
        self.models[name] = tuple(p.name for p in columns)
        self.roles |= {p.name: "probability" for p in columns}
        fact = "rows sum to 1" if len(columns) > 1 and sums(columns) else "named by class"
        for p in columns:
            self.weigh(p, "probability", fact)

    # Hard predictions ---------------------------------------------------------------------------

    def _hard(self, label: Profile | None, classes: tuple[str, ...]) -> None:
        """Columns that hold the labels' values; without labels, such as share theirs."""
        values, stratum = classes or self._shared_values(), self.options.stratum
        if len(values) < 2:
            named = [of for columns in self.models.values() for of in apart_in(columns)]
            fitting = [of for of in named if any(p.predicts and fits(p, of) for p in self.free())]
            values = (fitting or named or [values])[0]
        further: set[str] = set()
        scored: list[tuple[Profile, float]] = []
        for p in sorted(self.free(), key=lambda p: not p.predicts):
            facts = self._prediction_facts(p, label, values, further) if p.counts and values else []
            if facts:
                scored.append((p, self.weigh(p, "prediction", *facts)))
        alike = [p for p, score in scored if score >= MARGIN]
        unsure = [p for p, score in scored if abs(score) < MARGIN and p.name != stratum]
        if unsure and not alike and label is None:
            self._refuse_unlike(unsure)
            alike, unsure = unsure, []
            for p in alike:
                self.weigh(p, "prediction", "nothing else predicts")
        alike.sort(key=lambda p: self.names.index(p.name))
        names = [without_role(p.name) for p in alike]
        self.nameless = names[0] if len(alike) == 1 and is_role(names[0]) else None
        for p, name in zip(alike, names, strict=True):
            self.hard[name if names.count(name) == 1 else p.name] = p.name
            self.roles[p.name] = "prediction"
        if stratum is not None:  # else a prediction is nothing more than that
            self.roles.setdefault(stratum, "as said")
        odd = [p for p in alike if not p.predicts]
        if label is None and len(odd) == 1 and len(alike) > 2 and not self.models:
            raise AmbiguousError(
                f"columns {listed(quoted(p.name) for p in alike)} hold the same values, and no "
                f"name says whether {quoted(odd[0].name)} holds the known labels",
                [["--label", odd[0].name], self.said()][:: 1 if odd[0].sparse else -1],
            )
        if unsure:
            name = unsure[0].name
            ways = [self.said(hard={without_role(name): name}), [*self.said(), "--by", name]]
            agrees = label is None or (beyond_chance(unsure[0], label, values) or 0.0) > AGREE
            raise AmbiguousError(
                f"column {quoted(name)} holds the values of the labels: a classifier's "
                "hard predictions, or a group",
                ways if agrees else ways[::-1],
            )

    def _refuse_unlike(self, columns: Sequence[Profile]) -> None:
        """Refuse columns of yes and no that do not agree, and that no name says are predictions."""
        pairs = itertools.combinations(columns, 2)
        each = [beyond_chance(p, q, tuple(p.counts or ())) for p, q in pairs]
        known = [one for one in each if one is not None]
        some = len(columns) > 2 and all(p.yes_or_no and not p.predicts for p in columns)
        if some and not self.models and known and float(np.mean(known)) <= AGREE:
            said = ColumnOptions(hard={p.name: p.name for p in columns}).arguments()
            raise InputError(
                f"columns {listed((quoted(p.name) for p in columns), 4)} hold yes and no, and do "
                "not agree beyond chance: perhaps labels of several tasks; join the predictions "
                f"with --join FILE, or if classifiers gave them, say {shlex.join(said)}"
            )

    def _prediction_facts(
        self, p: Profile, label: Profile | None, values: Sequence[str], further: set[str]
    ) -> list[str]:
        """What the values of a column say of its being a hard prediction; nothing: it is none."""
        counts = p.counts or {}
        # Its name is that of another column and a word more: gpt, gpt_correct.
        has_base = any(q.words == p.words[:-1] for q in self.columns.values())
        of_another = has_base or (p.yes_or_no and not p.predicts)
        known = words_table().says  # acc, exact_match
        right = p.says("right") and {*p.words} <= known["right"] | known["how_right"]
        if (p.judges_another and of_another) or (right and p.yes_or_no):
            return ["says if another is right"]
        if p.agrees or p.done:
            self.flags += [p] if fits(p, values) and p not in self.doubted else []
            return ["says what was done"]
        if not fits(p, values):
            # A classifier may say a class that no label shows.
            new = set(strays(p, values) or ())
            agrees = label is not None and (beyond_chance(p, label, values) or 0.0) > AGREE
            if len(new) != 1 or not (p.predicts or new <= further or agrees):
                return []
            further |= new
        if p.name in self.compared:
            return ["one of those that are compared"]
        if label is not None and made_with(p, label):
            return ["known with the labels alone, or never"]
        if p.predicts:
            return ["another column is finer" if self._has_finer(p) else "codes of the classes"]
        words = any(polarity(v) is None and not v.isdigit() for v in values)
        beside = sorted(self._judges, key=lambda q: q.name) if label is None else [label]
        each = [beyond_chance(p, q, values) for q in beside if q is not p]
        agreement = max((a for a in each if a is not None), default=None)
        agrees = agreement is not None and agreement > AGREE
        if p.measures and (label is None or not agrees or not words or p.of("group") > 0):
            return ["a group or a feature"]
        facts = ["words of the classes"] if words else ["codes of the classes"]
        if label is not None:
            beside_it = self.models or self._agreeing - {p.name} or self._classifiers - {p.name}
            if agrees:
                facts.append("agrees with the labels")
            elif agreement is not None and beside_it:
                both = class_indices(p, values), class_indices(label, values)
                chance = no_better_than_chance(*both)
                facts.append("no better than chance" if chance else "goes with no prediction")
            same = {*map(folded, counts)} <= {*map(folded, values)}
            facts += ["in other words than the labels"] if beside_it and not same else []
        elif agreement is not None and self.models:
            facts.append("goes with a prediction" if agrees else "goes with no prediction")
        return facts + (["one value"] if len(counts) == 1 else [])

    @cached_property
    def _agreeing(self) -> set[str]:
        """Columns of the labels' values that go with them beyond chance."""
        label = self.label
        if label is None:
            return set()
        classes = tuple(label.counts or ())
        fitting = (p for p in self.free() if strays(p, classes) is not None)
        fitting = (p for p in fitting if not (p.of("group") > 0 or made_with(p, label)))
        return {p.name for p in fitting if (beyond_chance(p, label, classes) or 0.0) > AGREE}

    def _one_classifier(self) -> None:
        """Give probabilities and the hard predictions that they make the name that says more."""
        for name, columns in list(self.models.items()):
            for hard, column in self.hard.items():
                words = set(name_words(name))
                shared = [w for w in tokens(hard) if folded(w) in words and not is_role(w)]
                nameless = is_role(name) or not tokens(name) or name.rstrip("_") == MODEL
                if hard in self.models or not (shared or nameless or is_role(hard)):
                    continue
                if not self._makes(columns, self.columns[column]):
                    continue
                one = " ".join(shared) or (hard if nameless else name)
                rename = {name: one, hard: one}
                self.models = {rename.get(n, n): c for n, c in self.models.items()}
                self.hard = {rename.get(n, n): c for n, c in self.hard.items()}
                self.nameless = None
                break

    def _makes(self, columns: Sequence[str], hard: Profile) -> bool:
        """Whether hard predictions are those of the largest probability, or of two classes cut."""
        classes = in_order(hard.counts or ())
        named = by_names(columns, classes)
        if named is None or len(classes) != len(columns):
            return False
        said = class_indices(hard, classes)
        p = np.stack([self.columns[named[c]].numbers for c in classes])  # type: ignore[misc]
        known = (said >= 0) & ~np.isnan(p).any(0)
        if known.sum() < LEAST_TOGETHER:
            return False
        own = np.take_along_axis(p, np.maximum(said, 0)[None], 0)[0]
        if (own >= p.max(0) - 0.01)[known].all():
            return True
        return len(classes) == 2 and cut_apart(p[1], np.where(known, said, -1), 1)

    def _has_finer(self, p: Profile) -> bool:
        """Whether this is named a score, and another column is of the same classifier's classes."""
        own = without_role(p.name)
        return p.of("score") > 0 and any(
            q.name != p.name and without_role(q.name) == own and q.counts and q.of("score") <= 0
            for q in self.free()
        )

    def _shared_values(self) -> tuple[str, ...]:
        """The values that most columns of few values hold, where there are no labels."""
        sets = [
            frozenset(map(folded, p.counts or ()))
            for p in self.free()
            if p.coded and p.predicts and p.of("score") <= 0
        ]
        if not sets:
            sets = [frozenset(map(folded, p.counts or ())) for p in self._annotators]
        if len(sets) < 2:
            return ()
        common = max(sets, key=lambda s: sum(other <= s for other in sets))
        return in_order(common) if sum(other <= common for other in sets) > 1 else ()

    def _refuse_sure(self) -> None:
        """Refuse how sure somebody is beside what says if that is right, without labels."""
        sure = [c for c in self.scores.values() if self.columns[c].of_itself]
        right = self.right
        if sure and right and not (self.hard or self.models):
            said = shlex.join(["--label", right[0].name, *self.said()])
            raise InputError(
                f"column {quoted(right[0].name)} says by its name whether an answer is right, and "
                f"{quoted(sure[0])} how sure somebody is of it: to see how well this tells right "
                f"answers from wrong ones, say {said}"
            )

    # Scores -------------------------------------------------------------------------------------

    def _numbers(self, classes: tuple[str, ...]) -> list[Profile]:
        """Other numbers: probabilities where the name says so, else scores; never features."""
        # What is left may be of a classifier, or not.
        if len(classes) > 2 or (len(classes) < 2 and self.models):
            return []
        numbers = [p for p in self.free() if p.numbers is not None and p.distinct > 2]
        left = []
        # What is asked of says all that is read beside it.
        for p in sorted(numbers, key=self._may_be_sure):
            # Whole numbers may be codes of the texts in another column.
            texts = [q for q in self.free() if p.whole and p.few and q.numbers is None and q.few]
            each = (replace(q, distinct=len(set(q.codes))) for q in texts)
            if p.measures or any(map(p.names_alike, each)):
                continue
            also = words_table().says["itself"] if p.of_itself else ()
            name = without_role(p.name, also)
            nobody = is_role(name, also)
            bare = nobody and not self.models
            if bare and self.nameless is not None:
                name = self.nameless  # y_pred and y_prob are of one classifier
            elif bare and len(self.hard) == 1 and (p.of_itself or p.never_below_half):
                name = next(iter(self.hard))  # and so are gpt and max_prob
            role = self._number_role(p, name, nobody)
            if role == "probability":
                self.models[name] = (p.name,)
            elif role == "confidence":
                self.confidence[name] = p.name
            elif role == "score":
                self.scores[name if name not in self.scores else p.name] = p.name
            elif role is None:
                left.append(p)
            self.roles |= {p.name: role} if role in _OF_CLASSIFIERS else {}
        if self.asked:
            self._refuse_sureness()
        return left

    def _number_role(self, p: Profile, name: str, nobody: bool) -> str | None:
        """What numbers are of a classifier of some name, if they are of one."""
        known = nobody and self.models and p.never_below_half
        if p.of_itself and (known or name in self.confidence or p.of("label") >= SURELY):
            # The largest of the probabilities; said twice; how sure the expert is.
            self.weigh(p, "confidence", "said twice")
            return "not used"
        own = name in self.hard and name not in self.models
        if own and p.never_below_half:
            self.weigh(p, "confidence", "never below one half")
            return "confidence"
        if p.of_itself and p.known.max() <= 0 and (name in self.hard or self.label is None):
            return "not used"  # logarithms of how probable its own prediction is
        if p.of_itself and self.label is None and not self.hard and self.answers():
            return None
        if p.of_itself and p.name != name in self.columns and name not in self.hard:
            return None  # whoever gave it, what they said is not read
        if self._is_asked(p, name, nobody and not self.models):
            return "asked"
        facts = ["its classifier predicts"] if name in self.hard else []
        facts += ["from 0 to 1, alone"] if not (self.models or self.hard) and p.in_unit else []
        if p.predicts and p.of("score") <= 0:
            person = p.of("annotator") > 0 and not p.in_unit
            facts.append("of an annotator" if person else "named as a classifier")
        if not facts and p.of("score") <= 0:
            facts.append("nothing explains it")
        score = self.weigh(p, "score", *facts)
        if score < MARGIN:
            return None if score > -SURELY else "not used"
        facts += ["percentages"] if "%" in p.name and names_chance(p.name) else []
        facts += ["from 0 to 1, as a score may be"] if like_shares(p) else ["no shares"]
        facts += ["said twice"] if name in self.models else []
        return "probability" if self.weigh(p, "probability", *facts) > score else "score"

    def _may_be_sure(self, p: Profile) -> bool:
        """Whether numbers may say how sure a classifier is of its hard prediction."""
        return p.of_itself or without_role(p.name) in self.hard or names_percentages(p.name)

    def _is_asked(self, p: Profile, name: str, bare: bool) -> bool:
        """Whether numbers beside hard predictions are perhaps how sure these are."""
        own = name in self.hard
        if not self.hard or not (own or self._may_be_sure(p)):
            return False
        low, _, sure = _sureness(p)
        if not (own or bare or sure if p.of_itself else low >= 50 and sure):
            return False
        name = name if own else next(iter(self.hard))
        hard = self.columns[self.hard[name]]
        words, x = list(hard.counts or ()), np.asarray(p.numbers, dtype=float)
        if len(words) == 2 and cut_apart(x, class_indices(hard, words), positive_index(words)):
            return False
        for role in ("confidence", "score"):
            self.weigh(p, role, "how sure it is")
        self.asked.setdefault(name, p)
        return True

    def _refuse_sureness(self) -> None:
        """Refuse numbers that are perhaps how sure classifiers are, or perhaps scores."""
        p = next(iter(self.asked.values()))
        low, half, sure = _sureness(p)
        columns = {who: q.name for who, q in self.asked.items() if _sureness(q)[1:] == (half, sure)}
        which, who = f"column {quoted(p.name)} is", listed(columns)
        if len(columns) > 1:
            which, who = f"columns {listed(map(quoted, columns.values()))} are", "each"
        range_of = f"never below {half:g}" if sure else f"from {low:g} to {p.known.max():g}"
        what = f"how sure {who} is of its own prediction{', in percent' * (sure and half == 50)}"
        first = self.said(confidence=columns)
        if half == 50 and not sure:
            share = shlex.join(ColumnOptions(confidence=columns).arguments())
            what += f", which {share} takes as a share (rescale the column, or leave it out)"
            first = self.said()
        raise AmbiguousError(
            f"{which} {range_of}: perhaps {what}, perhaps a score of the positive class",
            [first, self.said(scores=columns)],
        )


def _sureness(p: Profile) -> tuple[float, float, bool]:
    """The least number, one half of its unit (shares or percent), and whether none is below."""
    low, high = float(p.known.min()), float(p.known.max())
    half = 50 if high > 1 else 0.5
    return low, half, low >= half and high <= 2 * half
