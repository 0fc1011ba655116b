"""The one thing that a page may write: labels into a gold file, where `serve --annotate` names one.

A form that was made here carries the token of this process. What comes from another site is refused whatever it
carries: by what the browser says of where it comes from, by the token, and by the name that it asked for.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection
from email.message import Message
from http import HTTPStatus
from io import BufferedIOBase
from urllib.parse import parse_qsl

from agentsignals.labels.gold_file import GoldFile

ADDRESS = "/labels/annotate"
MOST_BODY_BYTES = 32 * 1024
"""A note of 2,000 characters takes 24 KB at most."""
MOST_FIELDS = 12
_NUMBER = re.compile("[0-9]{1,9}")
_FORM = "application/x-www-form-urlencoded"


class Refused(Exception):
    """A request that may not write: with which status it is answered, and why."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Annotations:
    """A gold file that is open for writing, and what a form must carry to write into it."""

    def __init__(self, file: GoldFile) -> None:
        self.file = file
        self.token = secrets.token_urlsafe(32)

    def form(self, headers: Message, body: BufferedIOBase, names: Collection[str]) -> dict[str, str]:
        """The fields of a form of ours. Refused for any other, before more of it is read than its head where that
        tells. `names`: those of this server.
        """
        if not _is_of_ours(headers, names):
            raise Refused(HTTPStatus.FORBIDDEN, "Labels are taken from this page's own form only.")
        if headers.get_content_type() != _FORM:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"A form is wanted ({_FORM}).")
        lengths = headers.get_all("Content-Length", [])
        if len(lengths) != 1 or not _NUMBER.fullmatch(lengths[0]) or "Transfer-Encoding" in headers:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "How long the form is must stand before it.")
        if int(lengths[0]) > MOST_BODY_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"At most {MOST_BODY_BYTES:,} bytes are read.")
        fields = _fields(body.read(int(lengths[0])), int(lengths[0]))
        if not secrets.compare_digest(fields.get("token", "").encode("utf-8", "replace"), self.token.encode()):
            raise Refused(HTTPStatus.FORBIDDEN, "This form is none of this run: load the page again.")
        return fields


def _is_of_ours(headers: Message, names: Collection[str]) -> bool:
    """Whether the browser says that one of our pages sent this. It says `null` for the origin of a form of ours, since
    our pages tell nobody where they are; then only its word that the form is of the same origin counts
    (https://www.w3.org/TR/fetch-metadata/).
    """
    sites, origins = headers.get_all("Sec-Fetch-Site", []), headers.get_all("Origin", [])
    if origins == ["null"]:
        return sites == ["same-origin"]
    return sites in ([], ["same-origin"]) and origins in [[f"http://{name}"] for name in names]


def _fields(body: bytes, length: int) -> dict[str, str]:
    """Each field once; none of what can't be read or was cut."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return {}
    return dict(pairs) if len(body) == length and len(dict(pairs)) == len(pairs) else {}
