"""`diagnose`: read as `read_predictions` does, and look at everything there is to see."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from fewlabels.data.binary import described, read_npz
from fewlabels.data.doctor.checks import column_findings, findings, note_findings
from fewlabels.data.doctor.facts import Diagnosis, Evidence, Facts, Finding, row_hashes
from fewlabels.data.evidence import ColumnEvidence
from fewlabels.data.joined import Duplicates, LabelsAs, RepeatedVotesError, WithLabels, item_keys
from fewlabels.data.options import ColumnArguments, ColumnOptions, column_options
from fewlabels.data.proposals import Proposals
from fewlabels.data.read import Beside, Opened, naming_rows, open_input, read_as_said
from fewlabels.data.recognise import evidence_table
from fewlabels.data.roles import assign_roles
from fewlabels.data.shapes import telling
from fewlabels.data.sources import Located, locate, open_source, typed
from fewlabels.data.table import BROKEN_ROWS, NOTHING, Source, Table, naming_file
from fewlabels.errors import InputError, one_line
from fewlabels.predictions import Predictions


def diagnose(
    source: Any = None,
    *,
    votes: Any = None,
    duplicates: Duplicates = "refuse",
    labels: Any = None,
    labels_as: LabelsAs | None = None,
    join: Any = None,
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
    named = located if source is not None else locate(votes)
    case = Case("the frame" if named is None else named.name, options)
    beside = Beside(votes, duplicates, labels, labels_as, join)
    case.proposals = Proposals(source, options, read_as_said, beside._asdict())
    return copy_context().run(_diagnosis, case, source, located, beside)


def _diagnosis(case: Case, source: Any, located: Located | None, beside: Beside) -> Diagnosis:
    """The diagnosis of a source, or of its columns alone where it cannot be read as predictions."""
    opened, options, broken = None, case.options, dict[str, int]()
    BROKEN_ROWS.set(broken)
    try:
        with naming_file(None):
            opened = open_input(source, options, beside)
            case.options, case.reading = opened.options, opened.lines
            case.said, case.evidence = opened.said, opened.evidence
            case.command = _command(opened, source, beside, options)
            if opened.arrays is not None:
                arguments = read_npz(opened.arrays, case.options)
                case.described = described(arguments)
                _look_at_items(case, Predictions(**arguments))
            else:
                _look_at_table(case, opened, options)
    except InputError as error:
        case.error(str(error))
        # The columns of what cannot be read as predictions.
        if opened is None and source is not None and (located is None or located.kind != "NPZ"):
            with suppress(InputError), naming_file(None):
                columns_alone = open_source(source, located)
                case.name_columns(columns_alone.names)
                _look_at_all_columns(case, columns_alone)
                if not options.names_classifiers:
                    case.evidence = evidence_table(columns_alone, options)
    for message in itertools.islice(broken, 3):
        case.error(message + f"; {len(broken):,} rows are not read" * (len(broken) > 3))
    return case.diagnosis()


@dataclass
class Case:
    """What has been learned so far, in memory or of parts; reading may stop at any step."""

    name: str
    options: ColumnOptions
    command: str | None = None
    positive: str | None = None
    reading: tuple[str, ...] = ()
    said: ColumnOptions | None = None
    findings: list[Finding] = field(default_factory=list)
    described: dict[str, str] = field(default_factory=dict)
    evidence: tuple[ColumnEvidence, ...] = ()
    proposals: Proposals | None = None
    counts: dict[str, int] = field(default_factory=dict)
    balance: dict[str, Any] = field(
        default_factory=lambda: {"labels": None, "predicted": {}, "classes": []}
    )

    def error(self, message: str, where: str | None = None) -> None:
        """Add what makes the data unusable."""
        self.findings.append(Finding("error", one_line(message), where or self.name, ""))

    def name_columns(self, names: Iterable[str]) -> None:
        """Add what the names of the columns alone show."""
        single = ("label", "domain", "weight")
        self.described = {n: n if n in single else "not recognised" for n in names}

    def look(self, evidence: Evidence, notes: Iterable[str]) -> None:
        """Look at the items, and at what was noted while they were read."""
        self.findings.extend(findings(evidence))
        self.findings.extend(note_findings(notes, self.name))

    def look_at_columns(self, table: Table | None = None, models: Sequence[str] = ()) -> None:
        """Look for columns that are perhaps something else; `models` are the classifiers."""
        self.findings.extend(column_findings(self.described, table, models))

    def diagnosis(self) -> Diagnosis:
        """The diagnosis, with the worst findings first; what is proposed is tried."""
        if self.proposals is not None:
            self.reading = self.proposals.lines(self.reading)
            said = None if self.command is None else self.options
            if self.command and not self.proposals.reads(shlex.split(self.command)[3:]):
                self.command = None
            self.findings = [_tried(one, self.proposals, said) for one in self.findings]
        order = ("error", "warning", "info")
        ordered = sorted(self.findings, key=lambda finding: order.index(finding.severity))
        refused = bool(ordered) and ordered[0].severity == "error"
        return Diagnosis(
            self.name, self.described, self.counts, self.balance, tuple(ordered), self.positive,
            self.reading, None if refused else self.command,
            (self.said or self.options).to_toml(), self.evidence,
        )  # fmt: skip


def _command(opened: Opened, source: Any, beside: Beside, options: ColumnOptions) -> str | None:
    """The command line that reads a source so; None where it can say no path."""
    file, chosen = typed(beside.votes if source is None else source)
    flags = {"--join": beside.join, "--votes": None if source is None else beside.votes}
    flags |= {"--labels": beside.labels, "--labels-as": beside.labels_as}
    flags["--duplicates"] = None if beside.duplicates == "refuse" else beside.duplicates
    given = [
        (flag, one)
        for flag, value in flags.items()
        for one in (value if isinstance(value, list | tuple) else [value])
        if one is not None
    ]
    if file is None or not all(isinstance(value, str | Path) for _, value in given):
        return None
    shown, table = opened.said or opened.options, opened.table
    if isinstance(table, WithLabels) and not table.label_is_own:
        shown = replace(shown, label=None)  # the labels' own file has it
    parts = [shown.command(file, votes=table is None and opened.arrays is None)]
    return " ".join([*parts, *(shlex.quote(str(part)) for pair in given for part in pair)]) + chosen


def _tried(finding: Finding, proposals: Proposals, said: ColumnOptions | None) -> Finding:
    """A finding with those proposals that the source is read with, beside the command below."""
    refused, mend = finding.severity == "error", proposals.text(finding.mend, said)
    return replace(finding, what=proposals.text(finding.what, refusal=refused), mend=mend)


def _look_at_table(case: Case, opened: Opened, said: ColumnOptions) -> None:
    """Look at a table, at votes, or at both."""
    votes, source = opened.votes, opened.table
    names = () if source is None else source.names
    case.name_columns(names)
    try:
        with telling(source):
            roles = assign_roles(names, case.options, None if votes is None else votes.roles)
    except InputError as error:
        case.error(str(error))
        _look_at_all_columns(case, source)
        return
    case.described = roles.described() | ({} if votes is None else votes.described())
    table, predictions = NOTHING, None
    try:
        if source is not None:
            table = source.read(roles.numeric, roles.text)
        wrong: list[InputError] = []
        # --by, which the doctor has not, is for `estimate`.
        named = said.names_classifiers or bool(said.cluster)
        arguments, classes = opened.arguments(table, roles, named=named, wrong=wrong)
        for bad_cell in wrong:  # the first one of each column
            case.error(str(bad_cell))
        if not wrong:
            if votes is not None:
                keys, keep = item_keys(table, roles, votes), case.options.keep
                try:
                    arguments = votes.join(arguments, keys, classes, keep)
                except RepeatedVotesError as error:
                    case.error(str(error), votes.name)
                    counted = replace(votes, duplicates="keep")
                    arguments = counted.join(arguments, keys, classes, keep)
                    # Said by the error already.
                    arguments["notes"] = [n for n in arguments["notes"] if "--duplicates" not in n]
            with naming_rows(roles, table.place):
                predictions = Predictions(**arguments)
    except InputError as error:
        case.error(str(error))
    if predictions is None:
        case.counts = {"n_items": table.n_rows}
    else:
        _look_at_items(case, predictions, None if votes is None else roles.models)
    case.look_at_columns(table, roles.models)


def _look_at_items(
    case: Case, predictions: Predictions, models: Sequence[str] | None = None
) -> None:
    """Look at all items; `models` are those that are no annotators, None where nobody is one."""
    facts = own = Facts.of(predictions, predictions.weight)
    case.counts = facts.counts()
    case.balance = facts.balance(predictions.models, predictions.classes)
    case.positive = None if predictions.positive is None else str(predictions.positive)
    classifiers, annotators = predictions, None
    if models is not None:
        classifiers, annotators = predictions.select_models(models), len(models)
        own = Facts.of(classifiers, classifiers.weight)
    hashes = row_hashes(predictions)
    repeated = None if hashes is None else len(hashes) - len(np.unique(hashes))
    groups = facts.group_sizes(cut=False)
    groups.pop(predictions.item or "", None)
    evidence = Evidence(own, predictions, classifiers, repeated, groups, annotators=annotators)
    case.look(evidence, predictions.notes)


def _look_at_all_columns(case: Case, source: Source | None) -> None:
    """Read all columns as they are, to say what they look like."""
    table = None
    if source is not None and len(set(source.names)) == len(source.names):
        with suppress(InputError):
            table = source.read((), source.names)
            case.counts = {"n_items": table.n_rows}
    case.look_at_columns(table)
