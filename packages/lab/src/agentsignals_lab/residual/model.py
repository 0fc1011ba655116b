"""A causal model of the transformers library, its residual stream read and changed by forward hooks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import torch
from agentsignals.errors import LabError

from agentsignals_lab.residual import (
    EMBEDDING,
    EVERYWHERE,
    Calibration,
    Edit,
    Generation,
    Message,
    ModelCard,
    Piece,
    Positions,
    Prompt,
    Request,
    Sampling,
)
from agentsignals_lab.residual.decoding import Decoding
from agentsignals_lab.residual.encoding import encode_chat, encode_pieces, read
from agentsignals_lab.residual.hooks import (
    Acting,
    Batch,
    Enough,
    Run,
    checked,
    checked_layer,
    hooked,
    in_batches,
    longest_first,
)

LEAST_WEIGHTS = 100_000_000
"""Of smaller models the time is spent elsewhere."""
_ROWS = 32
"""That the layout is made for; others are computed too."""


class PackedLinear(torch.nn.Module):  # type: ignore[misc]  # of a package without types
    """A linear layer without gradients."""

    def __init__(self, of: torch.nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = of.in_features, of.out_features
        self._packed = torch.ops.mkldnn._reorder_linear_weight(of.weight.detach(), _ROWS)
        self._bias = None if of.bias is None else of.bias.detach()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        flat = rows.reshape(-1, self.in_features)
        made: torch.Tensor = torch.ops.mkldnn._linear_pointwise(flat, self._packed, self._bias, "none", [], "")
        return made.reshape(*rows.shape[:-1], self.out_features)


def pack(model: Any, least_weights: int = LEAST_WEIGHTS) -> None:
    """Packs the linear layers of a model of at least so many weights in float32 on a processor; of others, none."""
    weight = model.get_input_embeddings().weight
    many = sum(one.numel() for one in model.parameters()) >= least_weights
    if not (many and weight.device.type == "cpu" and weight.dtype == torch.float32 and torch.backends.mkldnn.enabled):
        return
    kept = model.get_output_embeddings()
    layers = [(name, one) for name, one in model.named_modules() if type(one) is torch.nn.Linear and one is not kept]
    for name, one in layers:
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, PackedLinear(one))


_PROJECTIONS = ("o_proj", "c_proj", "out_proj", "dense")


class Heads:
    """The heads of a model's blocks in one prompt and another of its length; the outcome is the difference of two next
    tokens' log-probabilities."""

    def __init__(
        self, model: Any, blocks: Sequence[torch.nn.Module], prompts: Sequence[torch.Tensor], ends: tuple[int, int]
    ) -> None:
        self._model, self._ends, (self._here, self._other) = model, list(ends), prompts
        self.count = int(model.config.get_text_config().num_attention_heads)
        self._projections = [_projection(block) for block in blocks]

    def attributed(self) -> np.ndarray:
        """Estimated effect of patching each head: (layers, heads)."""
        if any(isinstance(one, PackedLinear) for one in self._projections):
            raise LabError("Packed weights have no gradients.", "Load the model with Loading(packed=False).")
        with torch.no_grad(), self._read() as there:
            self._outcome(self._other)
        with self._read() as seen, torch.enable_grad(), self._followed():
            gradients = torch.autograd.grad(self._outcome(self._here), seen)
        moved = [(b - a) * g for a, b, g in zip(seen, there, gradients, strict=True)]
        by_head = [m.detach().float()[0].unflatten(-1, (self.count, -1)).sum(dim=(0, 2)) for m in moved]
        return np.stack([one.cpu().numpy() for one in by_head])

    def patched(self, layer: int, head: int, share: float = 1.0) -> float:
        """Effect of one head's output moved by `share` of the way to the other prompt's, at all tokens."""
        with torch.no_grad():
            with self._read() as there:
                self._outcome(self._other)
            plain = float(self._outcome(self._here))

            def put(_: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
                states = args[0].clone().unflatten(-1, (self.count, -1))
                of_other = there[layer].unflatten(-1, (self.count, -1))[..., head, :]
                states[..., head, :] += share * (of_other - states[..., head, :])
                return (states.flatten(-2), *args[1:])

            handle = self._projections[layer].register_forward_pre_hook(put)
            try:
                return float(self._outcome(self._here)) - plain
            finally:
                handle.remove()

    def _outcome(self, tokens: torch.Tensor) -> torch.Tensor:
        first, second = self._model(input_ids=tokens, use_cache=False).logits[0, -1].float()[self._ends]
        return first - second

    @contextmanager
    def _read(self) -> Iterator[list[torch.Tensor]]:
        """What goes into each block's output projection, (1, tokens, heads x d), in the order of the blocks."""
        seen: list[torch.Tensor] = []
        with ExitStack() as hooks:
            for projection in self._projections:
                handle = projection.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
                hooks.callback(handle.remove)
            yield seen

    @contextmanager
    def _followed(self) -> Iterator[None]:
        """From the embeddings on, gradients are kept: the weights have none."""
        embeddings = self._model.get_input_embeddings()
        handle = embeddings.register_forward_hook(lambda _, __, output: output.requires_grad_())
        try:
            yield
        finally:
            handle.remove()


def _projection(block: torch.nn.Module) -> torch.nn.Module:
    attention = getattr(block, "self_attn", None) or getattr(block, "attn", None) or getattr(block, "attention", None)
    found = next((getattr(attention, name) for name in _PROJECTIONS if hasattr(attention, name)), None)
    if not isinstance(found, torch.nn.Module):
        raise LabError(
            f"The attention heads of {type(block).__name__} can't be located.", "Use another model for attribution."
        )
    return found


SINK_FACTOR = 10.0
"""A token whose norm is above this many medians is a sink (design/lab.md#directions)."""
_MOST_LOGITS = 1 << 28
"""Numbers of one batch's logits, 1 GiB of them in single precision."""


class HookedModel:
    """A transformers model whose states can be read and changed. Batches are cut inside; their size changes no result
    beyond rounding (docs/lab.md#throughput). `batch` and `batch_tokens` bound a batch, the latter with its
    padding and what it writes; `cached=False` computes every written token from the whole sequence anew (slow; for
    checks).
    """

    def __init__(  # noqa: PLR0913  (a model, and what bounds its batches)
        self,
        model: Any,
        tokenizer: Any,
        card: ModelCard,
        *,
        batch: int = 32,
        batch_tokens: int = 8192,
        cached: bool = True,
    ) -> None:
        if batch < 1 or batch_tokens < 1:
            raise LabError(
                f"A batch of {batch} rows and {batch_tokens} tokens holds nothing.", "Give at least one of each."
            )
        self._model = model.eval().requires_grad_(False)
        self._tokenizer = tokenizer
        self.card = card
        self._batch = batch
        self._batch_tokens = batch_tokens
        self.cached = cached
        self.blocks = blocks_of(model)
        # The model without its head: what is run when nobody asks for logits.
        self._backbone = model.get_decoder() if hasattr(model, "get_decoder") else model.base_model
        self._keeps_last = "logits_to_keep" in signature(model.forward).parameters
        self._cache_argument = cache_argument(model)
        self._device = model.get_input_embeddings().weight.device
        self._sink_norms: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        return self.card.name

    def encode(self, chat: Sequence[Message]) -> Prompt:
        """A chat under the model's own template, ready for an answer; an assistant's last message stays open, to be
        continued. Without a template a single message of a user is plain text; LabError for any other chat."""
        return encode_chat(self._tokenizer, chat)

    def encode_text(self, pieces: Sequence[Piece]) -> Prompt:
        """Plain text without a template; a beginning-of-sequence token where the tokenizer adds one."""
        return encode_pieces(self._tokenizer, pieces)

    def calibrate(self, prompts: Sequence[Prompt]) -> Calibration:
        """Measures norms on `prompts`; later calls leave sinks out by what was found."""
        norms: dict[int, list[np.ndarray]] = {layer: [] for layer in range(self.card.layers)}
        self._sink_norms = None

        def reader(batch: Batch, _: list[int], layer: int, states: torch.Tensor, __: object) -> None:
            lengths = torch.linalg.vector_norm(states, dim=-1, dtype=torch.float32)
            norms[layer].append(lengths[batch.real.to(lengths.device)].cpu().numpy())

        self._read(prompts, range(self.card.layers), (), reader)
        by_layer = [np.concatenate(norms[layer]) for layer in range(self.card.layers)]
        sinks = tuple(SINK_FACTOR * float(np.median(norm)) for norm in by_layer)
        medians = tuple(float(np.median(norm[norm <= sink])) for norm, sink in zip(by_layer, sinks, strict=True))
        self._sink_norms = sinks
        return Calibration(medians, sinks, len(prompts), sum(len(p.tokens) for p in prompts))

    def record(
        self,
        prompts: Sequence[Prompt],
        layers: Sequence[int],
        positions: Positions = EVERYWHERE,
        edits: Sequence[Edit] = (),
    ) -> np.ndarray:
        """Means over the positions: (prompts, layers, d). A prompt without such a position has NaN. With `edits`, the
        states after them."""
        means: np.ndarray = self.record_places(prompts, layers, [positions], edits)[0]
        return means

    def record_places(
        self, prompts: Sequence[Prompt], layers: Sequence[int], places: Sequence[Positions], edits: Sequence[Edit] = ()
    ) -> np.ndarray:
        """`record` for several positions in one pass: (places, prompts, layers, d)."""
        means = np.full((len(places), len(prompts), len(layers), self.card.width), np.nan, dtype=np.float32)

        def reader(_: Batch, rows: list[int], layer: int, states: torch.Tensor, meant: Any) -> None:
            for place, positions in enumerate(places):
                mean = _mean(states, meant(positions)).cpu().numpy()
                for at, wanted in enumerate(layers):
                    if wanted == layer:
                        means[place, rows, at] = mean

        self._read(prompts, layers, edits, reader)
        return means

    def states(self, prompts: Sequence[Prompt], layers: Sequence[int], edits: Sequence[Edit] = ()) -> list[np.ndarray]:
        """All states: one (layers, tokens, d) a prompt."""
        recorded = [np.empty((len(layers), len(p.tokens), self.card.width), dtype=np.float32) for p in prompts]

        def reader(batch: Batch, rows: list[int], layer: int, states: torch.Tensor, _: object) -> None:
            on_host = states.float().cpu().numpy()
            for row, index in enumerate(rows):
                for place, wanted in enumerate(layers):
                    if wanted == layer:
                        recorded[index][place] = on_host[row, batch.without_padding(row)]

        self._read(prompts, layers, edits, reader)
        return recorded

    def next_logprobs(self, prompts: Sequence[Prompt], edits: Sequence[Edit] = ()) -> np.ndarray:
        """Natural-log probabilities of the token after each prompt: (prompts, vocabulary)."""
        logprobs: list[np.ndarray | None] = [None] * len(prompts)
        for rows, batch in self._batches(prompts, edits):
            with self._ready(batch, edits) as run:
                logits = self.logits(run, batch.ids, None, keep=1)[:, -1]
            for index, row in zip(rows, logits.float().log_softmax(-1).cpu().numpy(), strict=True):
                logprobs[index] = row
        return np.stack([row for row in logprobs if row is not None]) if prompts else np.empty((0, 0), np.float32)

    def logprobs_of(self, prompts: Sequence[Prompt], edits: Sequence[Edit] = ()) -> list[np.ndarray]:
        """Return the log-probabilities of each prompt's own tokens given those before: one (tokens,) a prompt, the
        first NaN."""
        by_prompt = [np.full(len(p.tokens), np.nan, dtype=np.float32) for p in prompts]
        vocabulary = int(self._model.get_output_embeddings().weight.shape[0])
        most_tokens = min(self._batch_tokens, max(1, _MOST_LOGITS // vocabulary))
        for rows, batch in self._batches(prompts, edits, most_tokens):
            with self._ready(batch, edits) as run:
                logits = self.logits(run, batch.ids, None, keep=0)
            for row, index in enumerate(rows):
                real = batch.without_padding(row)
                ids = batch.ids[row, real][1:].to(logits.device).unsqueeze(-1)
                logprobs = logits[row, real][:-1].float().log_softmax(-1).gather(-1, ids)
                by_prompt[index][1:] = logprobs.squeeze(-1).cpu().numpy()
        return by_prompt

    def token_texts(self, tokens: Sequence[int]) -> list[str]:
        """Decode each token by itself."""
        return [str(self._tokenizer.decode([token])) for token in tokens]

    def lens(self, states: np.ndarray) -> np.ndarray:
        """Logits of the final norm and the head on states (tokens, d), of whatever layer: (tokens, vocabulary)."""
        names = ("norm", "final_layernorm", "final_layer_norm", "ln_f")
        norm = next((getattr(self._backbone, name) for name in names if hasattr(self._backbone, name)), None)
        head = self._model.get_output_embeddings()
        if norm is None or head is None:
            raise LabError(
                f"The final norm or the head of {type(self._model).__name__} can't be located.",
                "Use another model for the lens.",
            )
        with torch.inference_mode():
            given = torch.from_numpy(states).to(head.weight.device, head.weight.dtype)
            logits: np.ndarray = head(norm(given)).float().cpu().numpy()
        return logits

    def first_token(self, text: str) -> int:
        """Return the id of the first token of a text that goes on after a prompt. LabError when it has none."""
        tokens = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        if not tokens:
            raise LabError(f"{text!r} has no token.", "Name a word.")
        return int(tokens[0])

    def heads(self, prompt: Prompt, other: Prompt, first: str, second: str) -> Heads:
        """Return the heads of two prompts of one length, for the log-odds of two words going on after them, of which
        the first tokens count, as the outcome."""
        if len(prompt.tokens) != len(other.tokens):
            raise LabError(
                f"Prompts of {len(prompt.tokens)} and {len(other.tokens)} tokens: heads are put token for token.",
                "Give two that differ in words of as many tokens.",
            )
        ids = [torch.tensor([self._fitting(one).tokens], device=self._device) for one in (prompt, other)]
        return Heads(self._model, self.blocks, ids, (self.first_token(first), self.first_token(second)))

    def generate(
        self, prompts: Sequence[Prompt], sampling: Sequence[Sampling], edits: Sequence[Edit] = ()
    ) -> list[Generation]:
        """Continues each prompt under the edits. Edits at `generated` positions act on every new token."""
        if len(prompts) != len(sampling):
            raise LabError(
                f"{len(prompts)} prompts came with {len(sampling)} samplings.", "Give one sampling a prompt."
            )
        requests = [Request(prompt, how, tuple(edits)) for prompt, how in zip(prompts, sampling, strict=True)]
        grows = [len(p.tokens) + how.max_new_tokens for p, how in zip(prompts, sampling, strict=True)]
        waiting, answers = deque(longest_first(grows)), self.answers()
        by_row: dict[int, Generation] = {}
        while waiting or len(answers):
            rows: list[int] = []
            while waiting and answers.fits([requests[row] for row in (*rows, waiting[0])]):
                rows.append(waiting.popleft())
            if rows:
                answers.add([(row, requests[row]) for row in rows])
            by_row.update(answers.step())
        return [by_row[row] for row in range(len(requests))]

    def answers(self) -> Decoding:
        """Answers to be written side by side; requests may come while others are under way."""
        return Decoding(self)

    # -- what `Decoding` needs

    @property
    def bounds(self) -> tuple[int, int]:
        """The most rows of a batch, and the most tokens."""
        return self._batch, self._batch_tokens

    def check(self, prompt: Prompt, edits: Sequence[Edit]) -> None:
        """LabError for a prompt or an edit that does not fit the model."""
        self._fitting(prompt)
        checked(edits, self.card.layers, self.card.width)

    def run_of(self, prompts: Sequence[Prompt], written: Sequence[Sequence[int]] | None = None) -> Run:
        """Prompts on their way through the model, each with the tokens written after it so far."""
        return Run(Batch(prompts, self._padding(), self._device, written), self._sink_norms)

    def read(self, tokens: Sequence[int]) -> str:
        return read(self._tokenizer, tokens)

    @property
    def ends(self) -> frozenset[int]:
        """Tokens that end an answer."""
        token_ids = (self._model.generation_config.eos_token_id, self._tokenizer.eos_token_id)
        ends = [end for ids in token_ids for end in (ids if isinstance(ids, list) else [ids])]
        return frozenset(end for end in ends if end is not None)

    def _padding(self) -> int:
        token_id = getattr(self._tokenizer, "pad_token_id", None)
        return 0 if token_id is None else int(token_id)

    def _fitting(self, prompt: Prompt) -> Prompt:
        most = getattr(self._model.config.get_text_config(), "max_position_embeddings", None)
        if most is not None and len(prompt.tokens) > most:
            raise LabError(f"A prompt has {len(prompt.tokens)} tokens; this model reads {most}.", "Shorten it.")
        return prompt

    def _batches(
        self,
        prompts: Sequence[Prompt],
        edits: Sequence[Edit],
        most_tokens: int | None = None,
    ) -> Iterator[tuple[list[int], Batch]]:
        checked(edits, self.card.layers, self.card.width)
        for rows in in_batches([len(p.tokens) for p in prompts], most_tokens or self._batch_tokens, self._batch):
            yield rows, Batch([self._fitting(prompts[row]) for row in rows], self._padding(), self._device)

    @contextmanager
    def _ready(self, batch: Batch, edits: Sequence[Edit]) -> Iterator[Run]:
        run = Run(batch, self._sink_norms)
        with torch.inference_mode(), hooked(self.blocks, run, [Acting.of(e) for e in edits]):
            yield run

    def _read(self, prompts: Sequence[Prompt], layers: Sequence[int], edits: Sequence[Edit], reader: Any) -> None:
        """`reader` is told the batch, its rows' places among `prompts`, a layer, its states and what positions mean."""
        if not layers:
            raise LabError("No layer was named.", f"Layers go from 0 to {self.card.layers - 1}.")
        for layer in layers:
            if layer != EMBEDDING:
                checked_layer(layer, self.card.layers)
        checked(edits, self.card.layers, self.card.width)
        acting = [Acting.of(edit) for edit in edits]
        for rows, batch in self._batches(prompts, edits):
            run = Run(batch, self._sink_norms, ends_at=max(layers))
            read = partial(reader, batch, rows)
            with torch.inference_mode(), suppress(Enough), hooked(self.blocks, run, acting, read, layers):
                self._backbone(
                    input_ids=batch.ids, attention_mask=batch.real.long(), position_ids=batch.places, use_cache=False
                )

    def logits(self, run: Run, ids: torch.Tensor, cache: Any, keep: int) -> torch.Tensor:
        """Logits after `ids`, the last `keep` of them (0: all) where the model can leave out the others."""
        upto = run.start + ids.shape[1]
        real = torch.nn.functional.pad(run.batch.real, (0, upto - run.batch.longest), value=True)
        places = (real.long().cumsum(1) - 1).clamp(min=0)[:, run.start :]
        options = {self._cache_argument: cache, **({"logits_to_keep": keep} if self._keeps_last else {})}
        logits: torch.Tensor = self._model(
            input_ids=ids,
            attention_mask=real.long(),
            position_ids=places,
            use_cache=cache is not None,
            **options,
        ).logits
        return logits


def _mean(states: torch.Tensor, meant: torch.Tensor | None) -> torch.Tensor:
    """Means over the tokens meant, (batch, d); NaN where none is."""
    if meant is None:
        return torch.full((states.shape[0], states.shape[2]), torch.nan)
    # Padding may hold numbers that are not finite, and zero times those is none.
    kept = states.float().masked_fill(~meant.unsqueeze(-1), 0.0)
    return kept.sum(1) / meant.sum(1, keepdim=True)


# -- Where a model keeps its parts, whatever its makers call them


def blocks_of(model: Any) -> list[torch.nn.Module]:
    """The decoder blocks: the outermost ModuleList that has as many members as the configuration says layers."""
    wanted = int(model.config.get_text_config().num_hidden_layers)
    modules = [
        (name.count("."), module)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == wanted
    ]
    outermost = [module for depth, module in modules if depth == min(d for d, _ in modules)]
    if len(outermost) != 1:
        raise LabError(
            f"The {wanted} decoder blocks of {type(model).__name__} can't be located.",
            "Use a causal model with one stack of blocks.",
        )
    return list(outermost[0])


def cache_argument(model: Any) -> str:
    """Return by which name the model takes a cache of keys and values: transformers call it `cache` from 5.24 on, and
    warn of the older name."""
    return "cache" if "cache" in signature(model.forward).parameters else "past_key_values"
