"""How results look where nobody asked for more: briefly in Python, as part of a page in notebooks.

Words and markup are those of the room `report`, from the same dictionary as its reports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar


class Shown(ABC):
    """A result with a summary, of which `repr` gives the first lines and a notebook all.

    Attributes
    ----------
    _page
        Whose templates a notebook shows; None: the summary as it is.
    """

    _page: ClassVar[str | None] = None

    @abstractmethod
    def summary(self, width: int = 80) -> str:
        """The answer as text."""

    def _reported(self) -> Mapping[str, Any]:
        """The dictionary that a page is made from."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        from fewlabels.report.brief import brief_summary

        return brief_summary(type(self).__name__, self.summary)

    def _repr_html_(self) -> str:
        from fewlabels.report.fragment import render_fragment, summary_fragment

        if self._page is None:
            return summary_fragment(self.summary(width=100))
        return render_fragment(self._page, self._reported())


class Estimated(Shown):
    """A result of many estimates, of which `repr` gives the first rows."""

    @abstractmethod
    def _in_brief(self) -> Mapping[str, Any]:
        """The estimates and what they are of, in plain values."""

    def __repr__(self) -> str:
        from fewlabels.report.brief import brief_estimates

        return brief_estimates(type(self).__name__, self._in_brief())
