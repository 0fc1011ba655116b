"""Source changes while pages are open: changed files are read by a process of their own, and open pages are told."""

from __future__ import annotations

import heapq
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Condition, Event, Thread
from typing import IO

import msgspec
from msgspec import Struct

from agentsignals.errors import AgentSignalsError, SourceError
from agentsignals.formats import homes
from agentsignals.sources import DATABASE_SUFFIXES, RawFile, local, path_of
from agentsignals.store.index import Manifest
from agentsignals.ui.snapshot import Snapshot, Snapshots
from agentsignals.words.text import visible

AT_WORK = 32
"""The files last changed: who writes at all writes there, and their folders show a file that is new."""
SHARE = 0.01
"""Looking takes no more of one core: 27,300 files take 0.5 s and are looked at once a minute; 300 each second."""

_Seen = tuple[int, int | None]


def sources_of(manifest: Manifest) -> tuple[list[str], list[str]]:
    """The specifications on this machine that a store was read from; and those that name another place from here (a
    relative path, read from another folder) or none."""
    here, elsewhere = list[str](), list[str]()
    for spec, uri in sorted(manifest.local_specs().items()):
        path = path_of(uri)
        is_here = local.accepts(spec) and any(path == root or path.startswith(root + os.sep) for root in _roots(spec))
        (here if is_here else elsewhere).append(spec)
    return here, elsewhere


def _roots(spec: str) -> list[str]:
    places = [Path(spec)] if os.path.lexists(spec) or spec not in homes() else local.existing_paths(homes()[spec])
    return [os.path.normpath(place.expanduser().absolute()) for place in places]


class Looking:
    """Looks at local sources again and again. What is as the store has it is no change; each is reported once."""

    def __init__(self, specs: Iterable[str], manifest: Manifest) -> None:
        self._roots = {spec: frozenset(_roots(spec)) for spec in specs}
        self._seen: dict[str, _Seen] = {uri: (e.bytes, e.stamp) for uri, e in manifest.stamps().items()}
        self._hot: dict[str, tuple[str, _Seen | None]] = {}
        """Paths of the files at work and of the folders above them: of which specification, and as they were."""
        self._next_s = 0.0

    def changed(self) -> set[str]:
        """The specifications under which a file is new or another than at the last look."""
        specs = set()
        for path, (spec, before) in self._hot.items():
            if (now := _state(path)) != before:
                self._hot[path] = spec, now
                specs.add(spec)
        return specs | self._changed_anywhere() if time.monotonic() >= self._next_s else specs

    def _changed_anywhere(self) -> set[str]:
        """Look through all sources for changed files, and choose those that are watched closely from now on."""
        began = time.thread_time()
        specs: set[str] = set()
        latest: dict[tuple[str, str], int] = {}
        for spec in self._roots:
            try:
                for file in local.find(spec):
                    if isinstance(file, RawFile):
                        if self._seen.get(file.uri) != (now := (file.bytes, file.stamp)):
                            self._seen[file.uri] = now
                            specs.add(spec)
                        at = path_of(file.uri), spec  # a database stands once for all of its sessions
                        latest[at] = max(latest.get(at, 0), file.stamp or 0)
            except (OSError, SourceError):  # a folder that goes while it is listed is looked at again next time
                continue
        self._hot = {}
        for path, spec in heapq.nlargest(AT_WORK, latest, key=lambda at: (latest[at], at)):
            self._hot.setdefault(path, (spec, _state(path)))
            if path.endswith(DATABASE_SUFFIXES):
                self._hot.setdefault(f"{path}-wal", (spec, _state(f"{path}-wal")))
            # The folders above it, up to the one that was named.
            place = path
            while place not in self._roots[spec] and (above := place.rpartition("/")[0]):
                place = above
                self._hot.setdefault(place, (spec, _state(place)))
        self._next_s = time.monotonic() + (time.thread_time() - began) / SHARE
        return specs


def _state(path: str) -> _Seen | None:
    try:
        now = Path(path).stat()
    except OSError:
        return None
    return now.st_size, now.st_mtime_ns


def sessions_changed(before: Manifest, after: Manifest) -> list[str]:
    """The sessions that are new, or read anew from a file that grew, in the later of two states of a store."""
    then = before.stamps()
    groups = {
        now.group
        for uri, now in after.stamps().items()
        if (was := then.get(uri)) is None or (was.bytes, was.stamp, was.group) != (now.bytes, now.stamp, now.group)
    }
    return list(after.sessions.where("group", groups))


# What happens while pages are open: sources that change are read, and open pages hear which sessions did.
#
# One thread looks (`looking`), has a process of its own read what changed, so that no failure of it is the
# server's, and says what is new in the store, whoever wrote it. Pages hear it as server-sent events.

PATH = "/live"
LOOK_EVERY_S = 1.0
ALIVE_EVERY_S = 1.0
"""Interval of keep-alive messages. The second write detects a connection that the reader has closed. Until
then that connection counts among the streams."""
MOST_NAMED = 100
"""Sessions whose ids an event carries; of more, their number alone."""
READING_SHARE = 0.2
"""The most of one core that reading takes while an agent works: a run of 0.7 s follows the last one after 3."""
UNSEEN_S = 60.0
"""So long between two runs while no page is open: what is replaced stays on disk for an hour."""
RETRY_S, LONGEST_RETRY_S = 15.0, 600.0
"""After a run that failed, the next: later each time."""
_MOST_RECENT = 64
"""Events: one a second at most, and a page that does not take them for so long is cut."""
_ENDING_S = 10.0
_MOST_WORDS = 500
_NICE = 10
"""The page is answered before what changed is read."""


class Live:
    """The event stream of open pages: the state of the store, which sessions changed, and what went wrong."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._readings = snapshots
        self._watch: Watch | None = None
        self._news = Condition()
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=_MOST_RECENT)
        self._count = 0
        self._streams = 0
        self._last: Snapshot | None = None
        """The event that pages were told last; None while no page listens."""
        self._problem = ""
        self._ending = Event()
        self._thread: Thread | None = None

    def watch(self, specs: Iterable[str], store: str | None = None) -> None:
        """From now on what changes in these sources is read into the store, which `store` names."""
        manifest = self._readings.current().store.manifest
        self._watch = Watch(Looking(specs, manifest), store or str(self._readings.folder), self._say)
        self._begin()

    def stream(self, write: Callable[[bytes], object]) -> None:
        """Writes what happens until the server ends or nobody reads it (an OSError of `write`)."""
        self._begin()
        with self._news:
            with suppress(AgentSignalsError, OSError):  # where there is no store now, `_run` says it
                self._last = self._last or self._readings.current()
            self._streams += 1
            sent, state, problem = self._count, self._last.state if self._last else "", self._problem
        try:
            write(_event("hello", {"state": state, "watching": self._watch is not None, "problem": problem}))
            while not self._ending.is_set():
                with self._news:
                    self._news.wait_for(lambda: self._ending.is_set() or self._count > sent, ALIVE_EVERY_S)  # noqa: B023
                    due = [content for n, content in self._recent if n > sent]
                    sent = self._count
                write(b"".join(due) or b": alive\n\n")
        finally:
            with self._news:
                self._streams -= 1
                self._last = self._last if self._streams else None

    def close(self) -> None:
        """Ends the streams and what is being read."""
        self._ending.set()
        with self._news:
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join()
        if self._watch is not None:
            self._watch.close()

    def _begin(self) -> None:
        with self._news:
            if self._thread is not None:
                return
            self._thread = Thread(target=self._run, name="live", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        """Read changed files and tell the pages, until the server ends."""
        is_lost = False
        while not self._ending.wait(LOOK_EVERY_S):
            try:
                if self._watch is not None:
                    self._watch.step(seen=self._streams > 0)
                self._compare()
                if is_lost:
                    is_lost = False
                    self._say("")
            except (AgentSignalsError, OSError) as problem:
                is_lost = True
                self._say(problem.message if isinstance(problem, AgentSignalsError) else str(problem.strerror))
            except Exception:  # noqa: BLE001  (told whole on stderr: the pages are answered all the same)
                traceback.print_exc()
                self._say("Watching stopped: an internal error, printed where the page was started.")
                return

    def _compare(self) -> None:
        """Tell the pages which sessions changed since the state that they show."""
        with self._news:
            before = self._last
            if before is None and self._streams:  # there was no store when they began
                before = self._last = self._readings.current()
        if before is None or (now := self._readings.current()).state == before.state:
            return
        changed = sessions_changed(before.store.manifest, now.store.manifest)
        news = {
            "state": now.state,
            "n": len(changed),
            "new": len(changed) - len(before.store.manifest.sessions.known(changed)),
            "sessions": changed[:MOST_NAMED],
        }
        with self._news:
            self._last = now if self._streams else None
        self._publish("changed", news)

    def _say(self, problem: str) -> None:
        """To pages and, once, on stderr."""
        if problem != self._problem:
            self._problem = problem
            if problem:
                print(f"agentsignals: cannot read the changed files: {problem}", file=sys.stderr, flush=True)
            self._publish("problem", {"problem": problem})

    def _publish(self, kind: str, data: object) -> None:
        with self._news:
            self._count += 1
            self._recent.append((self._count, _event(kind, data)))
            self._news.notify_all()


def _event(kind: str, data: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(data))  # JSON is one line


class _Run(Struct):
    """A process that reads what changed."""

    process: subprocess.Popen[bytes]
    words: IO[bytes]
    """Its stderr."""
    specs: set[str]
    cpu_s: float
    """CPU time of all earlier processes when it began."""


class Watch:
    """Reads what changes in sources into a store, one run of `ingest` at a time."""

    def __init__(self, looking: Looking, store: str, say: Callable[[str], None]) -> None:
        """`say` hears of each failure, and of its end as ``."""
        self._looking = looking
        self._store = store
        self._say = say
        self._due: set[str] = set()
        self._run: _Run | None = None
        self._ended = -UNSEEN_S
        self._not_before = 0.0
        self._failures = 0

    def step(self, *, seen: bool) -> None:
        """Looks, and begins or ends a run where one is due or over. `seen`: a page is open."""
        self._due |= self._looking.changed()
        if self._run is not None and self._run.process.poll() is not None:
            self._over(self._run)
        now = time.monotonic()
        if self._run is None and self._due and now >= self._not_before and (seen or now >= self._ended + UNSEEN_S):
            self._begin()

    def close(self) -> None:
        """Ends a run as Ctrl-C does: what it has read is kept."""
        if self._run is not None:
            process = self._run.process
            process.terminate()
            try:
                process.wait(_ENDING_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._run.words.close()

    def _begin(self) -> None:
        """Start `analyze` over the changed sources in a process of its own, with low priority."""
        specs, self._due = self._due, set()
        # -P: what lies in the folder that `serve` was started in is no module of ours.
        verb = ["analyze", "--no-report", "--quiet", "--json", "--store", self._store]
        program = [sys.executable, "-P", "-m", "agentsignals", *verb]
        words = tempfile.TemporaryFile()  # noqa: SIM115  (open as long as the run lasts)
        try:
            process = subprocess.Popen(  # noqa: S603  (this very program; what is named was named by who started it)
                [*program, "--", *sorted(specs)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=words
            )
        except OSError as problem:
            words.close()
            self._failed(f"cannot start a process: {problem.strerror}", specs)
            return
        self._run = _Run(process, words, specs, _cpu_s())
        with suppress(OSError, AttributeError):  # it has ended already; a system that knows no priorities
            os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)

    def _over(self, run: _Run) -> None:
        self._run = None
        self._ended = now = time.monotonic()
        self._not_before = now + (_cpu_s() - run.cpu_s) * (1 / READING_SHARE - 1)
        with run.words as words:
            words.seek(0)
            why = " ".join(words.read(_MOST_WORDS * 8).decode("utf-8", "replace").split())
        if run.process.returncode:
            self._failed(why or f"`agentsignals analyze` failed with exit code {run.process.returncode}", run.specs)
        elif self._failures:
            self._failures = 0
            self._say("")

    def _failed(self, why: str, specs: set[str]) -> None:
        self._due |= specs
        self._not_before = time.monotonic() + min(LONGEST_RETRY_S, RETRY_S * 2.0**self._failures)
        self._failures += 1
        self._say(visible(why)[:_MOST_WORDS])


def _cpu_s() -> float:
    used = os.times()
    return used.children_user + used.children_system
