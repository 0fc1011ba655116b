"""Topics over a store: planted ones are found, what fits none is noise, the same seed says the same, names are asked
for once."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from msgspec import structs

from agentsignals.cli import main
from agentsignals.errors import LabelError, UsageError
from agentsignals.ingest import pipeline
from agentsignals.labels.labellers import labeller
from agentsignals.labels.labellers.openai import ChatServer
from agentsignals.labels.topics import NO_TOPIC, Summary, kept_prompts, label_topics, name_in
from agentsignals.model import Absent, Session
from agentsignals.stats.grouping import dense_groups
from agentsignals.store import Store, sidecars
from agentsignals.store.query import rows
from tests.build import say, session, user
from tests.embedding_server import serving as embedding
from tests.labels.server import Server, material
from tests.questions.stores import store_of
from tests.quick import some

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra topics)")
from sklearn.metrics import adjusted_rand_score  # noqa: E402

THEMES = (
    "merge branch conflict rebase upstream history",
    "button colour layout margin header footer",
    "table column migration index schema query",
    "invoice payment customer refund currency receipt",
    "login password account signup avatar profile",
    "container image registry deploy cluster replica",
    "translate locale plural grammar dialect glossary",
    "sensor voltage firmware antenna battery circuit",
)
EACH, STRAYS, PLACES = 16, 12, 12
METHODS = ("k-means", "umap+hdbscan")


def prompts() -> list[tuple[int, str]]:
    """Prompts with the theme each is of; -1 for those that share no word with another."""
    chance = random.Random(5)  # noqa: S311  (made-up prompts, no secret)
    made = [
        (n, f"please could you {' '.join(chance.sample(words.split(), 4))} and the rest of it")
        for n, words in enumerate(THEMES)
        for _ in range(EACH)
    ]
    letters = "bcdfghjklmnpqrstvwxz"
    strange = [" ".join("".join(chance.choices(letters, k=9)) for _ in range(3)) for _ in range(STRAYS)]
    made += [(-1, f"please could you {words} and the rest of it") for words in strange]
    chance.shuffle(made)
    return made


def sessions(said: list[tuple[int, str]]) -> list[Session]:
    """Two prompts a session, `Yes.` after them; many places, so that none has more than its share."""
    found = []
    for n in range(0, len(said), 2):
        parts = [part for _, text in said[n : n + 2] for part in (user(text), say("done"))]
        place = f"/home/ada/place-{'abcdefghijkl'[n // 2 % PLACES]}"
        found.append(session(*parts, user("yes"), say("ok"), session_id=f"s{n // 2:03}", cwd=place))
    return found


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of(tmp_path_factory.mktemp("planted") / "s", *sessions(prompts())).folder


@pytest.fixture
def store(planted: Path, tmp_path: Path) -> Store:
    """A fresh copy."""
    (tmp_path / "s").mkdir()
    for path in planted.rglob("*"):
        target = tmp_path / "s" / path.relative_to(planted)
        target.mkdir(exist_ok=True) if path.is_dir() else target.write_bytes(path.read_bytes())
    return Store(tmp_path / "s")


@pytest.fixture(params=[METHODS[0], pytest.param(METHODS[1], marks=pytest.mark.slow)])
def method(request: pytest.FixtureRequest) -> str:
    """Each way of grouping: UMAP compiles itself for some seconds."""
    if request.param == METHODS[1] and not has_umap():
        pytest.skip("umap-learn is not installed (extra topics)")
    return str(request.param)


def has_umap() -> bool:
    return not isinstance(dense_groups([[float(n), 1.0] for n in range(20)], 8, 1), Absent)


@pytest.fixture
def server(server: Server) -> Server:
    server.answers = lambda _: answer("Resolving differences between two lines of work")
    return server


def answer(name: str) -> str:
    return json.dumps({"technologies": "none", "activity": "They do it.", "name": name})


def numbers(store: Store) -> dict[tuple[str, int], int]:
    found = sidecars.labels_of(store.folder, "topic", "clusters")
    return {(r.session_id, r.label.turn or 0): int(r.label.number or 0) for r in found}


def by_theme(store: Store) -> list[tuple[int, int]]:
    """The theme and the topic of every prompt that was compared."""
    of = numbers(store)
    places = [(theme, (f"s{n // 2:03}", n % 2)) for n, (theme, _) in enumerate(prompts())]
    return [(theme, of[place]) for theme, place in places if place in of]


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_planted_topics_are_found_and_strays_are_in_none(store: Store, method: str) -> None:
    summary = label_topics(store, method=method)
    assert summary.method == method and summary.embedder == "tf-idf"
    pairs = by_theme(store)
    inside = [(theme, topic) for theme, topic in pairs if theme >= 0 and topic >= 0]
    assert len(inside) >= 0.8 * EACH * len(THEMES)
    assert adjusted_rand_score(*zip(*inside, strict=True)) >= 0.9
    assert {topic for theme, topic in pairs if theme < 0} == {-1}, "texts that share no word are not alike in that"


@pytest.mark.slow
def test_topics_are_named_by_words_of_their_own(store: Store, method: str) -> None:
    summary = label_topics(store, method=method)
    sets = [set(words.split()) for words in THEMES]
    assert summary.topics and all(any(set(topic.words) <= theme for theme in sets) for topic in summary.topics)
    found = {r.label.number: r.label.value for r in sidecars.labels_of(store.folder, "topic", "clusters")}
    assert found[0] == ", ".join(summary.topics[0].words) and found[-1] == NO_TOPIC


def test_every_prompt_is_in_a_topic_or_in_none_or_left_out_with_its_reason(store: Store, method: str) -> None:
    summary = label_topics(store, method=method)
    counted = Counter(numbers(store).values())
    assert [topic.n for topic in summary.topics] == [counted[n] for n in range(len(summary.topics))]
    assert counted[-1] == summary.noise >= STRAYS / 2
    assert sum(t.n for t in summary.topics) + summary.noise == summary.compared == len(numbers(store))
    assert summary.noise_share == summary.noise / summary.compared
    assert summary.compared + sum(summary.left_out.values()) == summary.prompts
    assert summary.left_out_share == 1 - summary.compared / summary.prompts
    assert [t.n for t in summary.topics] == sorted((t.n for t in summary.topics), reverse=True)
    (row, *_) = sidecars.labels_of(store.folder, "topic", "clusters")
    detail = json.loads(row.label.detail or "")
    assert detail["noise_share"] == round(summary.noise_share, 4) and detail["method"] == method
    assert (detail["compared"], detail["topics"]) == (summary.compared, len(summary.topics))


@pytest.mark.slow
def test_the_same_seed_says_the_same_and_another_is_another_version(store: Store, method: str) -> None:
    first = label_topics(store, seed=3, method=method)
    kept = numbers(store)
    again = label_topics(store, seed=3, method=method)
    assert numbers(store) == kept and structs.replace(again, file=first.file) == first
    other = label_topics(store, seed=4, method=method)
    assert other.version != first.version
    assert {
        json.loads(r.label.detail or "")["seed"] for r in sidecars.labels_of(store.folder, "topic", "clusters")
    } == {4}


@pytest.mark.slow
def test_where_there_is_nothing_to_find_the_seed_decides(tmp_path: Path, method: str) -> None:
    chance = random.Random(1)  # noqa: S311  (made-up prompts, no secret)
    words = [word for theme in THEMES for word in theme.split()]
    said = [(0, f"please could you {' '.join(chance.sample(words, 6))} and the rest of it") for _ in range(80)]
    store = store_of(tmp_path / "s", *sessions(said))
    found = []
    for seed in (1, 2):
        label_topics(store, seed=seed, method=method)
        found.append(numbers(store))
    assert found[0] != found[1]
    assert all(-1 in of.values() for of in found), "much of it lies between topics"


@pytest.mark.slow
def test_a_run_replaces_the_one_before(store: Store) -> None:
    whole = label_topics(store)
    part = label_topics(store, "session_id < 's050'")
    assert part.compared < whole.compared
    assert len(numbers(store)) == part.compared, "numbers of another run mean other topics"
    assert all(session_id < "s050" for session_id, _ in numbers(store))


@pytest.mark.slow
def test_prompts_of_eval_runs_are_nobodys(tmp_path: Path) -> None:
    made = sessions(prompts())
    for one in made[:10]:
        one.context = "eval"
    store = store_of(tmp_path / "s", *made)
    summary = label_topics(store)
    assert summary.prompts == 3 * (len(made) - 10), "they are not even left out"
    assert not {f"s{n:03}" for n in range(10)} & {session_id for session_id, _ in numbers(store)}


@pytest.mark.parametrize("installed", [True, False])
def test_the_method_is_the_same_whatever_is_installed(
    store: Store, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    """What would say otherwise is never loaded; where it is asked for and missing, nothing else takes its place."""
    if not installed:
        monkeypatch.setitem(sys.modules, "umap", None)
        with pytest.raises(LabelError, match="umap-learn is not installed") as caught:
            label_topics(store, method="umap+hdbscan")
        assert "umap-learn" in caught.value.hint and numbers(store) == {}
    assert label_topics(store).method == "k-means"


def test_the_prompts_in_the_middle_of_a_topic_are_shown(store: Store) -> None:
    summary = label_topics(store)
    found = {(r.session_id, r.label.turn): r.label for r in sidecars.labels_of(store.folder, "topic", "clusters")}
    for topic in summary.topics:
        assert len(topic.examples) == len({one.session for one in topic.examples}) == 3
        shown = [found[one.session, one.turn - 1] for one in topic.examples]
        assert {label.number for label in shown} == {topic.number}
        fits = sorted(
            (json.loads(r.detail or "")["fit"] for r in found.values() if r.number == topic.number), reverse=True
        )
        assert json.loads(shown[0].detail or "")["fit"] == fits[0]
        assert all(one.excerpt.startswith("please could you") for one in topic.examples)


def test_too_few_prompts_are_said_to_be(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", *sessions(prompts()[:30]))
    with pytest.raises(LabelError) as caught:
        label_topics(store)
    assert "40 are needed" in caught.value.message and "15 not identified as English" in caught.value.hint
    assert numbers(store) == {}


def test_without_numpy_it_says_what_to_install(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(LabelError) as caught:
        label_topics(store)
    assert "umap-learn" in caught.value.hint


def test_an_embedder_with_a_model_is_asked_once(store: Store) -> None:
    with embedding() as server:
        spec = f"openai:letters@{server.url}"
        summary = label_topics(store, embedder=spec)
        assert summary.embedder.startswith("openai:letters@") and summary.topics
        assert sorted(set(server.texts)) == sorted(server.texts) and len(server.texts) == summary.compared
        assert "please could you" in server.texts[0] + server.texts[1]
        n = len(server.requests)
        assert structs.replace(label_topics(store, embedder=spec), file=summary.file) == summary
        assert len(server.requests) == n, "vectors are kept"


# -- the signal --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_labels_make_the_signal(store: Store) -> None:
    asked = (
        "SELECT session_id, turn, number, absent, absent_detail FROM signals WHERE signal = 'chat.prompt_topic_cluster'"
    )
    assert rows(store, asked)[1] == []
    label_topics(store)
    pipeline.measure(store.folder)
    found = {(s, t): (n, a, d) for s, t, n, a, d in rows(Store(store.folder), asked)[1]}
    assert {key: found[key] for key in numbers(store)} == {
        key: (float(n), None, None) for key, n in numbers(store).items()
    }
    assert found["s000", 2] == (None, "not_applicable", "not_clustered"), "`yes` has no word to compare"


# -- names -------------------------------------------------------------------------------------------------------------


def namer(server: Server) -> ChatServer:
    return ChatServer(f"tiny@{server.url}", wait=lambda _: None)


def named(store: Store, server: Server) -> Summary:
    return label_topics(store, namer=namer(server))


@pytest.mark.slow
def test_a_model_names_each_topic_once(store: Store, server: Server) -> None:
    summary = named(store, server)
    assert summary.naming is not None
    n = len(summary.topics)
    assert (summary.naming.names, summary.naming.calls, summary.naming.kept) == (n, n, 0)
    assert {t.name for t in summary.topics} == {"Resolving differences between two lines of work"}
    shown = material(server.requests[0])
    assert shown.startswith("Words: ") and shown.count("\n- please could you ") >= 5
    detail = [json.loads(r.label.detail or "") for r in sidecars.labels_of(store.folder, "topic", "clusters")]
    assert {d.get("named_by") for d in detail} == {"openai:tiny", None}, "noise has no name"
    again = named(store, server)
    assert again.naming is not None and (again.naming.kept, again.naming.calls) == (n, 0)
    assert len(server.requests) == n


@pytest.mark.slow
@pytest.mark.parametrize(
    "said", some(["Tests", "", " ".join(["word"] * 13), "\n"], 4), ids=["one word", "nothing", "a sentence", "a blank"]
)
def test_what_is_no_name_is_a_failure_and_the_topics_stand(store: Store, server: Server, said: str) -> None:
    server.answers = lambda _: answer(said)
    summary = named(store, server)
    assert summary.naming is not None and summary.naming.failed == {"invalid_answer": len(summary.topics)}
    assert name_in(answer("Mending\n the  build")) == "Mending the build", "a name is one line"
    assert {t.name for t in summary.topics} == {None} and len(numbers(store)) == summary.compared
    server.answers = lambda _: answer("Resolving differences")
    again = named(store, server)
    assert again.naming is not None and again.naming.names == len(again.topics), "failures are asked again"


@pytest.mark.slow
def test_topics_are_written_when_the_server_gives_up(store: Store, server: Server) -> None:
    server.fault = lambda _: 401
    with pytest.raises(LabelError):
        named(store, server)
    assert len(numbers(store)) > EACH * len(THEMES)


@pytest.mark.slow
def test_nothing_that_topics_are_made_of_or_that_a_namer_is_shown_holds_a_secret(
    tmp_path: Path, server: Server
) -> None:
    hidden = ("marjolein", "xample", "hunter")
    begins = "in /home/marjolein/parser mail jo@example.org the password: hunter22 of"
    said = [(n, text.replace("please could you", f"please could you {begins}")) for n, text in prompts()]
    held = store_of(tmp_path / "s", *sessions(said))
    summary = named(held, server)
    asked = [material(request) for request in server.requests]
    told = [row.label.value for row in sidecars.labels_of(held.folder, "topic", "clusters")]
    shown = [(topic.words, [one.excerpt for one in topic.examples]) for topic in summary.topics]
    for text in (repr(shown), repr(told), *asked):
        assert not [part for part in hidden if part in text.lower()]
    assert summary.compared > EACH * len(THEMES) and "Messages:" in asked[0]
    _, kept = kept_prompts(held, "true")
    assert not [one.text for one in kept.prompts if any(part in one.text for part in hidden)]


def test_rules_name_nothing(store: Store) -> None:
    with pytest.raises(UsageError):
        label_topics(store, namer=labeller("rules"))


# -- the verb ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_verb_says_what_it_found(store: Store, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--store", str(store.folder)]
    assert main(["label", "topic", "--json", *folder]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Summary)
    assert found == structs.replace(label_topics(store), file=found.file) and found.naming is None
    assert main(["label", "topic", "--by", "clusters", "--names", f"openai:tiny@{server.url}", *folder]) == 0
    out = capsys.readouterr().out
    assert f"{found.noise:,}, {found.noise_share:.1%} of those compared" in out
    assert "Resolving differences between two lines of work" in out
    assert out.startswith("left out ") and "typical prompts of each topic" in out and "    0  “please could you" in out
    assert f"{len(found.topics)} by openai:tiny" in out
    assert main(["label", "--json"]) == 0
    assert "topic" in {row["task"] for row in json.loads(capsys.readouterr().out)}


@pytest.mark.parametrize(
    "arguments",
    [
        ["topic", "--by", "openai:tiny@http://127.0.0.1:1/v1"],
        ["topic", "--limit", "3"],
        ["topic", "--from", "a.jsonl", "--labeller", "human:jo"],
        ["topic", "--dry-run"],
        ["topic", "--no-redact"],
        ["topic", "--names", "classifier"],
        ["topic", "--embedder", "nonsense"],
        ["topic", "--method", "magic"],
        ["sentiment", "--method", "k-means"],
        ["sentiment", "--by", "clusters"],
        ["sentiment", "--names", "openai:tiny"],
    ],
)
def test_what_has_no_meaning_for_topics_is_refused(store: Store, arguments: list[str]) -> None:
    assert main(["label", *arguments, "--store", str(store.folder)]) == 2
    assert numbers(store) == {}
