"""Labeling in a terminal: the same session, a key at a time, where there is no browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fewlabels.errors import UsageError
from fewlabels.labeling.journal import NotSavedError
from fewlabels.labeling.session import Session
from fewlabels.report.document import Node, Para, Role, Table, name, plain
from fewlabels.report.terminal import render_parts

HIDDEN_UNTIL = 5
"""With fewer labels no estimate is shown unless it is requested."""


class Terminal:
    """One item after another, as text.

    `read_key` gives the next key, or "" at the end of the input; `read_line` gives a line of text,
    such as a note, and `write` prints one. `width` is the terminal's, in columns.
    """

    def __init__(
        self,
        session: Session,
        read_key: Callable[[], str],
        read_line: Callable[[str], str],
        write: Callable[[str], None],
        width: int = 80,
    ) -> None:
        self.session, self.read_key, self.read_line = session, read_key, read_line
        self.write, self.width = write, width
        self._told = -1

    def run(self) -> None:
        """Go on until nothing is left to label, or the user quits."""
        self.write(self._keys())
        view = self._next()
        while view is not None:
            self._show(view)
            outcome: Any = "again"
            while outcome == "again":
                outcome = self._act(view)
            if outcome == "quit":
                return
            self._estimate(requested=False)
            view = outcome or self._next()
        self.write("Every item has a label, or nobody could say.")

    def _next(self) -> dict[str, Any] | None:
        queue = self.session.progress()["queue"]
        return queue[0] if queue else None

    def _act(self, view: dict[str, Any]) -> Any:
        """What a key does: the item to show, None for the next one, "again" or "quit"."""
        key = self.read_key()
        session, item = self.session, view["key"]
        classes = {k: name for name, keys in session.keys.items() for k in keys}
        try:
            if key in ("", "q", "\x03", "\x04"):
                return "quit"
            if key in classes or key == "s":
                label = classes.get(key)
                act = session.change if view["decided"] else session.decide
                act(item, label)
                self._say(f"saved: {name(label) if label else 'cannot say'}", "good")
                return None
            if key == "u":
                undone = session.undo()
                self._say(f"undone: {name(undone)}")
                return session.item(undone)
            if key in ("b", "\x1b[D"):
                return session.neighbour(item if view["decided"] else None, -1) or "again"
            if key in ("f", "\x1b[C"):
                return session.neighbour(item, 1) if view["decided"] else "again"
            if key == "n":
                session.note(item, self.read_line("note: "))
                self._say("saved", "good")
            elif key == "e":
                self._estimate(requested=True)
            elif key == "?":
                self.write(self._keys())
        except NotSavedError as error:
            self._say(f"NOT SAVED. {plain(error)}", "error")
        except UsageError as error:
            self._say(plain(error), "warning")
        return "again"

    def _say(self, text: str, role: Role = "") -> None:
        # A path is copied in one piece: the terminal breaks the line.
        self.write(render_parts([Para(text, role)], 2 * len(text)))

    def _keys(self) -> str:
        rows = [[" or ".join(keys) or "-", label] for label, keys in self.session.keys.items()]
        rows += [["s", "cannot say"], ["u", "undo"], ["b, f", "back and forward, to change"],
                 ["n", "note"], ["e", "estimate"], ["?", "these keys"], ["q", "quit"]]  # fmt: skip
        table = Table(["Key", "What it does"], rows, "Keys", "l", names=0)
        return render_parts([table], self.width)

    def _show(self, view: dict[str, Any]) -> None:
        progress = self.session.progress()
        done = progress["labeled"] + progress["cannot_say"]
        head = f"Item {name(view['key'])}" if view["decided"] else f"Item {done + 1}"
        if view["decided"]:
            head += f", labeled {name(view['label'])}" if view["label"] else ", cannot say"
        nodes = [Para(f"{head} ".ljust(self.width, "-"), "title")]
        for cell in view["cells"]:
            nodes += [Para(name(cell["column"]), "soft")] if len(view["cells"]) > 1 else []
            nodes += [Para(name(line)) for line in cell["text"].splitlines() or ["(empty)"]]
        nodes += [Para(f"{name(model)}: {name(answer)}") for model, answer in view["answers"]]
        nodes += [Para(f"note: {name(text)}") for text in view["notes"]]
        keys = self.session.keys.items()
        nodes.append(Para(", ".join(f"[{'/'.join(k)}] {name(label)}" for label, k in keys), "soft"))
        self.write("\n" + render_parts(nodes, self.width))

    def _estimate(self, *, requested: bool) -> None:
        """Print the estimates: current ones if `requested`, else those at hand."""
        progress = self.session.progress()
        if not requested and progress["labeled"] + progress["known"] < HIDDEN_UNTIL:
            return
        report = self.session.estimate(wait=requested)
        if report is None or (not requested and report["n"] == self._told):
            return
        self._told = report["n"]
        self.write(render_parts(estimate_parts(report), self.width))


def estimate_parts(report: dict[str, Any]) -> list[Node]:
    """The estimates of a session as parts of a document."""
    if report["problem"]:
        return [Para(plain(report["problem"]), "warning")]
    head = ["", f"after {report['n']} labels", "interval", "holds at every look"]
    rows = []
    for row in report["rows"]:
        low, high = row["guard_low"], row["guard_high"]
        rows.append([
            row["model"],
            f"{row['metric']} {_number(row['value'])}",
            f"{_number(row['low'])} to {_number(row['high'])}",
            "-" if low is None else f"{_number(low)} to {_number(high)}",
        ])  # fmt: skip
    chips = [row["status"] for row in report["rows"]]
    stops = [Para(plain(stop["why"])) for stop in report["stops"]]
    stop = [Para("You can stop.", "good")] if report["can_stop"] else []
    return [Table(head, rows, "Estimates", chips=chips), *stops, *stop]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
