"""Java, Kotlin, Scala, and C#."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_JAVA, _BOTH = ("java",), ("java", "csharp")
_SQL = r"\s{0,20}(?i:select\s|insert\s+into\s|update\s|delete\s+from\s)"

RULES = (
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
            rf"|ExecuteSqlRaw|SqlCommand|queryForObject)\(\s{{0,20}}(?:\"{_SQL}[^\"\n]{{0,300}}\"\s{{0,10}}\+"
            rf"|\$\"{_SQL}[^\"\n]{{0,300}}?\{{|\"{_SQL}[^\"\n]{{0,300}}?\$\{{?\w|String\.format\(\s{{0,10}}\"{_SQL})"
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
