"""`align`: runs of one task beside each other, and where they part."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from agentsignals.cli.verb import Verb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from agentsignals.questions.alignment import Alignment, Place, Run, Side, Step
    from agentsignals.store import Store

_WIDEST = 90
_FILES = 5


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("sessions", metavar="SESSION", nargs="*", help="two or more; the others are held against the first")
    add(
        "--task",
        metavar="ID",
        help="all attempts at a task, held against a run that solved it (the one of median length)",
    )
    add("--trial", metavar="ID", help="the attempts of a trial, held against the first of them")
    add("--markdown", action="store_true", help="as Markdown")


def run(options: argparse.Namespace) -> int:
    from agentsignals.cli.output import json_text
    from agentsignals.questions.alignment import align
    from agentsignals.redaction import without_keys_in
    from agentsignals.store import Store

    store = Store(options.store)
    sessions, facts = _chosen(store, options)
    made = align(sessions, facts)
    if options.json:
        print(json_text(without_keys_in({"alignments": [_plain(alignment) for alignment in made]})))
        return 0
    if options.markdown:
        from agentsignals.ui.markdown import plain_lines, plain_table

        def table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
            return plain_table(names, rows, _WIDEST)

        print("\n\n".join(_report(made, table, lambda text: plain_lines([text], ""), "## ")))
    else:
        from agentsignals.cli import output

        def table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
            return output.table(names, rows, _WIDEST)

        print("\n\n".join(_report(made, table, output.printable, "")))
    return 0


def _chosen(store: Store, options: argparse.Namespace) -> tuple[list[Any], dict[str, dict[str, Any]]]:
    """The sessions, the one that the others are held against first, and what is recorded of each."""
    from agentsignals.errors import UsageError
    from agentsignals.questions.alignment import FACTS, MOST_RUNS, OF_TASK, OF_TRIAL, reference_of
    from agentsignals.store.query import ask, connect

    ways = [bool(options.sessions), options.task is not None, options.trial is not None]
    if sum(ways) != 1:
        raise UsageError("Runs are named by their sessions, by --task, or by --trial.", "Give one of these.")
    connection = connect(store)
    if options.sessions:
        ids = [store.resolve(name) for name in options.sessions]
    else:
        query, name = (OF_TASK, options.task) if options.task is not None else (OF_TRIAL, options.trial)
        ids = [row["session_id"] for row in ask(connection, query, {"name": name})]
    ids = list(dict.fromkeys(ids)) if not options.sessions else ids
    if not 2 <= len(ids) <= MOST_RUNS:
        raise UsageError(
            f"{'One run' if len(ids) == 1 else f'{len(ids)} runs'} with calls came; 2 to {MOST_RUNS} are aligned.",
            '`agentsignals query "SELECT task_id, count(*) FROM attempts GROUP BY 1"` says what there is.',
        )
    facts = {row["session_id"]: row for row in ask(connection, FACTS, {"ids": ids})}
    sessions = [store.session(session_id) for session_id in ids]
    if options.task is not None:
        reference = reference_of(sessions, facts)
        sessions = [reference, *(s for s in sessions if s is not reference)]
    return sessions, facts


def _report(
    made: Sequence[Alignment], table: Callable[..., str], text: Callable[[str], str], mark: str
) -> Iterable[str]:
    """The parts of the report: the runs, where each parts from the first, and of each what came then."""
    from agentsignals.redaction import without_keys_in

    runs = [made[0].left, *(alignment.right for alignment in made)]
    yield table(
        ("run", "session", "model, or agent", "outcome", "patch", "ended", "calls", "failed"),
        without_keys_in([_run(n, run) for n, run in enumerate(runs)]),
    )
    yield table(
        ("run", "same", "alike", "differ at", "stray at", "part at", "because", "sure", "lines changed alike"),
        [(f"1 × {n}", *_where(alignment)) for n, alignment in enumerate(made, 2)],
    )
    yield text(
        "Calls of the first and of the other, counted from 1. Differ: the first that is not the same. Stray: the first"
        " step that the other never takes. Part: they do not come together again."
    )
    for n, alignment in enumerate(made, 2):
        parting = alignment.divergence.parts
        if parting is None:
            continue
        place = parting.place
        because = _because(alignment)
        yield f"{mark}1 × {n}: " + text(f"they part at call {place.left} of 1 and {place.right} of {n}; {because}.")
        for which, at, side in ((1, place.left, parting.left), (n, place.right, parting.right)):
            yield text(f"{which} then: {_rest(side)}")
            if side.next:
                names = ("call", "event", "tool", "about", "status")
                yield table(names, without_keys_in([_step(at + k, step) for k, step in enumerate(side.next)]))

    if together := [str(n) for n, alignment in enumerate(made, 2) if alignment.divergence.parts is None]:
        yield f"{mark}1 × {', '.join(together)}: " + text("no step after which one goes where the other never goes.")


def _because(alignment: Alignment) -> str:
    from agentsignals.questions.alignment import BECAUSE

    parting = alignment.divergence.parts
    if parting is None:
        return ""
    return BECAUSE[parting.basis] + (f" (not sure: {parting.unsure})" if parting.unsure else "")


def _rest(side: Side) -> str:
    from agentsignals.redaction import without_keys_in

    if not side.steps:
        return "had ended"
    files = ", ".join(without_keys_in(side.only[:_FILES])) + (" …" if len(side.only) > _FILES else "")
    return f"{side.steps:,} calls, {side.failed:,} failed" + (f"; only here: {files}" if files else "")


def _run(n: int, run: Run) -> tuple[Any, ...]:
    who = run.model or run.agent
    attempt = "" if run.attempt_index is None else f", attempt {run.attempt_index + 1}"
    return n + 1, run.session_id, f"{who}{attempt}", run.outcome, run.patch, run.ended, run.calls, run.failed


def _where(alignment: Alignment) -> tuple[Any, ...]:
    apart = alignment.divergence
    parting = apart.parts
    shared = "" if apart.changes_shared is None else f"{apart.changes_shared:.0%}"
    places = (apart.differs, apart.strays, None if parting is None else parting.place)
    basis, sure = ("", "") if parting is None else (parting.basis, "yes" if parting.sure else "no")
    return alignment.same, alignment.alike, *map(_place, places), basis, sure, shared


def _place(place: Place | None) -> str:
    return "never" if place is None else f"{place.left}, {place.right}"


def _step(call: int, step: Step) -> tuple[Any, ...]:
    return call, step.seq, step.tool, step.about, step.error or step.status


def _plain(alignment: Alignment) -> dict[str, Any]:
    """An alignment for a machine: steps as a reader sees them, without what they are compared by."""
    from msgspec.structs import asdict

    made = asdict(alignment)
    made["rows"] = [{"how": row.how, "left": _shown(row.left), "right": _shown(row.right)} for row in alignment.rows]
    apart = asdict(alignment.divergence)
    if (parting := alignment.divergence.parts) is not None:
        sides = {"left": parting.left, "right": parting.right}
        apart["parts"] = asdict(parting) | {"because": _because(alignment)}
        apart["parts"] |= {
            name: asdict(side) | {"next": [_shown(s) for s in side.next]} for name, side in sides.items()
        }
    return made | {"divergence": apart}


def _shown(step: Step | None) -> dict[str, Any] | None:
    names = ("seq", "kind", "tool", "about", "status", "error")
    return None if step is None else {name: getattr(step, name) for name in names}


VERB = Verb("align", "runs of one task step by step, and where they part", "align --task dask__dask-8685",
            arguments, run)  # fmt: skip
