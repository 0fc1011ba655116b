"""Aider's chat history (design/formats.md#small-formats): `.aider.chat.history.md` in a repository, a Markdown file of
sessions. `#### ` begins a line of the person, which ends in two spaces, `> ` one of the program; the rest is the
model's."""

from agentsignals.formats import Claim, Format
from agentsignals.formats import profile as tools
from agentsignals.formats.records import Head

PROFILE = tools.Profile(
    agent="aider",
    instructions_perhaps=("CONVENTIONS.md",),  # https://aider.chat/docs/usage/conventions.html: where `--read` names it
    tools=tools.named((tools.Tool(class_="edit", path=("path",)), "edit"), (tools.SHELL, "shell")),
    conventions=("thinking_not_logged",),
    failures=(("edit_mismatch", ("failed to match", "did not conform to the edit format")),),
)
BEGINS = "# aider chat started at "


def claims(head: Head) -> Claim | None:
    """Recognize the line that begins a session."""
    return Claim(keys=[]) if head.text.lstrip().startswith(BEGINS) else None


FORMAT = Format(
    name="aider",
    marks=(b"# aider chat started at ",),
    of_json=False,
    version=1,
    claims=claims,
    profile=PROFILE,
)
