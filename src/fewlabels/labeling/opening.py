"""A session from a file and its record."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fewlabels.data.label_record import ENDING, is_record, read_record
from fewlabels.data.sources import is_standard_input
from fewlabels.errors import InputError, UsageError
from fewlabels.labeling.items import Items, items_of, open_items
from fewlabels.labeling.journal import Journal
from fewlabels.labeling.session import Asked, Session
from fewlabels.labeling.stopping import stops_of
from fewlabels.labeling.watch import Watch
from fewlabels.metrics.registry import check_asked
from fewlabels.predictions import Predictions
from fewlabels.questions.next_items import Order


@dataclass(frozen=True)
class Wishes:
    """What is asked of a session, by the options of `fewlabels label`.

    `metrics` may be empty: accuracy then, or roc_auc of scores alone. `annotator` None is the
    name of who is logged in.
    """

    show: Sequence[str] | None = None
    images: str | None = None
    metrics: Sequence[str] = ()
    until: Sequence[str] = ()
    order: Order = "random"
    annotator: str | None = None
    see_predictions: bool = False
    method: Any = "auto"
    confidence_level: float = 0.95
    seed: int = 0
    columns: Mapping[str, Any] = field(default_factory=dict)


def record_of(source: Any, labels: str | os.PathLike[str] | None) -> Path:
    """Where the record is: where `labels` says, else beside the data."""
    if labels is not None:
        return Path(labels)
    if not isinstance(source, str | os.PathLike) or is_standard_input(str(source)):
        raise UsageError("say where the record of labels is to be: --labels RECORD.labels.jsonl")
    return Path(f"{str(source).rstrip('/')}{ENDING}")


def open_session(
    source: Any, labels: str | os.PathLike[str] | None, wishes: Wishes, items: Any = None
) -> Session:
    """Open the items and their record, which is begun where there is none.

    Parameters
    ----------
    source
        A path, a frame, or `Predictions`; of these the texts are `items`.
    labels
        The record.
    """
    check_asked(list(wishes.metrics) or None)
    record = record_of(source, labels)
    before = read_record(record) if is_record(record) else None
    recorded = () if before is None else before.decisions.keys()
    opened = _items(source, items, wishes, recorded)
    metrics = tuple(wishes.metrics) or (_usual(opened.predictions),)
    stops = stops_of(wishes.until, metrics, opened.predictions.models)
    annotator = user_name() if wishes.annotator is None else wishes.annotator
    if not annotator.strip():
        raise UsageError("--annotator must name somebody; got an empty name")
    watch = Watch(
        opened.predictions.with_positive(), metrics, wishes.method, wishes.confidence_level,
        wishes.seed, stops,
    )  # fmt: skip
    asked = Asked(metrics[0], wishes.order, method=wishes.method, seed=wishes.seed)
    if opened.predictions.labeled.all():
        raise InputError(f"{opened.name}: every item has a label; there is none to label")
    contents = {} if before is None else opened.contents(before)
    journal = Journal(record, opened.header(annotator), contents)
    try:
        return Session(
            opened, journal, watch, asked=asked, annotator=annotator,
            see_predictions=wishes.see_predictions,
        )  # fmt: skip
    except BaseException:
        journal.discard()
        raise


def _items(source: Any, items: Any, wishes: Wishes, recorded: Any) -> Items:
    looks: dict[str, Any] = {"show": wishes.show, "images": wishes.images, "seed": wishes.seed}
    if isinstance(source, Predictions):
        if items is None:
            raise UsageError(
                "`items` must be a frame or a list with the texts of the items, where the "
                "predictions are arrays"
            )
        item = wishes.columns.get("item")
        return items_of(source, items, item=item, recorded=recorded, **looks)
    if items is not None:
        raise UsageError("`items` are the texts beside Predictions; a file or frame has its own")
    return open_items(source, recorded=recorded, **looks, **wishes.columns)


def _usual(predictions: Predictions) -> str:
    return "accuracy" if predictions.gives("hard").any() else "roc_auc"


def user_name() -> str:
    """Who is logged in."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "somebody"
