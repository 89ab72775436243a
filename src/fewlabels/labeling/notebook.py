"""`fewlabels.label`: the page to label in, from Python and within a notebook."""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Sequence
from typing import Any, Literal

from fewlabels.checks.arguments import RandomState, seed_of
from fewlabels.labeling.server import Server
from fewlabels.labeling.session import SessionOptions, open_session
from fewlabels.methods.base import LabelModel

_HEIGHT = 780


class Labeling:
    """A page to label in, which a notebook shows in a frame.

    `url` is its address, for this machine alone; whoever has it may label. `record` is the file
    that holds every decision.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.url = server.url
        self.record = str(server.session.journal.path)

    @property
    def labels(self) -> dict[str, str]:
        """Item -> class, so far."""
        decisions = self._server.session.journal.decisions
        return {key: d.label for key, d in decisions.items() if d.label is not None}

    def close(self) -> None:
        """End the page; the record stays, and the same call goes on with it.

        Where the record is gone, a warning says in which file beside it the labels are.
        """
        self._server.close()
        journal = self._server.session.journal
        if journal.lost() is not None:
            warnings.warn(journal.whereabouts(), stacklevel=2)

    def __repr__(self) -> str:
        return f"Labeling(url={self.url!r}, record={self.record!r})"

    def _repr_html_(self) -> str:
        url = html.escape(self.url, quote=True)
        return (
            f'<iframe src="{url}" title="fewlabels: labeling" width="100%" height="{_HEIGHT}" '
            'style="border: 0"></iframe>'
        )


def label(
    predictions: Any,
    items: Any = None,
    *,
    labels: str | os.PathLike[str] | None = None,
    item: str | None = None,
    show: Sequence[str] | None = None,
    images: str | None = None,
    metrics: str | Sequence[str] | None = None,
    until: str | Sequence[str] = (),
    order: Literal["random", "stratified", "informative"] = "random",
    annotator: str | None = None,
    see_predictions: bool = False,
    markdown: bool = False,
    method: str | LabelModel = "auto",
    confidence_level: float = 0.95,
    random_state: RandomState = 0,
    port: int = 0,
    columns: Any = None,
) -> Labeling:
    """Open a page to label in, with the estimate beside it; a notebook shows it in a frame.

    Parameters
    ----------
    predictions
        A path or frame with texts, predictions and a column of items, or `Predictions`.
    items
        Beside `Predictions`: a frame or dictionary of columns with a row per item, or a list of
        texts.
    labels
        The record of labels, to which every decision is added at once; beside the file, unless
        given.
    item, show
        The column of items, and those that are shown.
    images
        Folder of pictures, which columns that are shown name.
    metrics
        What is estimated beside the page; accuracy, or roc_auc of scores alone, unless given.
    until
        Conditions that, once met, say that you can stop: "low:accuracy>=0.8",
        "width:accuracy<=0.1".
    order
        How items are chosen: see `fewlabels label --help`.
    annotator
        Who labels; the name of who is logged in, unless given.
    see_predictions
        Show what the classifiers say; the record notes it.
    markdown
        Lay texts out by the marks of Markdown in them.
    method, confidence_level, random_state
        As in `fewlabels.estimate`.
    port
        Where the page listens; 0: any port that is free.
    columns
        What the columns of a path or frame are, as in `fewlabels.read_predictions`.

    Returns
    -------
    Labeling
        With `url`, `labels` and `close()`. The page ends with the process.

    Raises
    ------
    InputError, UsageError
        One line that says what is wrong and how to mend it.
    MissingExtraError
        If the extra `label` is not installed.
    """
    server = Server(
        open_session(
            predictions,
            labels,
            SessionOptions(
                show=show,
                images=images,
                metrics=[metrics] if isinstance(metrics, str) else list(metrics or ()),
                until=[until] if isinstance(until, str) else list(until),
                order=order,
                annotator=annotator,
                see_predictions=see_predictions,
                method=method,
                confidence_level=confidence_level,
                seed=seed_of(random_state),
                columns={"item": item, "columns": columns},
            ),
            items,
        ),
        port=port,
        markdown=markdown,
        framed=True,
    )
    server.start()
    return Labeling(server)
