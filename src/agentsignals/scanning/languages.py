"""Which language a file is in, and what kind of place it lies in: by its path alone, as lines are counted, too."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal

Place = Literal["code", "test", "vendored"]

_BY_ENDING = {
    "python": "py pyi pyw",
    "javascript": "js jsx mjs cjs ts tsx mts cts vue svelte",
    "go": "go",
    "shell": "sh bash zsh ksh",
    "html": "html htm xhtml",
    "yaml": "yml yaml",
    "java": "java kt kts scala groovy",
    "csharp": "cs",
    "php": "php phtml",
    "ruby": "rb rake erb",
    "c": "c h cc cpp cxx hpp hh m mm",
    "rust": "rs",
    "terraform": "tf",
    "dockerfile": "dockerfile containerfile",
}
_LANGUAGES = {ending: language for language, endings in _BY_ENDING.items() for ending in endings.split()}
_DOCKER = re.compile(r"(?:Dockerfile|Containerfile)(?:\.[\w.-]+)?")
_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|testdata|fixtures?|specs?|e2e|examples?|__mocks__|mocks?)/"
    r"|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.\w+$|\.(?:test|spec|stories)\.\w+$"
)
_VENDORED = re.compile(
    r"(?:^|/)(?:node_modules|vendor|third_party|dist|build|\.venv|venv|site-packages|bower_components|\.yarn)/"
    r"|\.min\.(?:js|css|html)$|(?:_pb2|\.pb|\.generated|_generated)\.\w+$|(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml)$"
)


def language_of(path: str) -> str | None:
    """The language of a file by its name; None for what no rule is about."""
    name = PurePosixPath(path).name
    if _DOCKER.fullmatch(name):
        return "dockerfile"
    return _LANGUAGES.get(name.rpartition(".")[2].lower()) if "." in name else None


def place_of(path: str) -> Place:
    """`vendored`: others' code, or made by a program: not scanned; `test`: tests, samples, examples: counted apart."""
    if _VENDORED.search(path):
        return "vendored"
    return "test" if _TEST.search(path) else "code"
