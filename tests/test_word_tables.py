"""Tables of names, word by word: a name that goes, or another class for it, is seen. What agents call their tools
stands as their programs have it; a new name is added on both sides.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from agentsignals.changes import git as objects
from agentsignals.formats.claude_code.reader import BUILTIN_COMMANDS
from agentsignals.questions.tool_kinds import KIND
from agentsignals.redaction import redacted
from tests.build import call, session, user
from tests.questions.stores import store_of

TOOLS = {
    "atif": {
        "shell": "keystrokes bash_command execute_bash run_shell_command terminal execute_ipython_cell",
        "plan": "task_tracker todo",
        "web": "browser fetch browser_use",
        "other": "think finish submit mark_task_complete task_complete",
    },
    "claude_code": {
        "read": "Read NotebookRead",
        "search": "Grep Glob LS LSP",
        "edit": "Edit MultiEdit Write NotebookEdit",
        "shell": "Bash PowerShell Monitor",
        "plan": "TodoWrite TodoRead TaskCreate TaskUpdate TaskList TaskGet EnterPlanMode ExitPlanMode exit_plan_mode",
        "task": "Task Agent Workflow Skill SlashCommand SendMessage TeamCreate TeamDelete TaskOutput "
        "AgentOutput AgentOutputTool BashOutput TaskStop KillShell KillBash",
        "web": "WebFetch WebSearch",
        "ask": "AskUserQuestion",
        "mcp": "ListMcpResourcesTool ReadMcpResourceTool",
        "other": "ToolSearch StructuredOutput ScheduleWakeup RemoteTrigger PushNotification EnterWorktree "
        "ExitWorktree CronCreate CronDelete CronList Config Sleep",
    },
    "codex": {
        "shell": "shell container.exec local_shell shell_command exec_command write_stdin",
        "read": "read_file list_dir view_image read_mcp_resource",
        "search": "grep_files tool_search list_mcp_resources list_mcp_resource_templates",
        "plan": "update_plan create_goal get_goal update_goal",
        "task": "spawn_agent send_input send_message wait wait_agent resume_agent close_agent list_agents "
        "followup_task interrupt_agent spawn_agents_on_csv report_agent_job_result",
        "web": "web_search web_fetch",
        "edit": "apply_patch",
        "ask": "request_user_input",
        "other": "image_generation js_repl exec request_permissions tool_suggest",
    },
    "copilot_cli": {
        "shell": "bash powershell local_shell write_bash write_powershell",
        "read": "view show_file read_bash read_powershell list_bash list_powershell",
        "search": "grep rg glob lsp search_code_subagent tool_search",
        "edit": "edit create insert str_replace str_replace_editor apply_patch",
        "plan": "update_todo report_intent exit_plan_mode task_complete",
        "task": "task skill read_agent write_agent list_agents stop_bash stop_powershell send_message",
        "web": "web_fetch web_search",
        "ask": "ask_user elicitation",
        "other": "sql store_memory fetch_copilot_cli_documentation manage_schedule",
    },
    "gemini_cli": {
        "read": "read_background_output list_background_processes read_file read_many_files get_internal_docs",
        "search": "glob grep_search search_file_content list_directory codebase_investigator",
        "edit": "replace edit write_file",
        "shell": "run_shell_command",
        "plan": "write_todos enter_plan_mode exit_plan_mode update_topic",
        "task": "activate_skill delegate_to_agent invoke_agent complete_task",
        "web": "google_web_search web_fetch",
        "ask": "ask_user",
        "other": "save_memory",
    },
    "hermes": {
        "shell": "terminal process execute_code",
        "read": "read_file",
        "search": "search_files session_search",
        "edit": "write_file patch",
        "web": "web_search web_extract web_crawl",
        "plan": "todo",
        "task": "delegate_task mixture_of_agents skill_view skill_manage skills_list",
        "ask": "clarify",
        "other": "memory vision_analyze image_generate send_message cronjob",
    },
    "inspect": {
        "shell": "bash bash_session shell exec_command python code_execution ipython",
        "edit": "text_editor str_replace_editor str_replace_based_edit_tool write_file edit_file "
        "apply_patch create_file",
        "read": "read_file view_file skill",
        "search": "grep glob list_files find",
        "web": "web_search web_fetch web_browser",
        "plan": "update_plan todo_write",
        "task": "task agent",
        "ask": "ask_user",
        "other": "submit think computer memory",
    },
    "kiro": {
        "read": "fs_read read",
        "edit": "fs_write write",
        "search": "grep glob code knowledge",
        "shell": "execute_bash execute_cmd shell bash",
        "plan": "todo_list todo",
        "task": "delegate use_subagent subagent session",
        "web": "web_search web_fetch",
        "other": "use_aws aws thinking introspect report_issue gh_issue",
    },
    "opencode": {
        "read": "read",
        "search": "glob grep list lsp",
        "edit": "edit write multiedit patch apply_patch",
        "shell": "bash shell",
        "plan": "todowrite todoread plan_enter plan_exit",
        "task": "task subagent skill",
        "web": "webfetch websearch codesearch",
        "ask": "question",
    },
    "pi": {
        "read": "read",
        "search": "grep find ls",
        "edit": "edit write",
        "shell": "bash",
        "task": "subagent subagent_supervisor contact_supervisor intercom skill",
        "web": "websearch webfetch web_search web_fetch fetch_content searxng_search",
        "ask": "ask_user_question ask_user question",
        "plan": "todo plannotator_submit_plan exit_plan_mode",
        "mcp": "mcp",
    },
    "swe_agent": {
        "shell": "bash",
        "edit": "str_replace_editor create edit insert",
        "read": "open goto scroll_up scroll_down filemap view_image decompile disassemble",
        "search": "find_file search_dir search_file",
        "other": "submit exit_forfeit skip set_cursors connect_start connect_sendline connect_exec "
        "connect_stop debug_start debug_stop debug_exec debug_step debug_continue "
        "debug_add_breakpoint",
    },
    "swival": {
        "read": "read_file read_multiple_files view_image outline",
        "search": "list_files grep",
        "edit": "write_file edit_file delete_file",
        "shell": "run_command run_shell_command",
        "plan": "todo",
        "task": "use_skill spawn_subagent check_subagents",
        "web": "fetch_url",
        "other": "think snapshot goal",
    },
}


@pytest.mark.parametrize("agent", TOOLS)
def test_every_tool_of_an_agent_has_its_class(agent: str) -> None:
    profile = importlib.import_module(f"agentsignals.formats.{agent}").PROFILE
    wanted = {name: class_ for class_, names in TOOLS[agent].items() for name in names.split()}
    assert {name: tool.class_ for name, tool in profile.tools.items()} == wanted


def test_commands_of_the_program_are_no_prompts() -> None:
    wanted = """
        add-dir advisor agents allowed-tools approved-tools background bashes bg bug branch btw chrome
        clear color compact config context continue copy cost desktop diff doctor effort exit export
        extra-usage fast feedback files focus fork help hooks ide install-github-app keybindings login
        logout mcp memory migrate-installer mobile model new output-style passes permissions plan plugin
        plugins privacy-settings quit rate-limit-options rc recap release-notes reload-plugins
        remote-control remote-env rename reset resume rewind sandbox session settings skills stats status
        statusline stickers tag tasks terminal-setup theme think-back todos tui upgrade usage vim voice"""
    assert set(wanted.split()) == BUILTIN_COMMANDS


@pytest.mark.parametrize(
    "name",
    [
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"),
        *("GIT_PREFIX", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE"),
        *("GIT_SHALLOW_FILE", "GIT_CONFIG", "GIT_REPLACE_REF_BASE", "GIT_GRAFT_FILE"),
    ],
)
def test_no_variable_of_a_hook_reaches_git(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in place of git that prints what it was started with."""
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv(name, "elsewhere")
    assert b"elsewhere" not in objects.run("status")


KINDS = {
    "git/gh": "git gh",
    "grep": "grep rg egrep fgrep ag ack",
    "bash:file": "cd ls cat find mkdir rm echo tail wc head sed nl awk cp mv touch pwd printf chmod ln tree stat "
    "du diff sort file test realpath basename",
    "bash:build": "mise bun bunx go npx npm pnpm yarn node deno tsc cargo rustc make cmake just uv uvx python "
    "python3 pip pip3 poetry pytest ruff xcodebuild swift gradle gradlew mvn dotnet ruby bundle rake "
    "php composer gofmt golangci-lint gcc clang javac java",
    "bash:net": "curl ssh dig scp nc rsync wget ping nslookup host telnet",
    "bash": "frobnicate",
}


def test_every_command_is_of_its_kind(tmp_path: Path) -> None:
    words = {word: kind for kind, names in KINDS.items() for word in names.split()}
    store = store_of(tmp_path / "s", session(user("go"), *(call("Bash", command=f"{word} x") for word in words)))
    asked = f"SELECT command, {KIND} FROM tool_calls"
    assert {command.split()[0]: kind for command, kind in store.sql(asked).fetchall()} == words


@pytest.mark.parametrize(
    "path",
    [
        *("/home/jo-x/a", "%2Fhome%2Fjo-x%2Fa", "/Users/jo-x/a", "%2FUsers%2Fjo-x%2Fa"),
        *(r"C:\\Users\\jo-x\\a", r"C:\Users\jo-x\a", "/x/projects/-home-jo-src", "/x/projects/-Users-jo-src"),
    ],
)
def test_every_way_to_a_home_names_nobody(path: str) -> None:
    assert "jo" not in redacted(f"in {path} now")
