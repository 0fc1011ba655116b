"""Tasks about numbers."""

from __future__ import annotations

from agentsignals.lab.coding_tasks.relations import always, becomes, unchanged
from agentsignals.lab.coding_tasks.task import task

FAMILY = "amounts"

TASKS = (
    task(
        "bucket_score(items: list[int]) -> int",
        "Give the sum, over all items, of the item's remainder modulo 7 (0 to 6, also for negative items).",
        family=FAMILY,
        visible=[(([14, 21],), 0), (([2, 5],), 7), (([9, 12],), 7)],
        hidden=[(([],), 0), (([-3, 1],), 5), (([50, 51, 52],), 6), (([6, 6, 6],), 18)],
        relations=(
            unchanged("order", lambda items: (items[::-1],)),
            becomes("one item of 3 more", lambda items: ([*items, 3],), lambda out: out + 3),
            unchanged("all raised by 7", lambda items: ([n + 7 for n in items],)),
        ),
        reference="""
def bucket_score(items):
    return sum(n % 7 for n in items)
""",
        wrong="""
def bucket_score(items):
    return 0 if all(n % 7 == 0 for n in items) else 7
""",
    ),
    task(
        "safe_divide(a: float, b: float) -> float | None",
        "Give a divided by b, and None when b is zero.",
        family=FAMILY,
        visible=[((9.0, 3.0), 3.0), ((7.0, 0.0), None)],
        hidden=[((5.0, 2.0), 2.5), ((0.0, 4.0), 0.0), ((-9.0, 2.0), -4.5), ((0.0, 0.0), None), ((1.0, -0.5), -2.0)],
        relations=(
            unchanged("both doubled", lambda a, b: (2 * a, 2 * b)),
            becomes("the other sign", lambda a, b: (-a, b), lambda out: None if out is None else -out),
        ),
        reference="""
def safe_divide(a, b):
    if b == 0:
        return None
    return a / b
""",
        wrong="""
def safe_divide(a, b):
    if not a or not b:
        return None
    return a / b
""",
    ),
    task(
        "to_roman(number: int) -> str",
        "Write a number from 1 to 3999 in Roman numerals.",
        family=FAMILY,
        visible=[((3,), "III"), ((12,), "XII"), ((58,), "LVIII")],
        hidden=[((4,), "IV"), ((1994,), "MCMXCIV"), ((3999,), "MMMCMXCIX"), ((90,), "XC")],
        relations=(
            becomes(
                "a thousand more", lambda number: (number + 1000,) if number < 3000 else None, lambda out: "M" + out
            ),
            always("no letter four times in a row", lambda out, _n: not any(c * 4 in out for c in "IVXLCDM")),
        ),
        reference="""
def to_roman(number):
    signs = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"),
             (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    out = ""
    for value, sign in signs:
        while number >= value:
            out, number = out + sign, number - value
    return out
""",
        wrong="""
def to_roman(number):
    out = ""
    for value, sign in [(1000, "M"), (500, "D"), (100, "C"), (50, "L"), (10, "X"), (5, "V"), (1, "I")]:
        out += sign * (number // value)
        number %= value
    return out
""",
    ),
    task(
        "to_base(number: int, base: int) -> str",
        """Write a whole number in a base from 2 to 16, with the digits 0-9 and a-f; a negative number begins with a
        minus sign.""",
        family=FAMILY,
        visible=[((10, 2), "1010"), ((255, 16), "ff"), ((7, 8), "7")],
        hidden=[((0, 2), "0"), ((-5, 2), "-101"), ((31, 3), "1011"), ((-255, 16), "-ff")],
        relations=(
            always("Python reads it", lambda out, number, base: int(out, base) == number),
            becomes(
                "times the base", lambda number, base: (number * base, base) if number else None, lambda out: out + "0"
            ),
        ),
        reference="""
def to_base(number, base):
    if number == 0:
        return "0"
    digits, left = "", abs(number)
    while left:
        left, digit = divmod(left, base)
        digits = "0123456789abcdef"[digit] + digits
    return ("-" if number < 0 else "") + digits
""",
        wrong="""
def to_base(number, base):
    digits = ""
    while number > 0:
        number, digit = divmod(number, base)
        digits = "0123456789abcdef"[digit] + digits
    return digits
""",
    ),
    task(
        "digit_root(number: int) -> int",
        "Add the digits of a number (0 or more), then the digits of that sum, and so on until one digit is left.",
        family=FAMILY,
        visible=[((23,), 5), ((5,), 5), ((123,), 6)],
        hidden=[((0,), 0), ((38,), 2), ((99,), 9), ((9875,), 2), ((999999999999,), 9)],
        relations=(
            unchanged("nine more", lambda number: (number + 9,) if number else None),
            unchanged("digits turned", lambda number: (int(str(number)[::-1]),)),
        ),
        reference="""
def digit_root(number):
    return 0 if number == 0 else 1 + (number - 1) % 9
""",
        wrong="""
def digit_root(number):
    return sum(int(digit) for digit in str(number))
""",
    ),
    task(
        "split_bill(cents: int, people: int) -> list[int]",
        """Share an amount of cents (0 or more) among people (1 or more) as evenly as possible: the shares add up to
        it, no two differ by more than one cent, and larger shares come first.""",
        family=FAMILY,
        visible=[((100, 2), [50, 50]), ((7, 1), [7]), ((90, 3), [30, 30, 30])],
        hidden=[((100, 3), [34, 33, 33]), ((2, 4), [1, 1, 0, 0]), ((0, 2), [0, 0]), ((11, 4), [3, 3, 3, 2])],
        relations=(
            always("adds up", lambda out, cents, people: sum(out) == cents and len(out) == people),
            becomes(
                "a cent more for each",
                lambda cents, people: (cents + people, people),
                lambda out: [share + 1 for share in out],
            ),
        ),
        reference="""
def split_bill(cents, people):
    share, left = divmod(cents, people)
    return [share + 1] * left + [share] * (people - left)
""",
        wrong="""
def split_bill(cents, people):
    return [cents // people] * people
""",
    ),
    task(
        "median(values: list[float]) -> float | None",
        """Give the middle of the values in order of size, the mean of the two middle ones when their number is even,
        and None when there are none.""",
        family=FAMILY,
        visible=[(([3.0, 5.0, 9.0],), 5.0), (([2.0],), 2.0)],
        hidden=[(([],), None), (([4.0, 1.0],), 2.5), (([9.0, 1.0, 5.0],), 5.0), (([7.0, 1.0, 3.0, 9.0],), 5.0)],
        relations=(
            unchanged("order", lambda values: (values[::-1],)),
            becomes(
                "all raised by 8", lambda values: ([v + 8 for v in values],) if values else None, lambda out: out + 8
            ),
        ),
        reference="""
def median(values):
    if not values:
        return None
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
""",
        wrong="""
def median(values):
    return values[len(values) // 2] if values else None
""",
    ),
    task(
        "collatz_steps(number: int) -> int | None",
        """Starting from a positive number, halve it when it is even, else take three times the number plus one. Give
        how many steps it takes to reach 1, and None when the number is not positive.""",
        family=FAMILY,
        visible=[((2,), 1), ((8,), 3), ((16,), 4)],
        hidden=[((1,), 0), ((6,), 8), ((27,), 111), ((0,), None), ((-4,), None)],
        relations=(
            becomes("doubled", lambda number: (2 * number,) if number > 0 else None, lambda out: out + 1),
            becomes(
                "one step on",
                lambda number: (3 * number + 1,) if number > 1 and number % 2 else None,
                lambda out: out - 1,
            ),
        ),
        reference="""
def collatz_steps(number):
    if number < 1:
        return None
    steps = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps
""",
        wrong="""
import math

def collatz_steps(number):
    return int(math.log2(number)) if number > 0 else None
""",
    ),
)
