"""``python -m tests.surface [NAME …]`` writes the texts anew; read the difference first."""

from __future__ import annotations

import sys

from tests.surface.agreed import MADE, agree

for name in sys.argv[1:] or MADE:
    sys.stdout.write(f"{agree(name)}\n")
