"""Sentences that people read are short: in messages, help, texts and pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import click
import pytest
from test_rooms import SOURCE, modules, tree

from fewlabels.cli.app import app

MOST_WORDS = 25
_END = re.compile(r"(?<=[.!?;:])\s+|\n\s*(?:\n|-)")
_NO_SENTENCES = {"checks/class_words.py", "data/databases.py"}
"""Files whose texts are lists of words, and queries."""


def long_sentences(text: str) -> list[str]:
    """Sentences, and parts of them between colons and semicolons, of too many words."""
    parts = _END.split(text)
    return [part for part in parts if len(re.findall(r"[A-Za-z][\w'-]*", part)) > MOST_WORDS]


def literals(module: ast.Module) -> Iterator[str]:
    """Texts of a module with a word for each expression in them; docstrings are none."""
    whole = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr):
            whole |= {id(part) for part in node.values}
            yield "".join(str(p.value) if isinstance(p, ast.Constant) else "x" for p in node.values)
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in whole
        ):
            yield node.value


def test_in_messages_and_texts() -> None:
    long = {
        path.relative_to(SOURCE).as_posix(): found
        for path in modules()
        if path.relative_to(SOURCE).as_posix() not in _NO_SENTENCES
        and (found := [part for text in literals(tree(path)) for part in long_sentences(text)])
    }
    assert long == {}


def test_in_pages() -> None:
    markup = re.compile(r"{#.*?#}|{%.*?%}|<[^>]*>", re.DOTALL)
    for path in sorted((SOURCE / "report" / "templates").glob("*.j2")):
        text = markup.sub("\n\n", path.read_text(encoding="utf-8"))
        assert long_sentences(re.sub(r"{{.*?}}", "x", text)) == [], path.name


@pytest.mark.parametrize("name", sorted(app.commands))
def test_in_help(name: str) -> None:
    command = app.commands[name]
    options = command.get_params(click.Context(command))
    texts = [command.help or "", command.epilog or ""]
    texts += [getattr(option, "help", "") or "" for option in options]
    assert [part for text in texts for part in long_sentences(text)] == []
