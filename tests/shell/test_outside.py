"""Texts from outside of the working tree: each word that a rule knows is enough, though words are looked for first."""

from __future__ import annotations

import pytest

from agentsignals.shell.outputs import answer_paths, outside_sources, sources_in_code

ANSWERS = """gold.json Solution.py oracle.txt answers.md expected.json reference.c upstream.tar.x CACHE secret hidden
    grader.py grading verifier.sh x/eval/y.json judge.py attempt_2 attempt3.log previous.txt instance.json a.patch
    a.diff a.orig a.rej a.bak \u017folution.py upst\u0130ream/gold"""


@pytest.mark.parametrize("name", ANSWERS.split())
def test_a_file_is_named_like_an_answer_by_one_word(name: str) -> None:
    path = f"/srv/task/{name}"
    assert answer_paths(f"cat {path} | head") == [path]


@pytest.mark.parametrize("command", ["cat /srv/task/a.txt", "cat gold.json", "cat /usr/share/gold.json", "cat", ""])
def test_other_files_are_not(command: str) -> None:
    assert answer_paths(command) == []


@pytest.mark.parametrize("name", ["src/a.py.orig", "a.rej", "b.c.bak"])
def test_what_was_left_beside_a_file_needs_no_root(name: str) -> None:
    assert answer_paths(f"cat {name}") == [name]
    assert answer_paths(f"cat {name.upper()}") == []


PACKAGES = """lib/site-packages/a.py lib/dist-packages/a.py node_modules/a/b.js pkg/mod/a.go ~/.cargo/registry/a.rs
    ~/.m2/repository/a.jar ruby/gems/a.rb $(GOMODCACHE)/a.go ${GOMODCACHE}/a.go inspect.getsource(a)"""


@pytest.mark.parametrize("place", PACKAGES.split())
def test_a_package_is_known_by_its_place(place: str) -> None:
    assert [source.origin for source in outside_sources(f"cat {place}")] == ["package"]


@pytest.mark.parametrize(
    "call",
    [
        *("urlopen('{}')", "urlretrieve('{}')", "requests.get('{}')", "httpx.get('{}')", "aiohttp.get('{}')"),
        *("fetch('{}')", "axios.get('{}')"),
    ],
)
def test_code_that_gets_an_address_is_from_the_network(call: str) -> None:
    address = "https://example.org/a"
    assert [(source.origin, source.source) for source in sources_in_code(call.format(address))] == [
        ("network", address)
    ]
    assert (
        sources_in_code(call.format("http://localhost/a"))
        == sources_in_code(call.format("a"))
        == sources_in_code(address)
        == []
    )


@pytest.mark.parametrize("call", ["load_dataset", "hf_hub_download", "snapshot_download"])
def test_a_data_set_is_from_the_network(call: str) -> None:
    assert [source.source for source in sources_in_code(f"{call}('org/set')")] == ["data set org/set"]


@pytest.mark.parametrize("program", ["open('.git/objects/ab'); zlib.decompress", "['rev-list', '--all']"])
def test_code_that_reads_all_objects_is_of_the_repository(program: str) -> None:
    assert [source.origin for source in sources_in_code(f"import x\n{program}")] == ["repository"]
    assert sources_in_code(program) == []
