"""Tasks about tables of numbers and boards."""

from __future__ import annotations

from agentsignals.lab.coding_tasks.relations import always, becomes, idempotent, unchanged
from agentsignals.lab.coding_tasks.task import task

FAMILY = "grids"


def _numbers(rows: list[list[int]]) -> list[int]:
    return sorted(number for row in rows for number in row)


TASKS = (
    task(
        "transpose(rows: list[list[int]]) -> list[list[int]]",
        "Give the columns of a table as rows. All rows are of one length; a table without rows or columns gives `[]`.",
        family=FAMILY,
        visible=[(([[1, 2], [3, 4]],), [[1, 3], [2, 4]]), (([[5]],), [[5]])],
        hidden=[(([[1, 2, 3]],), [[1], [2], [3]]), (([],), []), (([[], []],), []), (([[1], [2]],), [[1, 2]])],
        relations=(
            becomes("order of the rows", lambda rows: (rows[::-1],), lambda out: [row[::-1] for row in out]),
            becomes(
                "the first column again",
                lambda rows: ([row + row[:1] for row in rows],) if rows and rows[0] else None,
                lambda out: out + out[:1],
            ),
        ),
        reference="""
def transpose(rows):
    return [list(column) for column in zip(*rows)]
""",
        wrong="""
def transpose(rows):
    return [[rows[j][i] for j in range(len(rows))] for i in range(len(rows))]
""",
    ),
    task(
        "rotate(rows: list[list[int]], times: int) -> list[list[int]]",
        """Turn a table by 90 degrees clockwise, `times` times; a negative number of times is counter-clockwise. The
        table has at least one row and one column.""",
        family=FAMILY,
        visible=[(([[1, 2], [3, 4]], 1), [[3, 1], [4, 2]]), (([[1, 2]], 1), [[1], [2]])],
        hidden=[
            (([[1, 2], [3, 4]], -1), [[2, 4], [1, 3]]),
            (([[1, 2, 3]], 2), [[3, 2, 1]]),
            (([[7]], 5), [[7]]),
            (([[1, 2]], 0), [[1, 2]]),
        ],
        relations=(
            unchanged("four times more", lambda rows, times: (rows, times + 4)),
            always("the same numbers", lambda out, rows, _t: _numbers(out) == _numbers(rows)),
        ),
        reference="""
def rotate(rows, times):
    for _ in range(times % 4):
        rows = [list(column) for column in zip(*rows[::-1])]
    return rows
""",
        wrong="""
def rotate(rows, times):
    for _ in range(times):
        rows = [list(column) for column in zip(*rows[::-1])]
    return rows
""",
    ),
    task(
        "spiral(rows: list[list[int]]) -> list[int]",
        """Read the numbers of a table (rows of one length) in a clockwise spiral that begins at the top left, going
        right.""",
        family=FAMILY,
        visible=[(([[1, 2], [4, 3]],), [1, 2, 3, 4]), (([[1, 2, 3]],), [1, 2, 3])],
        hidden=[
            (([[1, 2, 3], [8, 9, 4], [7, 6, 5]],), [1, 2, 3, 4, 5, 6, 7, 8, 9]),
            (([],), []),
            (([[1], [2], [3]],), [1, 2, 3]),
            (([[1, 2, 3], [6, 5, 4]],), [1, 2, 3, 4, 5, 6]),
        ],
        relations=(
            always("every number once", lambda out, rows: sorted(out) == _numbers(rows)),
            becomes(
                "all raised", lambda rows: ([[n + 10 for n in row] for row in rows],), lambda out: [n + 10 for n in out]
            ),
        ),
        reference="""
def spiral(rows):
    out, rows = [], [list(row) for row in rows]
    while rows:
        out += rows.pop(0)
        rows = [list(column) for column in zip(*rows)][::-1]
    return out
""",
        wrong="""
def spiral(rows):
    if not rows:
        return []
    out = list(rows[0])
    out += [row[-1] for row in rows[1:]]
    if len(rows) > 1:
        out += rows[-1][-2::-1]
    return out + [row[0] for row in rows[-2:0:-1]]
""",
    ),
    task(
        "count_islands(rows: list[str]) -> int",
        """In the map, `#` is land and every other character water. Count the islands: groups of land joined left,
        right, up or down (not diagonally).""",
        family=FAMILY,
        visible=[((["##.", "..#"],), 2), ((["#"],), 1), ((["..."],), 0)],
        hidden=[
            (([],), 0),
            ((["#.#", "###"],), 1),
            ((["#.", ".#"],), 2),
            ((["###", "#.#", "###"],), 1),
            ((["#.#.#"],), 3),
        ],
        relations=(
            unchanged("upside down", lambda rows: (rows[::-1],)),
            unchanged("water around", lambda rows: ([f".{row}." for row in ["", *rows]],)),
        ),
        reference="""
def count_islands(rows):
    land = {(x, y) for y, row in enumerate(rows) for x, sign in enumerate(row) if sign == "#"}
    islands = 0
    while land:
        islands += 1
        near = [land.pop()]
        while near:
            x, y = near.pop()
            for place in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                if place in land:
                    land.remove(place)
                    near.append(place)
    return islands
""",
        wrong="""
def count_islands(rows):
    islands = 0
    for y, row in enumerate(rows):
        for x, sign in enumerate(row):
            if sign == "#" and row[x - 1:x] != "#" and (y == 0 or rows[y - 1][x:x + 1] != "#"):
                islands += 1
    return islands
""",
    ),
    task(
        "row_sums(rows: list[list[int | None]]) -> list[int | None]",
        """Give the sum of each row's numbers. None stands for a missing number and adds nothing; a row in which all
        are missing, or which is empty, has the sum None.""",
        family=FAMILY,
        visible=[(([[1, 2], [3, None]],), [3, 3]), (([[5]],), [5])],
        hidden=[(([],), []), (([[None, None], []],), [None, None]), (([[0, None], [-1, 1]],), [0, 0])],
        relations=(
            becomes("order of the rows", lambda rows: (rows[::-1],), lambda out: out[::-1]),
            unchanged("a missing number more", lambda rows: ([[*row, None] for row in rows],)),
        ),
        reference="""
def row_sums(rows):
    sums = []
    for row in rows:
        there = [n for n in row if n is not None]
        sums.append(sum(there) if there else None)
    return sums
""",
        wrong="""
def row_sums(rows):
    return [sum(n for n in row if n) or None for row in rows]
""",
    ),
    task(
        "winner(board: list[str]) -> str | None",
        """The board of noughts and crosses has three rows of three characters: `X`, `O` or `.`. Give the sign that
        has three in a row, column or diagonal; None when none has. There is never more than one.""",
        family=FAMILY,
        visible=[((["XXX", "O.O", "..."],), "X"), ((["X.O", ".XO", "..O"],), "O"), ((["...", "...", "..."],), None)],
        hidden=[
            ((["XO.", "OX.", "..X"],), "X"),
            ((["X.O", ".O.", "O.X"],), "O"),
            ((["XOX", "XOO", "OXX"],), None),
            ((["X..", "X..", "X.."],), "X"),
        ],
        relations=(
            unchanged("upside down", lambda board: (board[::-1],)),
            unchanged("mirrored", lambda board: ([row[::-1] for row in board],)),
        ),
        reference="""
def winner(board):
    lines = [*board, *("".join(column) for column in zip(*board))]
    lines += ["".join(board[i][i] for i in range(3)), "".join(board[i][2 - i] for i in range(3))]
    for sign in "XO":
        if sign * 3 in lines:
            return sign
    return None
""",
        wrong="""
def winner(board):
    lines = [*board, *("".join(column) for column in zip(*board))]
    lines.append("".join(board[i][i] for i in range(3)))
    for line in lines:
        if line[0] * 3 == line and line[0] != ".":
            return line[0]
    return None
""",
    ),
    task(
        "drop_empty(rows: list[list[str]]) -> list[list[str]]",
        """Leave out the rows of a table whose cells are all empty (nothing but blanks), and then the columns whose
        cells are all empty. All rows are of one length.""",
        family=FAMILY,
        visible=[(([["a", "b"], ["", ""]],), [["a", "b"]]), (([["x"]],), [["x"]])],
        hidden=[
            (([["a", " "], ["b", ""]],), [["a"], ["b"]]),
            (([["", ""]],), []),
            (([],), []),
            (([["", "q"], [" ", "  "]],), [["q"]]),
        ],
        relations=(
            idempotent(),
            unchanged("an empty row more", lambda rows: ([*rows, ["" for _ in rows[0]]],) if rows else None),
        ),
        reference="""
def drop_empty(rows):
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    keep = [any(cell.strip() for cell in column) for column in zip(*rows)]
    return [[cell for cell, kept in zip(row, keep) if kept] for row in rows]
""",
        wrong="""
def drop_empty(rows):
    return [row for row in rows if any(row)]
""",
    ),
    task(
        "mirror(rows: list[str]) -> list[str]",
        """Mirror a drawing left to right. Rows may differ in length: shorter ones are filled with blanks at their
        end first. The brackets `(` and `)`, `<` and `>`, `/` and `\\` are exchanged.""",
        family=FAMILY,
        visible=[((["ab", "cd"],), ["ba", "dc"]), ((["/_"],), ["_\\"])],
        hidden=[((["abc", "d"],), ["cba", "  d"]), (([],), []), ((["(>"],), ["<)"]), ((["", "x"],), [" ", "x"])],
        relations=(
            unchanged(
                "no wider with blanks there",
                lambda rows: ([row.ljust(max(map(len, rows))) for row in rows],) if rows else None,
            ),
            becomes("upside down", lambda rows: (rows[::-1],), lambda out: out[::-1]),
        ),
        reference="""
def mirror(rows):
    width = max(map(len, rows), default=0)
    other = str.maketrans("()<>/" + chr(92), ")(><" + chr(92) + "/")
    return [row.ljust(width)[::-1].translate(other) for row in rows]
""",
        wrong="""
def mirror(rows):
    other = str.maketrans("()<>/" + chr(92), ")(><" + chr(92) + "/")
    return [row[::-1].translate(other) for row in rows]
""",
    ),
)
