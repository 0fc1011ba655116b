"""Errors of the machine or the request. A bad *record* is never an exception: it is skipped and counted."""

from __future__ import annotations

import errno


class AgentSignalsError(Exception):
    """Base of all errors. `message` says what happened and what is allowed, `hint` what to do."""

    kind = "error"
    """Its name in JSON: that of the class in small letters, without `Error`."""
    exit_code = 1

    def __init_subclass__(cls) -> None:
        if "kind" not in vars(cls):
            name = cls.__name__.removesuffix("Error")
            cls.kind = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[type[AgentSignalsError], tuple[str, str]]:
        return type(self), (self.message, self.hint)


class UsageError(AgentSignalsError):
    """A wrong argument."""

    exit_code = 2


class SourceError(AgentSignalsError):
    """A source is not there, or can't be opened."""


class UnknownSource(SourceError):
    """A source that is no file, folder, agent or address."""

    kind = "source"
    exit_code = 2


class NothingFound(AgentSignalsError):
    """No session, finding or signal is there, or fits what was asked for."""


class FormatError(AgentSignalsError):
    """A forced format is unknown."""


class UnknownFormat(FormatError):
    """No format has that name."""

    kind = "format"
    exit_code = 2


class AmbiguousFormat(FormatError):
    """Two formats claim one file."""


class UnlikeCandidates(AgentSignalsError):
    """Candidates of eval runs that had other tasks, data sets or limits."""

    kind = "unlike"


class StoreError(AgentSignalsError):
    """The store can't be read or written."""


class UnknownSession(StoreError):
    """No session of that id in the store."""

    exit_code = 2


class CatalogError(AgentSignalsError):
    """A signal is declared wrongly, or is not known."""

    exit_code = 2


class NameCollision(AgentSignalsError):
    """Two units of one kind have one name."""


class QueryError(AgentSignalsError):
    """DuckDB refuses the SQL."""


class NotComputed(QueryError):
    """Signals whose values a query needs, and of which shard (None: all)."""

    def __init__(self, signals: frozenset[str], shard: str | None = None) -> None:
        first = ", ".join(sorted(signals)[:3])
        more = f" and {len(signals) - 3:,} more" if len(signals) > 3 else ""
        super().__init__(
            f"Values that the query asks for are not computed: {first}{more}.",
            "`agentsignals measure --all` computes them where the store can be written.",
        )
        self.signals, self.shard = signals, shard

    def __reduce__(self) -> tuple[type[NotComputed], tuple[frozenset[str], str | None]]:  # type: ignore[override]
        return type(self), (self.signals, self.shard)


class BaselineError(AgentSignalsError):
    """A file is no baseline, or can't be read."""


class ExportError(AgentSignalsError):
    """An export cannot be written."""


class PriceError(AgentSignalsError):
    """A file of own prices is invalid."""


class ClaimsError(AgentSignalsError):
    """A file of claims is invalid."""


class LabelError(AgentSignalsError):
    """A labeller is missing something, or its server refuses."""


class LabelledMeanwhile(AgentSignalsError):
    """A label that was to be replaced was changed meanwhile."""


class LabError(AgentSignalsError):
    """An experiment, model or text set that isn't there or doesn't fit."""


class TuningError(AgentSignalsError):
    """A search's command can't be started, or leaves nothing to read."""


class SandboxError(AgentSignalsError):
    """Untrusted code can't be sandboxed as asked, so it is not run."""


class EmbedderError(AgentSignalsError):
    """A package, model or server for embedding is missing or fails."""


class ScanError(AgentSignalsError):
    """A scanner is missing, or fails."""


class WorkerError(AgentSignalsError):
    """A shard failed on every try."""


class OutOfMemory(AgentSignalsError):
    """The system gives this process no more memory."""


def install_command(extra: str) -> str:
    """Return the command that installs what an extra of this package needs. It names the missing packages themselves,
    which an index has for every copy: a checkout, a wheel, an editable install."""
    import re  # noqa: PLC0415  (rare, as are the metadata of packages, which take 50 ms to load)
    import shlex  # noqa: PLC0415
    from importlib import metadata  # noqa: PLC0415

    try:
        listed = metadata.requires("agentsignals") or []
    except metadata.PackageNotFoundError:
        return f"pip install '.[{extra}]' in the checkout"
    of_extra = re.compile(rf";.*\bextra == ['\"]{re.escape(extra)}['\"]")
    needed = [text.partition(";")[0].strip() for text in listed if of_extra.search(text)]
    missing = [text for text in needed if not any(metadata.distributions(name=re.split(r"[^\w.-]", text)[0]))]
    return f"pip install {' '.join(map(shlex.quote, missing or needed))}"


_NEAR_BYTES = 128 * 1024**2
"""Packages fail in ways of their own when they ask for so much more: a library that is not mapped, a thread's stack."""


def is_out_of_memory(problem: BaseException) -> bool:
    """Return whether an exception, or one that it followed from, says that memory is short. Packages say so by a
    MemoryError, Python by a RuntimeError for a thread, the system by its number."""
    for told in _chain(problem):
        is_refused_thread = type(told) is RuntimeError and "can't start new thread" in str(told)
        is_refused_by_system = isinstance(told, OSError) and told.errno == errno.ENOMEM
        if isinstance(told, MemoryError) or is_refused_thread or is_refused_by_system:
            return True
    return False


def _chain(problem: BaseException) -> list[BaseException]:
    chain = [problem]
    while (earlier := chain[-1].__cause__ or chain[-1].__context__) is not None and earlier not in chain:
        chain.append(earlier)
    return chain


def out_of_memory(problem: BaseException) -> OutOfMemory | None:
    """Return the error that says how much memory there was and what to do; None where something else is wrong. With a
    limit (`ulimit -v`) that is nearly reached, whatever fails fails of it."""
    limit, most = address_space_limit(), _most_taken()
    chain = _chain(problem)
    # An error in our words counts where it was made of one that the system or a package had no number for.
    is_vague = any(isinstance(told, OSError) and told.errno in (None, errno.EAGAIN) for told in chain)
    is_near = limit is not None and limit - most < _NEAR_BYTES
    is_near = is_near and (is_vague or not isinstance(problem, AgentSignalsError | OSError))
    # DuckDB says so also where a query needs more than it may take, which is no lack of the machine's.
    is_of_duckdb = limit is not None and "OutOfMemoryException" in [type(told).__name__ for told in chain]
    if not (is_near or is_of_duckdb or is_out_of_memory(problem)):
        return None
    return too_little(limit, most, " ".join(f"{type(problem).__name__}: {problem}".split())[:200])


def too_little(limit: int | None, most: int, said: str) -> OutOfMemory:
    """Return the error for a limit of the address space, or none, the most that was taken of it, and the last words."""
    if limit is None:
        took = f" It had {most / 1e6:,.0f} MB." if most else ""
        return OutOfMemory(
            f"The system gives this process no more memory.{took} ({said})",
            "Free some memory, or use fewer processes (--jobs 1). What was finished is kept: run again to go on.",
        )
    return OutOfMemory(
        f"The limit of {limit / 1e6:,.0f} MB of address space (ulimit -v) is too low: {most / 1e6:,.0f} MB were taken"
        f" when more was needed. ({said})",
        "Raise it: most runs take 600 MB, and several times their largest session. What was finished is kept: run"
        " again to go on.",
    )


def address_space_limit() -> int | None:
    """Return the limit of this process's address space in bytes (`ulimit -v`); None without one."""
    try:
        import resource  # noqa: PLC0415  (POSIX alone has it)
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _most_taken() -> int:
    """Return the most bytes of address space that this process has had; 0 where the system does not say."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:  # noqa: PTH123  (no Path in need)
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmPeak")), 0)
    except OSError:
        return 0
