"""`python -m msadapter_hook`: see hook/runner.py."""

import sys

from msadapter_hook.hook.runner import main

sys.exit(main())
