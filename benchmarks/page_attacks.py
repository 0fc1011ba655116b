"""Attacks the page of a real server over raw sockets and counts what it answered; exit code 1 if that is anything.

    python -m benchmarks.page_attacks [--timings 300] [--seed 1]

Every route of the server's own table is asked by foreign names of the host, by other sites, by other methods, without a
token or cookie, with a part of one and with an old one, and in spellings that lead elsewhere. An answer counts if it is
no refusal, sets a cookie, or holds a word of the store. Then refused searches of a word that is there and of one that
is not are timed in turn, as are tokens that are right for longer and longer: a rank test may not tell them apart.
"""

from __future__ import annotations

import argparse
import random
import re
import socket
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.ui.served import serving, whole_store
from tests.ui.test_access import FOREIGN, addresses, cookie_of, spellings

from agentsignals.labels.gold import GoldFile
from agentsignals.ui.pages.labels import Annotations
from agentsignals.ui.server import Server

REFUSALS = frozenset((400, 403, 405, 414, 421, 431, 501, 505))
WORDS = ("parser", "fine-1", "pytest", "deep.py", "me/tools")
"""Texts that every page of the store has some of, and no refusal."""
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "get")
_DIFFERS = 4.0
"""Standard errors of the rank sum from which on two series are told apart: by chance once in 16,000 comparisons."""

Attack = tuple[str, bytes]
"""Class and request, whole."""


def request(path: str, method: str = "GET", *headers: str, host: str | None = None, version: str = "HTTP/1.1") -> bytes:
    lines = [f"{method} {path} {version}", *([f"Host: {host}"] if host is not None else []), *headers, "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape")


def answers(server: Server, sent: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield status and bytes of each answer on one connection, until the server closes it or says nothing more."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        got = b""
        while block := connection.recv(1 << 16):
            got += block
            if b"text/event-stream" in got:  # it would last as long as we listen
                break
    for part in re.split(rb"(?=HTTP/1\.[01] \d{3} )", got)[1:]:
        yield int(part[9:12]), part


def attacks(server: Server, old: Server, cookie: str, old_cookie: str) -> Iterator[Attack]:
    """Yield every attack. Those of other sites and names come with the right cookie, which a browser would not send."""
    port, token = server.port, server.access.token
    host, name, value = f"127.0.0.1:{port}", *cookie.split("=", 1)
    let_in = f"Cookie: {cookie}"
    hosts = [
        "",
        "127.0.0.1",
        "localhost",
        f"127.0.0.1:{old.port}",
        f"evil.example:{port}",
        "evil.example",
        f"[::1]:{port}",
    ]
    hosts += [f"{n}:{port}" for n in ("0", "127.1", "2130706433", "0x7f.1", "localhost.", "127.0.0.1.nip.example")]
    hosts += [f"{host}@evil.example", f"evil.example#{host}", f"localhost.evil.example:{port}", f"{host}, evil.example"]
    foreign = [[f"{n}: {v}" for n, v in headers.items()] for headers in FOREIGN]
    foreign += [
        [f"Referer: {page}"]
        for page in ("https://evil.example/", f"http://127.0.0.1:{old.port}/", f"http://{host}.evil.example/")
    ]
    foreign += [
        ["Origin: http://localhost:1", "Sec-Fetch-Site: same-origin"],
        [f"Origin: http://{host}", "Sec-Fetch-Site: cross-site"],
    ]
    foreign += [
        ["Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"],
        [f"Origin: http://{host}", "Origin: https://evil.example"],
    ]
    tokens = [
        "",
        "x",
        token + "x",
        token.swapcase(),
        token[::-1],
        old.access.token,
        value,
        "%00",
        "*",
        "null",
        token[:-1] + "%",
    ]
    tokens += [token[:n] for n in range(1, len(token), 6)]
    tokens += [token[:n] + ("A" if token[n] != "A" else "B") + token[n + 1 :] for n in range(0, len(token), 6)]
    cookies = [
        "",
        name,
        f"{name}=",
        f"{name}={token}",
        f'{name}="{value}"',
        f"{name.upper()}={value}",
        old_cookie,
        cookie[:-1],
    ]
    cookies += [
        f"{old_cookie.partition('=')[0]}={value}",
        f"{name}={old_cookie.partition('=')[2]}",
        f"{name}={value},",
        f"x={value}",
    ]
    cookies += [
        f"{name} ={value}x",
        f"{name}=a{value}",
        f"{name}=%{ord(value[0]):02x}{value[1:]}",
        f"$Version=1; {name}-x={value}",
    ]
    elsewhere = [
        "Authorization: token " + token,
        "X-Token: " + token,
        f"Referer: http://{host}/?token={token}",
        f"X-Cookie: {cookie}",
    ]
    for path in addresses():
        mark = "&" if "?" in path else "?"
        for named in hosts:
            yield "rebinding", request(path, "GET", let_in, host=named)
        yield "rebinding", request(path, "GET", let_in)
        yield "rebinding", request(path, "GET", let_in, version="HTTP/1.0")
        yield "rebinding", request(path, "GET", let_in, "Host: evil.example", host=host)
        for headers in foreign:
            for method in METHODS[:4]:
                yield "other sites", request(path, method, let_in, *headers, host=host)
        for method in METHODS:
            yield "methods", request(path, method, host=host)
        for method in METHODS[2:]:
            yield "methods", request(f"{path}{mark}token={token}", method, host=host)
        for given in tokens:
            yield "tokens", request(f"{path}{mark}token={given}", host=host)
        for query in (
            f"Token={token}",
            f"token%3D{token}",
            f"token=x&token={token}",
            f"x=token={token}",
            f"token[]={token}",
        ):
            yield "tokens", request(f"{path}{mark}{query}", host=host)
        for sent in cookies:
            yield "cookies", request(path, "GET", f"Cookie: {sent}", host=host)
        for header in elsewhere:
            yield "cookies", request(path, "GET", header, host=host)
        for written in spellings(path):
            yield "paths", request(written, host=host)
        for written in (
            f"http://{host}{path}",
            f"http://evil.example{path}",
            f"*{path}",
            f"/static/page.css/..{path}",
            f"{path}/static/page.css",
        ):
            yield "paths", request(written, host=host)
        # A second request behind one that is let in, and one hidden in its body: each has to come with the cookie.
        inner = request(path, host=host)
        first = f"GET /static/page.css HTTP/1.1\r\nHost: {host}\r\n"
        yield "one connection", f"{first}\r\n".encode() + inner
        yield "one connection", f"{first}Content-Length: {len(inner)}\r\n\r\n".encode() + inner
        yield "one connection", f"{first}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode() + inner
        yield (
            "one connection",
            inner.replace(b"\r\n\r\n", b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
        )
        yield "one connection", inner.replace(b"\r\n", b"\n") + f"Cookie: {cookie}\n\n".encode()


def answered(kind: str, got: Iterable[tuple[int, bytes]]) -> str:
    """Return what an attack was answered, nothing if it was refused. A style may be got by everybody."""
    for n, (status, part) in enumerate(got):
        if (kind == "paths" or (kind == "one connection" and n == 0)) and b"Content-Type: text/css" in part:
            continue
        told = [word for word in WORDS if word.encode() in part.lower()]
        if status not in REFUSALS or b"set-cookie" in part.lower() or told:
            return f"{status} {told}"
    return ""


def rank_difference(a: list[float], b: list[float]) -> float:
    """Standard errors by which the ranks of two series differ (Mann-Whitney)."""
    order = sorted((v, n) for n, series in enumerate((a, b)) for v in series)
    ranks = sum(rank for rank, (_, n) in enumerate(order, 1) if n == 0)
    mean = len(a) * (len(a) + len(b) + 1) / 2
    return (ranks - mean) / (len(a) * len(b) * (len(a) + len(b) + 1) / 12) ** 0.5


def timed(server: Server, pairs: dict[str, tuple[bytes, bytes]], times: int, seed: int) -> int:
    """Print how far the times of each two requests differ; return how many are told apart."""
    order, apart = random.Random(seed), 0  # noqa: S311
    for name, both in pairs.items():
        took: tuple[list[float], list[float]] = [], []
        for _ in range(times):
            for n in order.sample((0, 1), 2):
                began = time.perf_counter()
                list(answers(server, both[n]))
                took[n].append(time.perf_counter() - began)
        differs = rank_difference(*took)
        apart += abs(differs) >= _DIFFERS
        medians = " and ".join(f"{statistics.median(series) * 1e6:,.0f}" for series in took)
        print(f"{name}: {medians} µs (medians of {times}), {differs:+.1f} standard errors")
    return apart


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timings", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="page-attacks-") as folder:
        gold = Path(folder, "gold.jsonl")
        store = whole_store(Path(folder, "store"))
        with serving(store, with_token=True) as old:
            old_cookie = cookie_of(old)
            with serving(store, Annotations(GoldFile(str(gold))), with_token=True) as server:
                cookie, token, host = cookie_of(server), server.access.token, f"127.0.0.1:{server.port}"
                before = gold.read_bytes() if gold.exists() else b""
                tried, through = Counter[str](), Counter[str]()
                for kind, sent in attacks(server, old, cookie, old_cookie):
                    tried[kind] += 1
                    if what := answered(kind, answers(server, sent)):
                        through[kind] += 1
                        print(f"answered, {kind}: {what} to {sent[:300]!r}")
                opened = [list(answers(server, request(p, "GET", f"Cookie: {cookie}", "Connection: close", host=host)))
                          for p in addresses()]  # fmt: skip
                let_in = sum(got[0][0] == 200 for got in opened)
                wrote = gold.exists() and gold.read_bytes() != before
                hit, miss = (f"/search?q={word}" for word in ("parser", "zzyzzyva"))
                site = "Sec-Fetch-Site: cross-site"
                pairs = {
                    "search without a token, hit and miss": (request(hit, host=host), request(miss, host=host)),
                    "search by another site, hit and miss": (
                        request(hit, "GET", f"Cookie: {cookie}", site, host=host),
                        request(miss, "GET", f"Cookie: {cookie}", site, host=host),
                    ),
                    "no session and one that is there": (
                        request("/session/none-1", host=host), request("/session/fine-1", host=host),
                    ),
                }  # fmt: skip
                for n in (1, len(token) // 2, len(token) - 1):
                    guess = token[:n] + "".join("A" if c != "A" else "B" for c in token[n:])
                    wrong = "".join("A" if c != "A" else "B" for c in token)
                    pairs[f"a token that is wrong from its start and from its character {n + 1}"] = (
                        request(f"/?token={wrong}", host=host), request(f"/?token={guess}", host=host),
                    )  # fmt: skip
                apart = timed(server, pairs, options.timings, options.seed)
    for kind, n in tried.items():
        print(f"{kind}: {n:,} attacks, {through[kind]:,} answered")
    print(
        f"{tried.total():,} attacks, {through.total():,} answered; the person's cookie opens {let_in} of {len(opened)}"
    )
    print(f"gold file written by an attack: {'yes' if wrote else 'no'}; timings told apart: {apart} of {len(pairs)}")
    return 1 if through or wrote or apart or not let_in else 0


if __name__ == "__main__":
    sys.exit(main())
