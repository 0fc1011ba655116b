"""A study to begin with: files that run as they are, with a small model to run them on."""

from __future__ import annotations

import shutil
from pathlib import Path

from agentsignals import private_files
from agentsignals.errors import LabError

SAMPLE = Path(__file__).with_name("sample_study")
MODEL = Path(__file__).with_name("tiny") / "seed0"
"""The model whose words the files are in, 0.6 MB."""


def written(folder: Path) -> list[Path]:
    """Write the study into a new folder, and return its files. LabError where something lies there already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LabError(f"{folder} is there already.", "Name a new folder, or an empty one.")
    try:
        private_files.make_folder(folder)
        for path in sorted(SAMPLE.iterdir()):
            private_files.write(folder / path.name, path.read_text("utf-8"))
        shutil.copytree(MODEL, folder / "model")
    except OSError as problem:
        raise LabError(f"{folder} can't be written: {problem.strerror}.", "Name another folder.") from problem
    return sorted(path for path in folder.rglob("*") if path.is_file())
