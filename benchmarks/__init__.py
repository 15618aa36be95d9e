"""Measurements: training steps, scaling, overhead and operators. Each module runs as `python -m benchmarks.NAME`."""
