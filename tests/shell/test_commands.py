"""What a shell command is for, which file it is about, and which files it writes."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsignals.shell import parse
from agentsignals.shell.outputs import is_polling, search_mode
from agentsignals.shell.tokens import split

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

COUNTS = {"build": 89, "read": 78, "run": 104, "search": 233, "test": 134, "vcs": 488, "write": 34}
"""Distinct commands of the Claude Code corpus by kind, read by eye when they were pinned."""

KINDS: dict[str, list[str]] = {
    "test": [
        "pytest",
        "pytest -x tests/unit 2>&1 | tail -30",
        "cd /repo && go test ./... -run TestA -count=1 2>&1 | head -80",
        "python -m pytest tests/",
        "python3.11 -W ignore -m pytest",
        ".venv/bin/python -m unittest discover",
        "uv run pytest -q",
        "uv run --extra dev --with x pytest",
        "poetry run python -m pytest",
        "source .venv/bin/activate && pytest",
        "FOO=1 BAR='a b' pytest",
        "timeout 60 pytest",
        "timeout -k 5 1m pytest",
        "sudo -u ci pytest",
        "env -u HOME CI=1 pytest",
        "coverage run -m pytest",
        "npm test",
        "npm t",
        "npm run test:unit -- --watch=false",
        "npm --prefix web test",
        "pnpm -r test",
        "pnpm --filter web test",
        "yarn workspace app test",
        "yarn jest",
        "npx --yes vitest run",
        "npx -p jest jest",
        "bun test src/",
        "deno test",
        "node --test",
        "cargo test",
        "cargo +nightly nextest run",
        "dotnet test",
        "mvn -q verify",
        "./gradlew :app:test",
        "make test",
        "make -C sub check",
        "make e2e",
        "mise run test:integration -- -run TestX",
        "mise exec -- go test ./...",
        "bundle exec rspec spec/a_spec.rb",
        "./node_modules/.bin/jest",
        "python manage.py test app",
        "./tests/runtests.py -v 2 forms",
        "bin/test sympy/core",
        "bash run_tests.sh",
        "bash -lc 'cd /app && pytest -q'",
        'sh -c "npm test"',
        "(cd pkg && go test ./...)",
        "if go test ./...; then echo ok; fi",
        "for p in a b; do go test ./$p; done",
        "git stash && go test ./... ; git stash pop",
        "go build ./... && go test ./...",
        "npm install && npm test > out.log",
        "OUT=$(pytest -q); echo $OUT",
        "time pytest",
    ],
    "build": [
        "go build -o /tmp/x ./cmd/x",
        "go vet ./... 2>&1 | head",
        "gofmt -l .",
        "golangci-lint run ./...",
        "npm run lint:fix",
        "npm run build",
        "yarn typecheck",
        "npx tsc --noEmit",
        "npx --no-install eslint .",
        "uvx ruff check .",
        "python -m mypy src",
        "python -m py_compile a.py",
        "cargo clippy --all",
        "make",
        "make lint",
        "cmake --build .",
        "mise run fmt && mise run lint",
        "bun run check",
        "./mvnw -q compile",
        "next build",
    ],
    "vcs": [
        "git status",
        "git -C /repo log --oneline -5",
        "cd /repo && git diff | cat",
        "gh pr view 12 --json title | jq .title",
        "git commit -m \"$(cat <<'EOF'\nIt's done: cat a > b; rm c\nEOF\n)\"",
        "sleep 30 && gh run list",
        "git log --format='%h > %s' | head",
        "cat a.txt && git add a.txt",
        "rtk git status",
        "cat > note.md <<EOF\nx\nEOF\ngit add note.md",
    ],
    "read": [
        "cat a.py",
        "cd /repo && head -20 a.py",
        "sed -n '1,40p' src/a.py",
        "sed -ne 5p src/a.py",
        "awk '{print $1}' a.tsv",
        "jq -r .version package.json",
        "wc -l *.py",
        "cat a.py | grep -n foo",
        "echo '---' && cat a.py",
        "nl -ba a.py | sed -n '10,20p'",
        "diff <(sort a) <(sort b)",
        "a=${x% *}; b=${x##* }; cat y",
        "for d in a b; do s=$(basename $d); cat $d/x; done",
        "Get-Content src\\a.py -TotalCount 5",
        "cat <<< hello",
    ],
    "search": [
        "ls -la",
        "grep -rn 'a > b' src",
        "rg -n foo src | head -5",
        "find . -name '*.py' | xargs grep foo",
        "find . -name '*.go' -exec grep -l x {} \\;",
        "cd $(git rev-parse --show-toplevel) && ls",
        "MOD=$(go env GOMODCACHE) && grep -r x $MOD",
        "/usr/bin/grep x a.py",
        "ls missing 2>/dev/null || echo none",
        "pwd; ls",
        "Select-String -Pattern x a.ps1",
    ],
    "write": [
        "cat > a.py <<'EOF'\nprint('it''s')\nEOF",
        "echo hi >> a.txt",
        "sed -i 's/a/b/' a.py",
        "sed -i.bak -e 's/a/b/' a.py",
        "sed -i '' 's/a/b/' a.py",
        "find . -name '*.py' | xargs sed -i 's/a/b/'",
        "perl -pi -e 's/a/b/' a.py",
        "rm -rf build",
        "touch a",
        "mv a b",
        "curl -s https://x > page.html && cat page.html",
        "echo x > $OUT",
        "find . -name '*.pyc' -delete",
        "find . -name '*.py' -exec sed -i 's/a/b/' {} +",
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n@@\n-go test\n+x\n*** End Patch\nEOF",
        "Set-Content -Path a.txt -Value x",
        "> empty.txt",
    ],
    "run": [
        "",
        "   ",
        "cd /repo",
        "python a.py",
        "python -c \"import os; print('> x')\"",
        "python3 - <<'EOF'\nprint(open('x').read())\nEOF",
        "node -e 'console.log(1 > 0)'",
        "npm install",
        "npm run dev 2>&1 | tail -5",
        "python x.py | head -3",
        "./server --port 80 &",
        "echo 'rm -rf /'",
        "echo $(date) rm foo",
        "mkdir -p a/b",
        "docker compose up -d",
        "curl -s https://x | jq .a",
        "cmd > /dev/null 2>&1",
        "cmd 2>$null",
        "bash deploy.sh",
        "go run ./cmd/x | grep y",
        "[[ $n > 3 ]] && start",
        "# git status",
    ],
}


@pytest.mark.parametrize(("kind", "command"), [(k, c) for k, commands in KINDS.items() for c in commands])
def test_a_command_has_the_kind_of_what_it_is_for(kind: str, command: str) -> None:
    assert parse(command).kind == kind


PATHS = [
    ("cat src/a.py", "src/a.py"),
    ("cat Makefile", "Makefile"),
    ("cd src && cat a.py", "src/a.py"),
    ("cd /repo/src && cat ../b.py", "/repo/b.py"),
    ("cd src && cat /etc/hosts", "/etc/hosts"),
    ("cd $DIR && cat a.py", None),
    ("cd - && cat a.py", None),
    ("(cd src && ls) && cat a.py", "a.py"),
    ("head -n 20 a.py", "a.py"),
    ("tail -n +5 a.py", "a.py"),
    ("sed -n '1,5p' a.py", "a.py"),
    ("sed -n -e 1p -e 5p a.py", "a.py"),
    ("cat a.py b.py", None),
    ("cat a.py | head -3", "a.py"),
    ("cat a.py && cat a.py", "a.py"),
    ("cat *.py", None),
    ('cat "$F"', None),
    ('cat "a b.py"', "a b.py"),
    ("cat a\\ b.py", "a b.py"),
    ("cat D:\\repo\\a.py", "D:/repo/a.py"),
    ("grep -n foo a.py", "a.py"),
    ("grep -A 3 foo.bar a.py", "a.py"),
    ("grep -e foo.bar a.py", "a.py"),
    ("grep -rn foo src", None),
    ("rg -t py foo.bar", None),
    ("find . -name config.yaml", None),
    ("ls package.json", "package.json"),
    ("jq -r .version package.json", "package.json"),
    ("jq --arg who me '.[] | .x'", None),
    ("git diff && cat a.py", None),
    ("pytest tests/a.py", None),
    ("sed -i 's/a/b/' a.py && cat b.py", "a.py"),
    ("bash -c 'cat a.py'", "a.py"),
]


@pytest.mark.parametrize(("command", "path"), PATHS)
def test_a_command_is_about_the_one_file_it_names(command: str, path: str | None) -> None:
    assert parse(command).path == path


M, C, D, R = "modify", "create", "delete", "rename"
WRITES: list[tuple[str, list[tuple[str, str]]]] = [
    ("echo hi > a.txt", [("a.txt", M)]),
    ("echo hi>a.txt", [("a.txt", M)]),
    ("echo hi >>a.txt 2>&1", [("a.txt", M)]),
    ("cmd &> all.log", [("all.log", M)]),
    ("cmd > out.log 2> err.log", [("out.log", M), ("err.log", M)]),
    ("cmd > /dev/null 2>&1", []),
    ("cmd 2>&1 >&2", []),
    ("cmd 2>&-", []),
    ("cmd >| a.txt", [("a.txt", M)]),
    ("echo 'a > b' \"c > d\" e\\>f", []),
    ("echo x # > a.txt", []),
    ("echo x#y > a.txt", [("a.txt", M)]),
    ("cat > a.py <<'EOF'\nx > y\nrm z\nEOF\ncat >> b.py <<EOF\n1\nEOF", [("a.py", M), ("b.py", M)]),
    ("cat <<-EOF > a.py\n\tx\n\tEOF\nrm b", [("a.py", M), ("b", D)]),
    ("cat <<A <<B > c\n1\nA\n2\nB\nrm d", [("c", M), ("d", D)]),
    ("tee -a a.txt b.txt < c", [("a.txt", M), ("b.txt", M)]),
    ("git show x > a.patch", [("a.patch", M)]),
    ("cd src && echo > a; echo > ../b; cd /abs && echo > c", [("src/a", M), ("b", M), ("/abs/c", M)]),
    ("(cd src && echo > a) && echo > b", [("src/a", M), ("b", M)]),
    ("cd ~/x && echo > a && echo > /b", [("/b", M)]),
    ("pushd src; rm a; popd; rm b", [("src/a", D)]),
    ("echo > $F; echo > ${F}; echo > `f`; echo > $(f); echo > *.x; echo > {a,b}", []),
    ("rm -rf build *.pyc -- 'a b'", [("build", D), ("a b", D)]),
    ("rm dir/", [("dir", D)]),
    ("touch -d yesterday a", [("a", C)]),
    ("cp a b", [("b", M)]),
    ("cp -r a b dst/", [("dst/a", M), ("dst/b", M)]),
    ("cp src/a .", [("a", M)]),
    ("cp a $DST", []),
    ("mv a b", [("a", D), ("b", R)]),
    ("mv a b dst", [("a", D), ("dst/a", R), ("b", D), ("dst/b", R)]),
    ("mv a", []),
    ("sed -i 's/a/b/' x y", [("x", M), ("y", M)]),
    ("sed -i '' -e 's/a/b/' x", [("x", M)]),
    ("sed -i '' 's/a/b/' x", [("x", M)]),
    ("sed --in-place=.bak --expression='s/a/b/' x", [("x", M)]),
    ("sed -i \\\n -e 's|a/b|c|' \\\n -e 2d \\\n x.yml", [("x.yml", M)]),
    ("sed -n 1p x", []),
    ("perl -i -pe 's/a/b/' x", [("x", M)]),
    ("perl -MFile::Spec -e 'print' x", []),
    ("ruby -pi -e 'x' y", [("y", M)]),
    ("git rm a b", [("a", D), ("b", D)]),
    ("git rm --cached a", []),
    ("git mv a b", [("a", D), ("b", R)]),
    ("git checkout -- a b", [("a", M), ("b", M)]),
    ("git checkout HEAD~1 -- a", [("a", M)]),
    ("git checkout main", []),
    ("git restore a", [("a", M)]),
    ("git restore --source HEAD~1 a", [("a", M)]),
    ("git restore --staged a", []),
    ("git -C sub -c a=b checkout -- x", [("x", M)]),
    ("git add a && git commit -m 'x > y'", []),
    ("gofmt -w a.go dir", [("a.go", M)]),
    ("gofmt -l a.go", []),
    ("npx prettier --write a.ts", [("a.ts", M)]),
    ("black --check a.py", []),
    ("black a.py", [("a.py", M)]),
    ("ruff format a.py && ruff check --fix b.py", [("a.py", M), ("b.py", M)]),
    ("ruff check a.py", []),
    ("sudo tee /etc/x", [("/etc/x", M)]),
    ("bash -c 'echo > a'", [("a", M)]),
    ('cd src && sh -c "rm a \\"b c\\""', [("src/a", D), ("src/b c", D)]),
    (
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+rm x > y\n*** Update File: b\n*** Move to: c\n"
        "*** Delete File: d\n*** End Patch\nEOF",
        [("a", C), ("b", M), ("c", R), ("d", D)],
    ),
    ("echo x > NUL", []),
    ("Remove-Item -Recurse src\\a", [("src/a", D)]),
    ("echo $(rm a) done > b", [("a", D), ("b", M)]),
    ("if true; then rm a; else rm b; fi", [("a", D), ("b", D)]),
    ("rm a || { touch b; }", [("a", D), ("b", C)]),
    ("find . | xargs rm", []),
    ("truncate -s 0 a", [("a", M)]),
]


@pytest.mark.parametrize(("command", "writes"), WRITES)
def test_a_command_writes_the_files_its_words_name(command: str, writes: list[tuple[str, str]]) -> None:
    assert [(w.path, w.op) for w in parse(command).writes] == writes


def test_a_file_written_and_then_deleted_is_deleted() -> None:
    assert [(w.path, w.op) for w in parse("echo > a && rm a").writes] == [("a", "delete")]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_any_text_is_read(command: str) -> None:
    assert parse(command).kind in KINDS


SHELLISH = (
    *("cat", "sed", "-i", "git", "rm", "mv", "-c", "bash", "a/b", "$X", "*.py", "2>&1", "EOF", "<<EOF", "\n"),
    *(
        ">",
        ">>",
        "<",
        "<<",
        "(",
        ")",
        "$(",
        "${",
        "`",
        "'",
        '"',
        "\\",
        "|",
        "||",
        "&&",
        ";",
        "&",
        "#",
        "{",
        "}",
        "[",
        "]",
    ),
    *("*** Begin Patch", "*** Add File: x", " "),
)


@given(st.lists(st.sampled_from(SHELLISH), max_size=60))
def test_any_heap_of_shell_words_is_read(words: list[str]) -> None:
    assert parse("".join(f"{w} " for w in words)).kind in KINDS
    assert parse("".join(words)).kind in KINDS


@pytest.mark.parametrize(
    "piece",
    ["<<a\n", "$(", "\"'", "'", '`$("', "a;", "(", "bash -c ", "\\", "a>b ", "*** Begin Patch", "find . -exec ",
     "sudo ", "xargs ", "A=1 "],
)  # fmt: skip
def test_a_hostile_command_costs_no_more_than_its_length(piece: str) -> None:
    command = piece * (1_000_000 // len(piece))
    began = time.process_time()
    parse(command)
    assert time.process_time() - began < 2


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real traces is not there")
def test_the_commands_of_the_corpus_by_kind() -> None:
    """Counts of distinct commands; a change here is to be read by eye, command by command."""
    counts: dict[str, int] = {}
    for command in _commands():
        kind = parse(command).kind
        counts[kind] = counts.get(kind, 0) + 1
    assert counts == COUNTS


def test_a_line_is_split_once_for_all_who_ask_about_it() -> None:
    before = split.cache_info().misses
    command = "cd src && sleep 3; tail -f run-of-this-test.log | grep -c error"
    assert parse(command).kind == "read" and is_polling(command) and search_mode(command) == "prints"
    assert split.cache_info().misses == before + 1


def _commands() -> set[str]:
    found: set[str] = set()
    for path in sorted((CORPUS / "sessions" / "claude-code").glob("*/*/transcript.jsonl")):
        for line in path.read_bytes().splitlines():
            if b'"name":"Bash"' not in line:
                continue
            record = msgspec.json.decode(line)
            if record["type"] == "assistant":
                blocks = record["message"]["content"]
                found.update(
                    b["input"]["command"] for b in blocks if b.get("name") == "Bash" and "command" in b["input"]
                )
    return found
