"""Small workbooks, written by hand: what of their formats a table needs."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

Sheets = Mapping[str, Sequence[Sequence[Any]]]
"""Name -> rows of cells: numbers, text, truth values, `Date`; None is an empty cell."""


class Date(float):
    """A day as spreadsheets count it, from the end of 1899."""


def xlsx(sheets: Sheets, *, compressed: bool = False) -> bytes:
    """The sheets as Excel writes them."""
    numbers = range(1, len(sheets) + 1)
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml."
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
        'relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}sheet.main+xml"/>'
        + "".join(
            f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{kind}worksheet+xml"/>'
            for i in numbers
        )
        + "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        + "".join(
            f'<sheet name={quoteattr(name)} sheetId="{i}" r:id="r{i}"/>'
            for i, name in zip(numbers, sheets, strict=True)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        + "".join(
            f'<Relationship Id="r{i}" Type="{office}/worksheet" Target="worksheets/sheet{i}.xml"/>'
            for i in numbers
        )
        + f'<Relationship Id="s" Type="{office}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"><cellXfs><xf numFmtId="0"/>'
        '<xf numFmtId="14"/></cellXfs></styleSheet>',
    }
    for i, rows in zip(numbers, sheets.values(), strict=True):
        cells = "".join(
            f'<row r="{r}">' + "".join(_xlsx_cell(r, c, value) for c, value in enumerate(row))
            + "</row>" for r, row in enumerate(rows, 1)
        )  # fmt: skip
        parts[f"xl/worksheets/sheet{i}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
        )
    return _zipped(parts, zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED)


def ods(sheets: Sheets) -> bytes:
    """The sheets as LibreOffice writes them."""
    name = "urn:oasis:names:tc:opendocument:xmlns:"
    body = "".join(
        f"<table:table table:name={quoteattr(sheet)}>"
        + "".join(
            "<table:table-row>" + "".join(map(_ods_cell, row)) + "</table:table-row>"
            for row in rows
        )
        + "</table:table>"
        for sheet, rows in sheets.items()
    )
    content = (
        f'<office:document-content xmlns:office="{name}office:1.0" xmlns:table="{name}table:1.0" '
        f'xmlns:text="{name}text:1.0"><office:body><office:spreadsheet>{body}'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    mimetype = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = f'<manifest:manifest xmlns:manifest="{name}manifest:1.0"/>'
    parts = {"mimetype": mimetype, "content.xml": content, "META-INF/manifest.xml": manifest}
    return _zipped(parts)


def with_part(book: bytes, name: str, old: bytes, new: bytes) -> bytes:
    """A workbook with another text in one of its parts."""
    source, stream = zipfile.ZipFile(io.BytesIO(book)), io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for part in source.namelist():
            text = source.read(part)
            if part.endswith(name):
                assert old in text
                text = text.replace(old, new, 1)
            file.writestr(part, text)
    return stream.getvalue()


def _xlsx_cell(row: int, column: int, value: Any) -> str:
    place = f'r="{chr(ord("A") + column)}{row}"'
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c {place} t="b"><v>{value:d}</v></c>'
    if isinstance(value, str):
        return f'<c {place} t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    style = ' s="1"' if isinstance(value, Date) else ""
    return f"<c {place}{style}><v>{float(value)!r}</v></c>"


def _ods_cell(value: Any) -> str:
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, str):
        text = f"<text:p>{escape(value)}</text:p>"
        return f'<table:table-cell office:value-type="string">{text}</table:table-cell>'
    return f'<table:table-cell office:value-type="float" office:value="{float(value)}"/>'


def _zipped(parts: Mapping[str, str], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, text in parts.items():
            file.writestr(name, text)
    return stream.getvalue()
