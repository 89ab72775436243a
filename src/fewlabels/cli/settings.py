"""How an answer is computed: the options that commands share, in the words of the library."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fewlabels.cli.declare import option
from fewlabels.cli.text import check_choice, comma_list

if TYPE_CHECKING:
    from fewlabels.cli.options import Input


@dataclass(frozen=True)
class Settings:
    """Method, groups, classifiers, intervals, randomness; each command takes some of them."""

    method: str = option(
        "How labels are inferred; `fewlabels estimate --help` lists the methods.", default="auto"
    )
    by: tuple[str, ...] = option("By group too. Repeatable.", metavar="COL", multiple=True)
    models: str | None = option("Only these classifiers.", metavar="A,B,..")
    confidence_level: float = option(
        "Probability that an interval is meant to hold the truth.", type=float, default=0.95
    )
    estimand: str = option(
        "The population the items come from, or these very items.",
        type=click.Choice(["population", "sample"]),
        default="population",
    )
    seed: int = option(
        "Seed of whatever is random; the same seed gives the same answer.",
        type=click.IntRange(min=0),
        default=0,
    )
    workers: int | None = option("Threads; the answer is the same.", type=click.IntRange(min=1))

    def arguments(self, *names: str) -> dict[str, Any]:
        """Some of the settings as keyword arguments of the library, which calls a seed otherwise.

        Examples
        --------
        >>> Settings(seed=3).arguments("method", "random_state")
        {'method': 'auto', 'random_state': 3}
        """
        known = {**vars(self), "random_state": self.seed}
        return {name: known[name] for name in names}

    def check_method(self, reference: str | None = None) -> None:
        """Refuse an unknown method, or one that takes no reference, before a file is read."""
        from fewlabels.methods.registry import check_reference

        check_choice("method", self.method, method_names())
        check_reference(self.method, reference)

    def groups(self, source: Input) -> list[str]:
        """Columns to group by; a name may hold a comma where a file has such a column."""
        return comma_list(self.by, whole=source.column_names()) if self.by else []

    def chosen(self, known: Collection[str] = ()) -> list[str] | None:
        """The classifiers that --models names; None: all."""
        return None if self.models is None else comma_list(self.models, whole=known)


def method_names() -> list[str]:
    """All methods, the default first."""
    from fewlabels.methods.registry import METHODS

    return ["auto", *(name for name in METHODS if name != "auto")]
