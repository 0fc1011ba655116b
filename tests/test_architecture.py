"""The floors of the house: imports run downward, weight is carried in one place, rooms stay small.

docs/architecture.md shows the same table as a picture. A unit is a module or package directly under `agentsignals`.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from agentsignals.catalog import catalogue

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "agentsignals"
FACE = "agentsignals"

FLOORS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("cli",),
    (FACE, "topics", "ui"),
    ("ingest",),
    ("replicate", "scanning"),
    ("attribution", "export", "lab", "labels", "report", "studies"),
    ("analysis", "signals", "store"),
    ("catalog",),
    ("embedding", "sources"),
    ("formats", "views"),
    ("edits", "git", "prices", "registry", "shell", "stats", "words"),
    ("errors", "mapped", "model", "redaction", "servers"),
)
"""From the roof down. A unit imports units of lower floors only, so neighbours never import each other."""

APART = {
    ("store", "formats"),
    ("store", "sources"),
    ("signals", "formats"),
}
"""Lower is not always fair to import: a store knows no trace format, a signal sees one session."""

STANDS_APART = ("lab", "scanning")
MAY_OPEN = ("cli", "replicate", "scanning", "ingest")
"""Verbs, claims about the lab's runs, `collect` which scans what it brought."""

PLUG_INS = ("signals", "studies")
"""Folders whose modules do not import each other: adding one touches no other."""

WEIGHT = {
    "pyarrow": {
        "store.tables",
        "store.shards",
        "store.table_files",
        "store.copies",
        "export.last_look",
        "formats.zip_members",
        "sources.parquet_rows",
        "labels.published",
        "lab.runs.table",
    },
    "duckdb": {"store.query", "replicate.ground"},
    "polars": {"store.frames"},
    "jinja2": {"report", "ui.rendering"},
    "platformdirs": {"store", "sources.git_clone", "sources.hub_cache"},
    "huggingface_hub": {"sources.hub_datasets"},
    "tqdm": {"cli.output"},
    "yaml": {"replicate.claims"},
    "vl_convert": {"report.charts"},
    "sentence_transformers": {"embedding.sentence"},
    "sklearn": {"stats.grouping", "stats.density"},
    "umap": {"stats.density"},
    "vllm": {"labels.labellers.vllm"},
    "transformers": {"labels.labellers.local", "labels.labellers.hf", "lab.residual"},
    "torch": {"labels.labellers.local", "lab.residual"},
    "tokenizers": {"lab.residual"},
    "numpy": {"lab"},
    "llguidance": {"labels.labellers.local"},
}
"""Where each third-party package may be imported at run time (msgspec: anywhere). A folder's name admits all in it."""

IMPORTED_AS = {
    "pyyaml": "yaml",
    "vl-convert-python": "vl_convert",
    "sentence-transformers": "sentence_transformers",
    "scikit-learn": "sklearn",
    "umap-learn": "umap",
}
"""Packages whose name on the index is not the one they are imported by."""

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60


class Import(NamedTuple):
    """`importer` (a module below agentsignals, `` for the face) imports `imported` at run time."""

    importer: str
    imported: str
    line: int


@cache
def trees() -> dict[str, ast.Module]:
    """Every module by its dotted name below agentsignals."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text("utf-8"))
    return found


def for_types_only(tree: ast.Module) -> set[ast.AST]:
    guarded = (
        n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test).split(".")[-1] == "TYPE_CHECKING"
    )
    return {inner for block in guarded for statement in block.body for inner in ast.walk(statement)}


@cache
def imports() -> tuple[Import, ...]:
    """Imports at run time, those inside functions included: a late import does not change who knows whom."""
    return tuple(_imports())


def _imports() -> Iterator[Import]:
    for module, tree in trees().items():
        skipped = for_types_only(tree)
        for node in ast.walk(tree):
            if node in skipped:
                continue
            if isinstance(node, ast.Import):
                yield from (Import(module, alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}:{node.lineno}: imports are absolute"
                source = node.module or ""
                for alias in node.names:
                    inner = f"{source}.{alias.name}".removeprefix(f"{FACE}.")
                    yield Import(module, f"{FACE}.{inner}" if inner in trees() else source, node.lineno)


def unit(module: str) -> str:
    return module.partition(".")[0] or FACE


def inner_imports() -> Iterator[Import]:
    """Imports of our own modules, as dotted names below agentsignals."""
    for found in imports():
        if found.imported == FACE or found.imported.startswith(f"{FACE}."):
            yield found._replace(imported=found.imported.removeprefix(FACE).removeprefix("."))


def floor_of() -> dict[str, int]:
    return {name: len(FLOORS) - n for n, floor in enumerate(FLOORS) for name in floor}


def test_every_unit_has_its_floor() -> None:
    named = [name for floor in FLOORS for name in floor]
    assert len(set(named)) == len(named)
    assert {unit(module) for module in trees()} - set(named) == set(), (
        "give the new unit a floor, and docs/architecture.md a line"
    )


def test_imports_run_downward() -> None:
    floors = floor_of()
    uphill = [
        f"{found.importer or FACE}:{found.line} imports {found.imported or FACE}"
        for found in inner_imports()
        if unit(found.importer) != unit(found.imported) and floors[unit(found.importer)] <= floors[unit(found.imported)]
    ]
    assert uphill == []


def test_the_core_does_without_what_stands_apart() -> None:
    """The lab with its sandbox and the scanner keep to themselves: only their verbs and their claims import them."""
    inside = [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in inner_imports()
        if unit(found.imported) in STANDS_APART and unit(found.importer) not in {unit(found.imported), *MAY_OPEN}
    ]
    assert inside == []


def test_units_that_must_not_know_each_other_do_not() -> None:
    floors = floor_of()
    assert all(floors[above] > floors[below] for above, below in APART), "the floors forbid the others already"
    assert {(unit(found.importer), unit(found.imported)) for found in inner_imports()} & APART == set()


def test_plug_ins_do_not_import_each_other() -> None:
    among = [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in inner_imports()
        for folder in PLUG_INS
        if found.importer.startswith(f"{folder}.") and found.imported.startswith(f"{folder}.")
    ]
    assert among == []


def test_the_path_of_a_signal_leads_to_its_folder() -> None:
    elsewhere = {
        signal.path: signal.function.__module__
        for signal in catalogue().values()
        if signal.function.__module__.split(".")[2:-1] != [signal.path.split(".")[0]]
    }
    assert elsewhere == {}


def test_plug_ins_are_named_in_their_registry_only() -> None:
    """A format, source or executor is switched on by one line; nobody else names its module."""
    outside = [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in inner_imports()
        if found.imported.startswith(("formats.", "signals."))
        and unit(found.importer) != unit(found.imported)
        and found.imported not in ("formats.head",)
    ]
    assert outside == []


def test_third_party_weight_is_carried_in_its_place() -> None:
    misplaced = [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in imports()
        for place in [WEIGHT.get(found.imported.split(".")[0])]
        if place is not None and not any(found.importer == p or found.importer.startswith(f"{p}.") for p in place)
    ]
    assert misplaced == []


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[^A-Za-z0-9_-]", line)[0].lower() for line in project["dependencies"]}
    declared = {IMPORTED_AS.get(name, name) for name in declared}
    optional = {
        re.split(r"[^A-Za-z0-9_-]", line)[0].lower()
        for extra, lines in project["optional-dependencies"].items()
        if extra != "dev"
        for line in lines
    }
    optional = {IMPORTED_AS.get(name, name) for name in optional}
    used = {found.imported.split(".")[0] for found in imports()} - {FACE} - set(sys.stdlib_module_names)
    assert used - optional - declared == set()
    assert declared - used == set()
    assert set(WEIGHT) | {"msgspec"} >= declared, "say where the new dependency may be imported"


def test_no_file_is_too_long() -> None:
    counted = {
        p: p.read_text("utf-8").count("\n") for d in ("src", "docs", "benchmarks") for p in (ROOT / d).rglob("*.py")
    }
    assert {str(p.relative_to(ROOT)): n for p, n in counted.items() if n > MOST_LINES} == {}


def test_no_function_is_too_long() -> None:
    long = {
        f"{module}.{node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: n for name, n in long.items() if n > MOST_LINES_OF_A_FUNCTION} == {}


def test_the_picture_shows_every_unit_on_its_floor() -> None:
    picture = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    floors = [re.findall(r"`([a-z_]+)`", line) for line in picture.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [tuple(f) for f in floors] == list(FLOORS)
