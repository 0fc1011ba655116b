"""Tasks about reading and writing small formats."""

from __future__ import annotations

from agentsignals.lab.coding_tasks.relations import always, becomes, follows, idempotent, unchanged
from agentsignals.lab.coding_tasks.task import task

FAMILY = "parsing"

TASKS = (
    task(
        "parse_settings(text: str) -> dict[str, str]",
        """Each line is `name = value`. Blanks around the name and the value do not belong to them; a value may hold
        `=`. Lines that are empty, begin with `#`, or have no `=` are left out. The last line of a name wins.""",
        family=FAMILY,
        visible=[(("a = 1\nb=2",), {"a": "1", "b": "2"}), (("# note\nx = y",), {"x": "y"})],
        hidden=[
            (("",), {}),
            (("q = a=b",), {"q": "a=b"}),
            (("k=1\nk=2",), {"k": "2"}),
            (("odd line\n z= ",), {"z": ""}),
        ],
        relations=(
            unchanged("comments between", lambda text: (text.replace("\n", "\n# c\n\n"),)),
            becomes("a line more", lambda text: (text + "\nnew_name = 5",), lambda out: {**out, "new_name": "5"}),
        ),
        reference="""
def parse_settings(text):
    found = {}
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.lstrip().startswith("#"):
            found[name.strip()] = value.strip()
    return found
""",
        wrong="""
def parse_settings(text):
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#") and line.count("=") == 1:
            name, value = line.split("=")
            found[name.strip()] = value.strip()
    return found
""",
    ),
    task(
        "split_row(line: str) -> list[str]",
        """Split a line at commas. A field in double quotes may hold commas, and a doubled double quote inside it
        stands for one; the quotes around it do not belong to it. An empty line is one empty field.""",
        family=FAMILY,
        visible=[(("a,b,c",), ["a", "b", "c"]), (('x,"1,5",y',), ["x", "1,5", "y"])],
        hidden=[(("",), [""]), (('"say ""hi""",2',), ['say "hi"', "2"]), ((",",), ["", ""]), (('"",z',), ["", "z"])],
        relations=(
            becomes("a field more", lambda line: (line + ",end",), lambda out: [*out, "end"]),
            becomes("a field before", lambda line: ("start," + line,), lambda out: ["start", *out]),
        ),
        reference="""
def split_row(line):
    fields, field, quoted, at = [], "", False, 0
    while at < len(line):
        sign = line[at]
        if quoted and sign == '"' and line[at + 1:at + 2] == '"':
            field, at = field + '"', at + 1
        elif sign == '"':
            quoted = not quoted
        elif sign == "," and not quoted:
            fields.append(field)
            field = ""
        else:
            field += sign
        at += 1
    return fields + [field]
""",
        wrong="""
def split_row(line):
    fields, field, quoted = [], "", False
    for sign in line:
        if sign == '"':
            quoted = not quoted
        elif sign == "," and not quoted:
            fields.append(field)
            field = ""
        else:
            field += sign
    return fields + [field]
""",
    ),
    task(
        "compare_versions(a: str, b: str) -> int",
        """Compare two versions made of whole numbers between dots: -1 when `a` is older, 1 when it is newer, 0 when
        they are the same. Missing parts count as 0.""",
        family=FAMILY,
        visible=[(("1.2", "1.3"), -1), (("2.0", "1.9"), 1), (("1.5", "1.5"), 0)],
        hidden=[(("1.10", "1.9"), 1), (("1", "1.0.0"), 0), (("1.0.1", "1"), 1), (("01.2", "1.2"), 0)],
        relations=(
            becomes("either first", lambda a, b: (b, a), lambda out: -out),
            unchanged("a zero more", lambda a, b: (a + ".0", b)),
        ),
        reference="""
def compare_versions(a, b):
    left, right = [int(n) for n in a.split(".")], [int(n) for n in b.split(".")]
    longest = max(len(left), len(right))
    left += [0] * (longest - len(left))
    right += [0] * (longest - len(right))
    return (left > right) - (left < right)
""",
        wrong="""
def compare_versions(a, b):
    return (a > b) - (a < b)
""",
    ),
    task(
        "parse_size(text: str) -> int | None",
        """Read a size such as `10`, `4 KB` or `1.5mb` as bytes. Units are B, KB, MB, GB (each 1024 of the one
        before), in any case, with or without blanks before them; none means bytes. Round down. None when it is no
        such size.""",
        family=FAMILY,
        visible=[(("10",), 10), (("4 KB",), 4096), (("2MB",), 2097152)],
        hidden=[
            (("1.5mb",), 1572864),
            (("0.3 kb",), 307),
            (("ten",), None),
            (("",), None),
            (("7 b",), 7),
            (("-1 KB",), None),
        ],
        relations=(
            unchanged("small letters", lambda text: (text.lower(),)),
            unchanged("blanks around", lambda text: (f"  {text} ",)),
        ),
        reference="""
import re

def parse_size(text):
    found = re.fullmatch(r"([0-9]+(?:[.][0-9]+)?) *(b|kb|mb|gb)?", text.strip().lower())
    if not found:
        return None
    power = ("b", "kb", "mb", "gb").index(found[2] or "b")
    return int(float(found[1]) * 1024 ** power)
""",
        wrong="""
def parse_size(text):
    units = {"KB": 1024, "MB": 1024 ** 2, "GB": 1024 ** 3}
    for unit, size in units.items():
        if text.endswith(unit):
            return int(text[: -len(unit)]) * size
    return int(text)
""",
    ),
    task(
        "query_values(query: str) -> dict[str, list[str]]",
        """The query is like `a=1&b=2&a=3`. Give all values of each name in their order. A `+` stands for a blank; a
        name without `=` has an empty value; empty parts are left out.""",
        family=FAMILY,
        visible=[(("a=1&b=2",), {"a": ["1"], "b": ["2"]}), (("q=x+y",), {"q": ["x y"]})],
        hidden=[
            (("a=1&a=3",), {"a": ["1", "3"]}),
            (("",), {}),
            (("flag&&z=",), {"flag": [""], "z": [""]}),
            (("u=a=b",), {"u": ["a=b"]}),
        ],
        relations=(
            unchanged("empty parts between", lambda query: (query.replace("&", "&&"),)),
            becomes("a name more", lambda query: (query + "&new=1",), lambda out: {**out, "new": ["1"]}),
        ),
        reference="""
def query_values(query):
    found = {}
    for part in query.split("&"):
        if part:
            name, _, value = part.partition("=")
            found.setdefault(name.replace("+", " "), []).append(value.replace("+", " "))
    return found
""",
        wrong="""
def query_values(query):
    found = {}
    for part in query.split("&"):
        if "=" in part:
            name, value = part.split("=")
            found[name] = [value.replace("+", " ")]
    return found
""",
    ),
    task(
        "clean_path(path: str) -> str",
        """Simplify a path whose parts are separated by `/`: empty parts and `.` go, `..` removes the part before it.
        A path that begins with `/` keeps that, and `..` at its root goes; in other paths a `..` that has nothing
        to remove stays. Nothing left is `/` for the former and `.` for the latter.""",
        family=FAMILY,
        visible=[(("/a/./b",), "/a/b"), (("a/b/../c",), "a/c"), (("/x/",), "/x")],
        hidden=[(("/../a",), "/a"), (("../../a",), "../../a"), (("a/..",), "."), (("",), "."), (("//",), "/")],
        relations=(idempotent(), unchanged("a part and back", lambda path: (path + "/zz/..",) if path else None)),
        reference="""
def clean_path(path):
    rooted, parts = path.startswith("/"), []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part == ".." and not rooted or part not in ("", ".", ".."):
            parts.append(part)
    joined = "/".join(parts)
    return "/" + joined if rooted else joined or "."
""",
        wrong="""
def clean_path(path):
    parts = []
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", ".", ".."):
            parts.append(part)
    return ("/" if path.startswith("/") else "") + "/".join(parts)
""",
    ),
    task(
        "balanced(text: str) -> bool",
        """Whether the brackets `()`, `[]` and `{}` in the text are closed in the right order. Other characters do
        not matter.""",
        family=FAMILY,
        visible=[(("(a[0])",), True), (("(",), False), (("{}[]",), True)],
        hidden=[(("",), True), (("([)]",), False), ((")(",), False), (("{[()()]}",), True), (("]",), False)],
        relations=(
            unchanged("in a pair of brackets", lambda text: (f"[{text}]",)),
            follows(
                "one closed too many",
                lambda text: (text + ")",) if text.count("(") == text.count(")") else None,
                lambda _out, other: other is False,
            ),
        ),
        reference="""
def balanced(text):
    open_ones = []
    for sign in text:
        if sign in "([{":
            open_ones.append(sign)
        elif sign in ")]}":
            if not open_ones or open_ones.pop() + sign not in ("()", "[]", "{}"):
                return False
    return not open_ones
""",
        wrong="""
def balanced(text):
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))
""",
    ),
    task(
        "evaluate_sum(text: str) -> int",
        """The text is a sum and difference of whole numbers, such as `12 - 3 + 40`, maybe beginning with a sign;
        blanks do not matter, and signs may follow each other (`4--1` is 5). Give its value.""",
        family=FAMILY,
        visible=[(("1 + 2",), 3), (("12 - 3 + 40",), 49), (("7",), 7)],
        hidden=[(("-4+1",), -3), (("4--1",), 5), ((" 10-2-3 ",), 5), (("+5",), 5)],
        relations=(
            becomes("plus eleven", lambda text: (text + " + 11",), lambda out: out + 11),
            unchanged("without blanks", lambda text: (text.replace(" ", ""),)),
            always("a whole number", lambda out, _text: type(out) is int),
        ),
        reference="""
def evaluate_sum(text):
    total, sign, number = 0, 1, ""
    for letter in text.replace(" ", "") + "+":
        if letter.isdigit():
            number += letter
        elif number:
            total += sign * int(number)
            number, sign = "", -1 if letter == "-" else 1
        elif letter == "-":
            sign = -sign
    return total
""",
        wrong="""
def evaluate_sum(text):
    total = 0
    for part in text.replace(" ", "").split("+"):
        first, *rest = part.split("-")
        total += int(first or 0) - sum(int(n or 0) for n in rest)
    return total
""",
    ),
)
