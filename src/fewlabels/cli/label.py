"""`fewlabels label FILE`: a page, or this terminal, to label in, with the estimate beside it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import click

from fewlabels.cli.files import write_outputs
from fewlabels.cli.input import Input, Settings
from fewlabels.cli.interrupts import advise
from fewlabels.cli.options import (
    CHOICE,
    HOW,
    INPUT,
    OUTPUT,
    RUNNING,
    Record,
    also_named,
    comma_list,
    command,
    option,
    takes,
)
from fewlabels.cli.output import (
    Output,
    print_warnings,
    width,
)
from fewlabels.errors import UsageError, one_line

if TYPE_CHECKING:
    from fewlabels.labeling.session import Session

_LINES = 4_000


class LabelOptions(Record):
    """What `fewlabels label` shows, asks and writes."""

    show: tuple[str, ...] = option(
        INPUT, "Columns to show of an item, side by side. By default those of text.", "A,B,..", ()
    )
    images: str | None = option(
        INPUT,
        "Folder of the pictures that are named in the columns shown.",
        "FOLDER",
        file="pictures",
        rare=True,
    )
    metrics: str = option(
        CHOICE,
        "What to estimate beside the items. By default accuracy, or roc_auc for scores.",
        "A,B,..",
        "",
        show_default=False,
    )
    until: tuple[str, ...] = option(
        CHOICE,
        "Say when labeling can stop: 'low:accuracy>=0.8' (of every classifier; of one "
        "low:MODEL:accuracy), 'high:error_rate<=0.2', 'width:accuracy<=0.1'.",
        "'BOUND:METRIC>=X'",
        (),
    )
    order: Literal["random", "stratified", "informative"] = option(
        HOW, "How the next item is drawn; its probability is in the record.", default="random"
    )
    see_predictions: bool = option(
        HOW, "Show the classifiers' predictions; the record notes it.", default=False
    )
    markdown: bool = option(HOW, "Show texts as Markdown.", default=False, rare=True)
    labels: str | None = option(
        OUTPUT,
        "The record to which every decision is added. By default FILE.labels.jsonl.",
        "FILE",
        file="record",
    )
    annotator: str | None = option(
        OUTPUT, "Name of who labels. By default the login name.", "NAME", rare=True
    )
    terminal: bool = option(RUNNING, "Label in this terminal, without a page.", default=False)
    no_browser: bool = option(
        RUNNING, "Print the page's address, and open no browser.", default=False, rare=True
    )
    port: int = option(
        RUNNING,
        "Port of the page, on this machine only; 0 takes a free one.",
        default=0,
        at_least=0,
        rare=True,
    )


@command(short_help="Label in the browser, with the estimate beside it.")
@takes(
    "source",
    Input,
    without=("reference", "votes", "duplicates", "annotator", "answer", "labels", "labels_as"),
    positive={"rare": True},
    items="Column that names the items; each must have a name of its own.",
)
@takes(
    "settings",
    Settings,
    "options",
    "confidence_level",
    "seed",
    method="Of the estimates beside the page, and of the order `informative`.",
)
@takes("options", LabelOptions)
@takes(
    "output",
    Output,
    "raw_cells",
    out="Write FILE with the labels of the record in it, and open no page; .csv or .parquet.",
)
def label(source: Input, settings: Settings, options: LabelOptions, output: Output) -> None:
    """Open a page to label the items of FILE in, with the estimate beside it.

    Every decision is in the record before the page says "saved"; FILE stays as it is, and any
    command takes the record by --labels. Ctrl-C, or "Finish" on the page, ends it; the same command
    goes on.
    """
    from fewlabels.labeling.session import SessionOptions, open_session, record_path

    record = record_path(source.file, options.labels)
    also_named("--labels", str(record), "record")
    if output.out is not None:
        _join(source, record, output)
        return
    arguments = settings.arguments("method", "confidence_level")
    if not options.terminal:
        from fewlabels.labeling.server import check_installed

        check_installed()
    wishes = SessionOptions(
        show=comma_list(options.show, verbatim=source.column_names()) or None,
        images=options.images,
        metrics=comma_list(options.metrics),
        until=options.until,
        order=options.order,
        annotator=options.annotator,
        see_predictions=options.see_predictions,
        seed=settings.seed,
        columns={"item": source.item, "positive": source.positive, **source.arguments()},
        **arguments,
    )
    session = open_session(source.place, record, wishes)
    print_warnings(session.journal.notes)
    advise(lambda: f"; {session.journal.whereabouts()}")
    try:
        (_in_terminal if options.terminal else partial(_on_page, options=options))(session)
    finally:
        session.close()


def _on_page(session: Session, options: LabelOptions) -> None:
    from fewlabels.labeling.server import Server

    server = Server(session, port=options.port, markdown=options.markdown)
    with ExitStack() as opened:
        opened.callback(server.close)
        server.start()
        progress = session.progress()
        labeled = progress["labeled"] + progress["known"]
        click.echo(f"{progress['items']:,} items, {labeled:,} labeled")
        click.echo(f"Record {one_line(str(session.journal.path))}")
        click.echo(f"Label at {server.url}")
        click.echo('End with "Finish" on the page, or Ctrl-C here.')
        sys.stdout.flush()
        if not options.no_browser and _has_windows():
            import webbrowser

            webbrowser.open(opened.enter_context(redirect(server.url)))
        server.finished.wait()
    _say_goodbye(session)


@contextmanager
def redirect(url: str) -> Iterator[str]:
    """The address of a file that leads to another one, and that only this user can read.

    Any user of the machine can see the arguments of a program, so the token is not among them.
    """
    with TemporaryDirectory(prefix="fewlabels-") as folder:
        path = Path(folder) / "label.html"
        content = f'<meta http-equiv="refresh" content="0; url={url}"><title>fewlabels</title>\n'
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"<!DOCTYPE html>\n{content}")
        yield path.as_uri()


def _has_windows() -> bool:
    """Whether a browser would have a window; without, one for terminals would take this one."""
    named = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return named or sys.platform in ("darwin", "win32")


def _in_terminal(session: Session) -> None:
    from fewlabels.labeling.terminal import Terminal

    def key() -> str:
        if sys.stdin.isatty():
            return click.getchar()
        line = sys.stdin.readline(_LINES)
        return line.strip() or ("" if not line else "again")

    def line(prompt: str) -> str:
        click.echo(prompt, nl=False)
        return sys.stdin.readline(_LINES).strip()

    session.start()
    Terminal(session, key, line, click.echo, width()).run()
    _say_goodbye(session)


def _say_goodbye(session: Session) -> None:
    click.echo(session.journal.whereabouts())


def _join(source: Input, record: Path, output: Output) -> None:
    """Write the table of FILE with the labels in it."""
    from fewlabels.data.write import table_kind, write_joined

    arguments: dict[str, Any] = source.arguments()
    out, n_joined, notes = output.out or "", 0, tuple[str, ...]()
    kind = table_kind(out)

    def write(path: Path) -> None:
        nonlocal n_joined, notes
        n_joined, notes = write_joined(
            source.place,
            record,
            path,
            kind,
            item=source.item,
            label=arguments["label"],
            raw=output.raw_cells,
        )

    if source.file is None:
        raise UsageError("name the file that the labels are of")
    write_outputs({out: write})
    print_warnings(notes)
    click.echo(f"{n_joined:,} labels of {one_line(str(record))} joined\n\nTable: {one_line(out)}")
