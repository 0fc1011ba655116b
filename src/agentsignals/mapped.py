"""Files that are mapped into memory: their pages count as a process's own until it lets go of them."""

from __future__ import annotations

import mmap

EVERY_BYTES = 16 * 1024 * 1024
"""How much of a map is read before it is let go."""


def release(data: object) -> None:
    """Lets go of what was read of a map; it is still there, and read from the file again when looked at. Bytes stay."""
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        data.madvise(mmap.MADV_DONTNEED)
