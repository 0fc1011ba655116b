"""The key of this machine's pseudonyms, made once for a user and kept where nobody else can read it.

With it the same person has the same pseudonym in every run, so cached answers are found again. A copy of the file gives
another machine the same pseudonyms. Whoever has the key can try names until one fits: never give it away.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock

from agentsignals import private_files
from agentsignals.redaction.personal import KEY_BYTES

NAME = "pseudonyms.key"
_ONE_AT_A_TIME = Lock()


def pseudonym_key() -> bytes:
    """Return the machine's key, made where there is none. Where it can't be kept, it is for this process alone, and a
    warning says so."""
    with _ONE_AT_A_TIME:
        return _kept_or_passing()


def key_file() -> Path:
    """Return the path of the key. OSError where the platform has no folder for user data."""
    import platformdirs  # noqa: PLC0415  (only when something is masked for others)

    folder = Path(platformdirs.user_data_dir("agentsignals", appauthor=False))
    if not folder.is_absolute():
        raise OSError(f"no home folder is known ({folder})")
    return folder / NAME


@cache
def _kept_or_passing() -> bytes:
    try:
        # Key in this file, made where there is none. When two processes make one, the first one's counts.
        path = key_file()
        with suppress(FileNotFoundError):
            return _read(path)
        private_files.make_folder(path.parent)
        # Written whole before it has its name: nobody reads half a key, and none is left by a process that dies.
        made = path.with_name(f".{NAME}.{os.getpid()}.{secrets.token_hex(4)}")
        opened = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(opened, "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(made, path)
        finally:
            made.unlink()
        return _read(path)
    except OSError as problem:
        import logging  # noqa: PLC0415  (no run needs it otherwise)

        logging.getLogger("agentsignals").warning(
            "agentsignals: pseudonyms are of this run alone, the next one's differ: no key is kept, %r", str(problem)
        )
        return secrets.token_bytes(KEY_BYTES)


def _read(path: Path) -> bytes:
    """Key in a file, which is made unreadable for others."""
    with path.open("rb") as file:
        if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            with suppress(OSError):  # who mounts a key into a container that can't write says himself who reads it
                os.fchmod(file.fileno(), 0o600)
        key = file.read(KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise OSError(f"{path} has no key of {KEY_BYTES} bytes")
    return key
