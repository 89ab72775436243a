"""A page, read: elements, attributes and text."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "br"}
BLOCKS = {"br", "div", "p", "h1", "h2", "h3", "li", "dt", "dd", "th", "td", "tr", "summary"}
LINES = BLOCKS - {"th", "td"}


class Page(HTMLParser):
    """Elements, attributes and text of a page; complains where a tag is not closed."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.prose: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.text.append(" " if tag in BLOCKS else "")
        self.prose.append("\0" if tag in LINES else " ")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] not in (["style"], ["script"]):
            self.text.append(data)
            self.prose.append("" if "svg" in self._open else data)

    @property
    def words(self) -> str:
        """All text in one line."""
        return " ".join("".join(self.text).split())

    @property
    def lines(self) -> str:
        """The text outside of pictures, in the lines of its elements."""
        found = (" ".join(part.split()) for part in "".join(self.prose).split("\0"))
        return "\n".join(part for part in found if part)

    def count(self, tag: str, kind: str = "") -> int:
        """How many elements there are of a tag, and of a class."""
        return sum(
            t == tag and (not kind or kind in (a.get("class") or "").split())
            for t, a in self.elements
        )
