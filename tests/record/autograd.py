"""Records what real PyTorch does in tests/autograd/programs: python tests/record/autograd.py PYTHON_WITH_TORCH"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    if sys.argv[1] == "--inside":
        sys.path.insert(0, str(HERE / "autograd"))
        import programs_case

        programs = sorted((HERE / "autograd" / "programs").glob("*.py"))
        print(json.dumps({p.stem: programs_case.run(str(p)) for p in programs}, indent=1))
    else:
        made = subprocess.run([sys.argv[1], __file__, "--inside"], check=True, capture_output=True, text=True).stdout
        (HERE / "goldens" / "autograd.json").write_text(made[made.index("{\n"):])
