"""Record what real PyTorch shows in the sessions of tests/layouts: `python tests/record/layouts.py [session …]` under an interpreter
that has it."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "layouts"))
import sessions

sessions.GOLDENS.mkdir(parents=True, exist_ok=True)
for name in sys.argv[1:] or sessions.names():
    lines = [f"{json.dumps(line)}: {json.dumps(seen)}" for line, seen in sessions.run(name).items()]
    (sessions.GOLDENS / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(name, len(lines))
