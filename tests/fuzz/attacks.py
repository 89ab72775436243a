"""Attacks by roads that `attempts` does not take, by area; `broken_by` judges each.

An attack is an attempt and what is called in place of the command, which raises where something is
wrong: it must be answered rightly, or refused in one line. What is hostile stands in payloads.json.

    python tests/fuzz/attacks.py                             # tries all areas, prints the table
    python tests/fuzz/attacks.py --write docs/attempts.md    # and writes it, as the second one
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from itertools import islice, product
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from attacks_on_pages import pages, record, requests, tables
from attempts import TABLE, Attack, Attempt, Counted, calling, judged, within, write_table
from hostile import ANSWERS, ARRAYS, BAD, CONTENTS, LINKS, SAME, database
from oracles import HOW, TESTS

sys.path += [str(TESTS / "streaming"), str(TESTS / "soak")]
from fault_cases import Command, answer, write_files
from test_soak import ask as question

import fewlabels as fl
from fewlabels.streaming import dask_executor
from places import PASSWORD
from processes import members

# Streams, strangers' schedulers, databases --------------------------------------------------------


def streams() -> Iterator[Attack]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = ["--method", "dawid-skene", "--metrics", "accuracy,auc", "--by", "site"]
        source = write_files(folder / "in", 6, 60)
        run = Command(source, folder / "saved", "--workers", "2", "--json", "-", *asked)
        _, out, warned = run.run("--engine", "threads")
        quiet, begun = answer(out), time.monotonic()
        run.run("--engine", "processes")
        seconds = time.monotonic() - begun

        def killed(engine: str, number: int, share: float) -> None:
            shutil.rmtree(folder / "saved", ignore_errors=True)
            started = run.start("--engine", engine)
            time.sleep(share * seconds)
            with suppress(ProcessLookupError):
                os.killpg(started.pid, number)
            _, said = started.communicate(timeout=60)
            code, out, err = run.run("--engine", engine, "--resume")
            assert (code, err, "Traceback" in said) == (0, warned, False), err + said
            assert members(started.pid) == []
            found = answer(out)
            found["diagnostics"]["stream"]["engine"] = quiet["diagnostics"]["stream"]["engine"]
            assert found == quiet

        chance = random.Random(7)
        for _, engine, number in product(range(2), ("threads", "processes"), (9, signal.SIGINT)):
            share = chance.uniform(0.3, 1)
            of = f"{engine}, signal {int(number)} at {share:.0%}"
            yield calling(of, partial(killed, engine, number, share), 0)


def schedulers() -> Iterator[Attack]:
    def serve(server: socket.socket, content: bytes | None, held: ExitStack) -> None:
        with suppress(OSError):
            while True:
                asking = held.enter_context(server.accept()[0])
                if content is not None:
                    asking.sendall(content)
                    asking.close()

    asked = (
        "estimate",
        "f.csv",
        "--method",
        "ensemble",
        "--metrics",
        "accuracy",
        "--engine",
        "dask",
    )
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(dask_executor, "_PATIENCE", 1)
        with suppress(fl.UsageError):  # what Dask starts once for all
            dask_executor.open_dask(1, "tcp://")
        addresses = [text.replace("PASSWORD", PASSWORD) for text in BAD["schedulers"]]
        for content in ANSWERS.values():
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            held = stack.enter_context(ExitStack())  # closed when nobody is accepted any more
            stack.callback(server.shutdown, socket.SHUT_RDWR)
            Thread(target=serve, args=(server, content, held), daemon=True).start()
            addresses.append(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        for address in addresses:
            yield Attack(Attempt({"f.csv": TABLE}, [*asked, "--scheduler", address], code=2))


def databases() -> Iterator[Attack]:
    how, right = (*HOW, "--metrics", "accuracy"), {"n_items": 40, "n_labeled": 12}
    for kind in ("sqlite", "duckdb"):

        def of(
            content: bytes, table: str, *more: str, code: int | None = None, kind: str = kind
        ) -> Attack:
            typed = ["estimate", f"{kind}:///f.db{table}", *how, *more]
            return Attack(Attempt({"f.db": content}, typed, code=code, expected=right))

        for name in BAD["tables"]:
            if name not in ("sqlite_master",):
                yield of(database(kind, name), f"#{name}")
            yield of(database(kind, "items", name), "#items", "--by", name)
            yield of(database(kind, "items"), f"#{name}x", code=2)
        yield from (of(database(kind, "items"), "", "--query", q, code=2) for q in BAD["queries"])
        yield from (of(database(kind, "items"), "#items", "--where", w) for w in BAD["wheres"])
    for address in (text.replace("PASSWORD", PASSWORD) for text in BAD["addresses"]):
        for words in ("doctor", "estimate", "score"):
            yield Attack(Attempt({}, [words, address], code=2))
        for option in ("--to", "--labels", "--votes", "--join") if "127.0.0.1" in address else ():
            typed = ["estimate", "f.csv", "--item", "item", *how, option, address]
            yield Attack(Attempt({"f.csv": TABLE}, typed, code=2))


# Arrays and frames, bits, files -------------------------------------------------------------------


def arrays() -> Iterator[Attack]:
    rng, n = np.random.default_rng(2), 40
    y, p = rng.integers(2, size=n), rng.random(n)
    doors: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "labels": (y, lambda a: fl.Predictions(p, a)),
        "probabilities": (p, lambda a: fl.Predictions(a, y)),
        "votes": (y, lambda a: fl.Predictions({"m": a}, y)),
        "weight": (p, lambda a: fl.Predictions(p, y, weight=a)),
        "groups": (y, lambda a: fl.Predictions(p, y, groups={"g": a})),
        "domain": (y, lambda a: fl.Predictions(p, y, domain=a)),
        "frame": (p, lambda a: {"label": y, "p__m__1": a}), "rows": (p, lambda a: a),
    }  # fmt: skip

    def asked(door: str, make: Callable[[Any], Any], same: bool) -> None:
        plain, of = doors[door]
        rows = [
            fl.estimate(of(a), "labeled", "accuracy").rows
            for a in ([make(plain), plain] if same else [make(plain)])
        ]
        assert repr(rows[0]) == repr(rows[-1])

    def scored(make: Callable[[Any], Any]) -> None:
        fl.score(fl.Predictions({"m": y}), y_true=make(y), method="labeled")

    for what, make in ARRAYS.items():
        for door in doors:
            yield calling(
                f"{door}: {what}", partial(asked, door, make, what in SAME and door != "rows")
            )
        yield calling(f"score: {what}", partial(scored, make))


def bits() -> Iterator[Attack]:
    def threads(first: int) -> None:
        seeds = range(first, first + 8)
        with ThreadPoolExecutor(8) as pool:
            assert repr([*pool.map(question, seeds)]) == repr([*map(question, seeds)])

    def hashed(seed: str) -> None:
        Path("f.csv").write_bytes(TABLE)
        asked = ("estimate", "f.csv", "--by", "g", "--metrics", "accuracy,ece", "--json", "-")
        run = [sys.executable, "-m", "fewlabels", *asked]
        said = subprocess.run(
            run, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
        )
        assert json.loads(said.stdout) == json.loads(within([*asked])[1])

    def workers(method: str, count: int, order: int) -> None:
        header, *rows = TABLE.decode().split()
        random.Random(order).shuffle(rows)
        Path("f.csv").write_bytes(TABLE)
        Path("g.csv").write_text("\n".join([header, *rows]))
        one, two = (
            fl.estimate(path, method, "accuracy", workers=k).rows
            for path, k in (("f.csv", 1), ("g.csv", count))
        )
        assert [(*row[:3], round(row.value, 9)) for row in one] == [
            (*row[:3], round(row.value, 9)) for row in two
        ]
        again = fl.estimate("g.csv", method, "accuracy", workers=1).rows
        assert repr(again) == repr(two)

    yield from (calling(f"8 threads, from {k}", partial(threads, k), 0) for k in range(0, 32, 8))
    yield from (
        calling(f"PYTHONHASHSEED={k}", partial(hashed, k), 0)
        for k in ("0", "1", "4294967295", "random")
    )
    for method, count, order in product(
        ("labeled", "ensemble", "dawid-skene", "majority-vote"), (1, 2, 8), (1, 2)
    ):
        yield calling(
            f"{method}, {count} workers, order {order}", partial(workers, method, count, order), 0
        )


def files() -> Iterator[Attack]:
    def made(arguments: list[str], name: str) -> int:
        if name in LINKS:
            Path(name).symlink_to(LINKS[name])
        elif name in CONTENTS:
            Path(name).write_bytes(CONTENTS[name]())
        try:
            return judged(arguments)
        finally:
            for path in Path().iterdir():
                path.unlink()

    for name in (*LINKS, *CONTENTS, "a\0b.csv", "x" * 300 + ".csv", "\ud800.csv", "~root/f.csv"):
        for words in (
            "estimate {} --metrics accuracy",
            "doctor {}",
            "convert {} o.csv",
            "label {} --terminal",
        ):
            typed = [name if word == "{}" else word for word in words.split()]
            yield Attack(Attempt({}, typed, ("o.csv",)), partial(made, name=name))


AREAS: dict[str, tuple[Callable[[], Iterator[Attack]], str]] = {
    "requests": (requests, "tokens, hosts, origins, methods, paths, bodies and bytes to the page"),
    "record": (
        record,
        "14 faults under five events, changes, links, two writers, kills, a full disk",
    ),
    "names in pages": (pages, "markup, escapes and commands to a CI, in the pages of 12 commands"),
    "names in tables": (tables, "formulas, in the tables of nine commands, which are read again"),
    "streams": (streams, "killed and interrupted at random, then --resume: the same bits"),
    "schedulers": (schedulers, "--scheduler with a stranger's address, who says anything"),
    "databases": (databases, "names of tables and columns, --query, --where, passwords"),
    "arrays": (arrays, f"{len(ARRAYS)} kinds of arrays at nine doors"),
    "bits": (bits, "eight threads, PYTHONHASHSEED, order of rows, workers: the same bits"),
    "odd files": (files, "folders, devices, loops, bombs, NUL: under four commands"),
}


def tried(
    area: str, most: int | None = None, counted: Counted | None = None
) -> tuple[int, list[tuple[list[str], str]]]:
    """Make the attacks of an area, or the first of them: how many, and what did not hold."""
    attacks = islice(AREAS[area][0](), most)
    made = [(attack.attempt.arguments, attack.broken(counted)) for attack in attacks]
    return len(made), [(what, wrong) for what, wrong in made if wrong is not None]


def main(arguments: list[str] | None = None) -> int:
    """Try all areas, and print the table."""
    parser = argparse.ArgumentParser(description="Attacks by roads that attempts.py does not take.")
    parser.add_argument("--write", metavar="FILE", help="write the table into the page")
    parser.add_argument("--most", type=int, help="so many of each area")
    parser.add_argument("--areas", nargs="*", default=[], help="these alone")
    asked = parser.parse_args(arguments)
    lines = ["| area | what | tried | held | refused |", "|---|---|---|---|---|"]
    sums = np.zeros(3, dtype=int)
    for area in asked.areas or AREAS:
        counted, begun = Counted(), time.monotonic()
        count, broken = tried(area, asked.most, counted)
        sums += (ends := (count, count - len(broken), counted.refused))
        lines.append(f"| {area} | {AREAS[area][1]} | {' | '.join(f'{n:,}' for n in ends)} |")
        print(*(f"{what}: {wrong}" for what, wrong in broken), lines[-1], sep="\n", flush=True)
        print(f"{time.monotonic() - begun:.0f} s", file=sys.stderr)
    lines.append(f"| all | | {' | '.join(f'**{n:,}**' for n in sums)} |")
    print(lines[-1])
    if asked.write:
        write_table(Path(asked.write), "\n".join(lines) + "\n", second=True)
    return int(sums[0] > sums[1])


if __name__ == "__main__":
    sys.exit(main())
