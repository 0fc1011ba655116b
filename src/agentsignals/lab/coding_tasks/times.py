"""Tasks about durations, clocks and calendars."""

from __future__ import annotations

from agentsignals.lab.coding_tasks.relations import always, becomes, follows, unchanged
from agentsignals.lab.coding_tasks.task import task

FAMILY = "times"

TASKS = (
    task(
        "parse_duration(text: str) -> int",
        """The text holds amounts of time, each a whole number directly followed by `h` (hours) or `m` (minutes),
        separated by blanks, in any order; a unit may occur more than once. Give the minutes altogether. An empty
        text is 0 minutes.""",
        family=FAMILY,
        visible=[(("3h 20m",), 200), (("50m",), 50), (("4h",), 240)],
        hidden=[(("15m 2h",), 135), (("",), 0), (("90m",), 90), (("1h 1h 5m",), 125), (("  7m ",), 7)],
        relations=(
            unchanged("order of the parts", lambda text: (" ".join(reversed(text.split())),)),
            becomes("ten minutes more", lambda text: (text + " 10m",), lambda out: out + 10),
        ),
        reference="""
def parse_duration(text):
    minutes = 0
    for part in text.split():
        minutes += int(part[:-1]) * (60 if part[-1] == "h" else 1)
    return minutes
""",
        wrong="""
def parse_duration(text):
    hours, minutes = 0, 0
    for part in text.split():
        if part.endswith("h"):
            hours = int(part[:-1])
        else:
            minutes = int(part[:-1])
    return hours * 60 + minutes
""",
    ),
    task(
        "format_duration(seconds: int) -> str",
        """Write a number of seconds (0 or more) with the units `d`, `h`, `m` and `s`, largest first, separated by
        one blank. Leave out units whose amount is zero; nothing at all is `0s`.""",
        family=FAMILY,
        visible=[((3661,), "1h 1m 1s"), ((59,), "59s"), ((7200,), "2h")],
        hidden=[((0,), "0s"), ((86400,), "1d"), ((90061,), "1d 1h 1m 1s"), ((172859,), "2d 59s")],
        relations=(
            always(
                "the parts add up",
                lambda out, seconds: (
                    sum(int(part[:-1]) * {"d": 86400, "h": 3600, "m": 60, "s": 1}[part[-1]] for part in out.split())
                    == seconds
                ),
            ),
            follows("a day more keeps the rest", lambda seconds: (seconds + 86400,), lambda out, other: other != out),
        ),
        reference="""
def format_duration(seconds):
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        amount, seconds = divmod(seconds, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return " ".join(parts) or "0s"
""",
        wrong="""
def format_duration(seconds):
    parts = []
    for unit, size in (("h", 3600), ("m", 60), ("s", 1)):
        amount, seconds = divmod(seconds, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return " ".join(parts)
""",
    ),
    task(
        "minutes_between(start: str, end: str) -> int",
        """Both are times of day written `HH:MM` (24 hours). Give the minutes from `start` to `end`; an `end` that is
        earlier than `start` is on the next day.""",
        family=FAMILY,
        visible=[(("09:00", "10:30"), 90), (("00:00", "00:01"), 1), (("13:15", "13:15"), 0)],
        hidden=[(("23:50", "00:10"), 20), (("12:00", "11:59"), 1439), (("08:05", "18:00"), 595)],
        relations=(
            always("less than a day", lambda out, *_times: 0 <= out < 1440),
            follows(
                "there and back is a day", lambda start, end: (end, start), lambda out, other: (out + other) % 1440 == 0
            ),
        ),
        reference="""
def minutes_between(start, end):
    def of_day(time):
        hours, minutes = time.split(":")
        return int(hours) * 60 + int(minutes)
    return (of_day(end) - of_day(start)) % 1440
""",
        wrong="""
def minutes_between(start, end):
    def of_day(time):
        hours, minutes = time.split(":")
        return int(hours) * 60 + int(minutes)
    return abs(of_day(end) - of_day(start))
""",
    ),
    task(
        "days_in_month(year: int, month: int) -> int",
        "How many days the month (1 to 12) has in that year of the Gregorian calendar.",
        family=FAMILY,
        visible=[((2023, 1), 31), ((2023, 4), 30), ((2024, 2), 29)],
        hidden=[((1900, 2), 28), ((2000, 2), 29), ((2023, 2), 28), ((2021, 12), 31)],
        relations=(
            unchanged("400 years later", lambda year, month: (year + 400, month)),
            always("28 to 31", lambda out, *_when: 28 <= out <= 31),
        ),
        reference="""
import calendar

def days_in_month(year, month):
    return calendar.monthrange(year, month)[1]
""",
        wrong="""
def days_in_month(year, month):
    if month == 2:
        return 29 if year % 4 == 0 else 28
    return 30 if month in (4, 6, 9, 11) else 31
""",
    ),
    task(
        "to_24_hours(time: str) -> str",
        """The time is written like `3:05 PM` or `11:59 am`. Give it as `HH:MM` in 24 hours, with leading zeros. Noon
        is 12:00 PM, midnight 12:00 AM.""",
        family=FAMILY,
        visible=[(("3:05 PM",), "15:05"), (("11:59 am",), "11:59"), (("9:30 AM",), "09:30")],
        hidden=[(("12:00 AM",), "00:00"), (("12:30 pm",), "12:30"), (("1:00 pm",), "13:00"), (("12:01 am",), "00:01")],
        relations=(
            unchanged("small letters", lambda time: (time.lower(),)),
            always("five characters", lambda out, _time: len(out) == 5 and out[2] == ":"),
        ),
        reference="""
def to_24_hours(time):
    clock, half = time.split()
    hours, minutes = clock.split(":")
    hours = int(hours) % 12 + (12 if half.lower() == "pm" else 0)
    return f"{hours:02d}:{minutes}"
""",
        wrong="""
def to_24_hours(time):
    clock, half = time.split()
    hours, minutes = clock.split(":")
    hours = int(hours) + (12 if half.lower() == "pm" else 0)
    return f"{hours:02d}:{minutes}"
""",
    ),
    task(
        "add_workdays(weekday: int, days: int) -> int",
        """Weekdays count from 0 (Monday) to 6 (Sunday). Starting on `weekday`, go on by `days` workdays (0 or more):
        Saturdays and Sundays are stepped over and do not count. Give the weekday reached; 0 days stay where they
        are.""",
        family=FAMILY,
        visible=[((0, 1), 1), ((4, 1), 0), ((2, 2), 4)],
        hidden=[((5, 1), 0), ((6, 0), 6), ((4, 6), 0), ((3, 12), 0)],
        relations=(
            unchanged("five workdays are a week", lambda weekday, days: (weekday, days + 5) if days else None),
            always("never ends on a weekend", lambda out, _weekday, days: days == 0 or out < 5),
        ),
        reference="""
def add_workdays(weekday, days):
    while days:
        weekday = (weekday + 1) % 7
        if weekday < 5:
            days -= 1
    return weekday
""",
        wrong="""
def add_workdays(weekday, days):
    return (weekday + days) % 5
""",
    ),
    task(
        "is_leap(year: int) -> bool",
        "Whether the year is a leap year of the Gregorian calendar.",
        family=FAMILY,
        visible=[((2024,), True), ((2023,), False), ((2016,), True)],
        hidden=[((1900,), False), ((2000,), True), ((2100,), False), ((1996,), True)],
        relations=(
            unchanged("400 years later", lambda year: (year + 400,)),
            follows("the year after is none", lambda year: (year + 1,), lambda out, other: not (out and other)),
        ),
        reference="""
def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
""",
        wrong="""
def is_leap(year):
    return year % 4 == 0
""",
    ),
    task(
        "busiest_hour(times: list[str]) -> int | None",
        """Each time of day is written `HH:MM`. Give the hour (0 to 23) in which most of them lie; of several, the
        earliest. None when there are no times.""",
        family=FAMILY,
        visible=[((["09:10", "09:50", "10:00"],), 9), ((["23:59"],), 23), ((["08:00", "07:00", "07:30"],), 7)],
        hidden=[(([],), None), ((["14:00", "05:00"],), 5), ((["00:01", "00:02", "12:00"],), 0)],
        relations=(
            unchanged("order", lambda times: (times[::-1],)),
            unchanged("every time twice", lambda times: (times + times,)),
        ),
        reference="""
from collections import Counter

def busiest_hour(times):
    counted = Counter(int(time[:2]) for time in times)
    if not counted:
        return None
    return min(counted, key=lambda hour: (-counted[hour], hour))
""",
        wrong="""
from collections import Counter

def busiest_hour(times):
    counted = Counter(int(time[:2]) for time in times)
    return counted.most_common(1)[0][0] if counted else None
""",
    ),
)
