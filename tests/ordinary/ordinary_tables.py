"""Files of spreadsheets and clinics, and of every format."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from ordinary_worlds import OrdinaryFile, Reading, World, both, family, save


def german_sheet(folder: Path) -> Reading:
    world = World(301, ("Nein", "Ja"), n=300, labeled=50)
    a, b = world.probabilities(0.9), world.probabilities(1.3)
    blanks = world.rng.choice(["unbekannt", "?", ""], world.n)

    def comma(values: Any) -> list[str]:
        return [f"{value:.4f}".replace(".", ",") for value in values]

    columns = {
        "Vorgang": [f"V-{i:05d}" for i in range(world.n)],
        "Größe": world.rng.choice(["groß", "klein"], world.n).tolist(),
        "Urteil": [t or str(x) for t, x in zip(world.labels(), blanks, strict=True)],
        "Modell_A_Ja": comma(a[:, 1]),
        "Modell_B_Ja": comma(b[:, 1]),
    }
    path = save(folder / "Prüfung.csv", columns, encoding="utf-8-sig", delimiter=";")
    return world.read(
        path,
        world.probable(("Modell_A", "Modell_A_Ja"), a),
        world.probable(("Modell_B", "Modell_B_Ja"), b),
        groups=("Größe",),
    )


def us_sheet(folder: Path) -> Reading:
    world = World(302, ("No", "Yes"), n=300, labeled=60)
    model, score = world.predict(0.8), world.scores(1.2)
    labels = world.labels()
    yes = [i for i, label in enumerate(labels) if label == "Yes"]
    for i, text in zip(yes, ("yes", "YES", "Yes "), strict=False):
        labels[i] = text
    lines = ['"Case ID","Amount","Model A","Model B Score","Approved","",""']
    lines += [
        f'"{i + 1}","{1000 + 37 * i:,}","{said}","{score[i]}","{labels[i]}","",""'
        for i, said in enumerate(world.text(model))
    ]
    path = folder / "Q3 review (final).csv"
    path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8", newline="")
    return world.read(
        path,
        world.hard(("Model A", "A"), model),
        world.score(("Model B", "Model B Score", "B"), score),
    )


def five_readers(folder: Path) -> Reading:
    world = World(303, ("0", "1"), n=240, labeled=50)
    score = world.scores(1.6)
    columns: dict[str, Any] = {"study": [f"MG{i:04d}" for i in range(world.n)]}
    classifiers = []
    for r in range(1, 6):
        read = world.predict(0.7 + 0.04 * r)
        columns[f"reader_{r}"] = read.tolist()
        classifiers.append(world.hard((f"reader_{r}", str(r)), read))
    columns |= {"ai_score": score.tolist(), "biopsy": world.labels()}
    path = save(folder / "reader_study.csv", columns)
    return world.read(path, *classifiers, world.score(("ai", "ai_score"), score))


def birads(folder: Path) -> Reading:
    world = World(304, ("benign", "malignant"), n=300, labeled=60)
    columns: dict[str, Any] = {"exam": range(world.n)}
    classifiers = []
    for r, distance in (("smith", 1.6), ("jones", 1.1), ("patel", 1.3)):
        grade = np.clip(np.round(world.scores(distance) + 2.4), 1, 5).astype(int)
        columns[f"birads_{r}"] = grade.tolist()
        classifiers.append(world.score((f"birads_{r}", r), grade))
    columns["pathology"] = world.labels()
    return world.read(save(folder / "birads.csv", columns), *classifiers)


def tabs_gzip(folder: Path) -> Reading:
    world = World(305, ("negative", "positive"), n=300, labeled=40)
    lexicon, bert = world.predict(0.7), world.probabilities(0.9)
    columns = {
        "sentence": [f"So, is it {i}?" for i in range(world.n)],
        "lexicon": world.text(lexicon),
        **family("bert_", world.classes, bert),
        "gold_label": world.labels(),
    }
    plain = save(folder / "sentences.tsv", columns, delimiter="\t")
    path = folder / "sentences.tsv.gz"
    path.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    plain.unlink()
    return world.read(path, world.hard(("lexicon",), lexicon), world.probable(("bert",), bert))


def lines_gzip(folder: Path) -> Reading:
    world = World(306, ("ham", "spam"), n=300, labeled=40)
    small, large = world.probabilities(1.4), world.predict(0.9)
    text = "".join(
        json.dumps(
            {
                "id": i,
                "small_spam": float(small[i, 1]),
                "large": world.classes[large[i]],
                "label": y,
            }
        )
        + "\n"
        for i, y in enumerate(world.labels(None))
    )
    path = folder / "predictions.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return world.read(
        path,
        world.probable(("small", "small_spam"), small),
        world.hard(("large",), large),
    )


def json_array(folder: Path) -> Reading:
    world = World(307, ("bird", "cat", "dog"), n=250, labeled=40)
    vit, tags = world.probabilities(0.9), world.predict(0.7)
    rows = [
        {
            "file": f"{i}.jpg",
            "vit": dict(zip(world.classes, vit[i].tolist(), strict=True)),
            "tagger": world.classes[tags[i]],
            "label": y,
        }
        for i, y in enumerate(world.labels(None))
    ]
    path = folder / "predictions.json"
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return world.read(path, world.probable(("vit",), vit), world.hard(("tagger",), tags))


def categories(folder: Path) -> Reading:
    import pyarrow as pa
    import pyarrow.parquet as pq

    world = World(308, ("bird", "cat", "dog"), n=400, labeled=60)
    resnet, tagger = world.probabilities(1.0), world.predict(0.8)
    table = pa.table(
        {
            "image_id": pa.array(range(world.n), pa.int64()),
            "label": pa.array(world.labels(None)).dictionary_encode(),
            "tagger": pa.array(world.text(tagger)).dictionary_encode(),
            **{
                name: pa.array(values, pa.float64())
                for name, values in family("resnet_", world.classes, resnet, (2, 0, 1)).items()
            },
        }
    )
    path = folder / "predictions.parquet"
    pq.write_table(table, path)
    return world.read(path, world.probable(("resnet",), resnet), world.hard(("tagger",), tagger))


def booleans(folder: Path) -> Reading:
    import pyarrow as pa
    import pyarrow.parquet as pq

    world = World(309, ("False", "True"), n=400, labeled=50)
    rules, score = world.predict(0.75), world.scores(1.3)
    table = pa.table(
        {
            "comment_id": pa.array(range(world.n), pa.int64()),
            "wordlist_flag": pa.array(rules == 1, pa.bool_()),
            "perspective_score": pa.array(score, pa.float64()),
            "is_toxic": pa.array(world.labels(None, (False, True)), pa.bool_()),
        }
    )
    path = folder / "comments.parquet"
    pq.write_table(table, path)
    return world.read(
        path,
        world.hard(("wordlist", "wordlist_flag"), rules),
        world.score(("perspective", "perspective_score"), score),
    )


def feather(folder: Path) -> Reading:
    import pyarrow as pa
    from pyarrow.feather import write_feather

    world = World(310, ("0", "1"), n=300, labeled=40)
    boosted, linear = both(world.probabilities(0.9)[:, 1]), world.scores(1.0)
    table = pa.table(
        {
            "gbm_prob": pa.array(boosted[:, 1]),
            "linear_score": pa.array(linear),
            "y_true": pa.array(world.labels(None, (0, 1)), pa.int8()),
        }
    )
    path = folder / "scores.feather"
    write_feather(table, str(path))
    return world.read(
        path,
        world.probable(("gbm", "gbm_prob"), boosted),
        world.score(("linear", "linear_score"), linear),
    )


_OPEN = "http://schemas.openxmlformats.org"
_MAIN = f"{_OPEN}/spreadsheetml/2006/main"
_LINKS = f"{_OPEN}/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def _link(kind: str, target: str) -> str:
    return (
        f'<Relationships xmlns="{_OPEN}/package/2006/relationships">'
        f'<Relationship Id="rId1" Type="{_LINKS}/{kind}" Target="{target}"/></Relationships>'
    )


_BOOK = {
    "[Content_Types].xml": f'<Types xmlns="{_OPEN}/package/2006/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/>'
    "</Types>",
    "_rels/.rels": _link("officeDocument", "xl/workbook.xml"),
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets>'
    '<sheet name="Data" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": _link("worksheet", "worksheets/sheet1.xml"),
}


def _workbook(path: Path, columns: Mapping[str, Sequence[Any]]) -> Path:
    """The least that spreadsheet programs take for a workbook of one sheet, named Data."""

    def cell(at: str, value: Any) -> str:
        if value == "":
            return ""
        if isinstance(value, str):
            return f'<c r="{at}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
        return f'<c r="{at}"><v>{value}</v></c>'

    rows = [list(columns), *map(list, zip(*columns.values(), strict=True))]
    sheet = "".join(
        f'<row r="{r}">'
        + "".join(cell(f"{chr(65 + c)}{r}", value) for c, value in enumerate(row))
        + "</row>"
        for r, row in enumerate(rows, start=1)
    )
    sheet = f'<worksheet xmlns="{_MAIN}"><sheetData>{sheet}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in (_BOOK | {"xl/worksheets/sheet1.xml": sheet}).items():
            info = zipfile.ZipInfo(name, (2025, 1, 1, 0, 0, 0))
            book.writestr(info, '<?xml version="1.0" encoding="UTF-8"?>\n' + text)
    return path


def excel(folder: Path) -> Reading:
    world = World(311, ("no", "yes"), n=250, labeled=50)
    model, score = world.predict(0.8), world.scores(1.1)
    columns = {
        "Case": list(range(1, world.n + 1)),
        "Team": world.rng.choice(["North & East", "West"], world.n).tolist(),
        "Assistant": world.text(model),
        "Ranker score": score.tolist(),
        "Reviewer": world.labels(),
    }
    return world.read(
        _workbook(folder / "Review.xlsx", columns),
        world.hard(("Assistant",), model),
        world.score(("Ranker", "Ranker score"), score),
    )


def parts(folder: Path) -> Reading:
    world = World(312, ("ham", "spam"), n=600, labeled=60)
    small, large = world.probabilities(1.4), world.probabilities(0.8)
    columns: dict[str, Any] = {
        "id": list(range(world.n)),
        **family("small_", world.classes, small),
        **family("large_", world.classes, large),
        "label": world.labels(),
    }
    path = folder / "export"
    path.mkdir()
    for part in range(3):
        rows = slice(200 * part, 200 * part + 200)
        save(
            path / f"part-{part:05d}.csv", {name: values[rows] for name, values in columns.items()}
        )
    return world.read(path, world.probable(("small",), small), world.probable(("large",), large))


FILES = (
    OrdinaryFile(
        "german-sheet",
        "A German spreadsheet: semicolons, decimal commas, umlauts; Ja, Nein, unbekannt or ?.",
        german_sheet,
    ),
    OrdinaryFile(
        "us-sheet",
        "A US spreadsheet: quoted cells, amounts such as 1,234, Yes and yes, empty columns.",
        us_sheet,
    ),
    OrdinaryFile(
        "radiology-readers",
        "Five radiologists' readings, the score of a program, and biopsies of some.",
        five_readers,
    ),
    OrdinaryFile(
        "radiology-birads",
        "BI-RADS grades 1 to 5 of three radiologists and the pathology where there is one.",
        birads,
    ),
    OrdinaryFile(
        "tabs-gzip", "Sentences and two classifiers, tab-separated and compressed.", tabs_gzip
    ),
    OrdinaryFile("jsonl-gzip", "Predictions as compressed JSON lines.", lines_gzip),
    OrdinaryFile(
        "json-array",
        "A JSON array of objects whose probabilities are objects by class.",
        json_array,
    ),
    OrdinaryFile(
        "parquet-categories",
        "Parquet from pandas with categories as labels and predictions, nulls where unknown.",
        categories,
    ),
    OrdinaryFile(
        "parquet-booleans",
        "Moderation as Parquet: is_toxic a boolean or null, a rule's flag, a score.",
        booleans,
    ),
    OrdinaryFile("feather", "A Feather file with y_true as a small integer or null.", feather),
    OrdinaryFile(
        "excel",
        "An Excel workbook of a review team: the assistant's answers, a score, the reviewer's.",
        excel,
    ),
    OrdinaryFile("csv-parts", "A folder of CSV files, parts of one export.", parts),
)
