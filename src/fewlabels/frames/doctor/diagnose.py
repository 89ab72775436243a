"""`diagnose`: read as `read_predictions` does, and look at everything there is to see."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from fewlabels.class_words import NO_LABEL, folded
from fewlabels.errors import InputError
from fewlabels.frames.assemble import assemble
from fewlabels.frames.doctor import facts
from fewlabels.frames.doctor.classifiers import classifier_findings
from fewlabels.frames.doctor.columns import name_findings, value_findings
from fewlabels.frames.doctor.diagnosis import Diagnosis, Finding
from fewlabels.frames.doctor.labels import (
    class_findings,
    group_findings,
    label_findings,
    row_findings,
)
from fewlabels.frames.doctor.votes import overlap_findings, vote_findings
from fewlabels.frames.kept_labels import WithLabels
from fewlabels.frames.locate import Located, locate
from fewlabels.frames.long_votes import (
    Duplicates,
    LongVotes,
    RepeatedVotesError,
    item_keys,
)
from fewlabels.frames.npz import described, read_npz
from fewlabels.frames.options import ColumnArguments, ColumnOptions, column_options
from fewlabels.frames.read import Opened, build, open_input
from fewlabels.frames.roles import Roles, assign_roles
from fewlabels.frames.sources import open_source
from fewlabels.frames.table import NOTHING, Source, Table
from fewlabels.frames.values import class_text
from fewlabels.predictions import Predictions
from fewlabels.wording import one_line, quoted

_SEVERITIES = ("error", "warning", "info")

_NOTE_MENDS = {
    "sum to 1": "store probabilities with more digits",
    "one class occurs": "name both classes with --classes, the positive one last",
    "not read as a prediction": "rename it",
    "not kept as a group": "nothing, if it is no group",
    "--duplicates": "nothing, if this is meant",
    "is in the other file": "say with --item which columns hold the item",
}
"""Words of a note -> what to do about it."""


def diagnose(
    source: Any = None,
    *,
    votes: Any = None,
    duplicates: Duplicates = "refuse",
    labels: Any = None,
    **columns: Unpack[ColumnArguments],
) -> Diagnosis:
    r"""Say what each column of a file or frame is, what is wrong with it and how to mend it.

    `columns` are the other parameters of `read_predictions`. What makes the data unusable is a
    finding of severity "error", and the rest is shown as far as it can be.

    Raises
    ------
    InputError
        If there is no such file, or it is not of a kind that is read.
    UsageError
        If an argument is not what `read_predictions` takes.

    Examples
    --------
    >>> import pyarrow, fewlabels as fl
    >>> table = pyarrow.table({"gold": ["cat", "dog", None], "rf_pred": ["cat", "cat", "dog"]})
    >>> print(*fl.diagnose(table).reading, sep="\n")
    labels: column 'gold' (2 of 3 rows)
    hard predictions: rf = 'rf_pred'
    """
    options = column_options(**columns)
    located = locate(source)
    case = _Case(_name(located, votes if source is None else source), options)
    try:
        opened = open_input(source, options, votes, duplicates, labels)
        case.take(opened, source, None if source is None else votes, duplicates, labels)
        if opened.arrays is not None:
            case.read_arrays(opened)
        else:
            case.read_table(opened)
    except InputError as error:
        case.findings.append(Finding("error", one_line(str(error)), case.name, ""))
        if case.opened is None and source is not None:
            case.read_anyway(source, located)
    case.look()
    return case.diagnosis()


def _name(located: Located | None, source: Any) -> str:
    """What to call the input: a path as it is."""
    if located is None:
        located = locate(source)
    return "the frame" if located is None else located.name


@dataclass
class _Case:
    """What has been learnt so far; reading may stop at any step."""

    name: str
    options: ColumnOptions
    findings: list[Finding] = field(default_factory=list)
    described: dict[str, str] = field(default_factory=dict)
    opened: Opened | None = None
    file: str | None = None
    beside: Sequence[str] = ()
    roles: Roles | None = None
    table: Table | None = None
    votes: LongVotes | None = None
    predictions: Predictions | None = None
    said: facts.Classifiers | None = None

    def take(
        self, opened: Opened, source: Any, votes: Any, duplicates: Duplicates, labels: Any
    ) -> None:
        """What there is to read, and how the command line says what is beside it."""
        self.opened, self.options, self.votes = opened, opened.options, opened.votes
        beside = {"--votes": votes, "--labels": labels}
        beside["--duplicates"] = None if duplicates == "refuse" else duplicates
        if not all(value is None or isinstance(value, (str, Path)) for value in beside.values()):
            return
        if opened.name is not None:
            self.file = opened.name if source is None else str(source)
        said = ((flag, str(value)) for flag, value in beside.items() if value is not None)
        self.beside = [part for pair in said for part in pair]

    def read_arrays(self, opened: Opened) -> None:
        arguments = read_npz(opened.arrays or (), self.options)
        self.described = described(arguments)
        self.predictions = Predictions(**arguments)

    def read_table(self, opened: Opened) -> None:
        names = () if opened.table is None else opened.table.names
        self._name_columns(names)
        votes = self.votes
        try:
            self.roles = assign_roles(names, self.options, None if votes is None else votes.roles)
        except InputError:
            self._read_all(opened.table)
            raise
        self.described = self.roles.described() | ({} if votes is None else votes.described())
        self.table = NOTHING
        if opened.table is not None:
            self.table = opened.table.read(self.roles.numeric, self.roles.text)
        voted = None if votes is None else votes.class_texts()
        wrong: list[InputError] = []
        arguments, classes = assemble(self.table, self.roles, self.options, voted, wrong)
        if wrong:
            self.findings += [Finding("error", one_line(str(e)), self.name, "") for e in wrong]
            return
        if votes is not None:
            keys = item_keys(self.table, self.roles, votes)
            keep = self.options.keep
            try:
                arguments = votes.join(arguments, keys, classes, keep)
            except RepeatedVotesError as error:
                self.findings.append(Finding("error", one_line(str(error)), votes.name, ""))
                counted = replace(votes, duplicates="keep")
                arguments = counted.join(arguments, keys, classes, keep)
                # Said by the error already.
                arguments["notes"] = [n for n in arguments["notes"] if "--duplicates" not in n]
        self.predictions = build(arguments, self.roles, self.table.place)

    def read_anyway(self, source: Any, located: Located | None) -> None:
        """The columns of what cannot be read as predictions, to say what they look like."""
        if located is not None and located.kind == "NPZ":
            return
        try:
            opened = open_source(source, located)
            self._name_columns(opened.names)
        except InputError:
            return
        self._read_all(opened)

    def _name_columns(self, names: Iterable[str]) -> None:
        single = ("label", "domain", "weight")
        self.described = {n: n if n in single else "not recognised" for n in names}

    def _read_all(self, opened: Source | None) -> None:
        """Read all columns as they are, to say what they look like; the error comes later."""
        if opened is None or len(set(opened.names)) < len(opened.names):
            return
        try:
            self.table = opened.read((), opened.names)
        except InputError:
            self.table = None

    def look(self) -> None:
        """Collect the findings about whatever has been read."""
        predictions = self.predictions
        if predictions is not None:
            self.said = facts.Classifiers.of(predictions)
            # Annotators vote on few items each; what there is to say of them is said together.
            judged = predictions
            if self.votes is not None and self.roles is not None:
                judged = predictions.select_models(self.roles.models)
                self.findings.extend(vote_findings(predictions, judged.n_models))
            elif not predictions.provides("ranking").any():
                self.findings.extend(overlap_findings(predictions))
            if judged.n_models:
                same = judged is predictions
                said = self.said if same else facts.Classifiers.of(judged)
                self.findings.extend(classifier_findings(judged, said))
            labels, weighted = facts.Labels.of(judged), bool(np.ptp(judged.weight))
            self.findings.extend(label_findings(judged, labels, weighted=weighted))
            self.findings.extend(class_findings(predictions))
            self.findings.extend(row_findings(predictions))
            sizes = facts.Groups.of(predictions).sizes(cut=False)
            sizes.pop(predictions.item or "", None)
            self.findings.extend(group_findings(sizes))
            self.findings.extend(note_findings(predictions.notes, self.name))
        if self.roles is not None or predictions is None:
            self._look_at_columns()

    def _look_at_columns(self) -> None:
        models = () if self.roles is None else self.roles.models
        self.findings.extend(column_findings(self.described, self.table, models))
        if self.table is not None:
            self._look_for_minus_one(self.table)

    def _look_for_minus_one(self, table: Table) -> None:
        """-1 next to labels of one class may be meant as the other class."""
        label = None if self.roles is None else self.roles.label
        if label is None or label not in table.names or self.predictions is None:
            return
        texts = {class_text(value) for value in table.categories(label)[1]}
        if self.predictions.n_classes == 2:
            self.findings.extend(minus_one_findings(label, texts))

    def diagnosis(self) -> Diagnosis:
        """Put it together, the worst first."""
        counts: dict[str, int] = {}
        balance: dict[str, Any] = {"labels": None, "predicted": {}, "classes": []}
        if self.predictions is not None:
            p = self.predictions
            counts = {
                "n_items": p.n_items,
                "n_labeled": p.n_labeled,
                "n_models": p.n_models,
                "n_classes": p.n_classes,
            }
            assert self.said is not None  # by `look`
            balance = facts.balance(facts.Labels.of(p), self.said, p.models, p.classes)
        elif self.table is not None:
            counts = {"n_items": self.table.n_rows}
        return Diagnosis(
            self.name,
            self.described,
            counts,
            balance,
            worst_first(self.findings),
            None if self.predictions is None else _text(self.predictions.positive),
            () if self.opened is None else self.opened.lines,
            self._command(),
            self.options.to_toml(),
        )

    def _command(self) -> str | None:
        """The command line that reads the data so; None where it would be refused."""
        opened = self.opened
        refused = any(finding.severity == "error" for finding in self.findings)
        if opened is None or self.file is None or refused:
            return None
        said = self.options
        if isinstance(opened.table, WithLabels) and not opened.table.label_is_own:
            said = replace(said, label=None)  # the labels' own file has it
        alone = opened.table is None and opened.arrays is None
        return " ".join([said.command(self.file, votes=alone), *map(shlex.quote, self.beside)])


def _text(positive: Any) -> str | None:
    return None if positive is None else str(positive)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors, then warnings, then the rest."""
    order = {severity: i for i, severity in enumerate(_SEVERITIES)}
    return tuple(sorted(findings, key=lambda finding: order[finding.severity]))


def note_findings(notes: Iterable[str], name: str) -> Iterator[Finding]:
    """What was noted while the data `name` were read."""
    for note in notes:
        # Said in full by label_findings.
        if not note.startswith("no labeled item"):
            mend = next((m for words, m in _NOTE_MENDS.items() if words in note), "")
            yield Finding("warning", note, name, mend)


def column_findings(
    described: Mapping[str, str], table: Table | None, models: Sequence[str]
) -> Iterator[Finding]:
    """Columns that are perhaps something else, by their names and, where there are rows, values."""
    free = [c for c, role in described.items() if role in ("group", "not recognised")]
    yield from name_findings(
        free,
        has_label="label" in described.values(),
        has_domain="domain" in described.values(),
        has_weight="weight" in described.values(),
    )
    if table is not None:
        yield from value_findings(table, [c for c in free if c in table.names], models)


def minus_one_findings(label: str, texts: set[str]) -> Iterator[Finding]:
    """-1 next to labels of one of two classes may be meant as the other one."""
    known = {text for text in texts if folded(text) not in NO_LABEL}
    if "-1" in texts and len(known) == 1:
        only = known.pop()
        yield Finding(
            "warning",
            f"holds -1 and {quoted(only)} alone; -1 is read as unknown",
            f"column {quoted(label)}",
            "if -1 means the negative class, write it as 0",
        )
