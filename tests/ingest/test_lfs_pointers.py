"""A pointer of Git LFS is named, with what to do: the file it stands for was not fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsignals.ingest import plan
from agentsignals.store.index import Manifest

OID = "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize 12345\n"
OLDEST = POINTER.replace("git-lfs", "hawser")
EXTENDED = POINTER.replace("\noid", f"\next-0-foo sha256:{OID}\noid")


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("run.eval", POINTER, "git_lfs_pointer"),
        ("rows.parquet", EXTENDED, "git_lfs_pointer"),
        ("a.jsonl", OLDEST, "git_lfs_pointer"),
        ("opencode.db", POINTER, "git_lfs_pointer"),
        ("notes.txt", f"See {POINTER}", "not_a_trace"),
        ("spec.txt", POINTER.replace("size 12345", "size large"), "not_a_trace"),
    ],
)
def test_a_pointer_is_named_and_text_about_one_is_not(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    made = plan.make_plan([str(tmp_path)], Manifest())
    members = [m for groups in made.shards for family in groups for m in family.files]
    reasons = [m.reason for m in members] + [r for entry in made.other_files.values() for r in entry.skipped]
    assert reasons == [reason]
    for member in members:
        assert "12,345 bytes" in member.detail
        assert "git lfs pull" in member.detail
