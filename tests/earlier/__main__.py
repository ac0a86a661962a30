"""``python -m tests.earlier [NAME …]`` writes the workspaces anew, with the code that there is now.

They show that later code reads what earlier code wrote, so they are written before a change of the code that
reads them, and never to make a test pass.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.earlier.packing import pack
from tests.earlier.writing import WRITTEN, write

for name in sys.argv[1:] or WRITTEN:
    with TemporaryDirectory() as folder:
        facts = write(name, Path(folder))
        for file in pack(name, Path(folder), facts):
            sys.stdout.write(f"{file}: {file.stat().st_size:,} bytes\n")
