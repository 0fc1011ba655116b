"""Shell scripts, and the commands of Dockerfiles and workflows."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_COMMANDS = ("shell", "dockerfile", "yaml")

RULES = (
    Rule(
        "sh-download-and-run",
        ("CWE-494",),
        "medium",
        "medium",
        "What is downloaded is run unseen.",
        _COMMANDS,
        matching(
            r"\b(?:curl|wget)\b[^\n|;&]{0,300}\|\s{0,4}(?:sudo\s{1,4}(?:-\w{1,4}\s{1,4})?)?(?:/bin/)?(?:ba|z|da)?sh\b"
            r"|\b(?:ba|z)?sh\s{1,4}(?:-c\s{1,4})?[\"']?(?:<\(|\$\()\s{0,4}(?:curl|wget)\b",
            needs=("curl", "wget"),
            unless=r"echo\s+[\"'].{0,200}(?:curl|wget)",
        ),
    ),
    Rule(
        "sh-world-writable",
        ("CWE-732",),
        "medium",
        "high",
        "Everybody may write here.",
        _COMMANDS,
        matching(
            r"\bchmod\s{1,4}(?:-[a-zA-Z]{1,4}\s{1,4})?(?:0?[0-7][0-7][2367]\b|(?:a|o|ugo|)\+r?w)",
            needs=("chmod",),
            unless=r"chmod\s{1,4}\+rw?\s",
        ),
    ),
    Rule(
        "sh-eval",
        ("CWE-78",),
        "medium",
        "medium",
        "A text with values in it is run as code.",
        ("shell",),
        matching(
            r"(?:^|[;&|(]|\bthen|\bdo)[ \t]{0,20}eval[ \t]{1,4}[^\n]{0,40}\$(?!\()[{\w@*]",
            flags=8,
            needs=("eval",),
            unless=r"ssh-agent|brew shellenv|direnv",
        ),
    ),
    Rule(
        "sh-unverified-tls",
        ("CWE-295",),
        "high",
        "high",
        "The other side's certificate or host key is not checked.",
        _COMMANDS,
        matching(
            r"\bcurl\b[^\n|;&]{0,200}\s(?:-[a-zA-Z]{0,6}k[a-zA-Z]{0,6}|--insecure)\s|\bwget\b[^\n|;&]{0,200}"
            r"--no-check-certificate|http\.sslVerify[ =]{1,3}(?:false|0)\b|StrictHostKeyChecking[ =]{1,3}no\b",
            needs=("curl", "wget", "sslVerify", "StrictHostKeyChecking"),
        ),
    ),
    Rule(
        "sh-known-temporary",
        ("CWE-377",),
        "low",
        "low",
        "Another user can take the file's name first.",
        ("shell",),
        matching(
            r"(?<![0-9&])>\s{0,4}/tmp/[\w./-]{1,80}(?=\s|$|;)", needs=("tmp/",), unless=r"\$\$|\$\{?RANDOM|mktemp"
        ),
    ),
    Rule(
        "sh-password-in-command",
        ("CWE-214",),
        "medium",
        "low",
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
