"""msadapter_hook/ops/aten_schemas.txt from PyTorch: the schemas of its operators, as `torch.ops.aten` names them.

    python tests/record/aten.py        (with a Python that has PyTorch)

One schema a line, `-` before it where the operator is made of others before any dispatch in Python sees it, else `+`.
"""

import pathlib
import re

import torch

FILE = pathlib.Path(__file__).resolve().parents[2] / "msadapter_hook" / "ops" / "aten_schemas.txt"
LEFT_OUT = re.compile(  # by names of dimensions, into given tensors, of the interpreter of scripts
    r"Dimname|\bout\b|\*, [^)]*Tensor\(a!|\bt\[\]|\bDict\(|__torch__")
ELSEWHERE = re.compile(  # of libraries, devices and layouts of their own
    r"quantize|fbgemm|miopen|cudnn|mkldnn|_cuda|cutlass|sparse|_nested|_foreach|_fused|_fake|^(_test|_jagged|_convert_weight|_weight_int|"
    r"_dyn_quant|_cslt|_padded|_amp|_use_|_make_|_debug|_print|_mps|_xnnpack|_thnn|_flash|_efficient|_triton|sym_|_functional|"
    r"_reinterpret|_assert|_c10d|list|Bool|str|len|get|format|[A-Z])")


def lines():
    """The schemas of operators with tensors, in the order of their names."""
    for schema in sorted(torch._C._jit_get_all_schemas(), key=lambda s: (s.name, s.overload_name)):
        text = str(schema)
        if (not schema.name.startswith("aten::") or "Tensor" not in text or LEFT_OUT.search(text)
                or ELSEWHERE.search(schema.name.removeprefix("aten::"))):
            continue
        name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        try:
            implicit = torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
        except RuntimeError:  # of the interpreter of scripts only
            continue
        yield ("-" if implicit else "+") + text.removeprefix("aten::").replace("SymInt", "int")


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n")
    print(FILE)
