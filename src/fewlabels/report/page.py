"""A document as a page of HTML that needs no other file, or as a part of another page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fewlabels.errors import decides
from fewlabels.report.document import Document, Section, parted, pieces, shown, unmarked
from fewlabels.report.html import environment, kicker, provenance, weighed

if TYPE_CHECKING:
    from markupsafe import Markup


def render_page(document: Document, *, fragment: bool = False) -> str:
    """The page, or with `fragment` its answer and body for a page of somebody else.

    All texts are escaped, control characters included; a content security policy forbids requests,
    and all scripts but the one of every page.
    """
    parts = [*shown([*document.body, *(() if fragment else document.more)], "page")]
    sections = [one for one in parts if isinstance(one, Section)]
    # All warnings of the kind that decides stand together.
    noted = document.noted
    notes = weighed(noted)
    gravest = notes.pop(0) if noted and decides(noted[0]) else None
    return (
        environment()
        .get_template("part.html.j2" if fragment else "document.html.j2")
        .render(
            document=document,
            body=parts,
            report=document.report,
            kicker=kicker(),
            provenance=provenance(document.report),
            notes=notes,
            sections=sections,
            anchors=_anchors(sections),
            gravest=gravest,
        )
        .strip()
    )


def marked(sentence: object) -> Markup:
    """A sentence as markup: its names are set apart, what matters is bold, what is typed is code.

    Nothing else in it is markup.
    """
    from markupsafe import Markup

    as_markup = {
        "": "{}".format, "name": environment().globals["name"],
        "strong": Markup("<strong>{}</strong>").format, "typed": Markup("<code>{}</code>").format,
    }  # fmt: skip
    return Markup().join(as_markup[kind](text) for kind, text in pieces(sentence))  # type: ignore[operator]


def cell(text: object) -> Markup:
    """A cell of a table as markup: its number, and softer the interval."""
    from markupsafe import Markup

    number, ends = parted(str(text))
    return marked(number) + (Markup(' <span class="soft">{}</span>').format(ends) if ends else "")


def _anchors(sections: Sequence[Section]) -> dict[int, str]:
    """The ids of sections, by what Python knows them by: from their titles, all distinct."""
    out: dict[int, str] = {}
    for part in sections:
        plain = "".join(c if c.isalnum() else " " for c in unmarked(part.title).lower())
        wanted = "-".join(plain.split()) or "part"
        again = sum(made.split("~")[0] == wanted for made in out.values())
        out[id(part)] = f"{wanted}~{again + 1}" if again else wanted
    return out
