# torch.distributed.run: `torchrun`; the launcher itself is msadapter_hook.launch.
import sys

from msadapter_hook import launch as _launch

__all__ = ["get_args_parser", "main", "parse_args", "run"]


def get_args_parser():
    """The parser of torchrun's command line. Source: PyTorch, torch.distributed.run.get_args_parser."""
    return _launch.parser()


def parse_args(args):
    return get_args_parser().parse_args(args)


def run(args):
    """Start what a parsed command line says, and wait. SystemExit with the status where a worker fails."""
    status = _launch.run(_launch.job_of(args))
    if status:
        sys.exit(status)


def main(args=None):
    """torchrun. Source: PyTorch, torch.distributed.run.main."""
    status = _launch.main(args)
    if status:
        sys.exit(status)


if __name__ == "__main__":
    main()
