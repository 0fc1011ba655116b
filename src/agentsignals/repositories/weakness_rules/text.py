"""Containers, workflows and infrastructure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentsignals.repositories.weakness_rules.rule import Span, Text, matching, rule

_WORKFLOW = r"(?:^|/)\.github/(?:workflows|actions)/"
_CHOSEN = (
    r"github\.(?:event\.(?:issue|pull_request|comment|review|review_comment|discussion|head_commit|commits|pages"
    r"|workflow_run|inputs)\b[\w.*\[\]-]{0,80}|head_ref)"
)
"""Parts of a workflow's context that a stranger can choose: titles, texts, branch names (GitHub's guide to
hardening)."""
_HARMLESS = (
    r"\.(?:number|id|sha|merged|draft|html_url|node_id|created_at|state|additions|merge_commit_sha)\s{0,4}(?:\}\}|\|)"
)
_RUN = re.compile(r"^([ \t]{0,80})(?:-[ \t]{1,10})?run:[ \t]{0,10}([^\n]*)$", re.MULTILINE)
_STRANGERS = re.compile(r"\$\{\{[^}\n]{0,120}" + _CHOSEN + r"[^}\n]{0,120}\}\}")
_SAFE = re.compile(_HARMLESS)
_FROM = re.compile(r"^[ \t]{0,20}FROM[ \t]{1,10}(?:--platform=\S{1,80}[ \t]{1,10})?(\S{1,200})[^\n]*$", re.I | re.M)
_USER = re.compile(r"^[ \t]{0,20}USER[ \t]{1,10}(\S{1,80})", re.I | re.M)
_RUNS = re.compile(r"^[ \t]{0,20}(?:CMD|ENTRYPOINT)\b", re.I | re.M)


def _no_user(text: Text) -> Iterator[Span]:
    """In the last stage of a build, which is what runs: no user, or root, when a program is named."""
    stages = list(_FROM.finditer(text.code))
    if not stages or re.search(r"nonroot|distroless|rootless|unprivileged", stages[-1][0]):
        return
    start = stages[-1].start()
    users = [match[1].partition(":")[0] for match in _USER.finditer(text.code, start)]
    runs = _RUNS.search(text.code, start)
    if runs is not None and (not users or users[-1] in ("root", "0")):
        yield runs.start(), text.code.find("\n", runs.end()) % (len(text.code) + 1)


def _interpolated(text: Text) -> Iterator[Span]:
    """`${{ … }}` of what strangers choose in a `run:` block: it is pasted into the script before the shell reads it."""
    if not re.search(_WORKFLOW, text.path):
        return
    for run in _RUN.finditer(text.code):
        stop = run.end()
        if run[2].strip()[:1] in ("|", ">", ""):
            stop = _end_of_block(text.code, run.end(), len(run[1]))
        for match in _STRANGERS.finditer(text.code, run.start(2), stop):
            if not _SAFE.search(match[0]):
                yield match.span()


def _end_of_block(code: str, at: int, indent: int) -> int:
    while at < len(code):
        end = code.find("\n", at + 1)
        end = end if end >= 0 else len(code)
        line = code[at + 1 : end]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            return at
        at = end
    return at


RULES_CONFIGURATION = (
    rule("docker-no-user", "CWE-250 low medium", "What runs in the container runs as root.", ("dockerfile",), _no_user),
    rule(
        "docker-secret-in-image",
        "CWE-798 high medium",
        "Whoever has the image has the secret.",
        ("dockerfile",),
        matching(
            r"^[ \t]{0,20}(?:ENV|ARG)[ \t]{1,10}\w{0,40}(?:PASSWORD|PASSWD|SECRET|API_?KEY|ACCESS_?TOKEN"
            r"|PRIVATE_KEY)\w{0,20}"
            r"(?:=|[ \t]{1,10}+)(?![\"']?(?:\$|[\"']?\s|changeme|placeholder|dummy|build))[\"']?[^\s\"'$]{4,200}",
            flags=8,
        ),
    ),
    rule(
        "workflow-run-interpolation",
        "CWE-78 high high",
        "A stranger's text becomes part of a script: pass it through env.",
        ("yaml",),
        _interpolated,
    ),
    rule(
        "workflow-target-checkout",
        "CWE-829 high medium",
        "A stranger's code is checked out where secrets are.",
        ("yaml",),
        matching(
            r"\bref:[ \t]{0,10}[\"']?\$\{\{\s{0,10}github\.(?:event\.pull_request\.head\.(?:sha|ref)|head_ref)",
            needs=("pull_request_target",),
            path=_WORKFLOW,
        ),
    ),
    rule(
        "container-privileged",
        "CWE-250 high high",
        "The container is given the whole machine.",
        ("yaml",),
        matching(
            r"^[ \t]{1,80}privileged:[ \t]{1,10}true\b|^[ \t]{1,80}-[ \t]{1,10}[\"']?/var/run/docker\.sock:", flags=8
        ),
    ),
    rule(
        "tf-open-to-all",
        "CWE-284 medium low",
        "The whole Internet may come in.",
        ("terraform",),
        matching(
            r"\bingress\s{0,4}\{[^}]{0,400}cidr_blocks\s{0,4}=\s{0,4}\[[^\]]{0,100}\"0\.0\.0\.0/0\"|\bacl\s{0,4}=\s{0,4}\"public-read"
            r"(?:-write)?\""
        ),
    ),
)


# Pages: what they load from elsewhere, and how.

_PAGES = ("html",)
_HERE = r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]|www\.w3\.org|schemas?\.|example\.(?:com|org|net))"

RULES_MARKUP = (
    rule(
        "html-no-integrity",
        "CWE-353 low medium",
        "A script or style of another site is loaded without its hash.",
        _PAGES,
        matching(
            r"<script\b(?=[^<>]{0,400}\ssrc\s{0,4}=\s{0,4}[\"']?(?:https?:)?//)(?![^<>]{0,400}\sintegrity"
            r"\s{0,4}=)[^<>]{0,400}>"
            r"|<link\b(?=[^<>]{0,400}\srel\s{0,4}=\s{0,4}[\"']?stylesheet)(?=[^<>]{0,400}\shref\s{0,4}=\s{0,4}["
            r"\"']?(?:https?:)?//)"
            r"(?![^<>]{0,400}\sintegrity\s{0,4}=)[^<>]{0,400}>",
            needs=("//",),
            flags=2,
            unless=r"fonts\.googleapis\.com|googletagmanager\.com|localhost|127\.0\.0\.1",
        ),
    ),
    rule(
        "html-plaintext-link",
        "CWE-319 low medium",
        "This address is asked without encryption.",
        _PAGES,
        matching(
            rf"\b(?:href|src|action|poster)\s{{0,4}}=\s{{0,4}}[\"']http://(?!{_HERE})[^\"'\n<>]{{1,300}}[\"']",
            flags=2,
            needs=("http://", "HTTP://"),
        ),
    ),
    rule(
        "html-script-address",
        "CWE-79 low medium",
        "Values become part of a script address.",
        ("html", "javascript"),
        matching(
            r"\bhref\s{0,4}=\s{0,4}(?:\{\s{0,4}`|[\"'])javascript:[^\"`\n]{0,100}(?:\$\{|\{\{)", needs=("javascript:",)
        ),
    ),
)


# Secrets in files of any language.

_ANY = ("any",)
_NO_GUARDED = (
    r"(?i)example|placeholder|change[-_ ]?me|your[-_ ]|dummy|fake|sample|test|xxxx|\*\*\*|<[a-z]|\$\{|process"
    r"\.env|os\.environ"
    r"|getenv|REDACTED|todo|secret\b[\"']$|1234|password[\"'];?$"
)

RULES_SECRETS = (
    rule(
        "any-private-key",
        "CWE-321 high high",
        "A private key lies in the repository.",
        _ANY,
        matching(
            r"-----BEGIN (?:[A-Z]{2,10} )?PRIVATE KEY-----(?:\\n|\s){1,4}[A-Za-z0-9+/=]{16}",
            needs=("PRIVATE KEY",),
            in_comments=True,
        ),
    ),
    rule(
        "any-token",
        "CWE-798 high high",
        "What looks like a service's token lies in the repository.",
        _ANY,
        matching(
            r"(?<![A-Za-z0-9])(?:(?:AKIA|ASIA)[A-Z2-7]{16}|gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60,90}"
            r"|glpat-[\w-]{20}|xox[abprs]-[0-9A-Za-z-]{20,80}|sk_live_[0-9A-Za-z]{24,60}|AIza[\w-]{35}"
            r"|sk-ant-[\w-]{40,120}|npm_[A-Za-z0-9]{36})(?![A-Za-z0-9])",
            in_comments=True,
            unless=r"EXAMPLE|(.)\1{7}|0123456|abcdef|ABCDEF",
        ),
    ),
    rule(
        "any-password",
        "CWE-798 medium low",
        "A password is written in the program.",
        ("python", "javascript", "go", "java", "csharp", "php", "ruby", "rust"),
        matching(
            r"\b[\w$]{0,30}(?i:passwo?r?d|api_?key|secret_?key|client_?secret|auth_?token)[\"']?\s{0,4}(?::|:?="
            r"|=>)\s{0,4}"
            r"[\"'](?=[^\"'\n]{0,80}[0-9])(?=[^\"'\n]{0,80}[A-Za-z])[^\"'\s{}<>$%()]{8,80}[\"']",
            unless=_NO_GUARDED,
        ),
    ),
    rule(
        "any-address-with-password",
        "CWE-798 medium medium",
        "An address holds a password.",
        _ANY,
        matching(
            r"\b(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|redis|amqp|https?|ftp)://[\w.-]{1,40}:(?![\"'"
            r"\s$<{%*]|password@|pass@"
            r"|postgres@|root@|user@|secret@)[^\s:@/\"'<>{}$]{6,60}@(?!localhost|127\.|0\.0|db\b|host\b"
            r"|example)[\w.-]{3,80}",
            needs=("://",),
            unless=r"(?i)example|placeholder|xxxx|\*\*\*|your|test|dummy|<",
        ),
    ),
)


# Shell scripts, and the commands of Dockerfiles and workflows.

_COMMANDS = ("shell", "dockerfile", "yaml")

RULES_SHELL = (
    rule(
        "sh-download-and-run",
        "CWE-494 medium medium",
        "What is downloaded is run unseen.",
        _COMMANDS,
        matching(
            r"\b(?:curl|wget)\b[^\n|;&]{0,300}\|\s{0,4}(?:sudo\s{1,4}(?:-\w{1,4}\s{1,4})?)?(?:/bin/)?(?:ba|z|da)?sh\b"
            r"|\b(?:ba|z)?sh\s{1,4}(?:-c\s{1,4})?[\"']?(?:<\(|\$\()\s{0,4}(?:curl|wget)\b",
            needs=("curl", "wget"),
            unless=r"echo\s+[\"'].{0,200}(?:curl|wget)",
        ),
    ),
    rule(
        "sh-world-writable",
        "CWE-732 medium high",
        "Everybody may write here.",
        _COMMANDS,
        matching(
            r"\bchmod\s{1,4}(?:-[a-zA-Z]{1,4}\s{1,4})?(?:0?[0-7][0-7][2367]\b|(?:a|o|ugo|)\+r?w)",
            needs=("chmod",),
            unless=r"chmod\s{1,4}\+rw?\s",
        ),
    ),
    rule(
        "sh-eval",
        "CWE-78 medium medium",
        "A text with values in it is run as code.",
        ("shell",),
        matching(
            r"(?:^|[;&|(]|\bthen|\bdo)[ \t]{0,20}eval[ \t]{1,4}[^\n]{0,40}\$(?!\()[{\w@*]",
            flags=8,
            needs=("eval",),
            unless=r"ssh-agent|brew shellenv|direnv",
        ),
    ),
    rule(
        "sh-unverified-tls",
        "CWE-295 high high",
        "The other side's certificate or host key is not checked.",
        _COMMANDS,
        matching(
            r"\bcurl\b[^\n|;&]{0,200}\s(?:-[a-zA-Z]{0,6}k[a-zA-Z]{0,6}|--insecure)\s|\bwget\b[^\n|;&]{0,200}"
            r"--no-check-certificate|http\.sslVerify[ =]{1,3}(?:false|0)\b|StrictHostKeyChecking[ =]{1,3}no\b",
            needs=("curl", "wget", "sslVerify", "StrictHostKeyChecking"),
        ),
    ),
    rule(
        "sh-known-temporary",
        "CWE-377 low low",
        "Another user can take the file's name first.",
        ("shell",),
        matching(
            r"(?<![0-9&])>\s{0,4}/tmp/[\w./-]{1,80}(?=\s|$|;)", needs=("tmp/",), unless=r"\$\$|\$\{?RANDOM|mktemp"
        ),
    ),
    rule(
        "sh-password-in-command",
        "CWE-214 medium low",
        "Everybody on the machine sees a command's words.",
        _COMMANDS,
        matching(
            r"\b(?:mysql|mysqldump|mysqladmin)\b[^\n|;]{0,120}\s-p(?![\s\"']{1,2})[\w$@{!]{4,60}"
            r"|\bsshpass\s{1,4}-p\s{0,4}\S{3,60}|\bcurl\b[^\n|;&]{0,120}\s(?:-u|--user)\s{1,4}[\"']?[\w.@-]{1,40}:"
            r"(?![\"'\s$])[^\s\"']{4,60}",
            needs=("mysql", "sshpass", "curl"),
        ),
    ),
)


# PHP and Ruby.

_PHP, _RUBY = ("php",), ("ruby",)
_REQUEST_DATA = r"\$_(?:GET|POST|REQUEST|COOKIE)\b"
_CLEANED = r"(?i)htmlspecialchars|htmlentities|escapeshell|intval|\(int\)|basename|esc_|filter_"

RULES_SCRIPTS = (
    rule(
        "php-sql-built",
        "CWE-89 high medium",
        "SQL is put together from values; pass them as parameters.",
        _PHP,
        matching(
            r"\b(?:mysqli?_query|pg_query|->(?:query|exec|prepare))\((?:\s{0,4}\$\w{1,40}\s{0,4},)?\s{0,10}[\"']"
            r"\s{0,10}"
            r"(?i:select\s|insert\s+into\s|update\s|delete\s+from\s)(?:[^\"';]{0,300}[\"']\s{0,4}\.\s{0,4}\$|[^"
            r"\"';]{0,300}?"
            r"(?:\{\$|\$\w))|->(?:query|exec|prepare)\(\s{0,10}\"(?i:select\s|insert\s+into\s|update\s|delete\s+from\s)"
            r"[^\"]{0,300}?\$\w"
        ),
    ),
    rule(
        "php-command-from-request",
        "CWE-78 high high",
        "The sender of a request chooses a command.",
        _PHP,
        matching(
            rf"\b(?:exec|system|shell_exec|passthru|popen|proc_open)\([^;\n]{{0,160}}{_REQUEST_DATA}", unless=_CLEANED
        ),
    ),
    rule(
        "php-include-from-request",
        "CWE-98 high high",
        "The sender of a request chooses a file to run.",
        _PHP,
        matching(rf"\b(?:include|require)(?:_once)?\s{{0,4}}\(?[^;\n]{{0,100}}{_REQUEST_DATA}", unless=_CLEANED),
    ),
    rule(
        "php-echo-request",
        "CWE-79 high high",
        "What the sender of a request chose comes back as markup.",
        _PHP,
        matching(rf"(?:\becho|\bprint|<\?=)\s[^;\n]{{0,120}}{_REQUEST_DATA}", unless=_CLEANED),
    ),
    rule(
        "php-unserialize",
        "CWE-502 high medium",
        "Decoding makes objects that the data names.",
        _PHP,
        matching(r"\bunserialize\(\s{0,4}\$(?![^;\n]{0,120}allowed_classes)"),
    ),
    rule(
        "php-eval",
        "CWE-95 high medium",
        "A text that is not constant is run as code.",
        _PHP,
        matching(r"(?<![\w>:])eval\(\s{0,4}[^)\"'\n]{0,80}\$"),
    ),
    rule(
        "rb-command-built",
        "CWE-78 high medium",
        "A command put together from values goes through a shell.",
        _RUBY,
        matching(
            r"(?<![\w.])(?:system|exec|spawn|IO\.popen|Open3\.capture\w{1,4})[ (]\s{0,4}\"[^\"\n]{0,200}?#\{|%x["
            r"\[({][^\n]"
            r"{0,200}?#\{|(?<![\w'\"])`[^`\n]{0,200}?#\{"
        ),
    ),
    rule(
        "rb-unsafe-decoder",
        "CWE-502 high medium",
        "Decoding makes objects that the data names.",
        _RUBY,
        matching(r"\b(?:Marshal\.load|YAML\.(?:load|unsafe_load))[ (](?![^\n]{0,80}File\.)"),
    ),
    rule(
        "rb-sql-built",
        "CWE-89 high medium",
        "SQL is put together from values; pass them as parameters.",
        _RUBY,
        matching(
            r"\.(?:where|find_by_sql|execute|order|joins|select)[ (]\s{0,4}\"[^\"\n]{0,200}?#\{(?!\s{0,4}[A-Z])",
            unless=r"sanitize_sql|quote\(",
        ),
    ),
    rule(
        "rb-html-safe",
        "CWE-79 medium medium",
        "Values become markup without being escaped.",
        _RUBY,
        matching(r"\"[^\"\n]{0,200}?#\{[^\"\n]{0,200}\"\.html_safe\b|\braw[ (]\s{0,4}params\["),
    ),
)


RULES = RULES_CONFIGURATION + RULES_MARKUP + RULES_SECRETS + RULES_SHELL + RULES_SCRIPTS
