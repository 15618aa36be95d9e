"""What the start-up files (sitecustomize.py, the .pth file) call when the environment mentions the hook."""

import atexit
import functools
import sys


@functools.cache  # several start-up files may ask: the first one decides, and complains
def activate():
    """Install the hook if the environment asks for it. Never raises: a start-up file must not stop Python."""
    try:
        from msadapter_hook import settings
        from msadapter_hook.hook import session

        wanted = settings.reload()
        if wanted.hook_wanted and not session.is_installed():
            session.install()
            if wanted.report:
                report_at_exit()
    except Exception as error:
        print(f"msadapter_hook: the hook is off: {error}", file=sys.stderr)


def report_at_exit():
    """Count from here on, and print the table on stderr when the process ends."""
    from msadapter_hook import report

    report.enable()
    atexit.register(lambda: print(report.table(), file=sys.stderr))
