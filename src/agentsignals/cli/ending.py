"""Requests to end (SIGTERM; SIGHUP when the terminal goes) unwind like an interrupt."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from typing import Any

_HEARD_AGAIN_S = 0.05
"""How long after its loss a request is made again: what swallowed it (a few lines) has ended by then."""


class _Ending(SystemExit):
    """Unwinds the program: workers are ended, drafts removed; exit code 128 and the signal's number."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number


def end_in_order() -> None:
    """Ends the program by an exception where a signal asks for it. A second signal ends it at once.

    Python runs a handler between any two of its instructions, also in those whose exceptions go nowhere (what is called
    around a fork, when an object goes, by the collector). A request that is lost there is made again.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    if not isinstance(sys.unraisablehook, _Unraisable):
        sys.unraisablehook = _Unraisable(sys.unraisablehook)


def _end(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise _Ending(number)


class _Unraisable:
    """What becomes of exceptions that go nowhere: requests to end are made again, others are printed as before."""

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(self, lost: Any) -> None:
        problem = lost.exc_value
        if not isinstance(problem, _Ending | KeyboardInterrupt):
            self._before(lost)
            return
        number = problem.number if isinstance(problem, _Ending) else signal.SIGINT
        if isinstance(problem, _Ending):
            signal.signal(number, _end)
        again = threading.Timer(_HEARD_AGAIN_S, _ask, [signal.Signals(number)])
        again.daemon = True
        again.start()


def _ask(number: signal.Signals) -> None:
    if hasattr(signal, "pthread_kill"):  # which ends a call that waits, too
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main(number)
