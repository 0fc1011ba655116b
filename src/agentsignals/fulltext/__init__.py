"""Full text search over what a store holds: prompts, replies, commands, paths, results (decisions/017)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct, field

from agentsignals.errors import UsageError
from agentsignals.fulltext import index
from agentsignals.fulltext.counting import counted, first
from agentsignals.fulltext.index import Progress
from agentsignals.fulltext.passages import KINDS as KINDS
from agentsignals.fulltext.question import read
from agentsignals.fulltext.showing import Hit as Hit
from agentsignals.fulltext.showing import SessionHits as SessionHits
from agentsignals.fulltext.showing import Tables, listed, with_texts

if TYPE_CHECKING:
    from agentsignals.store import Store

Order = Literal["newest", "most"]
"""The sessions that were active last first, or those with the most passages."""


class Results(Struct, kw_only=True):
    """What a search came to."""

    text: str
    n_sessions: int = 0
    n_passages: int = 0
    is_lower_bound: bool = False
    """Whether part of the store was not looked through: there may be more."""
    by_kind: dict[str, int] = field(default_factory=dict)
    """Passages of each kind in sessions that may be listed, also of kinds that were not asked for."""
    sessions: list[SessionHits] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the question or the answer lacks, in words."""


def search(  # noqa: PLR0913  (the options of the verb)
    store: Store,
    text: str,
    *,
    kinds: Collection[str] = (),
    among: Collection[str] | None = None,
    order: Order = "newest",
    limit: int = 20,
    start: int = 0,
    most_hits: int = 3,
    complete: bool = True,
    progress: Progress = lambda *_: None,
) -> Results:
    """The sessions in which one passage holds all the words of `text`, in whatever case, as they begin or as a part of
    CamelCase does. `"several words"` stand so one behind the other, `-word` is not in the passage; `kind:`, `tool:`,
    `agent:`, `repo:`, `session:` and `context:` narrow it. Nothing that can be typed is an error.

    `kinds`: of passages (`fulltext.KINDS`); `among`: ids of sessions; `most_hits`: passages shown of a session.
    What of the index is missing is made first or, unless `complete`, left out. UsageError for another kind or order;
    StoreError or QueryError where the store can't be read.
    """
    _check(kinds, order, limit, start, most_hits)
    store.refresh()
    question = read(text)
    results = Results(text=text, notes=question.notes)
    if not question.expression:
        results.notes.append("Name a word to look for, with a letter or a digit in it.")
        return results
    if complete and (why := index.make(store, progress)):
        results.notes.append(f"{why} The index is in memory, and made again by the next program that searches.")
    waiting = set(index.missing(store))
    results.is_lower_bound = bool(waiting)
    passages = counted(store, question.expression, [name for name in index.searched(store) if name not in waiting])
    tables = Tables(store)
    may = [i for i in listed(tables, question.filters) if i in passages and (among is None or i in among)]
    chosen = question.kinds & frozenset(kinds or KINDS)
    fit = {i: n for i in may if (n := sum(passages[i][kind] for kind in chosen))}
    ids = sorted(fit, key=lambda i: -fit[i]) if order == "most" else list(fit)
    results.n_sessions, results.n_passages = len(fit), sum(fit.values())
    results.by_kind = {kind: n for kind in KINDS if (n := sum(passages[i][kind] for i in may))}
    shown = ids[start : start + limit]
    results.sessions = with_texts(tables, question, first(store, question.expression, shown, chosen, most_hits))
    for session in results.sessions:
        of_it = passages[session.session_id]
        session.n, session.by_kind = fit[session.session_id], {kind: of_it[kind] for kind in KINDS if of_it[kind]}
    return results


def _check(kinds: Collection[str], order: str, *counts: int) -> None:
    if wrong := sorted(set(kinds) - set(KINDS)):
        raise UsageError(f"{wrong[0]!r} is no kind of passage.", f"There are {', '.join(KINDS)}.")
    if order not in get_args(Order):
        raise UsageError(f"{order!r} is no order.", f"There are {', '.join(get_args(Order))}.")
    if any(count < 0 for count in counts):
        raise UsageError("A negative number came where sessions or passages are counted.", "Give 0 or more.")
