"""Several files of the same items: what they are joined by, and which of them has the labels."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fewlabels as fl

N = 80
RNG = np.random.default_rng(11)
Y = RNG.integers(0, 2, N)
P = {m: np.round(np.clip(Y * a + RNG.random(N) * (1 - a), 0.001, 0.999), 4)
     for m, a in (("one", 0.7), ("two", 0.3))}  # fmt: skip
IDS = [f"q{i}" for i in range(N)]
ORDER = RNG.permutation(N)
TAGS = ["rude", "spam", "angry"]
TAGGED = {t: RNG.integers(0, 2, N) for t in TAGS}
WINNER = RNG.integers(0, 3, N)
WAYS = ["winner_a", "winner_b", "winner_tie"]
SHARES = RNG.dirichlet(np.ones(3), N) * 0.5 + np.eye(3)[WINNER] * RNG.choice([0, 0.5], (N, 1))
SHARES = np.round(SHARES / SHARES.sum(axis=1, keepdims=True), 6)


def right(p: np.ndarray, y: np.ndarray = Y) -> float:
    return float(((p > 0.5) == y).mean())


def accuracy(*args: Any, **reading: Any) -> list[float]:
    items = fl.read_predictions(*args, **reading)
    found = fl.estimate(items, "labeled", "accuracy", estimand="sample", confidence_level=None)
    return sorted(row.value for row in found.rows if row.group is None)


def auc(*args: Any, **reading: Any) -> list[float]:
    items = fl.read_predictions(*args, **reading)
    found = fl.estimate(items, "labeled", "roc_auc", estimand="sample", confidence_level=None)
    return sorted(row.value for row in found.rows if row.group is None)


def auc_of(scores: np.ndarray, y: np.ndarray = Y) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, scores))


BOTH = sorted(auc_of(p) for p in P.values())


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def file(name: str, columns: dict[str, Any], rows: Any = None, **how: Any) -> str:
        frame = pd.DataFrame(columns)
        frame = frame if rows is None else frame.iloc[rows]
        Path(name).parent.mkdir(exist_ok=True)
        frame.to_csv(name, index=False, sep="\t" if name.endswith(("tsv", "txt")) else ",", **how)
        return name

    return file


def test_rows_in_one_order(write: Any) -> None:
    one = write("v1.tsv", {"actual": Y == 1, "pred_score": P["one"]})
    two = write("v2.tsv", {"actual": Y == 1, "pred_score": P["two"]})
    items = fl.read_predictions(one, join=two)
    assert auc(one, join=two) == pytest.approx(BOTH)
    assert "joined by the order of their 80 rows" in " ".join(items.reading)
    assert "('actual' agree)" in " ".join(items.reading)
    write("v2.tsv", {"actual": Y == 1, "pred_score": P["two"]}, ORDER)
    row = int(np.flatnonzero(Y[ORDER] != Y)[0]) + 1
    with pytest.raises(fl.InputError, match=f"row {row} has '.*' in column 'actual' of 'v1', and"):
        fl.read_predictions(one, join=two)
    write("v2.tsv", {"actual": Y == 1, "pred_score": P["two"]}, range(N - 1))
    with pytest.raises(fl.InputError, match=r"and not as many rows \(v1.tsv 80, v2.tsv 79\)"):
        fl.read_predictions(one, join=two)


def test_margins_without_a_header(write: Any) -> None:
    valid = write("valid.tsv", {"label": Y, "f0": RNG.normal(size=N)})
    for name, p in P.items():
        write(f"{name}_result.txt", {"": np.log(p / (1 - p))}, header=False)
    join = ["one_result.txt", "two_result.txt"]
    assert auc(valid, join=join) == pytest.approx(BOTH, abs=1e-3)
    said = " ".join(fl.read_predictions(valid, join=join).reading)
    assert "'one_result' is read without a header" in said
    assert "no other column checks that" in said


def test_a_folder_with_a_file_per_classifier(write: Any, cli: Any) -> None:
    for name in ("v1", "v2"):
        write(f"runs/{name}.csv", {"actual": Y, "pred_score": P["one" if name == "v1" else "two"]})
    for engine in ("memory", "threads"):
        code, _, err = cli("estimate", "runs", "--engine", engine)
        assert (code, "'actual', row by row" in err) == (2, True)
    command = shlex.split(err.strip().rpartition("fewlabels ")[2])
    out = cli(*command, "--method", "labeled", "--estimand", "sample", "--json", "-")[1]
    values = [r["value"] for r in json.loads(out)["estimates"] if r["metric"] == "roc_auc"]
    assert sorted(values) == pytest.approx(BOTH)
    half = N // 2  # the parts of one table
    for name, rows in (("v1", range(half)), ("v2", range(half, N))):
        write(f"runs/{name}.csv", {"actual": Y, "pred_score": P["one"]}, rows)
    assert fl.read_predictions("runs").n_items == N


SIDE = np.tile(["L", "R"], N // 2)
SUBJECT = np.repeat([f"00{i}" for i in range(N // 2)], 2)


def test_columns_that_name_an_item_together(write: Any, cli: Any) -> None:
    for name, p in P.items():
        columns = {"subject": SUBJECT, "side": SIDE, "confidence": p}
        write(f"{name}.tsv", columns, ORDER if name == "two" else None)
    write(
        "exams.tsv",
        {"subject": SUBJECT[::2], "cancerL": Y[::2], "cancerR": Y[1::2], "age": 50},
        RNG.permutation(N // 2),
    )
    items = fl.read_predictions("one.tsv", join="two.tsv")
    assert items.n_items == N
    assert "items: named by columns 'subject', 'side' together" in items.reading
    more = {"item": ["subject", "side"], "label": "cancer"}
    assert auc("one.tsv", join=["two.tsv", "exams.tsv"], **more) == pytest.approx(BOTH)
    assert auc("one.tsv", labels="exams.tsv", **more) == pytest.approx([auc_of(P["one"])])
    with pytest.raises(fl.InputError, match="join them by both, with --item subject,side"):
        fl.read_predictions("one.tsv", join="exams.tsv")
    code, out, _ = cli(
        "estimate", "one.tsv", "--labels", "exams.tsv", "--item", "subject", "--item", "side",
        "--label", "cancer", "--json", "-",
    )  # fmt: skip
    assert (code, json.loads(out)["n_labeled"]) == (0, N)


WORKERS = 9
ITEM = np.repeat(np.arange(N), 3)
WORKER = np.concatenate([RNG.choice(WORKERS, 3, replace=False) for _ in range(N)])
VOTE = Y[ITEM] ^ (RNG.random(3 * N) < 0.2)
OF_WORKERS = sorted(
    float((Y[ITEM] == VOTE)[(w == WORKER) & (ITEM < 30)].mean()) for w in range(WORKERS)
)


def test_labels_are_joined_to_votes(write: Any, cli: Any) -> None:
    votes = {"question": 100 + ITEM, "worker": [f"w{w}" for w in WORKER], "answer": VOTE}
    write("answer.csv", votes)
    known = [*range(30), 300]  # of which one was never asked
    truth = {"question": [100 + i for i in known], "truth": [*Y[:30], 1]}
    write("truth.csv", truth)
    assert accuracy("answer.csv", labels="truth.csv") == pytest.approx(OF_WORKERS)
    items = fl.read_predictions("answer.csv", labels="truth.csv")
    assert any("1 of 31 labels in truth.csv are of items that are not" in n for n in items.notes)
    code, out, _ = cli("doctor", "answer.csv", "--labels", "truth.csv")
    command = shlex.split(out.rpartition("\nNext\n")[2].replace("\\\n", " "))[1:]
    code, out, _ = cli(*command, "--json", "-")
    assert (code, json.loads(out)["n_labeled"]) == (0, 30)
    # Neither has a header: the items are known by their values.
    write("labels.txt", {k: votes[k] for k in ("worker", "question", "answer")}, header=False)
    write("gold.txt", truth, header=False)
    of_votes = {"item": "c2", "annotator": "c1", "answer": "c3"}
    got = accuracy(votes="labels.txt#no-header", labels="gold.txt", **of_votes)
    assert got == pytest.approx(OF_WORKERS)


@pytest.mark.parametrize("way", ["labels", "join"])
def test_labels_under_the_names_of_predictions(write: Any, way: str) -> None:
    write(
        "train.csv",
        {
            "id": IDS,
            "prompt": IDS[::-1],
            **dict(zip(WAYS, np.eye(3, dtype=int)[WINNER].T, strict=True)),
        },
    )
    write("sub.csv", {"id": IDS, **dict(zip(WAYS, SHARES.T, strict=True))}, ORDER)
    expected = [float((SHARES.argmax(axis=1) == WINNER).mean())]
    assert accuracy("sub.csv", **{way: "train.csv"}) == pytest.approx(expected)
    assert accuracy("train.csv", join="sub.csv") == pytest.approx(expected)
    # Tags, of which an item may have several, -1 where nobody looked: a task each.
    seen = RNG.random(N) < 0.7
    said = {t: np.round(0.6 * TAGGED[t] + 0.4 * RNG.random(N), 5) for t in TAGS}
    write("truth.csv", {"id": IDS, **{t: np.where(seen, y, -1) for t, y in TAGGED.items()}})
    write("bert.csv", {"id": IDS, **said}, ORDER)
    items = fl.read_predictions("bert.csv", **{way: "truth.csv"})
    assert set(items.tasks) == set(TAGS)
    assert int(items.labeled.sum()) == 3 * int(seen.sum())
    rude = auc("bert.csv", **{way: "truth.csv"}, label="rude")
    assert rude == pytest.approx([auc_of(said["rude"][seen], TAGGED["rude"][seen])])


def test_fractions_are_no_labels(write: Any) -> None:
    for name, shift in (("solutions", 0.0), ("cnn", 0.01)):
        write(f"{name}.csv", {"id": IDS, **{t: np.round(RNG.random(N) + shift, 4) for t in TAGS}})
    for reading in ({"join": "solutions.csv"}, {"labels": "solutions.csv"}):
        with pytest.raises(fl.InputError, match="fractions are no labels: labels are classes, 0"):
            fl.read_predictions("cnn.csv", **reading)


def test_labels_of_several_tasks_in_a_file_of_their_own(write: Any) -> None:
    write("pred.csv", {"id": IDS, **{f"pred_{t}": TAGGED[t] ^ (RNG.random(N) < 0.2) for t in TAGS}})
    write("human.csv", {"id": IDS, **TAGGED}, ORDER)
    items = fl.read_predictions("pred.csv", labels="human.csv")
    assert set(items.tasks) == set(TAGS)
    assert items.labeled.all()


def test_rows_of_no_item_are_none(write: Any) -> None:
    for name, p in P.items():
        said = (p > 0.5).astype(int)
        both = {"sample_id": IDS * 2, "event": [*range(2 * N)], "expected": [None] * N + [*Y]}
        rows = pd.DataFrame(both | {"picked": [None] * N + [*said]})
        write(f"{name}.csv", pd.concat([pd.DataFrame({"event": [-1, -2]}), rows]).to_dict("list"))
    found = accuracy("one.csv", join="two.csv")
    assert found == pytest.approx(sorted(right(p) for p in P.values()))
    assert fl.read_predictions("one.csv", join="two.csv").n_items == N


def test_fractions_are_no_words_of_classes(write: Any) -> None:
    write("p.csv", {"id": IDS, "label": Y, "toxic": P["one"]})
    with pytest.raises(fl.InputError, match="no classes: say --model toxic=toxic if they") as said:
        fl.read_predictions("p.csv", hard={"toxic": "toxic"})
    assert "--same" not in str(said.value)
    assert accuracy("p.csv", models={"toxic": "toxic"}) == pytest.approx([right(P["one"])])


def test_files_without_headers_of_which_one_column_differs(write: Any) -> None:
    key = np.where(Y == 1, "bonafide", "spoof")
    for name, p in P.items():
        columns = {"id": IDS, "attack": "A1", "key": key, "score": np.log(p / (1 - p))}
        write(f"{name}/net.txt", columns, ORDER if name == "two" else None, header=False)
    reading = {"label": "c3", "positive": "bonafide"}
    items = fl.read_predictions("one/net.txt#no-header", join="two/net.txt", **reading)
    assert items.models == ("one", "two")
    found = auc("one/net.txt#no-header", join="two/net.txt", **reading)
    assert found == pytest.approx(BOTH, abs=1e-3)


LANGUAGES = np.array(["deu", "fra", "spa"])[RNG.integers(0, 3, N)]
OTHERS = np.where(RNG.random(N) < 0.2, "spa", LANGUAGES)
SHARE = float((LANGUAGES == OTHERS)[:60].mean())


@pytest.mark.parametrize("sign", ["", "__label__"])
def test_files_without_headers_tell_each_others_columns(write: Any, sign: str) -> None:
    """Labels by the order of the rows, with texts behind them, or by an item; each as it is."""
    known = np.where(np.arange(N) < 60, LANGUAGES, "unk")
    item = [] if sign else IDS
    for name, said in (("gold", known), ("one", OTHERS), ("two", LANGUAGES)):
        sure = RNG.random(N)
        end = [f" one, two and {i}" if name == "gold" else f" {sure[i]:.6f}" for i in range(N)]
        rows = [f"{sign}{s}{e}" for s, e in zip(said, end, strict=True)]
        rows = rows if sign else [f"{i},{s}" for i, s in zip(item, said, strict=True)]
        Path(f"{name}.txt").write_text("\n".join(rows) + "\n")
    assert accuracy("one.txt", labels="gold.txt") == [pytest.approx(SHARE)]
    both = fl.read_predictions("one.txt", join="two.txt", labels="gold.txt")
    assert (both.n_models, both.n_labeled, both.n_items) == (2, 60, N)
    assert any("'one.txt' is read without a header" in line for line in both.reading)
    assert accuracy("one.txt", join="two.txt", labels="gold.txt") == [pytest.approx(SHARE), 1.0]


def test_labels_without_a_key_are_joined_by_the_order_of_the_rows(write: Any) -> None:
    write("model.csv", {"id": IDS, "p_yes": P["one"], "sex": Y})
    write("truth.csv", {"y_true": np.where(Y, "yes", "no")})
    items = fl.read_predictions("model.csv", labels="truth.csv")
    assert items.n_labeled == N
    assert any(f"joined by the order of their {N} rows" in line for line in items.reading)
    assert auc("model.csv", labels="truth.csv") == [pytest.approx(auc_of(P["one"]))]
    write("short.csv", {"y_true": Y[:9]})
    write("keyed.csv", {"case_id": [f"other {i}" for i in IDS], "y_true": Y})
    for name in ("short.csv", "keyed.csv"):
        with pytest.raises(fl.InputError, match=r"--item COL|no item of keyed\.csv is in"):
            fl.read_predictions("model.csv", labels=name)


def test_options_of_a_column_that_every_file_has(write: Any) -> None:
    logits = {m: RNG.normal(0, 2, (N, 3)) + 3 * np.eye(3)[WINNER] * k for k, m in enumerate(P)}
    for name, z in logits.items():
        Path(f"model-{name}").mkdir()
        columns = {"id": IDS, "gold": WINNER, "values": [json.dumps(list(row)) for row in z]}
        write(f"model-{name}/details.csv", columns)
    files = [f"model-{name}/details.csv" for name in logits]
    said = {"join": files[1], "logits": {"m": "values"}, "label": "gold"}
    assert set(fl.read_predictions(files[0], **said).models) == {"one", "two"}
    shares = [float((z.argmax(axis=1) == WINNER).mean()) for z in logits.values()]
    assert accuracy(files[0], **said) == pytest.approx(sorted(shares))


def test_tasks_at_the_end_of_the_names_of_items(write: Any) -> None:
    keys = [f"{i}_{t}" for i in IDS for t in TAGS]
    truth = np.stack([TAGGED[t] for t in TAGS], axis=1).ravel()
    p = np.round(np.clip(truth * 0.4 + RNG.random(len(truth)) * 0.6, 0.001, 0.999), 3)
    write("one.csv", {"ID": keys, "Label": p})
    write("two.csv", {"ID": keys, "Label": np.round(p**2, 4)})
    known = RNG.permutation(len(keys))[:120]
    write("train.csv", {"ID": np.array(keys)[known], "Label": truth[known]})
    items = fl.read_predictions("one.csv", labels="train.csv")
    assert set(items.tasks) == set(TAGS)
    assert (items.of_task("rude").n_items, items.n_labeled) == (N, 120)
    assert len(fl.read_predictions("one.csv", join="two.csv", labels="train.csv").models) == 2
    pooled = fl.read_predictions("one.csv", labels="train.csv", cluster="ID")
    assert pooled.task is None


LEFT, RIGHT = np.array(["a", "b", "c", "d", "e"])[np.arange(N) % 5], np.arange(N) // 5 + 100


@pytest.mark.parametrize("header", [True, False])
def test_labels_find_the_columns_that_name_the_items_by_values(write: Any, header: bool) -> None:
    """Two columns together, in another place, of other names, in other letters, in other rows."""
    name = write("net.txt", {"one": LEFT, "other": RIGHT, "score": P["one"]}, header=header)
    gold = {"truth": Y, "speaker": np.char.upper(LEFT), "file": RIGHT}
    labels = write("gold.txt", gold, ORDER[:60], header=header)
    score = "score" if header else "c3"
    reading = {"scores": {"net": score}, **({"label": "truth"} if header else {})}
    expected = auc_of(P["one"][ORDER[:60]], Y[ORDER[:60]])
    assert auc(name, labels=labels, **reading) == [pytest.approx(expected)]
    items = fl.read_predictions(name, labels=labels, **reading)
    assert (items.n_items, items.n_labeled) == (N, 60)


def test_ids_in_other_letters_are_the_same_items(write: Any) -> None:
    reports = {"hash": [f"{i * 7919:x}f" for i in range(N)], "p__one__1": P["one"],
               "p__one__0": 1 - P["one"]}  # fmt: skip
    write("reports.csv", reports)
    gold = {"sample": [h.upper() for h in reports["hash"]], "verdict": Y}
    write("gold.csv", gold, ORDER)
    assert accuracy("reports.csv", labels="gold.csv", label="verdict") == [right(P["one"])]


def test_columns_of_joined_files_are_no_labels_where_these_are_apart(write: Any) -> None:
    """`probability.true`, `Label` are of each classifier; --labels or --label ends the search."""
    said = {m: np.where(p > 0.5, "yes", "no") for m, p in P.items()}
    truth = np.where(Y == 1, "yes", "no")
    for m, p in P.items():
        soft = {"id": IDS, "prediction": said[m], "probability.no": 1 - p, "probability.true": p}
        write(f"soft.{m}.csv", soft)
        write(f"hard_{m}.csv", {"id": IDS, "Bought": truth, "Label": said[m]})
    write("gold.csv", {"id": IDS, "age": RNG.integers(20, 60, N), "bad": truth}, ORDER)
    expected = sorted(map(right, P.values()))
    found = fl.read_predictions("soft.one.csv", join="soft.two.csv", labels="gold.csv", label="bad",
                                models={"net": ["probability.no", "probability.true"]},
                                classes=["no", "yes"])  # fmt: skip
    assert (found.n_models, found.n_labeled) == (2, N)
    found = accuracy("hard_one.csv", join="hard_two.csv", label="Bought")
    assert found == pytest.approx(expected)


def test_a_folder_of_files_with_the_same_items_is_joined(write: Any, cli: Any) -> None:
    """Each file is of a classifier; what has other columns and no predictions holds the labels."""
    for k, (m, p) in enumerate(P.items()):
        write(f"runs/{m}.csv", {"key": IDS, "prediction": p > 0.5}, ORDER if k else None)
        write(f"weeks/{m}.csv", {"key": IDS, "week": k, "prediction": p > 0.5, "label": Y == 1})
    write("runs/truth.csv", {"key": IDS, "gold": Y == 1}, ORDER)
    with pytest.raises(fl.InputError, match=r"column 'key'.*--labels runs/truth\.csv") as error:
        fl.read_predictions("runs")
    command = shlex.split(str(error.value).rpartition("join the files by ")[2])
    code, out, _ = cli(*command[1:], "--json", "-")
    assert (code, json.loads(out)["n_labeled"]) == (0, N)
    assert fl.read_predictions("weeks").n_items == 2 * N  # told apart by the week


WORDS = np.array(["billing", "refund", "cancel"])


def keyed_tables(n: int = 90) -> tuple[dict[str, Any], dict[str, Any]]:
    """Predictions by `Ticket ID`, right in 8 of 10, and labels of a third by `id`."""
    truth = np.arange(n) * 7 // 5 % 3
    said = np.where(np.arange(n) % 5 < 4, truth, (truth + 1) % 3)
    ids = np.array([f"T{100_000 + 7 * i}" for i in range(n)])
    table = {"Ticket ID": ids, "llm answer": WORDS[said]}
    return table, {"id": ids[: n // 3], "agreed": WORDS[truth[: n // 3]]}


@pytest.mark.parametrize("columns", [("id", "agreed"), ("id", "agreed", "who")])
def test_an_answer_is_no_part_of_what_names_an_item(columns: tuple[str, ...]) -> None:
    """With one item labeled twice, id and label together would join right answers alone."""
    table, labels = keyed_tables()
    other = WORDS[(list(WORDS).index(labels["agreed"][3]) + 1) % 3]
    twice = {"id": labels["id"][3], "agreed": other}
    kept = {n: [*labels.get(n, ["ann"] * 30), twice.get(n, "bo")] for n in columns}
    frame = pd.DataFrame(kept)
    with pytest.raises(fl.InputError, match=f"item '{twice['id']}' has two labels: .*{other}"):
        fl.read_predictions(pd.DataFrame(table), labels=frame, label="agreed")
    frame.loc[30, "agreed"] = labels["agreed"][3]
    items = fl.read_predictions(pd.DataFrame(table), labels=frame, label="agreed")
    assert items.n_labeled == 30
    again = f"labels: the same label of an item twice counts once: '{twice['id']}'"
    assert again in items.notes
    assert fl.estimate(items, method="labeled").get("llm", "accuracy").value == pytest.approx(0.8)


def test_ids_with_other_spaces_are_the_same_items() -> None:
    table, labels = keyed_tables()
    labels["id"] = [text.replace("T", "T ") for text in labels["id"]]
    items = fl.read_predictions(pd.DataFrame(table), labels=pd.DataFrame(labels), label="agreed")
    assert items.n_labeled == 30
    labels["id"] = [f"{text}-{k}" for k, text in enumerate(labels["id"])]
    with pytest.raises(fl.InputError, match=r"none of its columns \('id', 'agreed'\) has the val"):
        fl.read_predictions(pd.DataFrame(table), labels=pd.DataFrame(labels), label="agreed")


def test_labels_in_another_letter_case_are_no_missing_ones() -> None:
    table, labels = keyed_tables(900)
    labels["agreed"] = [*labels["agreed"][:-1], "Other"]
    labels["agreed"][0] = labels["agreed"][0].title()
    items = fl.read_predictions(pd.DataFrame(table), labels=pd.DataFrame(labels), label="agreed")
    alone = [line for line in items.reading if line.startswith("in one column alone")]
    assert alone == ["in one column alone: 'Other' (1 rows of 'label'); if 'Other' is a mistake, "
                     "say --no-label Other"]  # fmt: skip
    slip = labels["agreed"][1]
    labels["agreed"][-1] = slip[:-1]
    items = fl.read_predictions(pd.DataFrame(table), labels=pd.DataFrame(labels), label="agreed")
    assert [line for line in items.reading if f"--same {slip[:-1]}={slip}" in line]


def test_readings_a_row_each_are_labels_of_several() -> None:
    """The reader is told from what is read; a message says what to do with several."""
    table, labels = keyed_tables()
    readers = np.repeat(["Ito", "Weber"], 30)
    answers = [*labels["agreed"], *np.roll(WORDS, 1)[np.arange(30) % 3]]
    readings = pd.DataFrame({"id": [*labels["id"]] * 2, "reader": readers, "reading": answers})
    with pytest.raises(fl.InputError, match=r"two labels: .*--labels-as counts"):
        fl.read_predictions(pd.DataFrame(table), labels=readings)
    items = fl.read_predictions(pd.DataFrame(table), labels=readings, labels_as="counts")
    assert items.histogram is not None
    assert items.histogram.sum() == 60
