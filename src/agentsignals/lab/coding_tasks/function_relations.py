"""Metamorphic relations of the package's function tasks, by task: being functions, they can't stand in a file."""

from __future__ import annotations

from agentsignals.lab.coding_tasks.relations import (
    Relation,
    always,
    becomes,
    follows,
    idempotent,
    unchanged,
    undone_by_itself,
)


def _numbers(rows: list[list[int]]) -> list[int]:
    return sorted(number for row in rows for number in row)


RELATIONS: dict[str, tuple[Relation, ...]] = {
    "parse_duration": (
        unchanged("order of the parts", lambda text: (" ".join(reversed(text.split())),)),
        becomes("ten minutes more", lambda text: (text + " 10m",), lambda out: out + 10),
    ),
    "format_duration": (
        always(
            "the parts add up",
            lambda out, seconds: (
                sum(int(part[:-1]) * {"d": 86400, "h": 3600, "m": 60, "s": 1}[part[-1]] for part in out.split())
                == seconds
            ),
        ),
        follows("a day more keeps the rest", lambda seconds: (seconds + 86400,), lambda out, other: other != out),
    ),
    "minutes_between": (
        always("less than a day", lambda out, *_times: 0 <= out < 1440),
        follows(
            "there and back is a day", lambda start, end: (end, start), lambda out, other: (out + other) % 1440 == 0
        ),
    ),
    "days_in_month": (
        unchanged("400 years later", lambda year, month: (year + 400, month)),
        always("28 to 31", lambda out, *_when: 28 <= out <= 31),
    ),
    "to_24_hours": (
        unchanged("small letters", lambda time: (time.lower(),)),
        always("five characters", lambda out, _time: len(out) == 5 and out[2] == ":"),
    ),
    "add_workdays": (
        unchanged("five workdays are a week", lambda weekday, days: (weekday, days + 5) if days else None),
        always("never ends on a weekend", lambda out, _weekday, days: days == 0 or out < 5),
    ),
    "is_leap": (
        unchanged("400 years later", lambda year: (year + 400,)),
        follows("the year after is none", lambda year: (year + 1,), lambda out, other: not (out and other)),
    ),
    "busiest_hour": (
        unchanged("order", lambda times: (times[::-1],)),
        unchanged("every time twice", lambda times: (times + times,)),
    ),
    "merge_intervals": (
        unchanged("order", lambda intervals: (intervals[::-1],)),
        idempotent(),
        unchanged("an interval twice", lambda intervals: (intervals + intervals[:1],)),
    ),
    "free_gaps": (
        unchanged("order", lambda busy, start, end: (busy[::-1], start, end)),
        becomes(
            "all one later",
            lambda busy, start, end: ([[a + 1, b + 1] for a, b in busy], start + 1, end + 1),
            lambda out: [[a + 1, b + 1] for a, b in out],
        ),
    ),
    "most_at_once": (
        unchanged("order", lambda stays: (stays[::-1],)),
        becomes("everybody twice", lambda stays: (stays + stays,), lambda out: 2 * out),
    ),
    "to_ranges": (
        unchanged("order", lambda numbers: (numbers[::-1],)),
        unchanged("each number twice", lambda numbers: (numbers + numbers,)),
    ),
    "expand_ranges": (
        unchanged("order of the parts", lambda text: (",".join(reversed(text.split(","))),)),
        always("increasing", lambda out, _text: out == sorted(set(out))),
    ),
    "overlap": (
        unchanged("either first", lambda a, b: (b, a)),
        unchanged("both moved", lambda a, b: ([n + 100 for n in a], [n + 100 for n in b])),
    ),
    "missing_numbers": (
        unchanged("order", lambda numbers: (numbers[::-1],)),
        follows(
            "what was missing is added",
            lambda numbers: ([*numbers, max(numbers) + 2],) if numbers else None,
            lambda out, other: len(other) == len(out) + 1,
        ),
    ),
    "clamp_all": (idempotent(), unchanged("bounds swapped", lambda values, low, high: (values, high, low))),
    "stable_top_words": (
        unchanged("all words twice", lambda words, k: (words + words, k)),
        always("no word twice, no more than k", lambda out, _w, k: len(set(out)) == len(out) <= k),
    ),
    "mask_tokens": (
        unchanged("order of the secrets", lambda text, secrets: (text, secrets[::-1])),
        unchanged("a secret named twice", lambda text, secrets: (text, secrets + secrets)),
    ),
    "normalize_codes": (
        idempotent(),
        becomes("order turned", lambda codes: (codes[::-1],), lambda out: out[::-1]),
    ),
    "to_snake": (idempotent(), always("no capitals", lambda out, _name: out == out.lower())),
    "title_words": (idempotent(), unchanged("in capitals", lambda text: (text.upper(),))),
    "wrap_words": (
        always("all words, in order", lambda out, text, _width: " ".join(out).split() == text.split()),
        unchanged("blanks doubled", lambda text, width: (text.replace(" ", "  "), width)),
    ),
    "count_vowel_groups": (
        unchanged("backwards", lambda word: (word[::-1],)),
        unchanged("in capitals", lambda word: (word.upper(),)),
    ),
    "initials": (
        unchanged("in small letters", lambda name: (name.lower(),)),
        becomes("one more name", lambda name: (name + " Zed",), lambda out: out + "Z."),
    ),
    "bucket_score": (
        unchanged("order", lambda items: (items[::-1],)),
        becomes("one item of 3 more", lambda items: ([*items, 3],), lambda out: out + 3),
        unchanged("all raised by 7", lambda items: ([n + 7 for n in items],)),
    ),
    "safe_divide": (
        unchanged("both doubled", lambda a, b: (2 * a, 2 * b)),
        becomes("the other sign", lambda a, b: (-a, b), lambda out: None if out is None else -out),
    ),
    "to_roman": (
        becomes("a thousand more", lambda number: (number + 1000,) if number < 3000 else None, lambda out: "M" + out),
        always("no letter four times in a row", lambda out, _n: not any(c * 4 in out for c in "IVXLCDM")),
    ),
    "to_base": (
        always("Python reads it", lambda out, number, base: int(out, base) == number),
        becomes(
            "times the base", lambda number, base: (number * base, base) if number else None, lambda out: out + "0"
        ),
    ),
    "digit_root": (
        unchanged("nine more", lambda number: (number + 9,) if number else None),
        unchanged("digits turned", lambda number: (int(str(number)[::-1]),)),
    ),
    "split_bill": (
        always("adds up", lambda out, cents, people: sum(out) == cents and len(out) == people),
        becomes(
            "a cent more for each",
            lambda cents, people: (cents + people, people),
            lambda out: [share + 1 for share in out],
        ),
    ),
    "median": (
        unchanged("order", lambda values: (values[::-1],)),
        becomes("all raised by 8", lambda values: ([v + 8 for v in values],) if values else None, lambda out: out + 8),
    ),
    "collatz_steps": (
        becomes("doubled", lambda number: (2 * number,) if number > 0 else None, lambda out: out + 1),
        becomes(
            "one step on",
            lambda number: (3 * number + 1,) if number > 1 and number % 2 else None,
            lambda out: out - 1,
        ),
    ),
    "parse_settings": (
        unchanged("comments between", lambda text: (text.replace("\n", "\n# c\n\n"),)),
        becomes("a line more", lambda text: (text + "\nnew_name = 5",), lambda out: {**out, "new_name": "5"}),
    ),
    "split_row": (
        becomes("a field more", lambda line: (line + ",end",), lambda out: [*out, "end"]),
        becomes("a field before", lambda line: ("start," + line,), lambda out: ["start", *out]),
    ),
    "compare_versions": (
        becomes("either first", lambda a, b: (b, a), lambda out: -out),
        unchanged("a zero more", lambda a, b: (a + ".0", b)),
    ),
    "parse_size": (
        unchanged("small letters", lambda text: (text.lower(),)),
        unchanged("blanks around", lambda text: (f"  {text} ",)),
    ),
    "query_values": (
        unchanged("empty parts between", lambda query: (query.replace("&", "&&"),)),
        becomes("a name more", lambda query: (query + "&new=1",), lambda out: {**out, "new": ["1"]}),
    ),
    "clean_path": (idempotent(), unchanged("a part and back", lambda path: (path + "/zz/..",) if path else None)),
    "balanced": (
        unchanged("in a pair of brackets", lambda text: (f"[{text}]",)),
        follows(
            "one closed too many",
            lambda text: (text + ")",) if text.count("(") == text.count(")") else None,
            lambda _out, other: other is False,
        ),
    ),
    "evaluate_sum": (
        becomes("plus eleven", lambda text: (text + " + 11",), lambda out: out + 11),
        unchanged("without blanks", lambda text: (text.replace(" ", ""),)),
        always("a whole number", lambda out, _text: type(out) is int),
    ),
    "group_by_length": (
        unchanged("order", lambda words: (words[::-1],)),
        unchanged("every word twice", lambda words: (words + words,)),
    ),
    "flatten": (
        idempotent(),
        unchanged("one list around", lambda nested: ([nested],)),
        becomes("a number more", lambda nested: ([*nested, [9]],), lambda out: [*out, 9]),
    ),
    "unique_in_order": (
        idempotent(),
        becomes(
            "the first again",
            lambda items: (items + items[:1],) if len(set(items)) == len(items) and items else None,
            lambda out: out[1:] + out[:1],
        ),
    ),
    "chunks": (
        always("nothing lost", lambda out, items, size: size < 1 or [n for piece in out for n in piece] == items),
        always("no piece longer", lambda out, _items, size: all(0 < len(p) <= size for p in out)),
    ),
    "merge_counts": (
        unchanged("either first", lambda a, b: (b, a)),
        unchanged("nothing added", lambda a, b: ({**a, "none of it": 0}, b)),
    ),
    "invert": (
        unchanged("order", lambda mapping: (dict(reversed(list(mapping.items()))),)),
        always("as many names", lambda out, mapping: sum(map(len, out.values())) == len(mapping)),
    ),
    "top_scorers": (
        unchanged("order", lambda scores, least: (dict(reversed(list(scores.items()))), least)),
        unchanged("all raised", lambda scores, least: ({n: s + 2 for n, s in scores.items()}, least + 2)),
    ),
    "pairs_with_sum": (
        unchanged("order", lambda numbers, total: (numbers[::-1], total)),
        unchanged("all raised by one", lambda numbers, total: ([n + 1 for n in numbers], total + 2)),
    ),
    "transpose": (
        becomes("order of the rows", lambda rows: (rows[::-1],), lambda out: [row[::-1] for row in out]),
        becomes(
            "the first column again",
            lambda rows: ([row + row[:1] for row in rows],) if rows and rows[0] else None,
            lambda out: out + out[:1],
        ),
    ),
    "rotate": (
        unchanged("four times more", lambda rows, times: (rows, times + 4)),
        always("the same numbers", lambda out, rows, _t: _numbers(out) == _numbers(rows)),
    ),
    "spiral": (
        always("every number once", lambda out, rows: sorted(out) == _numbers(rows)),
        becomes(
            "all raised", lambda rows: ([[n + 10 for n in row] for row in rows],), lambda out: [n + 10 for n in out]
        ),
    ),
    "count_islands": (
        unchanged("upside down", lambda rows: (rows[::-1],)),
        unchanged("water around", lambda rows: ([f".{row}." for row in ["", *rows]],)),
    ),
    "row_sums": (
        becomes("order of the rows", lambda rows: (rows[::-1],), lambda out: out[::-1]),
        unchanged("a missing number more", lambda rows: ([[*row, None] for row in rows],)),
    ),
    "winner": (
        unchanged("upside down", lambda board: (board[::-1],)),
        unchanged("mirrored", lambda board: ([row[::-1] for row in board],)),
    ),
    "drop_empty": (
        idempotent(),
        unchanged("an empty row more", lambda rows: ([*rows, ["" for _ in rows[0]]],) if rows else None),
    ),
    "mirror": (
        unchanged(
            "no wider with blanks there",
            lambda rows: ([row.ljust(max(map(len, rows))) for row in rows],) if rows else None,
        ),
        becomes("upside down", lambda rows: (rows[::-1],), lambda out: out[::-1]),
    ),
    "run_lengths": (
        becomes("backwards", lambda text: (text[::-1],), lambda out: out[::-1]),
        always("as long as the text", lambda out, text: sum(n for _, n in out) == len(text)),
    ),
    "longest_increasing": (
        unchanged("all raised", lambda numbers: ([n + 5 for n in numbers],)),
        becomes(
            "a larger one at the end",
            lambda numbers: ([*numbers, max(numbers, default=0) + 1],),
            lambda out: out + 1,
        ),
    ),
    "rotate_list": (
        unchanged("once around", lambda items, steps: (items, steps + len(items))),
        always("the same items", lambda out, items, _steps: sorted(out) == sorted(items)),
    ),
    "caesar": (
        unchanged("26 more", lambda text, shift: (text, shift + 26)),
        becomes("in small letters", lambda text, shift: (text.lower(), shift), lambda out: out.lower()),
    ),
    "is_palindrome": (
        unchanged("backwards", lambda text: (text[::-1],)),
        unchanged("dots between", lambda text: (".".join(text),)),
    ),
    "next_bigger": (
        always(
            "larger, of the same digits",
            lambda out, number: out is None or (out > number and sorted(str(out)) == sorted(str(number))),
        ),
        becomes("a 9 before", lambda number: (int(f"9{number}"),), lambda out: out and int(f"9{out}")),
    ),
    "primes_up_to": (
        always("increasing", lambda out, _limit: out == sorted(set(out))),
        always("no divisors", lambda out, _limit: all(p % d for p in out for d in range(2, p))),
        unchanged("up to the last one found", lambda limit: (limit if limit < 3 or limit % 2 else limit - 1,)),
    ),
    "reverse_words": (
        undone_by_itself(),
        always("the same words", lambda out, text: sorted(out.split()) == sorted(text.split())),
    ),
}
