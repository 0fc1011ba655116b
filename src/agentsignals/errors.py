"""Errors of the machine or the request. A bad *record* is never an exception: it is skipped and counted.

AgentSignalsError
 ├── UsageError            a wrong argument                                    (exit 2)
 ├── SourceError           a source is not there, or can't be opened
 ├── FormatError           a forced format is unknown
 │    └── AmbiguousFormat  two formats claim one file
 ├── UnlikeCandidates      candidates of eval runs that had other tasks, data sets or limits
 ├── StoreError            the store can't be read or written
 │    └── UnknownSession   no session of that id in the store
 ├── CatalogError          a signal is declared wrongly, or is not known
 ├── NameCollision         two units of one kind have one name
 ├── QueryError            DuckDB refuses the SQL
 │    └── NotComputed      it asks for signals that nobody computed
 ├── ExportError           what was asked for can't be written
 ├── ClaimsError           a file of claims is invalid
 ├── LabelError            a labeller is missing something, or its server refuses
 ├── LabelledMeanwhile     a label that was to be replaced was changed meanwhile
 ├── LabError              an experiment, model or text set that isn't there or doesn't fit
 ├── TuningError           a search's command can't be started, or leaves nothing to read
 ├── SandboxError          untrusted code can't be sandboxed as asked, so it is not run
 ├── ScanError             a scanner is missing, or fails
 ├── EmbedderError         a package, model or server for embedding is missing or fails
 └── WorkerError           a shard failed on every try
"""

from __future__ import annotations


class AgentSignalsError(Exception):
    """Base of all errors. `message` says what happened and what is allowed, `hint` what to do."""

    kind = "error"
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[type[AgentSignalsError], tuple[str, str]]:
        return type(self), (self.message, self.hint)


class UsageError(AgentSignalsError):
    kind = "usage"
    exit_code = 2


class SourceError(AgentSignalsError):
    kind = "source"


class FormatError(AgentSignalsError):
    kind = "format"


class AmbiguousFormat(FormatError):
    kind = "ambiguous_format"


class UnlikeCandidates(AgentSignalsError):
    kind = "unlike"


class StoreError(AgentSignalsError):
    kind = "store"


class UnknownSession(StoreError):
    kind = "unknown_session"


class CatalogError(AgentSignalsError):
    kind = "catalog"


class NameCollision(AgentSignalsError):
    kind = "name_collision"


class QueryError(AgentSignalsError):
    kind = "query"


class NotComputed(QueryError):
    """Signals whose values a query needs, and of which shard (None: all)."""

    kind = "not_computed"

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
    kind = "baseline"


class ExportError(AgentSignalsError):
    kind = "export"


class ClaimsError(AgentSignalsError):
    kind = "claims"


class LabelError(AgentSignalsError):
    kind = "label"


class LabelledMeanwhile(AgentSignalsError):
    kind = "labelled_meanwhile"


class LabError(AgentSignalsError):
    kind = "lab"


class TuningError(AgentSignalsError):
    kind = "tuning"


class SandboxError(AgentSignalsError):
    kind = "sandbox"


class EmbedderError(AgentSignalsError):
    kind = "embedder"


class ScanError(AgentSignalsError):
    kind = "scan"


class WorkerError(AgentSignalsError):
    kind = "worker"
