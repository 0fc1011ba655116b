"""What lists of instances tell of a run: the harness's summary, and the results of a published submission."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from types import MappingProxyType

import msgspec
from msgspec import Struct, field

from agentsignals.formats import Input
from agentsignals.formats.instances import canonical, of_submission, of_summary, run_of_model
from agentsignals.formats.records import document, saw
from agentsignals.model.attempt import Attempt, Statement, Verification

MODEL = "model_id"
KNOBS = (("model", MODEL), ("agent", "agent_type"), ("dataset", "dataset"), ("split", "split"))
"""What folders say of who was tried, and its name among the knobs."""


class Summary(Struct):
    """What became of the instances of one evaluation."""

    empty_patch_ids: list[str] = field(default_factory=list)
    error_ids: list[str] = field(default_factory=list)
    resolved_ids: list[str] = field(default_factory=list)
    unresolved_ids: list[str] = field(default_factory=list)
    completed_ids: list[str] = field(default_factory=list)


class Submission(Struct):
    """What became of the instances of a published submission (`results.json`); `generated`, in older ones, is all that
    was handed in."""

    resolved: list[str] = field(default_factory=list)
    no_generation: list[str] = field(default_factory=list)
    no_logs: list[str] = field(default_factory=list)
    generated: list[str] | None = None


_decode_summary = msgspec.json.Decoder(Summary).decode
_decode_submission = msgspec.json.Decoder(Submission).decode


def summary_parts(source: Input) -> list[Attempt]:
    """Instances without a patch, or whose evaluation failed, have no report: the summary alone knows them. Of the
    others it says whether they were resolved, to trials of that run whose report is not there."""
    summary = document(source.data, source.artifact, _decode_summary)
    if summary is None:
        return []
    saw(source.artifact, "summary")
    parts: list[Attempt] = []
    parts += [_alone(source, i, "empty_patch") for i in summary.empty_patch_ids]
    parts += [_alone(source, i, "evaluation_error") for i in summary.error_ids]
    for ids, reward in ((summary.resolved_ids, 1.0), (summary.unresolved_ids, 0.0)):
        parts += known_by_all(source, [_of_summary(source, i, reward) for i in ids])
    return parts


def known_by_all(source: Input, parts: list[Attempt]) -> list[Attempt]:
    """What lends to the trials there are; where the file is read for itself, also as trials of their own those that
    have no other file: whether an outcome is known must not depend on what it is."""
    named = source.named_trials
    if named is None:
        return parts
    folder = posixpath.basename(posixpath.dirname(source.artifact.path))
    evaluated = {name.partition("/")[2] for name in named if name.count("/") == 2}
    made = []
    for part in parts:
        is_named = part.goes_by in named or f"{folder}/{part.task_id}" in named
        if part.run_id is not None and part.goes_by in evaluated:
            is_named = f"{part.run_id}/{part.goes_by}" in named  # another run of the model is another trial
        if part.goes_by and not is_named:
            made.append(msgspec.structs.replace(part, scope="trial", root=_root_of(part)))
    return parts + made


def _root_of(part: Attempt) -> str:
    """Where a trial of an evaluation would lie that has no files."""
    run = f"{part.run_id}/" if part.run_id and not (part.goes_by or "").startswith(f"{part.run_id}/") else ""
    return f"{part.root}/{run}{part.goes_by}"


def at_home(parts: list[Attempt]) -> list[Attempt]:
    """The parts, those of predictions with the trials that the run's own list makes of the same instance: the two files
    may lie anywhere, and one file of predictions may have been evaluated several times."""
    homes: dict[str, dict[str, Attempt]] = {}
    for part in parts:
        if part.scope == "trial" and part.goes_by and part.run_id and not part.kinds:
            homes.setdefault(part.goes_by, {})[part.root] = part
    moved: list[Attempt] = []
    for part in parts:
        roots = homes.get(part.goes_by or "") if part.scope == "trial" and part.run_id is None else None
        moved += [msgspec.structs.replace(part, root=root) for root in roots] if roots else [part]
    return moved


def submission_parts(source: Input, handed_in: Mapping[str, Collection[str]] = MappingProxyType({})) -> list[Attempt]:
    """Who did not resolve an instance is in no list of today's: they are known where `generated`, or the predictions
    (`handed_in`, by the submission's folder), lists all. Without it only what no report can tell is taken: of the
    resolved alone no rate could be made."""
    results = document(source.data, source.artifact, _decode_submission)
    if results is None:
        return []
    saw(source.artifact, "results")
    parts = [_of_submission(source, i, None) for i in results.no_logs]
    parts += [_of_submission(source, i, 0.0) for i in results.no_generation]
    lent = [_of_submission(source, i, 1.0) for i in results.resolved]
    home = posixpath.dirname(posixpath.dirname(source.artifact.path))
    generated = results.generated if results.generated is not None else handed_in.get(home)
    if generated is not None:
        others = {canonical(i) for i in (*results.resolved, *results.no_generation, *results.no_logs)}
        lent += [_of_submission(source, i, 0.0) for i in generated if canonical(i) not in others]
        return known_by_all(source, parts + lent)
    return known_by_all(source, parts) + lent


def _of_submission(source: Input, instance: str, reward: float | None) -> Attempt:
    became = {None: "no logs", 0.0: "not resolved", 1.0: "resolved"}[reward]
    tried = of_submission(source.artifact.path)
    return Attempt(
        root=posixpath.dirname(posixpath.dirname(source.artifact.path)),
        scope="lent",
        task_id=canonical(instance),
        goes_by=name_of(source, None, instance),
        run_id=tried.get("run"),
        observed={k: tried[n] for n, k in KNOBS if n in tried},
        reward=reward,
        ending="verifier" if reward is None else None,
        statements=[
            Statement(
                text=f"results: {instance} {became}", artifact_id=source.artifact.artifact_id, line=1, fields=["reward"]
            )
        ],
    )


def _alone(source: Input, instance: str, became: str) -> Attempt:
    part = _of_summary(source, instance, 0.0 if became == "empty_patch" else None)
    if source.named_trials is not None and f"{part.run_id}/{part.goes_by}" not in source.named_trials:
        part.scope, part.root = "trial", _root_of(part)  # else the evaluation left a log: it is lent to that
    part.exit_status, part.ending = became, "finished" if became == "empty_patch" else "verifier"
    fields = ["exit_status", f"knobs.{MODEL}"]
    if became == "empty_patch":
        part.patch = []
        fields += ["patch", "reward"]
    else:
        part.verification = Verification(status="crashed", message="the evaluation ended in an error")
        fields += ["verification"]
    part.statements = [
        Statement(
            text=f"evaluation summary: {instance} {became}",
            artifact_id=source.artifact.artifact_id,
            line=1,
            fields=fields,
        )
    ]
    return part


def _of_summary(source: Input, instance: str, reward: float | None) -> Attempt:
    evaluation = of_summary(source.artifact.path)
    name = evaluation.get("model") or evaluation["run"]
    text = f"evaluation summary: {instance} {'resolved' if reward else 'unresolved'}"
    return Attempt(
        root=posixpath.dirname(source.artifact.path),
        scope="lent",
        task_id=canonical(instance),
        goes_by=run_of_model(name, instance),
        run_id=evaluation["run"],
        observed={knob: evaluation[word] for word, knob in KNOBS if word in evaluation},
        reward=reward,
        statements=[Statement(text=text, artifact_id=source.artifact.artifact_id, line=1, fields=["reward"])],
    )


def name_of(source: Input, model: str | None, instance: str) -> str | None:
    """What the trial goes by: within a published submission by its name, else by the model's."""
    name = of_submission(source.artifact.path).get("run") or model
    return run_of_model(name, instance) if name else None
