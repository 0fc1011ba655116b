"""Paths that a bare Python must be able to read: its standard library and shared libraries, no installed package.

Installed packages are left out on purpose: one of them is ours, with the answers that the untrusted code is to find.
"""

from __future__ import annotations

import platform
import sys
import sysconfig
from functools import cache
from pathlib import Path

PACKAGES = ("site-packages", "dist-packages")
DATA = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/usr/lib/locale", "/dev/urandom")
READ_WRITE = ("/dev/null",)
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
SYSTEM_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64")
"""Where systems keep a folder of packages for each Python, and one for all (`/usr/lib/python3/dist-packages`)."""


@cache
def executable() -> str:
    """The interpreter itself, outside of any virtual environment."""
    return str(Path(getattr(sys, "_base_executable", "") or sys.executable).resolve())


@cache
def standard_library() -> Path:
    """Its folder of modules."""
    return Path(sysconfig.get_path("stdlib")).resolve()


@cache
def package_folders() -> tuple[str, ...]:
    """Folders of installed packages: inside the standard library's, and those of the system."""
    folders = [standard_library() / name for name in PACKAGES]
    folders += [path for root in SYSTEM_LIBRARIES for name in PACKAGES for path in Path(root).glob(f"python3*/{name}")]
    return tuple(dict.fromkeys(str(folder.resolve()) for folder in folders if folder.is_dir()))


@cache
def library_folders() -> tuple[str, ...]:
    """Folders that hold this architecture's shared libraries and nothing else (`/lib/x86_64-linux-gnu`)."""
    ending = f"{platform.machine()}-linux-gnu"
    return tuple(str(p) for root in LIBRARIES if (p := Path(root) / ending).is_dir())


@cache
def library_files() -> tuple[str, ...]:
    """Shared libraries in folders where packages may lie too, one by one."""
    folders = [Path(root) for root in LIBRARIES if Path(root).is_dir()]
    folders.append(Path(sys.base_prefix).resolve() / "lib")
    return tuple(sorted({str(file) for folder in folders for file in folder.glob("*.so*") if file.is_file()}))


@cache
def readable() -> tuple[str, ...]:
    """Everything to allow reading of, where a permission on a folder holds for all in it."""
    modules = (str(entry) for entry in standard_library().iterdir() if entry.name not in PACKAGES)
    return tuple(sorted(modules)) + library_folders() + library_files() + DATA


@cache
def inside() -> tuple[str, str, str]:
    """The folders of this package, of the sandbox, and of what runs in it."""
    here = Path(__file__).resolve().parent
    return str(here.parent), str(here), str(here / "inside")
