"""The claims of the emotion lab and of SWE-chat against stored result files, real ones and ones made here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from agentsignals.cli import main
from agentsignals.experiments.replication import SETS, Claim, Verdict, load, names, replicate
from agentsignals.model import Checkpoint, Label
from agentsignals.questions.studies import studies
from agentsignals.store import Store, sidecars
from agentsignals.store.sidecars import LabelRow
from tests.build import say, session, user
from tests.questions.stores import store_of

SHARED = Path(__file__).parents[3] / "shared"
RUNS = SHARED / "corpus" / "emotion-runs"
TARGETS = SHARED / "spec" / "emotion_replicate_targets.json"
NEGATIVE = ("frustrated", "desperate", "stuck", "stressed")


def by_claim(found: list[Verdict]) -> dict[str, Verdict]:
    return {v.claim: v for v in found}


@pytest.mark.parametrize("name", names())
def test_every_claim_of_a_set_can_be_read(name: str) -> None:
    told = load(name)
    assert all(isinstance(entry, Claim) and entry.text for entry in told.entries())
    assert told.source
    assert told.data


def test_there_are_three_sets() -> None:
    assert names() == ["emotion-lab", "sentiment", "swe-chat"]


def smoke(folder: Path, score: str = "0.25") -> Path:
    """One stage of one emotion over three layers, and markers of three conditions."""
    inner = folder / "results/runs/smoke-qwen-coder-0_5b"
    inner.mkdir(parents=True)
    rows = [f"start,0,calm,8,{score}", "start,0,calm,12,0.26", "start,0,calm,16,0.288", "start,1,calm,8,9"]
    (inner / "activation_scores.csv").write_text("\n".join(["prompt_id,stage,emotion,layer,score", *rows]), "utf-8")
    marks = ["baseline,1", "baseline,3", '"calm_+1.0",0', "calm_-1.0,1", "calm_-1.0,0"]
    (inner / "generation_scores.csv").write_text("\n".join(["condition,aggregate_marker_score", *marks]), "utf-8")
    return folder


def test_recipes_by_hand(tmp_path: Path) -> None:
    found = by_claim(replicate("emotion-lab", smoke(tmp_path)))
    assert found["smoke.stage0.calm"].computed == pytest.approx(0.266)
    assert (found["smoke.stage0.calm"].status, found["smoke.stage0.calm"].n) == ("pass", 3)
    assert found["smoke.stage1.calm"].status == "fail"
    assert found["smoke.stage0.stuck"].status == "untestable"
    assert found["smoke.marker.baseline"].computed == 2.0
    assert found["smoke.marker.steered.min"].computed == 0.0
    assert found["smoke.marker.steered.max"].computed == 0.5
    assert found["smoke.generations"].computed == 5


def test_what_the_lab_computes_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsignals.experiments.replication.entry_points", lambda **_: ())
    found = by_claim(replicate("emotion-lab", smoke(tmp_path)))
    needs_it = [v for name, v in found.items() if name.startswith(("rescored.", "markers.", "geometry."))]
    assert needs_it and {v.status for v in needs_it} == {"untestable"}
    assert any("pip install ./packages/lab" in v.note for v in needs_it)


def test_the_folder_of_results_may_be_named_itself(tmp_path: Path) -> None:
    found = by_claim(replicate("emotion-lab", smoke(tmp_path) / "results"))
    assert found["smoke.stage0.calm"].status == "pass"


def test_a_cell_that_is_no_number_fails_what_rests_on_it_and_nothing_else(tmp_path: Path) -> None:
    found = by_claim(replicate("emotion-lab", smoke(tmp_path, score="a lot")))
    assert found["smoke.stage0.calm"].status == "fail"
    assert "a lot" in found["smoke.stage0.calm"].note
    assert found["smoke.marker.baseline"].computed == 2.0


def test_runs_from_before_the_removal_are_found_in_either_place(tmp_path: Path) -> None:
    for place in ("results", "history-before-278c5be/results"):
        inner = tmp_path / place.replace("/", "-") / place / "agent-runs/starcoder2-7b"
        inner.mkdir(parents=True)
        (inner / "agent_runs.csv").write_text("condition,attempts_used\nbaseline,3\n", "utf-8")
        found = by_claim(replicate("emotion-lab", tmp_path / place.replace("/", "-")))
        assert found["agent.StarCoder2-7B.attempts_used"].status == "pass"
        assert found["agent.StarCoder2-7B.final_task_pass"].status == "untestable"


def swe_chat(folder: Path, sessions: int = 5851) -> Path:
    """Tables like the release's: 40.8 % vibe, 22.7 % human only, a mean of 55.8 and a median of 73.3 percent of lines;
    each session twice, the older copy saying otherwise."""
    vibe, human = round(sessions * 0.408), round(sessions * 0.227)
    together = sessions - vibe - human
    most, some = round(together * 0.1), round(together * 0.35)
    rest = (55.8 * sessions - 99.0 * vibe - 98.9 * most - 73.3 * some) / (together - most - some)
    share = [99.0] * vibe + [0.0] * human + [98.9] * most + [73.3] * some + [rest] * (together - most - some)
    made = pl.DataFrame(
        {"session_id": [f"s{n}" for n in range(sessions)], "output_tokens": 10, "agent_percentage": share}
    )
    older = made.with_columns(output_tokens=pl.lit(9), agent_percentage=pl.lit(50.0)).cast({"output_tokens": pl.Int64})
    unrecorded = made.head(100).with_columns(
        output_tokens=pl.lit(None, pl.Int64), agent_percentage=pl.lit(None, pl.Float64)
    )
    folder.mkdir(parents=True)
    pl.concat([older, made.cast({"output_tokens": pl.Int64}), unrecorded]).write_parquet(folder / "sessions.parquet")
    label = ["correction"] * 390 + ["non_pushback"] * 560 + [None] * 50
    content = ["please go on"] * 950 + ["[Request interrupted by user for tool use]"] * 50
    prompts = pl.DataFrame({"role": "user", "turn_type": "user_prompt", "content": content, "prompt_pushback": label})
    unjudged = pl.DataFrame({"role": ["user"] * 900}).with_columns(
        turn_type=pl.lit("system_injected"), content=pl.lit("<note>"), prompt_pushback=pl.lit("")
    )
    calls = pl.DataFrame({"role": ["tool_use"] * 355_000}).with_columns(
        turn_type=pl.lit("tool_use"), content=pl.lit("[Request interrupted by user"), prompt_pushback=pl.lit("")
    )
    pl.concat([prompts] * 63 + [calls, unjudged]).with_columns(session_id=pl.lit("s1")).write_parquet(
        folder / "conversations.parquet"
    )
    return folder


def test_swe_chat_on_tables_like_the_release(tmp_path: Path) -> None:
    found = by_claim(replicate("swe-chat", swe_chat(tmp_path / "release")))
    passed = {c.removeprefix("swe-chat.") for c, v in found.items() if v.status == "pass"}
    assert passed == {
        f"v1.{c}"
        for c in (
            *("sessions", "sessions_released", "prompts", "tool_calls", "vibe", "human_only", "pushback"),
            *("fig5.mean", "fig5.median", "fig19e.human_only", "fig19e.collaborative", "fig19e.vibe"),
            *("interruptions", "pushback_in_words"),
        )
    }
    assert {v.status for c, v in found.items() if c.removeprefix("swe-chat.") not in passed} == {"untestable"}
    assert {v.status for c, v in found.items() if c.startswith("swe-chat.v2.")} == {"untestable"}
    assert found["swe-chat.v1.pushback"].computed == pytest.approx(0.44)
    assert found["swe-chat.v1.vibe"].n == 5851
    assert "not snapshot v2" in found["swe-chat.v2.vibe"].note
    assert all(found[f"swe-chat.{v}.survival"].status == "untestable" for v in ("v1", "v2"))


def test_one_table_is_not_taken_for_another(tmp_path: Path) -> None:
    found = by_claim(replicate("swe-chat", swe_chat(tmp_path / "release") / "sessions.parquet"))
    assert found["swe-chat.v1.vibe"].status == "pass"
    assert found["swe-chat.v1.prompts"].status == "untestable"
    assert "conversations.parquet" in found["swe-chat.v1.prompts"].note


def test_a_claim_of_a_snapshot_says_nothing_about_a_handful_of_sessions(tmp_path: Path) -> None:
    found = replicate("swe-chat", swe_chat(tmp_path / "few", sessions=50))
    assert {v.status for v in found} == {"untestable"}


@pytest.mark.slow
def test_sessions_of_a_store_are_not_taken_for_the_collection(tmp_path: Path) -> None:
    made = session(user("hello there"))
    made.checkpoints = [Checkpoint(checkpoint_id="c1", created_at=1, agent_percentage=100.0)]
    found = by_claim(replicate("swe-chat", store=store_of(tmp_path / "store", made)))
    assert {v.status for v in found.values()} == {"untestable"}
    vibe = found["swe-chat.v1.vibe"]
    assert "not snapshot v1" in vibe.note
    assert (vibe.computed, vibe.n) == (1.0, 1)


@pytest.mark.slow
def test_a_store_of_other_sessions_says_what_it_has_none_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_of(tmp_path / "store", session(user("hello there")))
    for claims, lacks in {"swe-chat": "a checkpoint", "sentiment": "a label of sentiment"}.items():
        assert main(["replicate", claims, "--store", str(store.folder)]) == 1
        out, err = capsys.readouterr()
        assert "of the store's 1 sessions none gives a " in out
        assert lacks in out
        assert "not one claim could be tested" in err


def anywhere(folder: Path) -> Path:
    """The claims of SWE-chat without their snapshots: to see what they compute, over a handful of sessions."""
    text = re.sub(
        r"^  snapshot: .*\n|snapshot: v[12][a-z-]*,\s*", "", (SETS / "swe-chat.yaml").read_text("utf-8"), flags=re.M
    )
    made = folder / "claims.yaml"
    made.write_text(text, "utf-8")
    return made


def test_tokens_for_a_hundred_lines_are_of_sessions_alone_in_their_checkpoints(tmp_path: Path) -> None:
    rows = [
        ("a", "x/a", 5, 100.0, 50, ["c1"]),
        ("b", "x/a", 5, 100.0, 10, ["c2", "c3"]),
        ("c", "entireio/cli", 5, 0.0, 10, ["c3"]),
        ("d", "x/b", 5, 100.0, 0, ["c4"]),
        ("e", "x/b", 5, 0.0, 100, ["c5"]),
    ]
    columns = ("session_id", "repo_id", "output_tokens", "agent_percentage", "total_committed", "checkpoint_ids")
    table = pl.DataFrame(
        [dict(zip(columns, (*row[:5], json.dumps(row[5])), strict=True)) for row in rows]
    ).with_columns(input_tokens=20, cache_read_tokens=70, cache_creation_tokens=pl.lit(None, pl.Int64))
    (tmp_path / "release").mkdir()
    table.write_parquet(tmp_path / "release" / "sessions.parquet")
    found = by_claim(replicate(anywhere(tmp_path), tmp_path / "release"))

    def of(claim: str) -> tuple[object, int | None]:
        return found[f"swe-chat.v1.{claim}"].computed, found[f"swe-chat.v1.{claim}"].n

    assert of("tokens.vibe.median") == (100 * 95 / 50, 1)
    assert of("fig29.tokens.human_only.mean") == (95, 1)
    assert of("alone") == (2 / 4, 4)
    assert of("repositories")[0] == 3
    assert of("fig22") == (False, 5)
    assert found["swe-chat.v1.fig29.tokens.collaborative.mean"].status == "untestable"


@pytest.mark.slow
def test_survival_of_the_paper_leaves_out_what_is_recorded_as_a_persons(tmp_path: Path) -> None:
    fates = {"a": (100, 20, 40, 100.0), "b": (50, 0, 50, 60.0), "c": (1000, 0, 0, 0.0), "d": (10, 5, 10, None)}
    sessions = []
    for name, (_, _, _, percent) in fates.items():
        made = session(user("go"), say("done"), session_id=name)
        if percent is not None:
            made.checkpoints = [
                Checkpoint(
                    checkpoint_id=name,
                    created_at=1,
                    agent_lines=int(percent),
                    total_committed=100,
                    agent_percentage=percent,
                )
            ]
        sessions.append(made)
    store = store_of(tmp_path / "store", *sessions)
    told = [
        LabelRow(
            name,
            Label(
                task="code_survival", labeller="attribution", turn=None, value="", number=0.5,
                detail=json.dumps({"produced": made, "overwritten_by_self": own, "committed": kept}),
            ),
        )
        for name, (made, own, kept, _) in fates.items()
    ]  # fmt: skip
    sidecars.write_labels(store.folder, "code_survival", "attribution", told)
    found = by_claim(replicate(anywhere(tmp_path), store=Store(store.folder)))
    computed = {c.removeprefix("swe-chat."): v.computed for c, v in found.items()}
    assert computed["v1.survival"] == computed["v2.survival"] == computed["v1.tab3.all.efficiency"] == 100 / 160
    assert computed["v1.tab3.all.survival"] == pytest.approx((40 + 50 + 5) / (80 + 50 + 5))
    assert computed["v1.tab3.collaborative.efficiency"] == 1
    assert computed["v1.tab3.vibe_coding.survival"] == 0.5
    assert computed["v1.tab3.vibe_coding.self_overwritten"] == 0.2


@pytest.mark.slow
def test_what_only_a_store_has_is_not_taken_from_a_store_beside_the_release(tmp_path: Path) -> None:
    """The release is at hand, and a store of somebody's few sessions: findings of that store are not the release's."""
    made = session(user("hello there"))
    made.checkpoints = [Checkpoint(checkpoint_id="c1", created_at=1, agent_percentage=100.0, total_committed=10)]
    store = store_of(tmp_path / "store", made)
    detail = json.dumps({"produced": 10, "overwritten_by_self": 0, "committed": 10})
    one = Label(task="code_survival", labeller="attribution", turn=None, value="1", number=1.0, detail=detail)
    sidecars.write_labels(store.folder, "code_survival", "attribution", [LabelRow(made.session_id, one)])
    found = by_claim(replicate("swe-chat", swe_chat(tmp_path / "release"), store))
    assert found["swe-chat.v1.vibe"].status == "pass"
    for claim in (
        "clarifications",
        "fig7.vibe_coding",
        "fig30.median",
        "survival",
        "fig20.english",
        "tab3.all.efficiency",
    ):
        assert found[f"swe-chat.v1.{claim}"].status == "untestable", claim


def test_every_figure_and_table_of_the_paper_has_its_row_and_names_studies_that_are() -> None:
    page = (Path(__file__).parents[2] / "docs" / "replicate.md").read_text("utf-8")
    rows = [row.split("|")[1:3] for row in page.splitlines() if re.match(r"\| (Figure|Table)s? \d", row)]
    seen: dict[str, set[int]] = {"Figure": set(), "Table": set()}
    for head, here in rows:
        kind, numbers = re.match(r" (Figure|Table)s? ((?:\d+[a-e]?|and|to| )+)", head).groups()  # type: ignore[union-attr]
        ends = [int(n) for n in re.findall(r"\d+", numbers)]
        seen[kind] |= set(range(ends[0], ends[-1] + 1)) if " to " in numbers else set(ends)
        for name in re.findall(r"`([a-z_]+)`", here):
            assert name in studies(), name
    assert seen == {"Figure": set(range(1, 35)), "Table": set(range(1, 9))}
