"""Go."""

from __future__ import annotations

from agentsignals.repositories.weakness_rules.rule import Rule, matching

_GO = ("go",)
_SQL = r"(?i:select\s|insert\s+into\s|update\s|delete\s+from\s|drop\s|alter\s)"
_ASKED = (
    r"\.(?:Query|QueryRow|Exec|QueryContext|QueryRowContext|ExecContext|Raw|Prepare)"
    r"\((?:\s{0,4}\w{1,20}\s{0,4},)?\s{0,20}"
)
_GUARDED = r"(?i:token|secret|passw|otp|nonce|session_?id|api_?key|csrf)"
_REQUEST = r"\b(?:r|req|request)\.(?:URL\.(?:Query\(\)|Path)|FormValue\(|PathValue\(|PostFormValue\(|Header\.Get\()"

RULES_GO = (
    Rule(
        id="go-exec-shell",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command that is not constant goes through a shell.",
        languages=_GO,
        find=matching(
            r"\bexec\.Command(?:Context)?\((?:\s{0,4}\w{1,20}\s{0,4},)?\s{0,4}\"(?:/bin/|/usr/bin/)?(?:sh|bash"
            r"|zsh|cmd|powershell)"
            r"(?:\.exe)?\"\s{0,4},\s{0,4}\"(?:-l?c|/[cC]|-Command)\"\s{0,4},\s{0,10}+(?!\"[^\"\n]{0,400}\"\s{0,4}\)"
            r"|`[^`]{0,400}`\s{0,4}\))",
            needs=("exec.Command",),
        ),
    ),
    Rule(
        id="go-exec-variable",
        cwe=("CWE-78",),
        severity="low",
        confidence="low",
        message="Which program is run is not constant.",
        languages=_GO,
        find=matching(
            r"\bexec\.Command\(\s{0,4}+(?![\"`]|os\.Args\[0\]|[A-Z])[a-z_][\w.\[\]]{0,60}\s{0,4}[,)]"
            r"|\bexec\.CommandContext\(\s{0,4}[\w.()]{1,40}\s{0,4},\s{0,4}+(?![\"`]|os\.Args\[0\])[a-z_][\w.\[\]]{0,60}"
            r"\s{0,4}[,)]",
            needs=("exec.Command",),
        ),
    ),
    Rule(
        id="go-sql-built",
        cwe=("CWE-89",),
        severity="high",
        confidence="medium",
        message="SQL is put together from values; pass them as parameters.",
        languages=_GO,
        find=matching(
            rf"{_ASKED}(?:fmt\.Sprintf\(\s{{0,10}}[\"`]\s{{0,20}}{_SQL}|[\"`]\s{{0,20}}{_SQL}[^\"`]{{0,400}}["
            rf"\"`]\s{{0,4}}\+)"
        ),
    ),
    Rule(
        id="go-weak-hash",
        cwe=("CWE-328",),
        severity="low",
        confidence="low",
        message="MD5 and SHA-1 hold against nobody who looks for a collision.",
        languages=_GO,
        find=matching(r"\b(?:md5|sha1)\.(?:New|Sum)\(", needs=("crypto/md5", "crypto/sha1")),
    ),
    Rule(
        id="go-weak-cipher",
        cwe=("CWE-327",),
        severity="high",
        confidence="high",
        message="This cipher is broken.",
        languages=_GO,
        find=matching(r"\b(?:des\.New(?:TripleDES)?Cipher|rc4\.NewCipher)\(", needs=("crypto/des", "crypto/rc4")),
    ),
    Rule(
        id="go-unverified-tls",
        cwe=("CWE-295",),
        severity="high",
        confidence="high",
        message="The other side's certificate or host key is not checked.",
        languages=_GO,
        find=matching(
            r"\bInsecureSkipVerify\s{0,4}[:=]\s{0,4}true\b|\bssh\.InsecureIgnoreHostKey\(\)", needs=("Insecure",)
        ),
    ),
    Rule(
        id="go-guessable-secret",
        cwe=("CWE-338",),
        severity="medium",
        confidence="medium",
        message="A secret is made of numbers that can be guessed.",
        languages=_GO,
        find=matching(
            rf"\b\w{{0,40}}{_GUARDED}\w{{0,40}}\s{{0,4}}:?=\s{{0,4}}[^\n]{{0,120}}\brand\.(?:Int|Intn|Int63"
            rf"|Uint32|Float64|Perm)",
            needs=("math/rand",),
        ),
    ),
    Rule(
        id="go-template-unescaped",
        cwe=("CWE-79",),
        severity="medium",
        confidence="medium",
        message="A text that is not constant is taken for safe markup.",
        languages=_GO,
        find=matching(r"\btemplate\.(?:HTML|JS|URL|HTMLAttr|CSS)\(\s{0,4}+(?![\"`)])", needs=("html/template",)),
    ),
    Rule(
        id="go-world-writable",
        cwe=("CWE-732",),
        severity="medium",
        confidence="high",
        message="Everybody may write here.",
        languages=_GO,
        find=matching(r"\.Chmod\([^\n;]{0,300}?\b0o?[0-7]?[0-7][0-7][2367]\s{0,4}\)", needs=("Chmod",)),
    ),
    Rule(
        id="go-path-from-request",
        cwe=("CWE-22",),
        severity="high",
        confidence="high",
        message="The sender of a request chooses a path.",
        languages=_GO,
        find=matching(
            rf"\b(?:filepath\.Join|path\.Join|os\.(?:Open|ReadFile|Create|Remove)|http\.ServeFile)\([^"
            rf"\n;]{{0,160}}{_REQUEST}",
            unless=r"filepath\.Base\(|path\.Base\(",
        ),
    ),
    Rule(
        id="go-url-from-request",
        cwe=("CWE-918",),
        severity="high",
        confidence="high",
        message="The sender of a request chooses an address to fetch.",
        languages=_GO,
        find=matching(rf"\bhttp\.(?:Get|Post|Head|PostForm)\(\s{{0,10}}{_REQUEST}", needs=("net/http",)),
    ),
    Rule(
        id="go-open-redirect",
        cwe=("CWE-601",),
        severity="medium",
        confidence="high",
        message="The sender of a request chooses where it leads.",
        languages=_GO,
        find=matching(rf"\bhttp\.Redirect\([^\n;]{{0,60}},\s{{0,4}}{_REQUEST}", needs=("net/http",)),
    ),
    Rule(
        id="go-format-variable",
        cwe=("CWE-134",),
        severity="low",
        confidence="medium",
        message="A text that is not constant is taken for a format.",
        languages=_GO,
        find=matching(
            r"\bfmt\.(?:Printf|Sprintf|Errorf)\(\s{0,4}+(?![A-Z])[a-z]\w{0,40}(?:\.\w{1,40}){0,3}\s{0,4}\)",
            needs=("fmt.",),
        ),
    ),
)


# Java, Kotlin, Scala, and C#.

_JAVA, _BOTH = ("java",), ("java", "csharp")
_SQL_JVM = r"\s{0,20}(?i:select\s|insert\s+into\s|update\s|delete\s+from\s)"

RULES_JVM = (
    Rule(
        id="jvm-sql-built",
        cwe=("CWE-89",),
        severity="high",
        confidence="medium",
        message="SQL is put together from values; pass them as parameters.",
        languages=_BOTH,
        find=matching(
            r"\b(?:executeQuery|executeUpdate|prepareStatement|createQuery|createNativeQuery|rawQuery|execSQL"
            r"|FromSqlRaw"
            rf"|ExecuteSqlRaw|SqlCommand|queryForObject)\(\s{{0,20}}(?:\"{_SQL_JVM}[^\"\n]{{0,300}}\"\s{{0,10}}\+"
            rf"|\$\"{_SQL_JVM}[^\"\n]{{0,300}}?\{{|\"{_SQL_JVM}[^\"\n]{{0,300}}?\$\{{?\w|String\.format\(\s{{0,10}}\"{_SQL_JVM})"
        ),
    ),
    Rule(
        id="jvm-exec-built",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command is put together from values.",
        languages=_JAVA,
        find=matching(
            r"\.exec\(\s{0,10}(?:\"[^\"\n]{0,300}\"\s{0,10}\+|\"[^\"\n]{0,300}?\$\{?\w|String\.format)",
            needs=("Runtime",),
        ),
    ),
    Rule(
        id="jvm-weak-hash",
        cwe=("CWE-328",),
        severity="low",
        confidence="low",
        message="MD5 and SHA-1 hold against nobody who looks for a collision.",
        languages=_BOTH,
        find=matching(r"\bgetInstance\(\s{0,4}\"(?:MD5|MD2|SHA-?1)\"|\b(?:MD5|SHA1)\.(?:Create|HashData)\("),
    ),
    Rule(
        id="jvm-weak-cipher",
        cwe=("CWE-327",),
        severity="high",
        confidence="high",
        message="This cipher or mode is broken.",
        languages=_JAVA,
        find=matching(r"\bCipher\.getInstance\(\s{0,4}\"(?:DES|RC4|RC2|Blowfish|DESede|AES/ECB|AES\")"),
    ),
    Rule(
        id="jvm-unsafe-decoder",
        cwe=("CWE-502",),
        severity="high",
        confidence="low",
        message="Decoding makes objects that the data names.",
        languages=_BOTH,
        find=matching(r"\bnew\s{1,4}(?:ObjectInputStream|XMLDecoder|BinaryFormatter|NetDataContractSerializer)\("),
    ),
    Rule(
        id="jvm-guessable-secret",
        cwe=("CWE-338",),
        severity="medium",
        confidence="medium",
        message="A secret is made of numbers that can be guessed.",
        languages=_BOTH,
        find=matching(
            r"\b\w{0,40}(?i:token|secret|passw|otp|nonce|sessionid|apikey)\w{0,40}\s{0,4}=\s{0,4}[^;\n]{0,120}"
            r"(?:Math\.random\(|new\s{1,4}Random\()"
        ),
    ),
    Rule(
        id="jvm-csrf-off",
        cwe=("CWE-352",),
        severity="medium",
        confidence="low",
        message="Other sites may send requests in the visitor's name.",
        languages=_JAVA,
        find=matching(
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
    Rule(
        id="c-unbounded-copy",
        cwe=("CWE-676", "CWE-120"),
        severity="high",
        confidence="medium",
        message="Nothing keeps the copy within its target.",
        languages=_C,
        find=matching(
            r"(?<![\w.>:])(?:gets|strcpy|strcat|vsprintf)\s{0,4}\((?!\s{0,4}\w{1,40}\s{0,4},\s{0,4}\"[^\""
            r"\n]{0,60}\"\s{0,4}\))"
            r"|(?<![\w.>:])sprintf\s{0,4}\([^;\n]{0,80},\s{0,4}\"[^\"\n]{0,200}?%s"
        ),
    ),
    Rule(
        id="c-format-variable",
        cwe=("CWE-134",),
        severity="high",
        confidence="medium",
        message="A text that is not constant is taken for a format.",
        languages=_C,
        find=matching(
            r"(?<![\w.>:])(?:printf\s{0,4}\(|(?:fprintf|syslog|dprintf)\s{0,4}\(\s{0,4}\w{1,40}\s{0,4},)"
            r"\s{0,4}[a-z_]\w{0,40}"
            r"(?:(?:->|\.)\w{1,40}){0,3}\s{0,4}\)"
        ),
    ),
    Rule(
        id="c-system-variable",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command that is not constant goes through a shell.",
        languages=_C,
        find=matching(r"(?<![\w.>:])(?:system|popen)\s{0,4}\(\s{0,4}+(?![\"L)])[A-Za-z_]\w{0,40}"),
    ),
    Rule(
        id="c-temporary-name",
        cwe=("CWE-377",),
        severity="medium",
        confidence="high",
        message="Another process can take the name before the file is made.",
        languages=_C,
        find=matching(r"(?<![\w.>:])(?:tmpnam|tempnam|mktemp)\s{0,4}\("),
    ),
    Rule(
        id="rs-shell-built",
        cwe=("CWE-78",),
        severity="high",
        confidence="medium",
        message="A command put together from values goes through a shell.",
        languages=("rust",),
        find=matching(
            r"\bCommand::new\(\s{0,4}\"(?:/bin/)?(?:sh|bash|cmd)\"\s{0,4}\)\s{0,40}\.args?\([^;]{0,200}?format!\("
        ),
    ),
    Rule(
        id="rs-unverified-tls",
        cwe=("CWE-295",),
        severity="high",
        confidence="high",
        message="The other side's certificate is not checked.",
        languages=("rust",),
        find=matching(r"\bdanger_accept_invalid_(?:certs|hostnames)\(\s{0,4}true\b"),
    ),
)


RULES = RULES_GO + RULES_JVM + RULES_NATIVE
