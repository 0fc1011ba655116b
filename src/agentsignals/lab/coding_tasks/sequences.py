"""Tasks about sequences and small algorithms."""

from __future__ import annotations

from agentsignals.lab.coding_tasks.relations import always, becomes, unchanged, undone_by_itself
from agentsignals.lab.coding_tasks.task import task

FAMILY = "sequences"

TASKS = (
    task(
        "run_lengths(text: str) -> list[list]",
        "Give the runs of equal characters in the text as lists [character, length], in order.",
        family=FAMILY,
        visible=[(("aab",), [["a", 2], ["b", 1]]), (("x",), [["x", 1]])],
        hidden=[
            (("",), []),
            (("abba",), [["a", 1], ["b", 2], ["a", 1]]),
            (("zzzz",), [["z", 4]]),
            (("Aa",), [["A", 1], ["a", 1]]),
        ],
        relations=(
            becomes("backwards", lambda text: (text[::-1],), lambda out: out[::-1]),
            always("as long as the text", lambda out, text: sum(n for _, n in out) == len(text)),
        ),
        reference="""
from itertools import groupby

def run_lengths(text):
    return [[sign, len(list(run))] for sign, run in groupby(text)]
""",
        wrong="""
def run_lengths(text):
    return [[sign, text.count(sign)] for sign in dict.fromkeys(text)]
""",
    ),
    task(
        "longest_increasing(numbers: list[int]) -> int",
        """Give the length of the longest strictly increasing subsequence: numbers picked from the list in their
        order, not necessarily neighbours.""",
        family=FAMILY,
        visible=[(([1, 2, 3],), 3), (([5],), 1), (([3, 2, 1],), 1)],
        hidden=[(([],), 0), (([10, 9, 2, 5, 3, 7, 101, 18],), 4), (([2, 2, 2],), 1), (([1, 5, 2, 3, 4],), 4)],
        relations=(
            unchanged("all raised", lambda numbers: ([n + 5 for n in numbers],)),
            becomes(
                "a larger one at the end",
                lambda numbers: ([*numbers, max(numbers, default=0) + 1],),
                lambda out: out + 1,
            ),
        ),
        reference="""
from bisect import bisect_left

def longest_increasing(numbers):
    ends = []
    for n in numbers:
        at = bisect_left(ends, n)
        ends[at:at + 1] = [n]
    return len(ends)
""",
        wrong="""
def longest_increasing(numbers):
    best = run = 0
    last = None
    for n in numbers:
        run = run + 1 if last is None or n > last else 1
        best, last = max(best, run), n
    return best
""",
    ),
    task(
        "rotate_list(items: list[int], steps: int) -> list[int]",
        """Move the items `steps` places to the right; those that leave at the end come back at the start. Negative
        steps go to the left, and steps may be more than there are items.""",
        family=FAMILY,
        visible=[(([1, 2, 3], 1), [3, 1, 2]), (([1, 2], 0), [1, 2])],
        hidden=[(([1, 2, 3], -1), [2, 3, 1]), (([1, 2, 3], 7), [3, 1, 2]), (([], 3), []), (([4], -9), [4])],
        relations=(
            unchanged("once around", lambda items, steps: (items, steps + len(items))),
            always("the same items", lambda out, items, _steps: sorted(out) == sorted(items)),
        ),
        reference="""
def rotate_list(items, steps):
    if not items:
        return []
    at = -steps % len(items)
    return items[at:] + items[:at]
""",
        wrong="""
def rotate_list(items, steps):
    return items[-steps:] + items[:-steps]
""",
    ),
    task(
        "caesar(text: str, shift: int) -> str",
        """Move each letter a-z and A-Z by `shift` places in the alphabet, around its end; the shift may be negative
        or large. Other characters stay.""",
        family=FAMILY,
        visible=[(("abc", 1), "bcd"), (("Hi!", 2), "Jk!")],
        hidden=[(("xyz", 3), "abc"), (("A", -1), "Z"), (("é a", 27), "é b"), (("", 5), ""), (("mM", 52), "mM")],
        relations=(
            unchanged("26 more", lambda text, shift: (text, shift + 26)),
            becomes("in small letters", lambda text, shift: (text.lower(), shift), lambda out: out.lower()),
        ),
        reference="""
def caesar(text, shift):
    out = []
    for sign in text:
        if "a" <= sign <= "z" or "A" <= sign <= "Z":
            first = ord("a" if sign >= "a" else "A")
            sign = chr((ord(sign) - first + shift) % 26 + first)
        out.append(sign)
    return "".join(out)
""",
        wrong="""
def caesar(text, shift):
    return "".join(chr(ord(sign) + shift) if sign.isalpha() else sign for sign in text)
""",
    ),
    task(
        "is_palindrome(text: str) -> bool",
        """Whether the text reads the same backwards when only its letters and digits count, in any case. A text
        without any does.""",
        family=FAMILY,
        visible=[(("level",), True), (("robot",), False), (("Noon",), True)],
        hidden=[
            (("",), True),
            (("A man, a plan, a canal: Panama",), True),
            (("1 2 1!",), True),
            (("ab_a",), True),
            (("10",), False),
        ],
        relations=(
            unchanged("backwards", lambda text: (text[::-1],)),
            unchanged("dots between", lambda text: (".".join(text),)),
        ),
        reference="""
def is_palindrome(text):
    signs = [sign.lower() for sign in text if sign.isalnum()]
    return signs == signs[::-1]
""",
        wrong="""
def is_palindrome(text):
    return text.lower() == text.lower()[::-1]
""",
    ),
    task(
        "next_bigger(number: int) -> int | None",
        """Give the next larger number that can be written with the same digits as `number` (1 or more); None when
        there is none.""",
        family=FAMILY,
        visible=[((12,), 21), ((513,), 531), ((9,), None)],
        hidden=[((2017,), 2071), ((321,), None), ((1999,), 9199), ((110,), None), ((230241,), 230412)],
        relations=(
            always(
                "larger, of the same digits",
                lambda out, number: out is None or (out > number and sorted(str(out)) == sorted(str(number))),
            ),
            becomes("a 9 before", lambda number: (int(f"9{number}"),), lambda out: out and int(f"9{out}")),
        ),
        reference="""
def next_bigger(number):
    digits = list(str(number))
    for at in range(len(digits) - 2, -1, -1):
        if digits[at] < digits[at + 1]:
            rest = digits[at:]
            bigger = min(d for d in rest if d > digits[at])
            rest.remove(bigger)
            return int("".join(digits[:at] + [bigger] + sorted(rest)))
    return None
""",
        wrong="""
def next_bigger(number):
    digits = str(number)
    swapped = digits[:-2] + digits[-2:][::-1]
    return int(swapped) if int(swapped) > number else None
""",
    ),
    task(
        "primes_up_to(limit: int) -> list[int]",
        "Give the prime numbers up to and including `limit`.",
        family=FAMILY,
        visible=[((10,), [2, 3, 5, 7]), ((3,), [2, 3])],
        hidden=[
            ((1,), []),
            ((-5,), []),
            ((30,), [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]),
            ((50,), [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47]),
        ],
        relations=(
            always("increasing", lambda out, _limit: out == sorted(set(out))),
            always("no divisors", lambda out, _limit: all(p % d for p in out for d in range(2, p))),
            unchanged("up to the last one found", lambda limit: (limit if limit < 3 or limit % 2 else limit - 1,)),
        ),
        reference="""
def primes_up_to(limit):
    return [n for n in range(2, limit + 1) if all(n % d for d in range(2, int(n ** 0.5) + 1))]
""",
        wrong="""
def primes_up_to(limit):
    return [n for n in range(2, limit + 1) if n in (2, 3, 5, 7) or all(n % d for d in (2, 3, 5)) and n % 2]
""",
    ),
    task(
        "reverse_words(text: str) -> str",
        """Turn round the order of the words, and keep the blanks between them as they were: the first stretch of
        blanks stays the first.""",
        family=FAMILY,
        visible=[(("one two",), "two one"), (("a b c",), "c b a")],
        hidden=[(("a  b c",), "c  b a"), ((" x y",), " y x"), (("",), ""), (("  ",), "  "), (("solo ",), "solo ")],
        relations=(
            undone_by_itself(),
            always("the same words", lambda out, text: sorted(out.split()) == sorted(text.split())),
        ),
        reference="""
import re

def reverse_words(text):
    words = re.findall(r"[^ ]+", text)
    return re.sub(r"[^ ]+", lambda _: words.pop(), text)
""",
        wrong="""
def reverse_words(text):
    return " ".join(text.split()[::-1])
""",
    ),
)
