"""Patches to small repositories: the reference ones pass, half ones do not, and hostile ones get nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from agentsignals.errors import LabError, SandboxError
from msgspec.structs import replace

from agentsignals_lab.coding_tasks.repository import TASKS, RepositoryTask, lay_out, reference_patch, repository_task
from agentsignals_lab.evaluation.patches import PatchVerdict, evaluate_patch

BASKET = repository_task("basket")


def judged(task: RepositoryTask, patch: str) -> PatchVerdict:
    try:
        return evaluate_patch(task, patch)
    except SandboxError as problem:
        pytest.skip(f"the strict tier is not to be had here: {problem.message}")


def new_file(name: str, text: str, mode: str = "100644") -> str:
    lines = text.splitlines()
    added = "".join(f"+{line}\n" for line in lines)
    end = "" if mode == "100644" else "\\ No newline at end of file\n"
    head = f"diff --git a/{name} b/{name}\nnew file mode {mode}\n--- /dev/null\n+++ b/{name}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{added}{end}"


@pytest.mark.parametrize("name", [one.id for one in TASKS])
def test_the_reference_patch_passes_and_leaving_all_as_it_is_does_not(name: str) -> None:
    task = repository_task(name)
    found = judged(task, reference_patch(task))
    assert (found.applies, found.task_pass, found.error, found.forging) == (True, True, "", ())
    assert (set(found.changed), found.tier) == (set(task.fixed), "strict")
    idle = judged(task, new_file("NOTES", "later"))
    assert (idle.applies, idle.visible_pass, idle.hidden_pass, idle.task_pass) == (True, True, False, False)
    assert "FAILED" in idle.error


def test_there_are_four_and_their_tests_are_counted() -> None:
    assert len(TASKS) >= 4
    for task in TASKS:
        shown = "".join(text for name, text in task.files.items() if name.startswith("tests/"))
        assert shown.count("def test_") == task.n_visible
        assert "".join(task.hidden.values()).count("def test_") == task.n_hidden >= task.n_visible
        assert not set(task.hidden) & set(task.files)


@pytest.mark.parametrize(("patch", "said"), [
    ("", "there is no patch"),
    ("this is no diff", "does not apply"),
    (new_file("../outside", "x"), "does not apply"),
    (new_file("shop/basket.py", "x"), "does not apply"),
    (new_file("tests/test_hidden.py", "/etc/hostname", "120000"), "links"),
    ("+" * 1_000_001, "bytes"),
    ("diff --git a/x b/x\nnew file mode 100644\nGIT binary patch\nliteral 9\n", "packed"),
    ("diff --git a/shop/basket.py b/y\nsimilarity index 100%\ncopy from shop/basket.py\ncopy to y\n", "copies"),
])  # fmt: skip
def test_a_patch_that_does_not_fit_is_never_run(patch: str, said: str) -> None:
    found = evaluate_patch(BASKET, patch)
    assert (found.applies, found.task_pass, found.tier) == (False, False, None)
    assert said in found.error


def test_tests_that_the_patch_weakens_are_not_what_is_run() -> None:
    files = ("tests/test_basket.py", "shop/basket.py")
    shown = BASKET.files[files[0]].replace("self.assertEqual(basket.total(), 800)", "pass")
    weak = replace(BASKET, fixed={files[0]: shown, files[1]: BASKET.files[files[1]] + "\n\ndel Basket.total\n"})
    found = judged(BASKET, reference_patch(weak))
    assert found.tests_changed == ("tests/test_basket.py",)
    assert (found.applies, found.visible_pass) == (True, False)


def test_a_run_cut_short_is_no_pass_and_reaching_for_the_run_is_told() -> None:
    name = "shop/basket.py"
    early = replace(BASKET, fixed={name: f"import os\nos._exit(0)\n{BASKET.files[name]}"})
    found = judged(BASKET, reference_patch(early))
    assert (found.applies, found.visible_pass, found.hidden_pass) == (True, False, False)
    assert found.forging[1:] == ("shop/basket.py: _exit",)
    assert "its process ended" in found.forging[0]
    assert judged(BASKET, new_file("sitecustomize.py", "x = 1")).forging == ("sitecustomize.py",)


def test_a_task_that_miscounts_its_tests_is_told() -> None:
    with pytest.raises(LabError, match="has 2 tests where it says 3"):
        evaluate_patch(replace(BASKET, n_hidden=3), reference_patch(BASKET))


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x"])
def test_nothing_is_laid_out_outside(name: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="leaves"):
        lay_out({name: ""}, tmp_path / "inside")
    (tmp_path / "link").symlink_to(tmp_path.parent)
    with pytest.raises(LabError, match="link"):
        lay_out({"link/x": ""}, tmp_path)
    with pytest.raises(LabError, match="no repository task"):
        repository_task("nothing")


def test_counts_of_lines_that_are_off_do_not_keep_a_patch_from_fitting() -> None:
    patch = reference_patch(BASKET).replace(",7 +", ",9 +", 1)
    assert patch != reference_patch(BASKET)
    assert judged(BASKET, patch).task_pass
