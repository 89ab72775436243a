"""Follow every link within the built site, and see that no page loads anything from elsewhere.

python docs/check_site.py build/docs [--megabytes 30]
"""

from __future__ import annotations

import argparse
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {
    "img": ("src", "srcset"),
    "script": ("src",),
    "link": ("href",),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "use": ("href", "xlink:href"),
    "image": ("href", "xlink:href"),
}
"""What a browser fetches by itself; `link` only where its kind is one that is fetched."""
NOT_FETCHED = {"canonical", "next", "prev", "index", "search", "author", "copyright"}
_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """What a page links to, what it loads, and where one can link to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)
        self.loads += styles(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what this tag says."""
        said = {name: value for name, value in attrs if value}
        self.anchors |= {said[name] for name in ("id", "name") if name in said}
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        if set(said.get("rel", "").split()) & NOT_FETCHED:
            return
        for name in LOADS.get(tag, ()):
            for one in said.get(name, "").split(",") if name == "srcset" else [said.get(name, "")]:
                if one.strip():
                    self.loads.append(one.split()[0])


def styles(text: str) -> list[str]:
    """What style sheets in this text load."""
    return [a or b for a, b in _URL.findall(text)]


def elsewhere(target: str) -> bool:
    """Whether a browser would ask another machine for it."""
    parts = urlsplit(target.strip())
    return parts.scheme in ("http", "https", "ftp", "ws", "wss") or bool(parts.netloc)


def faults(site: Path) -> list[str]:
    """What is wrong with the site, a line each."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    found = [] if pages else [f"{site} holds no page"]
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for target in page.loads:
            if elsewhere(target):
                found.append(f"{name} loads {target}")
        for target in (*page.links, *page.loads):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not there.exists():
                found.append(f"{name} links to {target}, which is not there")
            elif (
                parts.fragment
                and there in pages
                and (unquote(parts.fragment) not in pages[there].anchors)
            ):
                found.append(f"{name} links to {target}, which has no such anchor")
    here = str(Path(__file__).resolve().parents[1])
    found += [
        f"{path.relative_to(site.resolve())} names a folder of this machine"
        for path in pages
        if here in path.read_text(encoding="utf-8")
    ]
    for path in site.rglob("*.css"):
        loads = styles(path.read_text(encoding="utf-8"))
        found += [f"{path.name} loads {one}" for one in loads if elsewhere(one)]
    return sorted(set(found))


def main() -> int:
    """Check a site; print what is wrong, or how large it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path)
    parser.add_argument("--megabytes", type=float, default=30.0)
    given = parser.parse_args()
    found = faults(given.site)
    files = [path for path in given.site.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    if size > given.megabytes:
        found.append(f"the site has {size:.1f} MB, more than {given.megabytes:g}")
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    pages = sum(path.suffix == ".html" for path in files)
    print(f"{given.site}: {pages} pages, {size:.1f} MB, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
