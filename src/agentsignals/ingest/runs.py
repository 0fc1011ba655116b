"""Where files of eval runs belong: to the trial in whose folder they lie, or to every trial below theirs.

What a file says of its place is kept among its keys, so that the index remembers it: `root:DIR` (it is part of the
trial in DIR; joins), `gathers:DIR` (whatever sessions lie below are the trial's), `lends:DIR` (trials below may need
it), `everywhere:DIR` (all that is known of trials below may), `companion:` (it means nothing by itself).
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator

import msgspec

from agentsignals.formats import Claim
from agentsignals.ingest.family import Family, Member, member_of
from agentsignals.sources import RawFile, uri_of
from agentsignals.store.manifest import Manifest

_ROOT, _GATHERS, _LENDS, _COMPANION = "root:", "gathers:", "lends:", "companion:"
_EVERYWHERE = "everywhere:"
_RUN = "run:"
"""What a trial goes by (`Attempt.goes_by`)."""


def keys_of(claim: Claim, file: RawFile) -> list[str]:
    """What a claim says of the file's place."""
    keys = [f"{_ROOT}{claim.root}"] if claim.root else []
    if claim.root and claim.gathers:
        keys.append(f"{_GATHERS}{claim.root}")
    if claim.lends:
        keys.append(f"{_LENDS}{claim.lends}")
    if claim.everywhere:
        keys.append(f"{_EVERYWHERE}{_named_folder(file)}")
    if claim.companion:
        keys.append(_COMPANION)
    return keys


def _named_folder(file: RawFile) -> str:
    """The folder that was named to be read and holds the file; where none was, that in which the file lies."""
    folder = posixpath.dirname(file.uri)
    named = uri_of(os.path.abspath(os.path.expanduser(file.spec)))  # noqa: PTH100, PTH111  (as files are listed)
    return named if file.source == "local" and _inside(folder, named) else folder


class Places:
    """The trial folders that are known: from files just recognised and from those in the store."""

    def __init__(self, members: list[Member], manifest: Manifest, looked_at: set[str]) -> None:
        self._manifest = manifest
        self._fresh = looked_at
        new = set(_marked((k for m in members for k in m.keys), _ROOT))
        others = (e.keys for uri, e in manifest.files.items() if uri not in self._fresh)
        old_keys = [k for keys in others for k in keys if k.startswith((_ROOT, _GATHERS))]
        old = set(_marked(old_keys, _ROOT))
        self._roots = new | old
        self._new = new - old
        self._gathering = {d for m in members for d in _marked(m.keys, _GATHERS)} | set(_marked(old_keys, _GATHERS))
        self._lending = {d for m in members for mark in (_LENDS, _EVERYWHERE) for d in _marked(m.keys, mark)}

    def other_files(self, seen: list[str]) -> list[RawFile]:
        """Files that were no traces when they were first seen, and may be companions of a trial found since."""
        files = []
        for uri in seen if self._new else ():
            entry = self._manifest.files.get(uri)
            if entry is not None and not entry.keys and uri not in self._fresh and _holder(uri, self._new):
                files.append(member_of(uri, entry).file)
        return files

    def placed(self, member: Member) -> Member:
        """The member with the trial it lies in among its keys; without any key when it is a companion of nothing."""
        if not member.keys:
            return member
        if not self._roots:
            return _without_companion(member, alone=_COMPANION in member.keys)
        uri, keys = member.file.uri, list(member.keys)
        if _COMPANION in keys:
            home = _holder(uri, self._roots)
            lends = any(_inside(root, d) for d in _marked(keys, _LENDS) for root in self._roots)
            if home is None and not lends:
                return _without_companion(member, alone=True)
            if home is not None and not lends:
                keys.append(f"{_ROOT}{home}")
        elif member.format is not None and not _is_lender(keys):
            keys += [f"{_ROOT}{d}" for d in _above(posixpath.dirname(uri)) if d in self._gathering]
        kept = [k for k in dict.fromkeys(keys) if k != _COMPANION]
        return msgspec.structs.replace(member, keys=tuple(kept or [f"file:{uri}"]))

    def drawn_in(self) -> list[Member]:
        """Files in the store whose place has changed: a new trial gathers them, or something new is lent to them."""
        placed_members = []
        gathering = self._gathering & self._new
        for uri, entry in self._manifest.files.items() if gathering or self._lending else ():
            if uri in self._fresh or entry.format is None:
                continue
            in_trial = any(k.startswith((_ROOT, _LENDS)) for k in entry.keys)
            if _holder(uri, gathering) or (in_trial and _holder(uri, self._lending)):
                placed_members.append(self.placed(member_of(uri, entry)))
        return placed_members


def with_lent(families: list[Family], pool: dict[str, Member], manifest: Manifest) -> list[Family]:
    """The families, those of trials with the files lent to them; a lender is accounted for in a family of its own."""
    lenders: dict[str, list[Member]] = {}
    everywhere: dict[str, list[Member]] = {}
    lending = {uri for uri, e in manifest.files.items() for k in e.keys if k.startswith((_LENDS, _EVERYWHERE))}
    others = (member_of(uri, e) for uri, e in manifest.files.items() if uri in lending and uri not in pool)
    for member in (*pool.values(), *others):
        for folder in _marked(member.keys, _LENDS):
            lenders.setdefault(folder, []).append(member)
        for folder in _marked(member.keys, _EVERYWHERE):
            everywhere.setdefault(folder, []).append(member)
    if not lenders and not everywhere:
        return families
    every = [m.keys for m in pool.values()] + [e.keys for uri, e in manifest.files.items() if uri not in pool]
    named = frozenset(n for keys in every if not any(_marked(keys, _LENDS)) for n in _marked(keys, _RUN))
    aware = (Family(f.name, tuple(_aware(m, named) for m in f.members)) for f in families)
    return [_with_lent(f, lenders, everywhere) for f in aware]


def _is_lender(keys: Iterable[str]) -> bool:
    return any(key.startswith((_LENDS, _EVERYWHERE)) for key in keys)


def of_new_trials(members: Iterable[Member], manifest: Manifest) -> list[Member]:
    """The lenders in the store, where trials with a name have come: what a summary alone told of them, files of their
    own may tell now."""
    new = {k for m in members for k in m.keys if k.startswith(_RUN)}
    if not new or not new.difference(k for e in manifest.files.values() for k in e.keys):
        return []
    fresh = {m.file.uri for m in members}
    lending = (u for u, e in manifest.files.items() if u not in fresh and any(_marked(e.keys, _LENDS)))
    return [member_of(uri, manifest.files[uri]) for uri in lending]


def _aware(member: Member, named: frozenset[str]) -> Member:
    is_lender = any(_marked(member.keys, _LENDS))
    return msgspec.structs.replace(member, named_trials=named) if is_lender else member


def _with_lent(family: Family, lenders: dict[str, list[Member]], everywhere: dict[str, list[Member]]) -> Family:
    """What lends to trials may tell of some itself: what lends everywhere, which tells of none, lends to it, too."""
    roots = {d for m in family.members for d in _marked(m.keys, _ROOT)}
    telling = roots | {d for m in family.members for d in _marked(m.keys, _LENDS)}
    uris = {m.file.uri for m in family.members}
    lent = [
        m
        for places, lending in ((roots, lenders), (telling, everywhere))
        for folder in sorted({f for place in places for f in _above(place) if f in lending})
        for m in lending[folder]
        if m.file.uri not in uris
    ]
    if not lent:
        return family
    return Family(family.name, (*family.members, *(msgspec.structs.replace(m, lent=True) for m in lent)))


def _without_companion(member: Member, alone: bool) -> Member:
    """A companion of nothing is no trace at all."""
    return msgspec.structs.replace(member, format=None, keys=(), reason="not_a_trace") if alone else member


def _marked(keys: Iterable[str], mark: str) -> Iterator[str]:
    for key in keys:
        if key.startswith(mark):
            yield key[len(mark) :]


def _holder(uri: str, folders: set[str]) -> str | None:
    """The deepest of these folders that holds the file."""
    return next((d for d in _above(posixpath.dirname(uri)) if d in folders), None) if folders else None


def _above(folder: str) -> Iterator[str]:
    """The folder and those it lies in, the nearest first."""
    while True:
        yield folder
        upper = posixpath.dirname(folder)
        if upper == folder or not upper:
            return
        folder = upper


def _inside(folder: str, other: str) -> bool:
    return folder == other or folder.startswith(other + "/")
