"""Output files, all of them or none, and `--require`."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import ClassVar

import pytest

from fewlabels.checks.conditions import parse_requirement
from fewlabels.cli.files import Named, Writer, check_files, json_text, text_writer, write_outputs
from fewlabels.cli.output import check_classifiers
from fewlabels.errors import InputError, Status, UsageError
from fewlabels.estimates import Estimate


def _json(value: dict[str, int]) -> Writer:
    return text_writer(lambda: json_text(value))


def test_none_is_written_when_one_fails(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(UsageError, match=r"cannot write .*No space left"):
        write_outputs({str(old): _json({"a": 1}), str(tmp_path / "new"): fail})
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_a_line_names_the_target_and_not_its_draft(tmp_path: Path) -> None:
    def refused(path: Path) -> None:
        raise InputError(f"cannot write {str(path)!r}: No space left on device; make room")

    target = str(tmp_path / "page.html")
    with pytest.raises(InputError) as caught:
        write_outputs({target: refused})
    assert str(caught.value) == f"cannot write {target!r}: No space left on device; make room"


def test_other_errors_leave_nothing_either(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_outputs({str(tmp_path / "new"): fail})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_device_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text("old")
    writers = {str(p): _json({}) for p in (old, tmp_path / "new", "/dev/full")}
    with pytest.raises(UsageError, match="cannot write '/dev/full': No space left on device"):
        write_outputs(writers)
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_what_took_its_place_is_put_back_when_a_later_one_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is a mount point, say, can be written and not replaced."""
    old, new, mounted = (str(tmp_path / name) for name in ("old", "new", "mounted"))
    Path(old).write_text("old")
    Path(mounted).write_text("theirs")
    Path(old).chmod(0o640)
    replace = os.replace

    def busy(source: str, target: str) -> None:
        if target == mounted:
            raise OSError(16, "Device or resource busy")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", busy)
        with pytest.raises(UsageError, match=r"cannot write '.*mounted': Device or resource busy"):
            write_outputs({path: _json({}) for path in (old, new, mounted)})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "old": "old",
        "mounted": "theirs",
    }
    assert Path(old).stat().st_mode & 0o777 == 0o640
    write_outputs({path: _json({}) for path in (old, new, mounted)})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        ("old", "new", "mounted"), "{}\n"
    )


def test_a_pipe_gets_the_bytes(tmp_path: Path) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    check_files([Named("--json", pipe, "written")])
    write_outputs({pipe: _json({"a": 1})})
    assert os.read(reader, 100) == b'{\n  "a": 1\n}\n'
    os.close(reader)


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "usual").write_text("")
    write_outputs({str(tmp_path / "new"): _json({})})
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_json_is_strict_and_plain() -> None:
    assert json.loads(json_text({"a": "ü\ud800"})) == {"a": "ü\ud800"}
    assert json_text({"a": "ü"}).isascii()
    with pytest.raises(ValueError, match="Out of range float"):
        json_text({"a": float("nan")})


def row(value: float, low: float = 0.0, high: float = 1.0) -> Estimate:
    return Estimate("m", "accuracy", None, value, low, high, 0.95, Status.OK)


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("accuracy>=0.5", True),
        ("accuracy>0.5", False),
        ("accuracy<=0.5", True),
        ("accuracy<.5", False),
        ("low:accuracy>=0.5", False),
        ("low:accuracy>=0.4", True),
        (" high : accuracy < 6e-1 ", False),
        ("high:accuracy<=0.6", True),
        ("accuracy>-1", True),
    ],
)
def test_comparisons(text: str, met: bool) -> None:
    assert parse_requirement(text).met_by(row(0.5, 0.4, 0.6)) is met


@pytest.mark.parametrize("compare", [">=", ">", "<=", "<"])
def test_nan_never_passes(compare: str) -> None:
    assert not parse_requirement(f"accuracy{compare}0").met_by(row(math.nan, math.nan, math.nan))


@pytest.mark.parametrize(
    "text",
    [
        *("", "accuracy", ">=0.9", "accuracy>=", "accuracy=>0.9", "accuracy==0.9", "accuracy>=1%%"),
        *(":accuracy>=0.9", "accuracy>=inf", "accuracy>=nan", "a>=1,b>=2", "0.9<=accuracy<=1"),
    ],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"`--require` must be .* in quotes .*; got "):
        parse_requirement(text)


@pytest.mark.parametrize(
    ("text", "model", "bound", "metric"),
    [
        ("accuracy>=.9", None, "value", "accuracy"),
        ("gpt:accuracy>=.9", "gpt", "value", "accuracy"),
        ("low:gpt:acc>=.9", "gpt", "low", "acc"),
        ("gpt:low:accuracy>=.9", "gpt", "low", "accuracy"),
        (" high : llama 3: 8b : ece < .1", "llama 3: 8b", "high", "ece"),
        ("org/a>=b:low:f1>.5", "org/a>=b", "low", "f1"),
        ("low:low:accuracy>=.9", "low", "low", "accuracy"),
    ],
)
def test_one_classifier(text: str, model: str | None, bound: str, metric: str) -> None:
    found = parse_requirement(text)
    assert (found.model, found.bound, found.metric) == (model, bound, metric)
    assert parse_requirement(found.text) == found


def test_only_the_classifier_that_is_named_must_meet_it() -> None:
    class Answer:
        models = ("a", "b")
        diagnostics: ClassVar[dict[str, object]] = {}

        def get(self, model: str, metric: str) -> Estimate:
            return row({"a": 0.9, "b": 0.2}[model])._replace(model=model)

    assert parse_requirement("a:accuracy>=.5").failures(Answer()) == []
    assert len(parse_requirement("b:accuracy>=.5").failures(Answer())) == 1
    assert len(parse_requirement("accuracy>=.5").failures(Answer())) == 1


def test_an_unknown_classifier_is_refused_and_names_are_asked_for_only_then() -> None:
    conditions = [parse_requirement(t) for t in ("a:accuracy>=.5", "bb:low:accuracy>=.5")]
    with pytest.raises(UsageError, match=r"'bb:low:accuracy>=.5': unknown model 'bb'; choose from"):
        check_classifiers(conditions, lambda: ("a", "xy"))
    check_classifiers([parse_requirement("accuracy>=1")], lambda: pytest.fail("asked"))
