"""Checkpoints: the state of a long run, in a file that is complete or absent.

A checkpoint is valid for a run of the same version and key (`load`, `key_of`) with the same parts
done, files left out and earlier passes (`passes._saved`).
"""

from __future__ import annotations

import glob
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from fewlabels import __version__
from fewlabels.errors import InputError, UsageError, one_line, quoted
from fewlabels.streaming.packing import pack, unpack

FOLDER_VARIABLE = "FEWLABELS_CHECKPOINTS"
_DRAFT = ".part"


def default_folder() -> Path:
    """Where checkpoints are kept unless a caller says otherwise.

    $FEWLABELS_CHECKPOINTS, else fewlabels/checkpoints in $XDG_CACHE_HOME, else in ~/.cache, else
    (a user without a home) in the folder of temporary files.
    """
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(os.path.expanduser(chosen)).absolute()
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a path that is not absolute is to be ignored.
    if not os.path.isabs(cache):
        try:
            cache = str(Path.home() / ".cache")
        except RuntimeError:
            cache = tempfile.gettempdir()
    return Path(cache) / "fewlabels" / "checkpoints"


def key_of(*inputs: object) -> str:
    """A key of the run's checkpoints, by everything that its result depends on."""
    return hashlib.blake2b(repr((__version__, *inputs)).encode(), digest_size=12).hexdigest()


class Checkpoint:
    """One file of a folder, replaced as a whole whenever something is saved.

    The folder (None: `default_folder`) is made at the first save. `key` is a file name that
    identifies the run. `warn` is called once, with a line, if a value cannot be saved.
    """

    def __init__(
        self, folder: str | Path | None, key: str, warn: Callable[[str], object] | None = None
    ) -> None:
        if not key or Path(key).name != key or key.startswith("."):
            raise UsageError(
                f"`key` must be the name of a file without a folder; got {quoted(key)}"
            )
        self.path = (default_folder() if folder is None else Path(folder)) / f"{key}.checkpoint"
        self._key = key
        self._warn = warn

    def save(self, value: Mapping[str, Any]) -> None:
        """Replace the saved value by `value`, which `pack` must be able to pack.

        A run must not end because its checkpoint cannot be written (a full disk, say): the older
        one stays, `warn` is called the first time, and the next `save` tries again.
        """
        try:
            packed = pack({"version": __version__, "key": self._key, "value": dict(value)})
            replace_file(self.path, packed)
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or "out of memory"
            warn, self._warn = self._warn, None
            if warn is not None:
                warn(
                    f"no checkpoint in {one_line(str(self.path.parent))}: {reason}; the run goes "
                    f"on, but cannot be resumed from here; set {FOLDER_VARIABLE} to another folder"
                )

    def load(self) -> dict[str, Any] | None:
        """What was saved; None if nothing was, or it is damaged or of another fewlabels."""
        try:
            saved = unpack(self.path.read_bytes())
        except (OSError, InputError):
            return None
        if not isinstance(saved, dict) or not isinstance(saved.get("value"), dict):
            return None
        ours = saved.get("version") == __version__ and saved.get("key") == self._key
        return saved["value"] if ours else None

    def clear(self) -> None:
        """Delete the file, and the drafts that runs with this key left when they were killed."""
        drafts = self.path.parent.glob(f".{glob.escape(self._key)}.*{_DRAFT}")
        with suppress(OSError):
            for path in [self.path, *drafts]:
                path.unlink(missing_ok=True)


_HELD = threading.RLock()
_FOLDERS = set[tuple[int, int]]()


@contextmanager
def held_folder(path: Path) -> Iterator[None]:
    """No other run that asks for it has the folder of a file meanwhile; the others wait."""
    try:
        import fcntl
    except ImportError:  # systems without such locks
        yield
        return
    with _HELD, ExitStack() as stack:
        try:
            folder = os.open(path.parent, os.O_RDONLY)
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}; name another") from None
        stack.callback(os.close, folder)
        status = os.fstat(folder)
        place = (status.st_dev, status.st_ino)
        if place not in _FOLDERS:  # else it is ours already
            fcntl.flock(folder, fcntl.LOCK_EX)
            _FOLDERS.add(place)
            stack.callback(_FOLDERS.discard, place)
        yield


def replace_file(path: Path, packed: bytes) -> None:
    """Write a draft beside the file, make sure that the disk has it, put it in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: two runs with one key, on two machines perhaps, must not mix.
    number, draft = tempfile.mkstemp(_DRAFT, f".{path.stem}.", path.parent)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(packed)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
