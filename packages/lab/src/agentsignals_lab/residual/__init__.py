"""A causal language model whose residual stream can be read and changed: spans, positions, edits, generations. Torch is
known in this package's other modules alone.

A layer is the 0-based number of a decoder block and stands for that block's **output**. Token positions are those of
the unpadded sequence; `end` is exclusive. Arrays are NumPy float32 unless said otherwise; d is the model's width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from agentsignals.errors import LabError
from msgspec import Struct

from agentsignals_lab import how_to_install

if TYPE_CHECKING:
    import numpy as np

    from agentsignals_lab.residual.model import HookedModel


EMBEDDING = -1
"""The layer before the first block: what the tokens are before they have looked at each other. It can be recorded, as a
control of what words alone give, and not edited."""

Role = Literal["system", "task", "tests", "feedback", "code", "text", "template"]
"""Role of a stretch of a prompt: the task's words, its visible tests, what came back after an attempt, an earlier
answer of the model, plain text without a chat, or what the chat template put between them."""


class Piece(Struct, frozen=True):
    """A stretch of one message. Empty pieces are allowed and have no tokens."""

    role: Role
    text: str
    label: str = ""
    """Name in results: the number of an attempt or a sentence."""


class Message(Struct, frozen=True):
    """One turn of a chat, in pieces whose texts are joined without anything between them."""

    speaker: Literal["system", "user", "assistant"]
    pieces: tuple[Piece, ...]


class Span(Struct, frozen=True):
    """The tokens of a piece. A token that two pieces share belongs to the one where it begins; spaces before a
    word do not count."""

    role: Role
    start: int
    end: int
    label: str = ""


class Prompt(Struct, frozen=True):
    """A text as tokens, and which of them are what. Spans cover all tokens, in order, without overlap."""

    tokens: tuple[int, ...]
    spans: tuple[Span, ...]
    text: str = ""


class Positions(Struct, frozen=True):
    """Which tokens of a sequence are meant.

    `prompt`: all of the prompt; `roles`: those of `roles` (and `labels`, when named); `last`: the prompt's last token;
    `generated`: the last token of the prompt (it yields the first new one) and all that follow; `all`: every one.
    Attention sinks are left out where `skip_sinks` says so: tokens above the `sink_norm` of the model's calibration, by
    their states before the edits of that layer. A model that was not calibrated knows no sinks.
    """

    which: Literal["all", "prompt", "roles", "last", "generated"] = "all"
    roles: tuple[Role, ...] = ()
    labels: tuple[str, ...] = ()
    skip_sinks: bool = True


EVERYWHERE = Positions()

Place = Literal["all", "prompt", "task", "tests", "code", "feedback", "last", "decision", "generated"]
"""Where an edit acts: all tokens, the prompt's, those of a role, the prompt's last, the last before the answer parts
ways (`decision`, a label), or all that is written."""

_PLACES: dict[Place, Positions] = {
    "decision": Positions("roles", roles=get_args(Role), labels=("decision",), skip_sinks=False),
    **{name: Positions("roles", roles=(name,)) for name in ("task", "tests", "code", "feedback")},
    **{name: Positions(name) for name in ("all", "prompt", "last", "generated")},
}


def place(name: Place) -> Positions:
    """The tokens that a place means."""
    return _PLACES[name]


class Add(Struct, frozen=True, tag="add"):
    """h + amount · vector/‖vector‖ at the output of `layer`; `amount` in the units of the residual stream."""

    layer: int
    vector: np.ndarray
    """(d,); any length but zero."""
    amount: float
    positions: Positions = Positions()


class Ablate(Struct, frozen=True, tag="ablate"):
    """h without its part along `vector`."""

    layer: int
    vector: np.ndarray
    positions: Positions = Positions()


class Replace(Struct, frozen=True, tag="replace"):
    """h at the positions replaced by `states` ((n, d), one row a position in order): activation patching.

    Of the prompt only. Sinks are among the positions whatever `skip_sinks` says, else the rows would not fit.
    """

    layer: int
    states: np.ndarray
    positions: Positions = Positions()


class Suppress(Struct, frozen=True, tag="suppress"):
    """No later token attends to those at `positions`, in the blocks `layers` (none named: all).

    A token still sees itself. Sinks are told by what comes into each block.
    """

    positions: Positions
    layers: tuple[int, ...] = ()


Edit = Add | Ablate | Replace | Suppress


class Sampling(Struct, frozen=True):
    """Sampling of tokens. Temperature 0: the likeliest. `seed` fixes the random numbers of one generation: one seed
    draws equal numbers whatever the edits (common random numbers over conditions)."""

    max_new_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0


class Generation(Struct, frozen=True, kw_only=True):
    """Text of a model after a prompt."""

    text: str
    """Without special tokens."""
    tokens: tuple[int, ...]
    """All that were drawn, an end token included. Empty where a server told none."""
    finish: Literal["stop", "length"]
    prompt_tokens: int | None
    """None where a server told none; so `new_tokens`."""
    new_tokens: int | None = None
    logprob_sum: float | None = None
    """Sum of the drawn tokens' natural-log probabilities under the model as edited; None where a server told none."""


class Request(Struct, frozen=True):
    """An answer to be written: its prompt, how tokens are drawn, what is done to the model in its row."""

    prompt: Prompt
    sampling: Sampling
    edits: tuple[Edit, ...] = ()


class Calibration(Struct, frozen=True):
    """Unit of a dose by layer: the median norm of non-sink tokens on calibration texts."""

    median_norm: tuple[float, ...]
    sink_norm: tuple[float, ...]
    """Tokens whose norm at a layer is above this are sinks there (10 x the median; design/lab.md#directions)."""
    texts: int
    tokens: int


class ModelCard(Struct, frozen=True, kw_only=True):
    """Which model this is, for the manifest of a run."""

    name: str
    revision: str
    """A commit hash, or a hash over the files of a local folder."""
    tokenizer_sha256: str
    architecture: str
    layers: int
    width: int
    dtype: str
    device: str
    has_chat_template: bool
    attention: str
    """The attention implementation (sdpa, eager, ...)."""
    packages: dict[str, str] = {}
    """Versions of what it runs on."""
    exact: bool = False
    """True if every row is computed alone."""


class Loading(Struct, frozen=True, kw_only=True):
    """Options for loading a model."""

    revision: str | None = None
    """A commit, branch or tag on the Hub."""
    dtype: str = "auto"
    """`auto` (as stored), `float32`, `bfloat16` or `float16`."""
    device: str | None = None
    """One of torch's; none: the first GPU, else the processor; `auto`: spread over all (needs accelerate)."""
    attention: str = "sdpa"
    """`sdpa`, `eager`, or `flash_attention_2` where its package is; with the last nothing can be suppressed."""
    batch: int = 32
    """The most rows of a batch. 1: exact, each row is computed alone, and what it says depends on nothing beside it."""
    batch_tokens: int | None = None
    """The most tokens of one batch, padding and answers included; None: by the memory of a GPU, 8,192 elsewhere."""
    offline: bool = False
    """Only what lies on this machine."""
    packed: bool = True
    """Lays out the weights of a large float32 model on a processor anew, which writes twice as fast and has no
    gradients."""


AS_STORED = Loading()


def load(named: str, how: Loading = AS_STORED) -> HookedModel:
    """A model from a local folder or, by its id, from the Hub. LabError when a package or the model is missing."""
    try:
        from agentsignals_lab.residual.loading import load_model  # noqa: PLC0415  (seconds to load, only for who asks)
    except ImportError as problem:
        raise LabError(
            f"A model can't be loaded: {problem}.", f"Install what it needs: {how_to_install()}"
        ) from problem
    return load_model(named, how)
