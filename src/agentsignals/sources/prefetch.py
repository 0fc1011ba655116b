"""Things that come from far, some at a time, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def prefetched(fetch: Callable[[T], R], items: Iterable[T], at_once: int, ahead: int) -> Iterator[R]:
    """`fetch` of each item, in order: `at_once` are under way, and at most `ahead` held that nobody asked for yet."""
    with ThreadPoolExecutor(at_once) as pool:
        under_way: deque[Future[R]] = deque()
        try:
            for item in items:
                under_way.append(pool.submit(fetch, item))
                if len(under_way) > ahead:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:
            for coming in under_way:
                coming.cancel()
