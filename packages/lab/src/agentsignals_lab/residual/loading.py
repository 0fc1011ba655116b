"""Models and tokenizers from a local folder or the Hub, and what is written down about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from agentsignals.errors import LabError
from msgspec.structs import replace
from tokenizers import Tokenizer

from agentsignals_lab.residual import Loading, ModelCard
from agentsignals_lab.residual.decoding import empty
from agentsignals_lab.residual.encoding import has_template
from agentsignals_lab.residual.model import HookedModel, cache_argument, pack
from agentsignals_lab.runs import versions_of

_GENERIC_TOKENIZERS = frozenset({"TokenizersBackend", "PreTrainedTokenizerFast"})
"""A tokenizer that says it is no more than its file: AutoTokenizer (5.23) reads it with the class usual for the model's
architecture, which cuts words otherwise than it was trained with."""
PROBE = """def tested(numbers: list[int]) -> str:
    # It's 12345.67 % done; they'll see naïve café, 東京 and 🙂 twice  twice.
\tif len(numbers) >= 3: return "Don't  retry\\n" + 'x' * 10
"""
"""Words, blanks, digits, signs and alphabets at which tokenizers differ."""
TOKENS_OF_A_PROCESSOR = 8192


def load_model(named: str, how: Loading) -> HookedModel:
    """See `agentsignals_lab.residual.load`."""
    shared = {"revision": how.revision, "trust_remote_code": False, "local_files_only": how.offline}
    # A device map of several devices needs accelerate; one device does not.
    spread = how.device in ("auto", "balanced", "balanced_low_0", "sequential")
    placed: dict[str, Any] = {"device_map": how.device} if spread else {}
    with _clear(named), _quiet():
        tokenizer = _tokenizer(named, shared)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            named, dtype=_dtype(how.dtype), attn_implementation=how.attention, **placed, **shared
        )
        if not spread:
            model = model.to(how.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    card = replace(card_of(named, model, tokenizer, how.revision or ""), exact=how.batch == 1)
    if how.packed:
        pack(model)
    most = tokens_that_fit(model) if how.batch_tokens is None else how.batch_tokens
    return HookedModel(model, tokenizer, card, batch=how.batch, batch_tokens=most)


def tokens_that_fit(model: Any) -> int:
    """Tokens of one batch for a model in memory: half of what a GPU has left, by what a token's keys and values take
    (measured on one token); on a processor 8,192."""
    device = model.get_input_embeddings().weight.device
    if device.type != "cuda":
        return TOKENS_OF_A_PROCESSOR
    free, _ = torch.cuda.mem_get_info(device)
    with torch.inference_mode():
        one, cache = torch.zeros(1, 1, dtype=torch.long, device=device), empty()
        model(input_ids=one, use_cache=True, **{cache_argument(model): cache})
    return tokens_for(free, sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers))


def tokens_for(free_bytes: int, token_bytes: int) -> int:
    """Half of the memory for keys and values; the other half is for a pass, its logits, and a copy when rows change."""
    return max(TOKENS_OF_A_PROCESSOR, free_bytes // 2 // max(1, token_bytes))


def _dtype(named: str) -> Any:
    if named == "auto":
        return "auto"
    dtype = getattr(torch, {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}.get(named, named), None)
    if not isinstance(dtype, torch.dtype):
        raise LabError(f"{named!r} is not a number format of torch.", "Use auto, float32, bfloat16 or float16.")
    return dtype


def _tokenizer(named: str, shared: dict[str, Any]) -> Any:
    """Mistral's own tokenizer where the model brings it (tekken.json) and mistral_common is installed: its file is the
    one that Devstral was trained with.
    """
    if _file_of(named, "tekken.json", shared) is not None:
        if not versions_of("mistral-common"):
            return transformers.AutoTokenizer.from_pretrained(named, **shared)
        wanted = {key: value for key, value in shared.items() if key != "trust_remote_code"}
        return transformers.MistralCommonBackend.from_pretrained(named, **wanted)
    tokenizer_class = transformers.models.auto.tokenization_auto.get_tokenizer_config(named, **shared).get(
        "tokenizer_class"
    )
    if tokenizer_class in _GENERIC_TOKENIZERS:
        return transformers.PreTrainedTokenizerFast.from_pretrained(named, **shared)
    tokenizer = transformers.AutoTokenizer.from_pretrained(named, **shared)
    _check_cuts(named, tokenizer, _file_of(named, "tokenizer.json", shared))
    return tokenizer


def _check_cuts(named: str, tokenizer: Any, path: str | None) -> None:
    """LabError where the class that is declared, or usual for the architecture, cuts words otherwise than the
    tokenizer.json that the model was trained with."""
    if path is None:
        return
    of_file = Tokenizer.from_file(path)
    of_file.no_truncation()
    of_file.no_padding()
    wanted = of_file.encode(PROBE, add_special_tokens=False).ids
    cut = tokenizer(PROBE, add_special_tokens=False)["input_ids"]
    if list(cut) != wanted:
        raise LabError(
            f"{named}: {type(tokenizer).__name__}, the class taken for it, cuts a text into {len(cut)} tokens where its"
            f" tokenizer.json cuts it into {len(wanted)}, or into others.",
            'With "tokenizer_class": "PreTrainedTokenizerFast" in tokenizer_config.json the file is taken as it is.',
        )


def _file_of(named: str, file: str, shared: dict[str, Any]) -> str | None:
    """Where a file of the model lies; None where it has no such."""
    path: str | None = transformers.utils.cached_file(
        named,
        file,
        revision=shared["revision"],
        local_files_only=shared["local_files_only"],
        _raise_exceptions_for_gated_repo=False,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return path


def card_of(named: str, model: Any, tokenizer: Any, revision: str) -> ModelCard:
    """Return a model's part of a run's manifest."""
    text, folder = model.config.get_text_config(), Path(named)
    known = f"sha256:{folder_sha256(folder)}" if folder.is_dir() else getattr(model.config, "_commit_hash", None)
    return ModelCard(
        name=named,
        revision=str(known or revision),
        tokenizer_sha256=tokenizer_sha256(tokenizer),
        architecture=type(model).__name__,
        layers=int(text.num_hidden_layers),
        width=int(text.hidden_size),
        dtype=str(model.dtype).removeprefix("torch."),
        device=",".join(sorted({str(parameter.device) for parameter in model.parameters()})),
        has_chat_template=has_template(tokenizer),
        attention=str(model.config._attn_implementation),
        packages=versions_of("torch", "transformers", "tokenizers", "accelerate", "mistral-common"),
    )


def folder_sha256(folder: Path) -> str:
    """Over names and contents of a folder's files, in the order of their names; hidden files do not count."""
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        inside = path.relative_to(folder)
        if any(part.startswith(".") for part in inside.parts):
            continue
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        total.update(f"{inside.as_posix()}\0{content}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def tokenizer_sha256(tokenizer: Any) -> str:
    """Over what decides the tokens of a chat: the tokenizer's whole state and its chat template."""
    inner = getattr(tokenizer, "backend_tokenizer", None)
    if inner is not None:
        state = inner.to_str()
    else:
        state = json.dumps([sorted(tokenizer.get_vocab().items()), sorted(map(str, tokenizer.all_special_tokens))])
    template = getattr(tokenizer, "chat_template", None) or ""
    return hashlib.sha256(f"{state}\0{template}".encode("utf-8", "surrogatepass")).hexdigest()


@contextmanager
def _clear(named: str) -> Iterator[None]:
    """The many ways in which a model can't be loaded, as one error that says what to do."""
    try:
        yield
    except LabError:
        raise
    except ImportError as problem:
        raise LabError(
            f"{named} can't be loaded: {_first_line(problem)}", "Install the package that it names."
        ) from problem
    except (OSError, ValueError, RuntimeError) as problem:
        raise LabError(
            f"{named} can't be loaded: {_first_line(problem)}",
            "Give a local folder with a model, or the id of one on the Hub; offline it must have been fetched before.",
        ) from problem


def _first_line(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' own progress bars: what is told on the way is the caller's to tell."""
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
