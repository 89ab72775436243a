"""Files that people have, each with what is in it."""

from __future__ import annotations

import ordinary_exports
import ordinary_judges
import ordinary_tables

FILES = {
    file.name: file
    for file in (*ordinary_judges.FILES, *ordinary_exports.FILES, *ordinary_tables.FILES)
}
