"""Labeling in a terminal: the same session, a key at a time, where there is no browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fewlabels.errors import UsageError
from fewlabels.labeling.journal import NotSavedError
from fewlabels.labeling.session import Session
from fewlabels.report.words import aligned, escape_control, style, wrap

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
                self.write(
                    style(f"saved: {escape_control(label) if label else 'cannot say'}", "good")
                )
                return None
            if key == "u":
                undone = session.undo()
                self.write(f"undone: {escape_control(undone)}")
                return session.item(undone)
            if key in ("b", "\x1b[D"):
                return session.neighbour(item if view["decided"] else None, -1) or "again"
            if key in ("f", "\x1b[C"):
                return session.neighbour(item, 1) if view["decided"] else "again"
            if key == "n":
                session.note(item, self.read_line("note: "))
                self.write(style("saved", "good"))
            elif key == "e":
                self._estimate(requested=True)
            elif key == "?":
                self.write(self._keys())
        except NotSavedError as error:
            self.write(style(f"NOT SAVED. {error}", "error"))
        except UsageError as error:
            self.write(style(str(error), "warning"))
        return "again"

    def _keys(self) -> str:
        rows = [
            [" or ".join(keys) or "-", escape_control(name)]
            for name, keys in self.session.keys.items()
        ]
        rows += [["s", "cannot say"], ["u", "undo"], ["b, f", "back and forward, to change"],
                 ["n", "note"], ["e", "estimate"], ["?", "these keys"], ["q", "quit"]]  # fmt: skip
        return "\n".join(aligned(rows, "ll"))

    def _show(self, view: dict[str, Any]) -> None:
        progress = self.session.progress()
        done = progress["labeled"] + progress["cannot_say"]
        head = f"Item {escape_control(view['key'])}" if view["decided"] else f"Item {done + 1}"
        if view["decided"]:
            head += (
                f", labeled {escape_control(view['label'])}" if view["label"] else ", cannot say"
            )
        lines = ["", style(f"{head} ".ljust(self.width, "-"), "title")]
        for cell in view["cells"]:
            if len(view["cells"]) > 1:
                lines.append(style(escape_control(cell["column"]), "soft"))
            for line in cell["text"].splitlines() or ["(empty)"]:
                lines += wrap(line, self.width) if line.strip() else [""]
        lines += [
            f"{escape_control(model)}: {escape_control(answer)}"
            for model, answer in view["answers"]
        ]
        lines += [f"note: {escape_control(text)}" for text in view["notes"]]
        lines.append(style("  ".join(
            f"[{'/'.join(keys)}] {escape_control(name)}" for name, keys in self.session.keys.items()
        ), "soft"))  # fmt: skip
        self.write("\n".join(lines))

    def _estimate(self, *, requested: bool) -> None:
        """Print the estimates: current ones if `requested`, else those at hand."""
        progress = self.session.progress()
        if not requested and progress["labeled"] + progress["known"] < HIDDEN_UNTIL:
            return
        report = self.session.estimate(wait=requested)
        if report is None or (not requested and report["n"] == self._told):
            return
        self._told = report["n"]
        self.write(estimate_text(report))


def estimate_text(report: dict[str, Any]) -> str:
    """The estimates of a session as a few lines of text."""
    if report["problem"]:
        return style(report["problem"], "warning")
    rows = [["", f"after {report['n']} labels", "interval", "holds at every look", ""]]
    for row in report["rows"]:
        low, high = row["guard_low"], row["guard_high"]
        rows.append([
            escape_control(row["model"]),
            f"{escape_control(row['metric'])} {_number(row['value'])}",
            f"{_number(row['low'])} to {_number(row['high'])}",
            "-" if low is None else f"{_number(low)} to {_number(high)}",
            "" if row["status"] == "ok" else row["status"],
        ])  # fmt: skip
    lines = aligned(rows, "lrrrl")
    for stop in report["stops"]:
        lines.append(escape_control(stop["why"]))
    if report["can_stop"]:
        lines.append(style("You can stop.", "good"))
    return "\n".join(line.rstrip() for line in lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
