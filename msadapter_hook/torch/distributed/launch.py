# torch.distributed.launch: the older spelling of torchrun, which tells programs their rank by --local-rank unless --use-env is given.
import sys

from msadapter_hook import launch as _launch

__all__ = ["main"]


def main(args=None):
    """Start a program in several processes. Source: PyTorch, torch.distributed.launch.main."""
    status = _launch.main(args, launch=True)
    if status:
        sys.exit(status)


if __name__ == "__main__":
    main()
