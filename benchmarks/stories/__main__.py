"""Writes the stories to a folder: `python -m benchmarks.stories FOLDER`."""

import sys
from collections import Counter
from pathlib import Path

from benchmarks.stories import write

print(Counter(label.kind for label in write(Path(sys.argv[1]))))
