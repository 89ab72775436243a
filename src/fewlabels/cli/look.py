"""Looking at inputs and methods: `fewlabels doctor`, `convert` and `methods`."""

from __future__ import annotations

import io
from dataclasses import asdict
from functools import partial
from typing import Any

import click

from fewlabels import __version__
from fewlabels.cli.files import table_writer, write_outputs
from fewlabels.cli.input import Engine, Input, Settings
from fewlabels.cli.options import CHOICE, OUTPUT, Record, command, method_names, option, takes
from fewlabels.cli.output import Output, print_warnings, progress_bar, width
from fewlabels.errors import UsageError, one_line


@command(short_help="What is in a file, what is wrong and how to fix it.")
@takes("source", Input, without=("reference",))
@takes("output", Output, "json", "write")
@takes("settings", Settings, "workers", workers="Threads that read large files in parts.")
@takes("engine", Engine, "engine", "scheduler")
def doctor(source: Input, engine: Engine, settings: Settings, output: Output) -> None:
    """Say what each column of FILE is, what is wrong with it and how to fix it.

    The exit code is 2 if `fewlabels estimate` would refuse the file, else 0.
    """
    streamed = engine.streams(source)
    if streamed is None:
        from fewlabels.data.doctor.diagnose import diagnose

        diagnosis = diagnose(**source.reading())
    else:
        from fewlabels.streaming.diagnose_files import diagnose_files

        diagnosis = engine.run(diagnose_files, streamed, source, workers=settings.workers)

    recognised = {"write": lambda: source.to_toml() + diagnosis.columns} if diagnosis.ok else {}
    output.save_all(diagnosis.to_dict, **recognised)
    output.show(diagnosis.to_dict, diagnosis.summary, named=False)
    if not diagnosis.ok:
        error = next(f.what for f in diagnosis.findings if f.severity == "error")
        raise UsageError(f"`fewlabels estimate` refuses {source.name!r}: {error}")


class Target(Record):
    """What `fewlabels convert` writes."""

    out: str | None = option(OUTPUT, metavar="OUT", file="table", positional=True, type=str)


@command(short_help="Turn a log, or any file, into a table with native columns.")
@takes("source", Input, without=("reference",))
@takes("target", Target)
@takes("output", Output, "raw_cells")
def convert(source: Input, target: Target, output: Output) -> None:
    """Write what FILE holds as OUT, a table of the native columns (label, y__, p__, ...).

    OUT ends in .csv or .parquet. A log of an evaluation tool becomes a row per item.
    """
    from fewlabels.data.write import native_columns

    if target.out is None:
        raise click.UsageError("Missing argument 'OUT'", click.get_current_context())
    with progress_bar("reading"):
        predictions = source.read(None)
    columns = native_columns(predictions)
    if not columns:
        raise UsageError("there is nothing to write")
    write_outputs({target.out: table_writer(target.out, lambda: columns, raw=output.raw_cells)})
    click.echo(predictions.summary(width()))
    click.echo(f"\nTable: {one_line(target.out)}")
    print_warnings(predictions.notes)


class Which(Record):
    """The method to describe; None: all."""

    method: str | None = option(CHOICE, metavar="[NAME]", positional=True)


@command(short_help="What methods there are, what each assumes, and its settings.")
@takes("which", Which)
@takes("output", Output, "json")
def methods(which: Which, output: Output) -> None:
    """List the methods, or say of NAME how it works, what it assumes, and what can be set."""
    from fewlabels.methods.registry import named

    registered = method_names()
    name = None if which.method is None else named(which.method, registered)
    report = _about(name) if name is not None else {"methods": [_about(m) for m in registered]}
    report = {"fewlabels": __version__, **report}
    output.save_all(lambda: report)
    show = partial(_table, report["methods"]) if name is None else partial(_page, report)
    output.show(lambda: report, show, named=False)


def _about(name: str) -> dict[str, Any]:
    """Description of a method, as plain values."""
    from fewlabels.methods.registry import AUTO, METHODS
    from fewlabels.methods.settings import settings_of

    if name == "auto":
        return {"name": name, "summary": AUTO, "settings": []}
    method = METHODS[name]
    facts = asdict(method) | {"needs": sorted(method.needs)}
    for key in ("model", "exempt"):
        del facts[key]
    settings = [
        {"name": s.name, "values": s.values, "default": s.default, "meaning": s.meaning}
        for s in settings_of(name).values()
    ]
    return facts | {"settings": settings}


_STREAMS = {"rows": "every row", "sample": "a sample"}


def _table(about: list[dict[str, Any]], width: int) -> str:
    """A row per method."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("method", no_wrap=True)
    table.add_column("what it is", ratio=1)
    table.add_column("learns from", max_width=len("probabilities"))
    table.add_column("streams", max_width=len("every row"))
    for one in about:
        learns, streams = one.get("learns_from", ""), _STREAMS.get(one.get("streams", ""), "")
        table.add_row(one["name"], one["summary"], learns, streams)
    text = io.StringIO()
    Console(file=text, width=width, color_system=None).print(table)
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    lines.append("`fewlabels methods NAME` says how one works, what it assumes, and its settings.")
    return "\n".join(lines)


def _page(about: dict[str, Any], width: int) -> str:
    """Everything about one method."""
    from fewlabels.methods.settings import shown

    page = click.HelpFormatter(width=width, max_width=width)
    page.write_text(f"{about['name']}: {about['summary']}.")
    if "how" in about:
        page.write_paragraph()
        page.write_text(about["how"])
        for head, key in (("Assumes", "assumes"), ("Fails when", "fails_when")):
            with page.section(head):
                page.write_dl([("-", sentence) for sentence in about[key]], col_spacing=1)
        with page.section("Facts"):
            rest = "" if about["serves"] == "all metrics" else "; metrics that are means only"
            needs = f"; needs {' and '.join(about['needs'])}" if about["needs"] else ""
            page.write_dl(
                [
                    ("learns from", about["learns_from"] + needs + rest),
                    ("streams", f"it answers for {_STREAMS[about['streams']]}"),
                    ("chosen by score", about["chosen_by_score"]),
                    ("source", about["source"]),
                ]
            )
    with page.section("Settings"):
        # Settings that are explained together stand together.
        together: dict[str, list[dict[str, Any]]] = {}
        for setting in about["settings"]:
            together.setdefault(setting["meaning"], []).append(setting)
        rows = []
        for meaning, alike in together.items():
            values = "; ".join(dict.fromkeys(s["values"] for s in alike))
            names = ", ".join(f"{s['name']}={shown(s['default'])}" for s in alike)
            rows.append((names, f"{' '.join(meaning.split())} [{values}]"))
        page.write_dl(rows or [("none", "")], col_max=26)
    if together:
        example = together[next(iter(together))][0]
        page.write_paragraph()
        page.write_text(
            f"As in: fewlabels estimate FILE --method {about['name']} --option "
            f"{example['name']}={shown(example['default'])}"
        )
    return page.getvalue().rstrip()
