"""Repository tasks: four small programs, each with a bug that its visible tests do not settle."""

from __future__ import annotations

from agentsignals.errors import LabError
from agentsignals.lab.coding_tasks.repository import RepositoryTask


def _with(text: str, old: str, new: str) -> str:
    """The text with one place changed. LabError when it is not there once."""
    if text.count(old) != 1:
        raise LabError(f"{old!r} stands there {text.count(old)} times.", "One is wanted.")
    return text.replace(old, new)


_BASKET = '''"""A shopping basket. Amounts are cents."""


class Basket:
    def __init__(self):
        self.items = {}

    def add(self, name, cents, count=1):
        self.items[name] = (cents, count)

    def total(self):
        return sum(cents * count for cents, count in self.items.values())
'''
_BASKET_TEST = """import unittest
from shop.basket import Basket


class BasketTest(unittest.TestCase):
    def test_total_of_different_things(self):
        basket = Basket()
        basket.add("tea", 300)
        basket.add("cup", 250, 2)
        self.assertEqual(basket.total(), 800)
"""

_SLUGS = '''"""Names for addresses."""

import re


def slug(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower())


def unique_slug(title, taken):
    name = slug(title)
    if name in taken:
        name = name + "-2"
    return name
'''
_SLUGS_TEST = """import unittest
from pages.slugs import slug, unique_slug


class SlugTest(unittest.TestCase):
    def test_words_are_joined(self):
        self.assertEqual(slug("Hello World"), "hello-world")

    def test_a_taken_name_gets_a_number(self):
        self.assertEqual(unique_slug("News", {"news"}), "news-2")
"""

_CACHE = '''"""A cache that forgets what was not used for longest."""


class Cache:
    def __init__(self, size):
        self.size = size
        self.values = {}

    def get(self, key, default=None):
        return self.values.get(key, default)

    def put(self, key, value):
        if len(self.values) >= self.size:
            self.values.pop(next(iter(self.values)))
        self.values[key] = value
'''
_CACHE_TEST = """import unittest
from store.cache import Cache


class CacheTest(unittest.TestCase):
    def test_the_oldest_is_forgotten(self):
        cache = Cache(2)
        for key in "abc":
            cache.put(key, key.upper())
        self.assertIsNone(cache.get("a"))
        self.assertEqual(cache.get("c"), "C")
"""

_LOG = '''"""Lines of a log, newest last: `LEVEL message`."""

from logs.levels import RANK


def at_least(lines, level):
    found = []
    for line in lines:
        name, _, message = line.partition(" ")
        if RANK[name] >= RANK[level]:
            found.append(message)
    return found
'''
_LEVELS = '''"""Levels of a log, from the least."""

RANK = {"DEBUG": 0, "INFO": 1, "WARNING": 2, "ERROR": 3}
'''
_LOG_TEST = """import unittest
from logs.reading import at_least


class ReadingTest(unittest.TestCase):
    def test_lower_levels_are_left_out(self):
        self.assertEqual(at_least(["INFO a", "ERROR b"], "WARNING"), ["b"])
"""

TASKS = (
    RepositoryTask(
        id="basket",
        issue="When I add the same thing to the basket twice, only the second one is paid for. Counts should add "
        "up; a new price for a thing that is in there already should be refused with a ValueError.",
        files={
            "shop/__init__.py": "",
            "shop/basket.py": _BASKET,
            "tests/__init__.py": "",
            "tests/test_basket.py": _BASKET_TEST,
        },
        fixed={
            "shop/basket.py": _with(
                _BASKET,
                "        self.items[name] = (cents, count)\n",
                "        known, there = self.items.get(name, (cents, 0))\n"
                "        if known != cents:\n"
                '            raise ValueError(f"{name} costs {known} already")\n'
                "        self.items[name] = (cents, there + count)\n",
            )
        },
        hidden={
            "tests/test_hidden.py": """import unittest
from shop.basket import Basket


class HiddenTest(unittest.TestCase):
    def test_counts_add_up(self):
        basket = Basket()
        basket.add("tea", 300)
        basket.add("tea", 300, 3)
        self.assertEqual(basket.total(), 1200)

    def test_another_price_is_refused_and_changes_nothing(self):
        basket = Basket()
        basket.add("tea", 300)
        self.assertRaises(ValueError, basket.add, "tea", 200)
        self.assertEqual(basket.total(), 300)
"""
        },
        n_visible=1,
        n_hidden=2,
    ),
    RepositoryTask(
        id="slugs",
        issue="Titles with signs at their ends give addresses like `-what-`, and the third page with one title "
        "takes the address of the second. Slugs should neither begin nor end with a hyphen, and numbers "
        "should go on until one is free.",
        files={
            "pages/__init__.py": "",
            "pages/slugs.py": _SLUGS,
            "tests/__init__.py": "",
            "tests/test_slugs.py": _SLUGS_TEST,
        },
        fixed={
            "pages/slugs.py": _with(
                _with(_SLUGS, '"-", title.lower())', '"-", title.lower()).strip("-")'),
                '    name = slug(title)\n    if name in taken:\n        name = name + "-2"\n    return name\n',
                "    name, number = slug(title), 2\n    free = name\n    while free in taken:\n"
                '        free, number = f"{name}-{number}", number + 1\n    return free\n',
            )
        },
        hidden={
            "tests/test_hidden.py": """import unittest
from pages.slugs import slug, unique_slug


class HiddenTest(unittest.TestCase):
    def test_no_hyphens_at_the_ends(self):
        self.assertEqual(slug("  What?! "), "what")

    def test_numbers_go_on(self):
        self.assertEqual(unique_slug("News", {"news", "news-2", "news-3"}), "news-4")

    def test_a_gap_is_used(self):
        self.assertEqual(unique_slug("News", {"news", "news-3"}), "news-2")
"""
        },
        n_visible=2,
        n_hidden=3,
    ),
    RepositoryTask(
        id="cache",
        issue="The cache throws away things I read all the time: reading should count as use. And putting a key "
        "that is there already into a full cache should not cost another one its place.",
        files={
            "store/__init__.py": "",
            "store/cache.py": _CACHE,
            "tests/__init__.py": "",
            "tests/test_cache.py": _CACHE_TEST,
        },
        fixed={
            "store/cache.py": _with(
                _with(
                    _CACHE,
                    "        return self.values.get(key, default)\n",
                    "        if key not in self.values:\n            return default\n"
                    "        self.values[key] = self.values.pop(key)\n        return self.values[key]\n",
                ),
                "        if len(self.values) >= self.size:\n",
                "        self.values.pop(key, None)\n        if len(self.values) >= self.size:\n",
            )
        },
        hidden={
            "tests/test_hidden.py": """import unittest
from store.cache import Cache


class HiddenTest(unittest.TestCase):
    def test_reading_is_use(self):
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        cache.get("a")
        cache.put("c", 3)
        self.assertEqual((cache.get("a"), cache.get("b")), (1, None))

    def test_a_key_put_again_costs_nobody(self):
        cache = Cache(2)
        cache.put("a", 1)
        cache.put("b", 2)
        cache.put("b", 3)
        self.assertEqual((cache.get("a"), cache.get("b")), (1, 3))

    def test_nothing_is_a_value(self):
        cache = Cache(1)
        cache.put("a", None)
        self.assertIsNone(cache.get("a", 5))
"""
        },
        n_visible=1,
        n_hidden=3,
    ),
    RepositoryTask(
        id="log",
        issue="Reading a log stops with a KeyError at lines such as `warn disk full` or lines without a level. "
        "Levels should be known in any case, WARN should mean WARNING, and a line without a known level "
        "belongs to the message before it, joined by a line break (or is left out when there is none, or that"
        " one was left out).",
        files={
            "logs/__init__.py": "",
            "logs/levels.py": _LEVELS,
            "logs/reading.py": _LOG,
            "tests/__init__.py": "",
            "tests/test_reading.py": _LOG_TEST,
        },
        fixed={
            "logs/levels.py": _with(_LEVELS, '"WARNING": 2,', '"WARN": 2, "WARNING": 2,'),
            "logs/reading.py": _with(
                _with(_LOG, "    found = []\n", "    found, kept = [], False\n"),
                "        if RANK[name] >= RANK[level]:\n            found.append(message)\n",
                "        rank = RANK.get(name.upper())\n        if rank is None:\n            if kept:\n"
                '                found[-1] += "\\n" + line\n            continue\n'
                "        kept = rank >= RANK[level.upper()]\n        if kept:\n            found.append(message)\n",
            ),
        },
        hidden={
            "tests/test_hidden.py": """import unittest
from logs.reading import at_least


class HiddenTest(unittest.TestCase):
    def test_case_and_short_names(self):
        self.assertEqual(at_least(["warn disk", "Error b", "info c"], "warning"), ["disk", "b"])

    def test_lines_that_go_on(self):
        self.assertEqual(at_least(["ERROR a", "  at line 3", "INFO b", "  more"], "ERROR"), ["a\\n  at line 3"])

    def test_nothing_before(self):
        self.assertEqual(at_least(["lost", ""], "DEBUG"), [])
"""
        },
        n_visible=1,
        n_hidden=3,
    ),
)


def repository_task(name: str) -> RepositoryTask:
    """The task of that id. LabError when there is none."""
    for task in TASKS:
        if task.id == name:
            return task
    raise LabError(f"There is no repository task {name!r}.", f"There are {', '.join(task.id for task in TASKS)}.")
