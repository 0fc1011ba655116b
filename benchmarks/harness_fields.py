"""Fields of the harnesses' own record types, from the packages, against what the cards of the formats say of them.

    python -m benchmarks.harness_fields --packages FOLDER     # holds the packages as pip lays them out
    python -m pip download --no-deps --only-binary=:all: --python-version 3.13 -d FOLDER inspect-ai harbor ...
    git archive --format=zip -o FOLDER/sweagent-1.1.0.zip HEAD     # where no registry has it; OpenHands/benchmarks, too

The packages are read, never imported or run: a field is an annotation of a class, or a key that a function writes. A
field that a card neither calls read nor not read is new; one that it names and no package has is gone. Both end with
status 1.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from agentsignals.formats import Fields, card_of, formats

SPEAKS = re.compile(
    r"valid|retr|attempt|best|chosen|selected|limit|timeout|budget|scor|reward|metric|headline|reduc|total|usage|token"
    r"|cost|role|model|name|(?:^|_)ids?$|error|exception|fail|status|policy|fallback|epoch|resolved|completed|submitted"
    r"|stop|started|ended|finished|time|trial|verifi|stats|n_|version|seed|reason|infra|calls|agent|source|steps|pending|accept|iterations",
)
"""What a field's name is about: validity, retries, the attempt chosen, limits, scores, totals, roles, names, times."""


class Records(Struct, frozen=True):
    """Record types of a package: classes by their file, and functions whose keys are the record's."""

    format: str
    package: str
    types: dict[str, tuple[str, ...]]
    distribution: str = ""
    """Beginning of its file's name where that is not the package's."""


HARNESSES = (
    Records("inspect", "inspect_ai", {
        "log/_log.py": ("EvalLog", "EvalSpec", "EvalConfig", "EvalSample", "EvalSampleLimit", "EvalRetryError",
                        "EvalResults", "EvalScore", "HeadlineMetric", "EvalStats", "EvalDataset"),
        "scorer/_metric.py": ("Score", "ScoreEdit"),
        "model/_model_output.py": ("ModelUsage", "ModelOutput", "ChatCompletionChoice"),
        "event/_model.py": ("ModelEvent",),
    }),
    Records("harbor", "harbor", {
        "models/trial/result.py": ("TrialResult", "StepResult", "ExceptionInfo", "AgentInfo", "ModelInfo",
                                   "TimingInfo"),
        "models/trial/error_policy.py": ("ErrorPolicy", "ErrorPolicyOverride"),
        "models/trial/config.py": ("AgentConfig", "TrialConfig"),
        "models/agent/context.py": ("AgentContext", "ModelUsage"),
        "models/verifier/result.py": ("VerifierResult",),
        "models/job/result.py": ("JobResult", "JobStats", "AgentDatasetStats"),
        "models/job/config.py": ("JobConfig", "RetryConfig"),
    }),
    Records("atif", "harbor", {
        "models/trajectories/trajectory.py": ("Trajectory",),
        "models/trajectories/agent.py": ("Agent",),
        "models/trajectories/step.py": ("Step",),
        "models/trajectories/metrics.py": ("Metrics",),
        "models/trajectories/final_metrics.py": ("FinalMetrics",),
    }),
    Records("terminal-bench", "terminal_bench", {
        "harness/models.py": ("RunMetadata", "TrialResults", "BenchmarkResults"),
    }),
    Records("swe-bench", "swebench", {
        "harness/reporting.py": ("make_run_report",),
        "harness/grading.py": ("get_eval_report",),
    }),
    Records("swe-bench", "sb_cli", {"get_report.py": ("get_str_report",)}),
    Records("swe-bench", "multi_swe_bench", {"harness/report.py": ("FinalReport", "Report")}),
    Records("swe-agent", "sweagent", {
        "types.py": ("StepOutput", "TrajectoryStep", "AgentInfo"),
        "agent/models.py": ("InstanceStats", "GenericAPIModelConfig"),
        "agent/agents.py": ("DefaultAgentConfig", "RetryAgentConfig", "get_trajectory_data"),
        "agent/reviewer.py": ("ReviewerResult", "ChooserOutput", "ChooserRetryLoopConfig", "ScoreRetryLoopConfig"),
    }),
    Records("openhands", "openhands", {
        "sdk/llm/utils/metrics.py": ("Cost", "TokenUsage", "MetricsSnapshot", "Metrics"),
        "sdk/conversation/state.py": ("ConversationState",),
    }, "openhands_sdk"),
    Records("openhands", "benchmarks", {"utils/models.py": ("EvalMetadata", "EvalOutput")}),
    Records("mini-swe-agent", "minisweagent", {
        "agents/default.py": ("serialize", "AgentConfig"),
        "models/litellm_model.py": ("query", "serialize"),
    }, "mini_swe_agent"),
)  # fmt: skip


def fields_of(text: str, name: str) -> Iterator[str]:
    """Yield the fields of a class: annotations and computed properties; of a function the keys that it writes."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            for part in node.body:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    yield part.target.id
                elif isinstance(part, ast.FunctionDef) and any(
                    "computed_field" in ast.unparse(d) for d in part.decorator_list
                ):
                    yield part.name
        elif isinstance(node, ast.FunctionDef) and node.name == name:
            parts = list(ast.walk(node))
            keys = [key for part in parts if isinstance(part, ast.Dict) for key in part.keys]
            stored = [p.slice for p in parts if isinstance(p, ast.Subscript) and isinstance(p.ctx, ast.Store)]
            # A client writes no key of the report that it shows: those that it reads are the report's.
            read = [] if keys or stored else [part.slice for part in parts if isinstance(part, ast.Subscript)]
            told = [*keys, *stored, *read]
            yield from (k.value for k in told if isinstance(k, ast.Constant) and isinstance(k.value, str))


def recorded(folder: Path, records: Records) -> tuple[str, list[str]]:
    """Return the version of a package, and `Type.field` of each field that speaks of one of the subjects."""
    named = records.distribution or records.package
    wheels = sorted(path for path in folder.glob(f"{named}-*") if path.suffix in (".whl", ".zip"))
    if not wheels:
        raise SystemExit(f"{folder} holds no wheel of {named}: `pip download` it as --help says.")
    wheel = wheels[-1]
    found: list[str] = []
    with zipfile.ZipFile(wheel) as archive:
        for path, names in records.types.items():
            text = archive.read(f"{records.package}/{path}").decode()
            for name in names:
                found += [f"{name}.{field}" for field in fields_of(text, name) if SPEAKS.search(field)]
    return wheel.name.removesuffix(".zip").split("-")[1], list(
        dict.fromkeys(f for f in found if not f.rpartition(".")[2].startswith("_"))
    )


def told(records: Records) -> Fields:
    """Return what the format's card says of the fields of a package."""
    card = card_of(formats()[records.format])
    assert card is not None
    return next((f for f in card.fields if f.package == records.package), Fields(package=records.package, version=""))


def main() -> int:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--packages", type=Path, required=True, help="a folder with the wheels of the packages")
    folder = arguments.parse_args().packages
    differs = False
    for records in HARNESSES:
        version, present = recorded(folder, records)
        card = told(records)
        known = {*card.read, *card.not_read}
        print(
            f"\n{records.format}: {records.package} {version}, {len(present)} fields;"
            f" the card is of {card.version or 'none'}"
        )
        for field in present:
            state = (
                "read"
                if field in card.read
                else f"not read: {card.not_read[field]}"
                if field in card.not_read
                else "NEW"
            )
            print(f"  {field}: {state}")
        gone = sorted(known - set(present))
        print(*(f"  {field}: GONE" for field in gone), sep="\n", end="\n" if gone else "")
        differs |= bool(gone) or not known.issuperset(present)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
