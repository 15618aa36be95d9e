"""What an operator call costs in Python, above the kernels it calls: microseconds per call on tiny tensors.

    python -m benchmarks.overhead [--json FILE] [--only TEXT] [--calls N]

Values are computed at once in the first table (MSADAPTER_EAGER=1). The kernels a call makes are noted down once, with their
arguments, and timed alone; the rest is schema, dispatch, promotion, views, recording and wrapping. The second table times calls
that are only noted, as in every training step but the first.
"""
import argparse
import json
import sys
import time
from pathlib import Path

SETUP = """
import torch, torch.nn as nn, torch.nn.functional as F
x, y = torch.rand(8, 8), torch.rand(8, 8)
i, g = torch.randint(0, 8, (8,)), torch.rand(8, 8).requires_grad_()
b, w, e, img, k = torch.rand(8), torch.rand(4, 8), torch.rand(16, 4), torch.rand(1, 2, 8, 8), torch.rand(3, 2, 3, 3)
lin, gamma, beta = nn.Linear(8, 8), torch.ones(8), torch.zeros(8)
"""
#: what is called; the variants with `g` are recorded on the tape
CALLS = (
    "x + y", "x + 1.0", "x * y", "g * y", "g + 1.0", "x.add_(y)", "x / 2", "x > 0.5", "torch.relu(x)", "torch.relu(g)",
    "torch.exp(x)", "x.sum()", "g.sum()", "x.mean(dim=1)", "x.max(dim=1)", "x.argmax(1)", "x @ y", "g @ y",
    "F.linear(x, w)", "lin(x)", "x.view(4, 16)", "x.t()", "x.unsqueeze(0)", "x[0]", "x[:, 1:3]", "x[i]", "g[1:3]",
    "x.masked_fill(x > 2, 0.0)", "torch.cat([x, y])", "torch.stack([x, y])", "x.chunk(2)", "x.reshape(-1)",
    "x.to(torch.float64)", "x.clone()", "x.detach()", "F.softmax(x, -1)", "F.cross_entropy(x, i)",
    "F.layer_norm(x, (8,), gamma, beta)", "F.gelu(x)", "F.embedding(i, e)", "F.dropout(x, 0.5)", "F.conv2d(img, k)",
    "F.max_pool2d(img, 2)", "torch.zeros(8)", "torch.arange(8)", "torch.tensor(1.0)", "torch.randn(8)", "b[0].item()",
    "x.shape", "x.size(0)",
)


#: a step of a chain that is recorded and computed late; how many operators it calls
LATE = (("torch.relu(h)", 1), ("h * y", 1), ("h + 1.0", 1), ("h @ y", 1), ("torch.tanh(h)", 1), ("h.t()", 1),
        ("h.view(4, 16).view(8, 8)", 2), ("F.linear(h, y)", 1), ("F.linear(h, y, b)", 1), ("F.gelu(h)", 1),
        ("F.layer_norm(h, (8,), gamma, beta)", 1))


def late_calls(scope, length=200):
    """Best microseconds per operator of chains that are noted and then differentiated, by call."""
    import torch

    for text, operators in LATE:
        step, best = eval(f"lambda h: {text}", scope), float("inf")
        for _ in range(7):
            h = torch.rand(8, 8).requires_grad_()
            start = time.perf_counter()
            for _ in range(length):
                h = step(h)
            best = min(best, time.perf_counter() - start)
            h.sum().backward()
        yield text, best / length / operators * 1e6


def per_call(function, calls):
    """Best microseconds per call of a function over five rounds."""
    function()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6


class Notebook:
    """The kernels computed while it is open: bound calls that do the same again."""

    WAYS = ("compute", "_on_host")  # a primitive computes by MindSpore, or on the host

    def __init__(self):
        from msadapter_hook.tape import Primitive
        self.primitive, self.calls = Primitive, []

    def __enter__(self):
        self.run = {way: getattr(self.primitive, way) for way in self.WAYS}

        def noted(primitive, inputs, attributes, on_mindspore):
            if on_mindspore:  # else the host's way is noted
                self.calls.append(("compute", primitive, inputs, attributes, on_mindspore))
            return self.run["compute"](primitive, inputs, attributes, on_mindspore)

        def noted_on_host(primitive, inputs, attributes, keep):
            self.calls.append(("_on_host", primitive, inputs, attributes, keep))
            return self.run["_on_host"](primitive, inputs, attributes, keep)
        self.primitive.compute, self.primitive._on_host = noted, noted_on_host
        return self

    def __exit__(self, *_):
        for way, run in self.run.items():
            setattr(self.primitive, way, run)

    def replay(self):
        for way, primitive, inputs, attributes, how in self.calls:
            self.run[way](primitive, inputs, attributes, how)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the calls that contain this")
    parser.add_argument("--calls", type=int, default=300)
    args = parser.parse_args()

    from msadapter_hook import install, settings
    settings.export(origin="benchmark", ENABLE_BACKWARD="1", MSADAPTER_EAGER="1")
    install()
    scope, results = {}, {}
    exec(SETUP, scope)
    print("| call | µs | kernels | µs in kernels | overhead µs |\n| --- | --- | --- | --- | --- |")
    for text in CALLS:
        if args.only not in text:
            continue
        call = eval(f"lambda: {text}", scope)
        try:
            with Notebook() as notes:
                call()
            total, bare = per_call(call, args.calls), per_call(notes.replay, args.calls) if notes.calls else 0.0
        except (NotImplementedError, AttributeError) as e:
            results[text] = {"error": str(e)}
            print(f"| `{text}` | {type(e).__name__} | | | |")
            continue
        results[text] = {"us": total, "kernels": len(notes.calls), "kernel_us": bare, "overhead_us": total - bare}
        print(f"| `{text}` | {total:.1f} | {len(notes.calls)} | {bare:.1f} | {total - bare:.1f} |", flush=True)
    rows = [r["overhead_us"] for r in results.values() if "overhead_us" in r]
    print(f"\nmedian overhead {sorted(rows)[len(rows) // 2]:.1f} µs over {len(rows)} calls")
    from msadapter_hook.tape import late
    late.state.enabled = True
    print("\n| late call | µs per operator |\n| --- | --- |")
    for text, us in late_calls(scope):
        if args.only in text:
            results["late: " + text] = {"us": us}
            print(f"| `{text}` | {us:.1f} |", flush=True)
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1) + "\n")
    return int(any("error" in r for r in results.values()))


if __name__ == "__main__":
    sys.exit(main())
