"""Shell scripts, and the commands of Dockerfiles and workflows."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_COMMANDS = ("shell", "dockerfile", "yaml")

RULES = (
    Rule(
        id="sh-download-and-run",
        cwe=("CWE-494",),
        severity="medium",
        confidence="medium",
        message="What is downloaded is run unseen.",
        languages=_COMMANDS,
        find=matching(
            r"\b(?:curl|wget)\b[^\n|;&]{0,300}\|\s{0,4}(?:sudo\s{1,4}(?:-\w{1,4}\s{1,4})?)?(?:/bin/)?(?:ba|z|da)?sh\b"
            r"|\b(?:ba|z)?sh\s{1,4}(?:-c\s{1,4})?[\"']?(?:<\(|\$\()\s{0,4}(?:curl|wget)\b",
            needs=("curl", "wget"),
            unless=r"echo\s+[\"'].{0,200}(?:curl|wget)",
        ),
    ),
    Rule(
        id="sh-world-writable",
        cwe=("CWE-732",),
        severity="medium",
        confidence="high",
        message="Everybody may write here.",
        languages=_COMMANDS,
        find=matching(
            r"\bchmod\s{1,4}(?:-[a-zA-Z]{1,4}\s{1,4})?(?:0?[0-7][0-7][2367]\b|(?:a|o|ugo|)\+r?w)",
            needs=("chmod",),
            unless=r"chmod\s{1,4}\+rw?\s",
        ),
    ),
    Rule(
        id="sh-eval",
        cwe=("CWE-78",),
        severity="medium",
        confidence="medium",
        message="A text with values in it is run as code.",
        languages=("shell",),
        find=matching(
            r"(?:^|[;&|(]|\bthen|\bdo)[ \t]{0,20}eval[ \t]{1,4}[^\n]{0,40}\$(?!\()[{\w@*]",
            flags=8,
            needs=("eval",),
            unless=r"ssh-agent|brew shellenv|direnv",
        ),
    ),
    Rule(
        id="sh-unverified-tls",
        cwe=("CWE-295",),
        severity="high",
        confidence="high",
        message="The other side's certificate or host key is not checked.",
        languages=_COMMANDS,
        find=matching(
            r"\bcurl\b[^\n|;&]{0,200}\s(?:-[a-zA-Z]{0,6}k[a-zA-Z]{0,6}|--insecure)\s|\bwget\b[^\n|;&]{0,200}"
            r"--no-check-certificate|http\.sslVerify[ =]{1,3}(?:false|0)\b|StrictHostKeyChecking[ =]{1,3}no\b",
            needs=("curl", "wget", "sslVerify", "StrictHostKeyChecking"),
        ),
    ),
    Rule(
        id="sh-known-temporary",
        cwe=("CWE-377",),
        severity="low",
        confidence="low",
        message="Another user can take the file's name first.",
        languages=("shell",),
        find=matching(
            r"(?<![0-9&])>\s{0,4}/tmp/[\w./-]{1,80}(?=\s|$|;)", needs=("tmp/",), unless=r"\$\$|\$\{?RANDOM|mktemp"
        ),
    ),
    Rule(
        id="sh-password-in-command",
        cwe=("CWE-214",),
        severity="medium",
        confidence="low",
        message="Everybody on the machine sees a command's words.",
        languages=_COMMANDS,
        find=matching(
            r"\b(?:mysql|mysqldump|mysqladmin)\b[^\n|;]{0,120}\s-p(?![\s\"']{1,2})[\w$@{!]{4,60}"
            r"|\bsshpass\s{1,4}-p\s{0,4}\S{3,60}|\bcurl\b[^\n|;&]{0,120}\s(?:-u|--user)\s{1,4}[\"']?[\w.@-]{1,40}:"
            r"(?![\"'\s$])[^\s\"']{4,60}",
            needs=("mysql", "sshpass", "curl"),
        ),
    ),
)
