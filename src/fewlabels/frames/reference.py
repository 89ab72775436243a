"""`read_reference`: labeled items from elsewhere, by what is said of the columns of these items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fewlabels.frames.options import ColumnOptions, column_options
from fewlabels.frames.read import column_names, read_predictions
from fewlabels.predictions import Predictions


def read_reference(source: Any, positive: Any = None, **columns: Any) -> Predictions:
    """Read reference data by the column options of other data, as far as its columns have them.

    A last month's file may lack a classifier, the weight or the domain that this month's has; what
    the options say of those is then left out.

    Parameters
    ----------
    source
        As in `read_predictions`.
    positive
        The positive class of the other data; it says what scores are scores of.
    columns
        What is said of the columns of the other data, as in `read_predictions`.

    Raises
    ------
    InputError, UsageError
        As in `read_predictions`.
    """
    options = column_options(**columns)
    if options == ColumnOptions():
        return read_predictions(source, positive=positive, keep=())
    kept = _of_columns(options, column_names(source))
    return read_predictions(source, columns=kept.to_dict(), positive=positive, keep=())


def _of_columns(options: ColumnOptions, names: Sequence[str]) -> ColumnOptions:
    """The options without those whose columns are not there; the label's stays."""

    def there(mapped: Mapping[str, str]) -> dict[str, str]:
        return {name: column for name, column in mapped.items() if column in names}

    return replace(
        options,
        item=options.item if options.item in names else None,
        domain=options.domain if options.domain in names else None,
        weight=options.weight if options.weight in names else None,
        models={m: c for m, c in options.models.items() if any(one in names for one in c)},
        hard=there(options.hard),
        scores=there(options.scores),
        confidence=there(options.confidence),
        votes=there(options.votes),
    )
