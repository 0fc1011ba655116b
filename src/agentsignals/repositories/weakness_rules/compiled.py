"""Go."""

from __future__ import annotations

from agentsignals.repositories.weakness_rules.rule import matching, rule

_GO = ("go",)
_SQL = r"(?i:select\s|insert\s+into\s|update\s|delete\s+from\s|drop\s|alter\s)"
_ASKED = (
    r"\.(?:Query|QueryRow|Exec|QueryContext|QueryRowContext|ExecContext|Raw|Prepare)"
    r"\((?:\s{0,4}\w{1,20}\s{0,4},)?\s{0,20}"
)
_GUARDED = r"(?i:token|secret|passw|otp|nonce|session_?id|api_?key|csrf)"
_REQUEST = r"\b(?:r|req|request)\.(?:URL\.(?:Query\(\)|Path)|FormValue\(|PathValue\(|PostFormValue\(|Header\.Get\()"

RULES_GO = (
    rule(
        "go-exec-shell",
        "CWE-78 high medium",
        "A command that is not constant goes through a shell.",
        _GO,
        matching(
            r"\bexec\.Command(?:Context)?\((?:\s{0,4}\w{1,20}\s{0,4},)?\s{0,4}\"(?:/bin/|/usr/bin/)?(?:sh|bash"
            r"|zsh|cmd|powershell)"
            r"(?:\.exe)?\"\s{0,4},\s{0,4}\"(?:-l?c|/[cC]|-Command)\"\s{0,4},\s{0,10}+(?!\"[^\"\n]{0,400}\"\s{0,4}\)"
            r"|`[^`]{0,400}`\s{0,4}\))",
            needs=("exec.Command",),
        ),
    ),
    rule(
        "go-exec-variable",
        "CWE-78 low low",
        "Which program is run is not constant.",
        _GO,
        matching(
            r"\bexec\.Command\(\s{0,4}+(?![\"`]|os\.Args\[0\]|[A-Z])[a-z_][\w.\[\]]{0,60}\s{0,4}[,)]"
            r"|\bexec\.CommandContext\(\s{0,4}[\w.()]{1,40}\s{0,4},\s{0,4}+(?![\"`]|os\.Args\[0\])[a-z_][\w.\[\]]{0,60}"
            r"\s{0,4}[,)]",
            needs=("exec.Command",),
        ),
    ),
    rule(
        "go-sql-built",
        "CWE-89 high medium",
        "SQL is put together from values; pass them as parameters.",
        _GO,
        matching(
            rf"{_ASKED}(?:fmt\.Sprintf\(\s{{0,10}}[\"`]\s{{0,20}}{_SQL}|[\"`]\s{{0,20}}{_SQL}[^\"`]{{0,400}}["
            rf"\"`]\s{{0,4}}\+)"
        ),
    ),
    rule(
        "go-weak-hash",
        "CWE-328 low low",
        "MD5 and SHA-1 hold against nobody who looks for a collision.",
        _GO,
        matching(r"\b(?:md5|sha1)\.(?:New|Sum)\(", needs=("crypto/md5", "crypto/sha1")),
    ),
    rule(
        "go-weak-cipher",
        "CWE-327 high high",
        "This cipher is broken.",
        _GO,
        matching(r"\b(?:des\.New(?:TripleDES)?Cipher|rc4\.NewCipher)\(", needs=("crypto/des", "crypto/rc4")),
    ),
    rule(
        "go-unverified-tls",
        "CWE-295 high high",
        "The other side's certificate or host key is not checked.",
        _GO,
        matching(r"\bInsecureSkipVerify\s{0,4}[:=]\s{0,4}true\b|\bssh\.InsecureIgnoreHostKey\(\)", needs=("Insecure",)),
    ),
    rule(
        "go-guessable-secret",
        "CWE-338 medium medium",
        "A secret is made of numbers that can be guessed.",
        _GO,
        matching(
            rf"\b\w{{0,40}}{_GUARDED}\w{{0,40}}\s{{0,4}}:?=\s{{0,4}}[^\n]{{0,120}}\brand\.(?:Int|Intn|Int63"
            rf"|Uint32|Float64|Perm)",
            needs=("math/rand",),
        ),
    ),
    rule(
        "go-template-unescaped",
        "CWE-79 medium medium",
        "A text that is not constant is taken for safe markup.",
        _GO,
        matching(r"\btemplate\.(?:HTML|JS|URL|HTMLAttr|CSS)\(\s{0,4}+(?![\"`)])", needs=("html/template",)),
    ),
    rule(
        "go-world-writable",
        "CWE-732 medium high",
        "Everybody may write here.",
        _GO,
        matching(r"\.Chmod\([^\n;]{0,300}?\b0o?[0-7]?[0-7][0-7][2367]\s{0,4}\)", needs=("Chmod",)),
    ),
    rule(
        "go-path-from-request",
        "CWE-22 high high",
        "The sender of a request chooses a path.",
        _GO,
        matching(
            rf"\b(?:filepath\.Join|path\.Join|os\.(?:Open|ReadFile|Create|Remove)|http\.ServeFile)\([^"
            rf"\n;]{{0,160}}{_REQUEST}",
            unless=r"filepath\.Base\(|path\.Base\(",
        ),
    ),
    rule(
        "go-url-from-request",
        "CWE-918 high high",
        "The sender of a request chooses an address to fetch.",
        _GO,
        matching(rf"\bhttp\.(?:Get|Post|Head|PostForm)\(\s{{0,10}}{_REQUEST}", needs=("net/http",)),
    ),
    rule(
        "go-open-redirect",
        "CWE-601 medium high",
        "The sender of a request chooses where it leads.",
        _GO,
        matching(rf"\bhttp\.Redirect\([^\n;]{{0,60}},\s{{0,4}}{_REQUEST}", needs=("net/http",)),
    ),
    rule(
        "go-format-variable",
        "CWE-134 low medium",
        "A text that is not constant is taken for a format.",
        _GO,
        matching(
            r"\bfmt\.(?:Printf|Sprintf|Errorf)\(\s{0,4}+(?![A-Z])[a-z]\w{0,40}(?:\.\w{1,40}){0,3}\s{0,4}\)",
            needs=("fmt.",),
        ),
    ),
)


# Java, Kotlin, Scala, and C#.

_JAVA, _BOTH = ("java",), ("java", "csharp")
_SQL_JVM = r"\s{0,20}(?i:select\s|insert\s+into\s|update\s|delete\s+from\s)"

RULES_JVM = (
    rule(
        "jvm-sql-built",
        "CWE-89 high medium",
        "SQL is put together from values; pass them as parameters.",
        _BOTH,
        matching(
            r"\b(?:executeQuery|executeUpdate|prepareStatement|createQuery|createNativeQuery|rawQuery|execSQL"
            r"|FromSqlRaw"
            rf"|ExecuteSqlRaw|SqlCommand|queryForObject)\(\s{{0,20}}(?:\"{_SQL_JVM}[^\"\n]{{0,300}}\"\s{{0,10}}\+"
            rf"|\$\"{_SQL_JVM}[^\"\n]{{0,300}}?\{{|\"{_SQL_JVM}[^\"\n]{{0,300}}?\$\{{?\w|String\.format\(\s{{0,10}}\"{_SQL_JVM})"
        ),
    ),
    rule(
        "jvm-exec-built",
        "CWE-78 high medium",
        "A command is put together from values.",
        _JAVA,
        matching(
            r"\.exec\(\s{0,10}(?:\"[^\"\n]{0,300}\"\s{0,10}\+|\"[^\"\n]{0,300}?\$\{?\w|String\.format)",
            needs=("Runtime",),
        ),
    ),
    rule(
        "jvm-weak-hash",
        "CWE-328 low low",
        "MD5 and SHA-1 hold against nobody who looks for a collision.",
        _BOTH,
        matching(r"\bgetInstance\(\s{0,4}\"(?:MD5|MD2|SHA-?1)\"|\b(?:MD5|SHA1)\.(?:Create|HashData)\("),
    ),
    rule(
        "jvm-weak-cipher",
        "CWE-327 high high",
        "This cipher or mode is broken.",
        _JAVA,
        matching(r"\bCipher\.getInstance\(\s{0,4}\"(?:DES|RC4|RC2|Blowfish|DESede|AES/ECB|AES\")"),
    ),
    rule(
        "jvm-unsafe-decoder",
        "CWE-502 high low",
        "Decoding makes objects that the data names.",
        _BOTH,
        matching(r"\bnew\s{1,4}(?:ObjectInputStream|XMLDecoder|BinaryFormatter|NetDataContractSerializer)\("),
    ),
    rule(
        "jvm-guessable-secret",
        "CWE-338 medium medium",
        "A secret is made of numbers that can be guessed.",
        _BOTH,
        matching(
            r"\b\w{0,40}(?i:token|secret|passw|otp|nonce|sessionid|apikey)\w{0,40}\s{0,4}=\s{0,4}[^;\n]{0,120}"
            r"(?:Math\.random\(|new\s{1,4}Random\()"
        ),
    ),
    rule(
        "jvm-csrf-off",
        "CWE-352 medium low",
        "Other sites may send requests in the visitor's name.",
        _JAVA,
        matching(
            r"\bcsrf\(\)\.disable\(\)|\bcsrf\(\s{0,4}(?:\w{1,20}\s{0,4}->\s{0,4}\w{1,20}\.disable\(\)"
            r"|AbstractHttpConfigurer::"
            r"disable)|\bcsrf\s{0,4}\{\s{0,4}(?:it\.)?disable\(\)",
            needs=("csrf",),
        ),
    ),
)


# C, C++ and Rust.

_C = ("c",)

RULES_NATIVE = (
    rule(
        "c-unbounded-copy",
        "CWE-676 CWE-120 high medium",
        "Nothing keeps the copy within its target.",
        _C,
        matching(
            r"(?<![\w.>:])(?:gets|strcpy|strcat|vsprintf)\s{0,4}\((?!\s{0,4}\w{1,40}\s{0,4},\s{0,4}\"[^\""
            r"\n]{0,60}\"\s{0,4}\))"
            r"|(?<![\w.>:])sprintf\s{0,4}\([^;\n]{0,80},\s{0,4}\"[^\"\n]{0,200}?%s"
        ),
    ),
    rule(
        "c-format-variable",
        "CWE-134 high medium",
        "A text that is not constant is taken for a format.",
        _C,
        matching(
            r"(?<![\w.>:])(?:printf\s{0,4}\(|(?:fprintf|syslog|dprintf)\s{0,4}\(\s{0,4}\w{1,40}\s{0,4},)"
            r"\s{0,4}[a-z_]\w{0,40}"
            r"(?:(?:->|\.)\w{1,40}){0,3}\s{0,4}\)"
        ),
    ),
    rule(
        "c-system-variable",
        "CWE-78 high medium",
        "A command that is not constant goes through a shell.",
        _C,
        matching(r"(?<![\w.>:])(?:system|popen)\s{0,4}\(\s{0,4}+(?![\"L)])[A-Za-z_]\w{0,40}"),
    ),
    rule(
        "c-temporary-name",
        "CWE-377 medium high",
        "Another process can take the name before the file is made.",
        _C,
        matching(r"(?<![\w.>:])(?:tmpnam|tempnam|mktemp)\s{0,4}\("),
    ),
    rule(
        "rs-shell-built",
        "CWE-78 high medium",
        "A command put together from values goes through a shell.",
        ("rust",),
        matching(
            r"\bCommand::new\(\s{0,4}\"(?:/bin/)?(?:sh|bash|cmd)\"\s{0,4}\)\s{0,40}\.args?\([^;]{0,200}?format!\("
        ),
    ),
    rule(
        "rs-unverified-tls",
        "CWE-295 high high",
        "The other side's certificate is not checked.",
        ("rust",),
        matching(r"\bdanger_accept_invalid_(?:certs|hostnames)\(\s{0,4}true\b"),
    ),
)


RULES = RULES_GO + RULES_JVM + RULES_NATIVE
