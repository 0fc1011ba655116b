"""Planted stories in five languages, through the command line: who introduced which weakness, and what only moved.

Each story is a real repository: commits of an agent, of a person and of both, a command that writes a file, a rename, a
move, a branch that is merged, and files that nobody is asked about. Weaknesses are named by their CWE: the story knows
no rule.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from agentsignals.cli import main
from tests.repositories.story import Story, block


class Code(NamedTuple):
    """Statements of one language, each with a weakness but the last."""

    ending: str
    head: str
    command: str
    """CWE-78."""
    query: str
    """CWE-89."""
    digest: str
    """CWE-328."""
    secret: str
    """CWE-338."""
    fixed: str
    """The command without its weakness."""


LANGUAGES = {
    "python": Code(
        "py",
        "import hashlib, random, subprocess\n",
        "subprocess.run(f'ls {folder}', shell=True)",
        "cursor.execute(f\"SELECT * FROM users WHERE name = '{name}'\")",
        "digest = hashlib.md5(data)",
        "token = random.randint(0, 10**9)",
        "subprocess.run(['ls', folder])",
    ),
    "typescript": Code(
        "ts",
        "import { exec } from 'child_process';\nimport crypto from 'crypto';\n",
        "exec('ls ' + folder);",
        "pool.query(`SELECT * FROM users WHERE name = '${name}'`);",
        "const digest = crypto.createHash('md5').update(data);",
        "const token = Math.random().toString(36);",
        "execFile('ls', [folder]);",
    ),
    "go": Code(
        "go",
        'package a\nimport ("crypto/md5"; "math/rand"; "os/exec")\n',
        'exec.Command("sh", "-c", "ls "+folder).Run()',
        'db.Query("SELECT * FROM users WHERE name = \'" + name + "\'")',
        "digest := md5.Sum(data)",
        "token := rand.Intn(1000000)",
        'exec.Command("ls", folder).Run()',
    ),
    "java": Code(
        "java",
        "import java.util.Random;\n",
        'Runtime.getRuntime().exec("ls " + folder);',
        'statement.executeQuery("SELECT * FROM users WHERE name = \'" + name + "\'");',
        'MessageDigest digest = MessageDigest.getInstance("MD5");',
        "int token = new Random().nextInt();",
        'new ProcessBuilder("ls", folder).start();',
    ),
    "kotlin": Code(
        "kt",
        "import java.util.Random\n",
        'Runtime.getRuntime().exec("ls $folder")',
        "db.rawQuery(\"SELECT * FROM users WHERE name = '$name'\", null)",
        'val digest = MessageDigest.getInstance("MD5")',
        "val token = Random().nextInt() + Math.random().toInt()",
        'ProcessBuilder("ls", folder).start()',
    ),
}
Row = tuple[str, str, str, str, str | None]


def scanned(story: Story, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, object], list[Row]]:
    """What `scan` says after `analyze` and `attribute`, and every finding: commit, change, weakness, path, whose."""
    story.publish()
    at = ["--store", str(story.folder / "store"), "--quiet", "--json"]
    for words in (["analyze", f"git:{story.root}"], ["attribute", str(story.root)], ["scan", str(story.root)]):
        capsys.readouterr()
        assert main([*words, *at]) == 0
    summary = json.loads(capsys.readouterr().out)
    query = "SELECT subject, change, cwe[1] c, path, owner FROM weaknesses JOIN commits USING (repo, commit_sha)"
    assert main(["query", f"{query} ORDER BY ALL", *at]) == 0
    return summary, [tuple(row.values()) for row in json.loads(capsys.readouterr().out)]


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_who_introduced_which(language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = LANGUAGES[language]
    file = lambda name: f"src/{name}.{code.ending}"  # noqa: E731
    story = Story(tmp_path)
    story.human(file("main"), code.head + block("old", 9))
    story.commit("base")
    with story.agent("writer") as a:
        a.write(file("listing"), f"{code.head}{block('listing', 9)}{code.command}\n")
    story.commit("agent adds a command", a)
    a.prompt()
    a.say()
    story.human(file("users"), f"{code.head}{block('users', 9)}{code.query}\n")
    story.commit("person adds a query", a)
    with a:
        a.write(file("naming"), f"{code.head}{block('naming', 9)}{code.digest}\n")
    story.human(file("main"), code.head + block("old", 9) + code.secret + "\n")
    story.commit("both add one", a)
    written = f"{code.head}{block('made', 9)}{code.command}\n"
    with a:
        a.bash(f"cat > {file('made')} <<'END'\n{written}END\n", {file("made"): written})
    story.commit("command writes a file", a)
    with a:
        a.edit(file("listing"), code.command, code.fixed)
    story.commit("agent fixes the command", a)
    with a:
        a.bash(f"git mv {file('users')} {file('people')}")
        (story.root / file("users")).rename(story.root / file("people"))
    story.commit("a file is renamed", a)
    with a:
        a.edit(file("naming"), code.digest + "\n", "\n")
        a.edit(file("people"), "users_0", f"{code.digest}\nusers_0")
    story.commit("a line moves", a)
    with a:
        for path in (f"vendor/x/a.{code.ending}", f"src/api_generated.{code.ending}"):
            a.write(path, f"{code.head}{code.command}\n")
    story.commit("others' code comes in", a)
    summary, rows = scanned(story, capsys)
    assert rows == [
        ("a line moves", "moved", "CWE-328", file("people"), "agent"),
        ("agent adds a command", "introduced", "CWE-78", file("listing"), "agent"),
        ("agent fixes the command", "fixed", "CWE-78", file("listing"), None),
        ("both add one", "introduced", "CWE-328", file("naming"), "agent"),
        ("both add one", "introduced", "CWE-338", file("main"), "human"),
        ("command writes a file", "introduced", "CWE-78", file("made"), "agent"),
        ("person adds a query", "introduced", "CWE-89", file("users"), "human"),
    ]
    assert (summary["introduced"], summary["fixed"], summary["moved"]) == (5, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_of_two_sessions_and_a_merge_each_has_its_own(
    language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = LANGUAGES[language]
    file = lambda name: f"src/{name}.{code.ending}"  # noqa: E731
    story = Story(tmp_path)
    story.human(file("main"), code.head + block("old", 9))
    story.commit("base")
    first, second = story.agent("first"), story.agent("second")
    story.git("checkout", "--quiet", "-b", "feature")
    with first:
        first.write(file("listing"), f"{code.head}{block('listing', 9)}{code.command}\n")
    story.commit("first adds a command", first)
    story.git("checkout", "--quiet", "main")
    with second:
        second.write(file("users"), f"{code.head}{block('users', 9)}{code.query}\n")
    story.commit("second adds a query", second)
    story.git("merge", "--quiet", "--no-edit", "feature")
    first.prompt()
    first.say()
    story.human(file("listing"), f"{code.head}{block('listing', 9)}{code.fixed}\n")
    story.commit("person fixes what first made", first)
    _, rows = scanned(story, capsys)
    assert rows == [
        ("first adds a command", "introduced", "CWE-78", file("listing"), "agent"),
        ("person fixes what first made", "fixed", "CWE-78", file("listing"), None),
        ("second adds a query", "introduced", "CWE-89", file("users"), "agent"),
    ]
    query = "SELECT path, session_id FROM weaknesses WHERE owner = 'agent' ORDER BY path"
    assert story.rows(query) == [
        (file("listing"), first.log.session),
        (file("users"), second.log.session),
    ]
