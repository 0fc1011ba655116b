"""Where a store lies: a folder named, the default one, or the folder here that stands for a store elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from agentsignals.errors import StoreError
from agentsignals.store import lock
from agentsignals.store import manifest as index
from agentsignals.store.damage import FOLDER
from agentsignals.store.manifest import Manifest

ENVIRONMENT = "AGENTSIGNALS_STORE"


def local_folder(folder: Path | str | None = None, *, create: bool = False) -> Path:
    """The folder of the store named; else of `$AGENTSIGNALS_STORE`, else the platform's for a user's data. Of a store
    elsewhere (`s3://…`) the one here that stands for it, as that is now: StoreError when it can't be fetched, or
    is not there and not to be made (`create`).
    """
    named = folder if folder is not None else os.environ.get(ENVIRONMENT)
    scheme, slash, rest = str(named).partition(":/")  # a Path has one slash where an address has two
    if scheme == "s3" and slash:
        from agentsignals.store import remote  # noqa: PLC0415  (only for such a store)

        return remote.folder_of(f"s3://{rest.lstrip('/')}", create=create)
    if named:
        return Path(named).expanduser()
    import platformdirs  # noqa: PLC0415  (only when nobody names a store)

    return Path(platformdirs.user_data_dir("agentsignals", appauthor=False)) / "store"


def place(folder: Path | str | None = None, *, create: bool = False) -> Path:
    """The folder of the store named, or of the default one; `create` makes it where there is none."""
    root = local_folder(folder, create=create)
    try:
        if create and not (root / index.NAME).exists() and not (root / FOLDER).is_dir():
            (root / FOLDER).mkdir(parents=True, exist_ok=True)
            with lock.locked(root):
                if not (root / index.NAME).exists() and not any((root / FOLDER).iterdir()):
                    index.save(root, Manifest())
    except OSError as problem:
        raise StoreError(
            f"The store {root} can't be made: {problem.strerror}.", "Name another folder with --store."
        ) from problem
    return root
