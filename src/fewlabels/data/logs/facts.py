"""Verdicts by a table of paths: `tools.toml` says where a log holds who says what of an item."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from fewlabels.data.cells import named_values
from fewlabels.data.logs.record import CODE, GOLD, MODEL, PERSON, Log, Verdict, time_text
from fewlabels.data.table import class_text, group_text, number_of
from fewlabels.errors import quoted

Scope = Mapping[str, Any]
"""What paths begin with: the fields of an item, the names of what is gone through, and `file`."""

_REFERENCE = re.compile(r"\{([^{}]*)\}")
_MOST_CLASSES = 20
"""More of what is right than this are answers in free words, as of sums."""


@cache
def tools() -> Mapping[str, Mapping[str, Any]]:
    """The tables of `tools.toml`, by the names that --format takes."""
    return {name: tool for name, tool in _tables().items() if name != "kinds"}


@cache
def _tables() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(files("fewlabels.data.logs").joinpath("tools.toml").read_text("utf-8"))


@cache
def kind_of(written: str) -> str | None:
    """The kind of an author by the word for it."""
    word = fold(written)
    return next((kind for kind, words in _tables()["kinds"].items() if word in words), None)


@cache
def fold(name: str) -> str:
    """A name without case and separators: `traceId`, `trace_id`."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def _alternatives(path: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """A text itself, or the first field and those within."""
    return tuple(
        (one[1:], ("=",)) if one.startswith("=") else (one.split(".")[0], tuple(one.split(".")[1:]))
        for one in path.split("|")
    )


def at(scope: Mapping[str, Any], path: str) -> Any:
    """The first value that there is on a path; None, and the empty text, are none."""
    for first, within in _alternatives(path):
        if within == ("=",):
            return first
        value: Any = scope.get(first)
        for key in within:
            if isinstance(value, dict):
                value = list(value.values()) if key == "*" else value.get(key)
            else:
                inside = isinstance(value, list) and key.isdigit() and int(key) < len(value)
                value = value[int(key)] if inside else None
        if value is not None and value != "":
            return value
    return None


def facts(
    documents: Iterable[Any], tool: Mapping[str, Any], file: Mapping[str, str], log: Log
) -> Iterator[Verdict]:
    """What a log says of each item, by the paths of its tool."""
    warned: Counter[tuple[int, bool]] = Counter()
    if log.tool in _SHAPED:
        documents = _SHAPED[log.tool](documents, log)
    for row, document in enumerate(documents, start=1):
        if tool.get("folded"):
            document = {fold(name): value for name, value in named_values(document)}
        scope = {**document, "file": {**file, "row": f"row {row}"}}
        if row == 1 and "about" in tool:
            log.about.append(_filled(tool["about"], scope))
        item = _text(scope, tool["item"])
        if item is None:
            if "noun" in tool:
                raise log.unknown(_lacks(tool["noun"], tool["item"]))
            log.left["rows have no item and are left out"] += 1
            continue
        item = f"{log.before if tool.get('of_run') else ''}{item}"
        if tool.get("again"):
            item = log.distinct(item)
        if tool.get("once"):
            log.once(item, f"the {tool['noun']}")
        log.show(
            item, **{name: _shown(at(scope, path)) for name, path in tool.get("texts", {}).items()}
        )
        cluster = _text(scope, tool["cluster"]) if "cluster" in tool else None
        if cluster is not None and tool.get("of_run"):
            cluster = f"{log.before}{cluster}"
        for k, fact in enumerate(tool["facts"]):
            first = True
            for inner in _each(scope, fact, 0, log):
                first = False
                if inner is not None:
                    yield from _verdicts(inner, fact, item, cluster, log)
                    warned[k, "warn" in fact and _is(inner, fact.get("warn_of", {}))] += 1
            if first and "empty" in fact:
                log.left[fact["empty"]] += 1
    for k, fact in enumerate(tool["facts"]):
        if number := warned[k, True]:
            total = number + warned[k, False]
            log.warnings.append(f"{number:,} of {total:,} {fact['warn']}")


def _each(scope: Scope, fact: Mapping[str, Any], level: int, log: Log) -> Iterator[Scope | None]:
    """What a fact goes through, one in another; None for what is left out."""
    each = fact.get("each", ())
    name = each[level - 1].partition(" = ")[0].rpartition(", ")[2] if level else ""
    bound = [one.partition(" = ")[0].rpartition(", ")[2] for one in each] if "left" in fact else []
    for why, condition in fact.get("left", {}).items():
        first = next(iter(condition)).partition("|")[0].partition(".")[0]
        if (first if first in bound else "") == name and _is(scope, condition):
            log.left[why] += 1
            yield None
            return
    if level == len(each):
        if _is(scope, fact.get("when", {})):
            yield scope
        return
    names, _, path = each[level].partition(" = ")
    key_name, _, name = names.rpartition(", ")
    values = at(scope, path)
    if path.startswith("*"):
        ends = ((key.removesuffix(path[1:]), key) for key in scope if key.endswith(path[1:]))
        values = {key: scope[whole] for key, whole in ends if isinstance(scope[whole], Mapping)}
    if values is None and "need" in fact and not level:
        raise log.unknown(_lacks(fact["need"], path))
    if values is not None and not isinstance(values, list | dict):
        raise log.unknown(f"{quoted(path)} is {quoted(values)}")
    pairs = values.items() if isinstance(values, dict) else enumerate(values or ())
    for key, value in pairs:
        yield from _each({**scope, name: value, key_name or "number": key}, fact, level + 1, log)


def _is(scope: Scope, condition: Mapping[str, Any]) -> bool:
    """Whether what paths lead to is what is wanted."""
    for path, wanted in condition.items():
        found = at(scope, path)
        if wanted == "*":
            holds = found is not None and found is not False
        elif wanted == "":
            holds = found is None
        elif wanted == "#":
            holds = isinstance(found, int)
        else:
            holds = found in wanted if isinstance(wanted, list) else found == wanted
        if not holds:
            return False
    return True


def _verdicts(
    scope: Scope, fact: Mapping[str, Any], item: str, cluster: str | None, log: Log
) -> Iterator[Verdict]:
    criterion = _text(scope, fact["criterion"])
    if criterion is None:
        if "each" in fact:
            raise log.unknown(_lacks(fact["criterion"].partition(".")[0], fact["criterion"]))
        log.left["rows have no name and are left out"] += 1
        return
    written = at(scope, fact["kind"])
    kind = kind_of(str(written))
    for other in (PERSON, GOLD):
        if other in fact and _is(scope, fact[other]):
            kind = other
    if kind is None:
        log.unknown_kinds[str(written)] += 1
        return
    value = at(scope, fact["value"])
    if isinstance(value, list) and len(value) > 1:
        log.left[
            fact.get("several", "verdicts are several things at once, which are no class")
        ] += 1
        return
    if isinstance(value, list):
        value = value[0] if value else None
        value = " / ".join(map(str, value)) if isinstance(value, list) else value
    if value is None and "lacking" in fact:
        log.left[fact["lacking"]] += 1
        return
    if "words" in fact:
        value = fact["words"].get(class_text(value), value)
    author = _text(
        scope, fact.get("judge", fact["author"]) if kind in (MODEL, CODE) else fact["author"]
    )
    if author is None and kind in (MODEL, CODE):  # known by what it judges
        author = criterion
    score = at(scope, fact["score"]) if "score" in fact else None
    score = number_of(score) - fact["less"] if "less" in fact else score
    time = time_text(at(scope, fact["time"])) if "time" in fact else None
    yield Verdict(item, criterion, kind, author, value, score, time, cluster)


def _text(scope: Scope, paths: str | list[str]) -> str | None:
    """A name: what is on a path, or on several, joined."""
    if isinstance(paths, str):
        value = at(scope, paths)
        return value if value is None or isinstance(value, str) else group_text(value)
    return " ".join(filter(None, (_text(scope, path) for path in paths))) or None


def _filled(text: str, scope: Scope) -> str:
    return _REFERENCE.sub(lambda match: str(at(scope, match[1])), text)


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return " | ".join(str(v) for v in value if isinstance(v, str | int | float))
    return value


def _lacks(noun: str, path: str | list[str]) -> str:
    first = path if isinstance(path, str) else path[0]
    field = first.partition("|")[0].rpartition(".")[2]
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun} has no field {quoted(field)}"


def are_classes(words: Sequence[Any], targets: Sequence[Any]) -> bool:
    """Whether answers are classes: what is right is one of few, as most of the answers are."""
    try:
        few = set(targets)
        right = sum(word in few for word in words)
    except TypeError:  # several answers that are right
        return False
    size = len(targets)
    return None not in few and 1 < len(few) <= min(_MOST_CLASSES, size / 2) and right >= size / 2


def _traces(documents: Iterable[Any], log: Log) -> Iterator[Any]:
    """Of MLflow: what stands in texts, and how often people corrected what a judge said."""
    for trace in documents:
        about = _parsed(trace.get("info", trace))
        assessments = _parsed(about.get("assessments")) or []
        judged = {
            one.get("assessment_id"): one.get("feedback") or {}
            for one in assessments
            if kind_of(str((one.get("source") or {}).get("source_type"))) in (MODEL, CODE)
        }
        for one in assessments:
            if "overrides" in one and one["overrides"] in judged:
                before, after = judged[one["overrides"]], one.get("feedback") or {}
                same = before.get("value") == after.get("value")
                what = "confirm" if same else "change"
                log.corrected[f"{what} {one.get('assessment_name')}"] += 1
        yield {**about, "assessments": assessments}


TOGETHER = "all assertions"
FOLLOWS = (
    f"{TOGETHER!r} follows from the single assertions and is no judge beside them: where labels "
    "are few, look at it alone (--models) or at them"
)


def _results(documents: Iterable[Any], log: Log) -> Iterator[Any]:
    """Of promptfoo: who each component is of; a person's thumb overwrites `pass` and `score`."""
    for result in documents:
        test, prompt = result.get("testIdx"), result.get("promptIdx")
        graded, shown = result.get("gradingResult") or {}, result.get("vars")
        shown = shown or (result.get("testCase") or {}).get("vars") or {}
        name = result.get("id") if test is None else f"test {test} prompt {prompt}"
        components, human = [], False
        for component in filter(None, graded.get("componentResults") or []):
            assertion = component.get("assertion") or {}
            kind = str(assertion.get("type") or "assertion")
            passed = log.need(component, "pass", "a component of a result")
            human |= kind == "human"
            models = tuple(tools()["promptfoo"]["by_model"])
            by = MODEL if kind.removeprefix("not-").startswith(models) else CODE
            about = {"kind": by, "name": str(assertion.get("metric") or kind)}
            if kind == "human":
                about = {"kind": kind, "name": "person"}
            components.append({**about, "pass": passed, "score": component.get("score")})
        verdicts = [bool(one["pass"]) for one in components if one["kind"] != "human"]
        if not human and str(graded.get("reason") or "").startswith("Manual result"):
            log.left[
                "results say 'Manual result' without the person's verdict among their components: "
                "they count as unlabeled, and what is called pass there is not used"
            ] += 1
        if len(verdicts) > 1:
            components.append({"kind": "code", "name": TOGETHER, "pass": all(verdicts)})
            if FOLLOWS not in log.warnings:
                log.warnings.append(FOLLOWS)
        elif human and not verdicts:
            log.left["labeled results have no assertion beside the person's: no judge there"] += 1
        yield {
            **result, "test": name, "components": components, "gradingResult": graded or None,
            "shown": ", ".join(map(str, shown.values())),
        }  # fmt: skip


def _parsed(value: Any) -> Any:
    """An object, also where it went through a file of text."""
    return json.loads(value) if isinstance(value, str) else value


def _responses(documents: Iterable[Any], _: Log) -> Iterator[Any]:
    """Of Argilla: flat rows (`to_list(flatten=True)`, data sets) as nested ones (`to_json`)."""
    for row in documents:
        if isinstance(row.get("responses"), Mapping):
            yield row
            continue
        answers: dict[str, list[Any]] = {}
        suggestions: dict[str, Any] = {}
        for key, value in row.items():
            question, _, what = key.rpartition(".")
            if what == "responses":
                each = [row.get(f"{key}.{of}") or [] for of in ("users", "status")]
                answers[question] = [
                    {"value": one, "user_id": user, "status": status}
                    for one, user, status in itertools.zip_longest(value or [], *each)
                ]
            elif what == "suggestion" and value is not None:
                agent, score = row.get(f"{key}.agent"), row.get(f"{key}.score")
                suggestions[question] = {"value": value, "agent": agent, "score": score}
        yield {**row, "responses": answers, "suggestions": suggestions}


_TURNED = {"A>B": "B>A", "B>A": "A>B"}


def _games(documents: Iterable[Any], _: Log) -> Iterator[Any]:
    """Of JudgeBench: what more games say, every second one with the answers turned round."""
    for pair in documents:
        said = [(game or {}).get("decision") for game in pair["judgments"]]
        said = [_TURNED.get(str(one), one) if k % 2 else one for k, one in enumerate(said)]
        first, second = said.count("A>B"), said.count("B>A")
        decision = "A>B" if first > second else "B>A" if second > first else "A=B"
        yield {**pair, "decision": decision if any(said) else None}


def _events(documents: Iterable[Any], log: Log) -> Iterator[Any]:
    """Of OpenAI evals: the events that compare an answer, each with what the run was."""
    spec: Any = {}
    events = []
    for event in documents:
        spec = event.get("spec", spec)
        if event.get("type") == "match":
            events.append({**event, **event.get("data", {}), "spec": spec})
    words = [one.get("picked") for one in events]
    if any("correct" not in one for one in events) or are_classes(
        words, [one.get("expected") for one in events]
    ):
        yield from events
        return
    log.about.append("answers in free words: whether they are right is the label")
    for event in events:
        right = "correct" if event["correct"] else "incorrect"
        yield {**event, "expected": right, "picked": "correct"}


_SHAPED: Mapping[str, Callable[[Iterable[Any], Log], Iterable[Any]]] = {
    "MLflow": _traces, "Argilla": _responses, "JudgeBench": _games, "OpenAI evals": _events,
    "promptfoo": _results,
}  # fmt: skip
