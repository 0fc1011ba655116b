"""Whether a file is one that a rule names: patterns as in a `.gitignore`."""

from __future__ import annotations

import re


def in_folder(path: str, folder: str) -> bool:
    """Whether a file lies in a folder, which is named with a slash behind; all lie in the root."""
    return path.startswith(folder)


def matching(patterns: tuple[str, ...], path: str) -> str:
    """`yes` where a file lies where a pattern says, seen from the root; `maybe` where a plain name lies deeper."""
    sure = any(_pattern(pattern).match(path) for pattern in patterns)
    if sure:
        return "yes"
    plain = [p for p in patterns if "/" not in p.rstrip("/")]
    return "maybe" if any(re.search(rf"(?:^|/){_pattern(p).pattern[1:]}", path) for p in plain) else ""


def _pattern(pattern: str) -> re.Pattern[str]:
    """As a `.gitignore` has it: `**` any folders, `*` within a name; a folder's name stands for all below it."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\{[^}]*\})", pattern.strip("/"))
    turned = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    body = "".join(
        turned.get(part)
        or (f"(?:{'|'.join(map(re.escape, part[1:-1].split(',')))})" if part[:1] == "{" else re.escape(part))
        for part in parts
    )
    anywhere = "(?:.*/)?" if "*" in pattern and "/" not in pattern else ""
    return re.compile(f"^{anywhere}{body}(?:/.*)?$")
