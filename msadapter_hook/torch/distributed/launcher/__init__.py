# torch.distributed.launcher: functions in several processes, as torchrun starts programs.
from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
