"""Java, Kotlin, Scala, and C#."""

from __future__ import annotations

from agentsignals.scanning.rules.rule import Rule, matching

_JAVA, _BOTH = ("java",), ("java", "csharp")
_SQL = r"\s{0,20}(?i:select\s|insert\s+into\s|update\s|delete\s+from\s)"

RULES = (
    Rule(
        "jvm-sql-built",
        ("CWE-89",),
        "high",
        "medium",
        "SQL is put together from values; pass them as parameters.",
        _BOTH,
        matching(
            r"\b(?:executeQuery|executeUpdate|prepareStatement|createQuery|createNativeQuery|rawQuery|execSQL"
            r"|FromSqlRaw"
            rf"|ExecuteSqlRaw|SqlCommand|queryForObject)\(\s{{0,20}}(?:\"{_SQL}[^\"\n]{{0,300}}\"\s{{0,10}}\+"
            rf"|\$\"{_SQL}[^\"\n]{{0,300}}?\{{|\"{_SQL}[^\"\n]{{0,300}}?\$\{{?\w|String\.format\(\s{{0,10}}\"{_SQL})"
        ),
    ),
    Rule(
        "jvm-exec-built",
        ("CWE-78",),
        "high",
        "medium",
        "A command is put together from values.",
        _JAVA,
        matching(
            r"\.exec\(\s{0,10}(?:\"[^\"\n]{0,300}\"\s{0,10}\+|\"[^\"\n]{0,300}?\$\{?\w|String\.format)",
            needs=("Runtime",),
        ),
    ),
    Rule(
        "jvm-weak-hash",
        ("CWE-328",),
        "low",
        "low",
        "MD5 and SHA-1 hold against nobody who looks for a collision.",
        _BOTH,
        matching(r"\bgetInstance\(\s{0,4}\"(?:MD5|MD2|SHA-?1)\"|\b(?:MD5|SHA1)\.(?:Create|HashData)\("),
    ),
    Rule(
        "jvm-weak-cipher",
        ("CWE-327",),
        "high",
        "high",
        "This cipher or mode is broken.",
        _JAVA,
        matching(r"\bCipher\.getInstance\(\s{0,4}\"(?:DES|RC4|RC2|Blowfish|DESede|AES/ECB|AES\")"),
    ),
    Rule(
        "jvm-unsafe-decoder",
        ("CWE-502",),
        "high",
        "low",
        "Decoding makes objects that the data names.",
        _BOTH,
        matching(r"\bnew\s{1,4}(?:ObjectInputStream|XMLDecoder|BinaryFormatter|NetDataContractSerializer)\("),
    ),
    Rule(
        "jvm-guessable-secret",
        ("CWE-338",),
        "medium",
        "medium",
        "A secret is made of numbers that can be guessed.",
        _BOTH,
        matching(
            r"\b\w{0,40}(?i:token|secret|passw|otp|nonce|sessionid|apikey)\w{0,40}\s{0,4}=\s{0,4}[^;\n]{0,120}"
            r"(?:Math\.random\(|new\s{1,4}Random\()"
        ),
    ),
    Rule(
        "jvm-csrf-off",
        ("CWE-352",),
        "medium",
        "low",
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
