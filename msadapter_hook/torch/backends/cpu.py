"""torch.backends.cpu: which instructions the processor has."""

import functools as _functools

__all__ = ["get_cpu_capability"]


@_functools.lru_cache(None)
def get_cpu_capability():
    """"DEFAULT", "AVX2" or "AVX512". Source: PyTorch, torch.backends.cpu.get_cpu_capability."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="ignore") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        return "DEFAULT"
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq", "fma"} <= set(flags):
        return "AVX512"
    return "AVX2" if {"avx2", "fma"} <= set(flags) else "DEFAULT"
