"""Style sheets of the pages, so that they hold within one element of another page alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_ELEMENT = "div.fewlabels"
_PIXELS = 14
"""Of a rem: those of the page around may be any size."""

_DARK = "prefers-color-scheme: dark"
_THEMES = {
    True: ('body[data-jp-theme-light="false"]', "body.vscode-dark", 'html[theme="dark"]'),
    False: ('body[data-jp-theme-light="true"]', "body.vscode-light", 'html[theme="light"]'),
}
"""How notebooks (Jupyter, VS Code, Colab) say that they are dark, whatever the system is."""

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_REM = re.compile(r"(\d*\.?\d+)rem\b")
_COMMA = re.compile(r",(?![^()]*\))")


@lru_cache(maxsize=16)
def scoped(css: str) -> str:
    """The rules of a style sheet for what is inside the element; none for print.

    What a page says of its root and body is said of the element. Its two sets of colours follow
    the system, and before it the theme of the notebook.
    """
    return "\n".join(_rules(_COMMENT.sub("", css), dark=False))


def _rules(css: str, *, dark: bool) -> Iterator[str]:
    for selector, body in _blocks(css):
        if not selector.startswith("@"):
            yield _rule(selector, body, dark=dark)
        elif "print" not in selector:
            inner = "\n".join(_rules(body, dark=_DARK in selector))
            yield f"{selector} {{\n{inner}\n}}"
            if _DARK in selector:
                yield from _themes(body, dark=True)
    if not dark:
        yield from _themes(css, dark=False)


def _themes(css: str, *, dark: bool) -> Iterator[str]:
    """Colours as the notebook's theme asks for them."""
    for selector, body in _blocks(css):
        if selector == ":root":
            places = ", ".join(f"{theme} {_ELEMENT}" for theme in _THEMES[dark])
            yield f"{places} {{{body}}}"


def _rule(selector: str, body: str, *, dark: bool) -> str:
    inside = (part.strip() for part in _COMMA.split(selector))
    own = {":root", "body", "html"}
    places = (_ELEMENT if part in own else f"{_ELEMENT} {part}" for part in inside)
    sized = _REM.sub(lambda rem: f"{float(rem[1]) * _PIXELS:g}px", body)
    return f"{', '.join(places)} {{{sized}}}"


def _blocks(css: str) -> Iterator[tuple[str, str]]:
    """Selectors (or rules that begin with @) and what is between their outermost braces."""
    depth = start = opened = 0
    for place, character in enumerate(css):
        if character == "{":
            depth += 1
            if depth == 1:
                opened = place
        elif character == "}":
            depth -= 1
            if depth == 0:
                yield " ".join(css[start:opened].split()), css[opened + 1 : place]
                start = place + 1
