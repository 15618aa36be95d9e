"""The operators that programs use most, at about 250,000 elements, under the hook and under real PyTorch.

    python -m benchmarks.operators --torch PYTHON [--json FILE] [--only TEXT] [--worst N] [--kernels KIND]

The table is sorted by the ratio to PyTorch (2 threads). Calls that fail are listed; exit status 1 where there are any.
"""

import argparse
import ast
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.train import HERE, environment

SETUP = """
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
x, y, p = torch.randn(500, 500), torch.randn(500, 500), torch.rand(500, 500) + 0.01
z, w1, v = x.clone(), torch.randn(500, 500), torch.randn(500)
b, i, j = x > 0, torch.randint(0, 500, (500, 500)), torch.randint(0, 500, (500,))
i8, c = torch.randint(0, 10, (250_000,)), torch.randint(0, 500, (500,))
a3, b3, seq = torch.randn(16, 125, 125), torch.randn(16, 125, 125), torch.randn(20, 100, 125)
img, k3, kt, k1 = torch.randn(8, 16, 44, 44), torch.randn(16, 16, 3, 3), torch.randn(16, 16, 2, 2), torch.randn(16)
sig, ks = torch.randn(8, 16, 1950), torch.randn(16, 16, 3)
vol, kv = torch.randn(2, 8, 25, 25, 25), torch.randn(8, 8, 3, 3, 3)
mean, var, table, q = torch.zeros(16), torch.ones(16), torch.randn(1000, 125), torch.randn(4, 8, 122, 64)
gain, bias = torch.ones(500), torch.zeros(500)
lin, lstm, gru = nn.Linear(500, 500), nn.LSTM(125, 64), nn.GRU(125, 64)
mha, enc = nn.MultiheadAttention(128, 4, batch_first=True), torch.randn(8, 244, 128)
bn, ln, gn = nn.BatchNorm2d(16), nn.LayerNorm(500), nn.GroupNorm(4, 16)
grid = F.affine_grid(torch.eye(2, 3).expand(8, 2, 3), (8, 16, 44, 44), align_corners=False)
target, prob = torch.rand(500, 500), torch.sigmoid(x)
sq, rhs = x[:200, :200] + 50 * torch.eye(200), torch.randn(200, 200)
"""
#: name in the census of usage -> call; random and in-place calls work on tensors of their own (`z`)
CALLS = {
    # creation and conversion
    "torch.zeros": "torch.zeros(500, 500)",
    "torch.ones": "torch.ones(500, 500)",
    "torch.full": "torch.full((500, 500), 2.0)",
    "torch.empty": "torch.empty(500, 500)",
    "torch.arange": "torch.arange(250_000)",
    "torch.eye": "torch.eye(500)",
    "torch.linspace": "torch.linspace(0, 1, 250_000)",
    "torch.zeros_like": "torch.zeros_like(x)",
    "torch.ones_like": "torch.ones_like(x)",
    "torch.full_like": "torch.full_like(x, 2.0)",
    "Tensor.new_zeros": "x.new_zeros(500, 500)",
    "Tensor.clone": "x.clone()",
    "Tensor.contiguous": "x.t().contiguous()",
    "Tensor.to": "x.to(torch.float64)",
    "Tensor.float": "i.float()",
    "Tensor.long": "x.long()",
    "Tensor.int": "x.int()",
    "Tensor.bool": "x.bool()",
    "Tensor.byte": "p.byte()",
    "Tensor.double": "x.double()",
    "Tensor.half": "x.half()",
    "Tensor.bfloat16": "x.bfloat16()",
    "Tensor.tolist": "v.tolist()",
    "Tensor.item": "v[0].item()",
    # random
    "torch.rand": "torch.rand(500, 500)",
    "torch.randn": "torch.randn(500, 500)",
    "torch.randperm": "torch.randperm(250_000)",
    "torch.randint": "torch.randint(0, 10, (500, 500))",
    "torch.randn_like": "torch.randn_like(x)",
    "Tensor.normal_": "z.normal_()",
    "Tensor.uniform_": "z.uniform_()",
    "torch.bernoulli": "torch.bernoulli(prob)",
    "torch.multinomial": "torch.multinomial(p, 1)",
    "torch.nn.functional.dropout": "F.dropout(x, 0.5)",
    # pointwise
    "Tensor.add": "x + y",
    "Tensor.add scalar": "x + 1.0",
    "Tensor.add row": "x + v",
    "Tensor.sub": "x - y",
    "Tensor.mul": "x * y",
    "Tensor.div": "x / p",
    "Tensor.neg": "-x",
    "Tensor.pow": "x.pow(2)",
    "torch.pow": "torch.pow(p, 1.5)",
    "Tensor.pow tensor": "p ** y",
    "Tensor.abs": "x.abs()",
    "torch.exp": "torch.exp(x)",
    "torch.log": "torch.log(p)",
    "torch.log2": "torch.log2(p)",
    "torch.log1p": "torch.log1p(p)",
    "torch.expm1": "torch.expm1(x)",
    "torch.sqrt": "torch.sqrt(p)",
    "Tensor.rsqrt": "p.rsqrt()",
    "torch.sin": "torch.sin(x)",
    "torch.cos": "torch.cos(x)",
    "torch.tan": "torch.tan(x)",
    "torch.atan": "torch.atan(x)",
    "torch.atan2": "torch.atan2(x, y)",
    "torch.tanh": "torch.tanh(x)",
    "torch.sigmoid": "torch.sigmoid(x)",
    "torch.erf": "torch.erf(x)",
    "torch.floor": "torch.floor(x)",
    "torch.ceil": "torch.ceil(x)",
    "torch.round": "torch.round(x)",
    "torch.sign": "torch.sign(x)",
    "torch.clamp": "torch.clamp(x, -1, 1)",
    "Tensor.reciprocal": "p.reciprocal()",
    "Tensor.square": "x.square()",
    "torch.fmod": "torch.fmod(x, 0.7)",
    "torch.remainder": "torch.remainder(x, 0.7)",
    "Tensor.floor_divide": "i // 7",
    "torch.maximum": "torch.maximum(x, y)",
    "torch.minimum": "torch.minimum(x, y)",
    "torch.where": "torch.where(b, x, y)",
    "Tensor.masked_fill": "x.masked_fill(b, 0.0)",
    "torch.lerp": "torch.lerp(x, y, 0.3)",
    "torch.addcmul": "torch.addcmul(x, y, p)",
    "torch.isnan": "torch.isnan(x)",
    "torch.isfinite": "torch.isfinite(x)",
    "Tensor.eq": "x == y",
    "Tensor.ne": "i != 3",
    "Tensor.gt": "x > y",
    "Tensor.le": "x <= 0.5",
    "Tensor.logical_not": "b.logical_not()",
    "torch.logical_and": "torch.logical_and(b, b)",
    "Tensor.bitwise_and": "i & 7",
    "Tensor.add int": "i + i",
    "Tensor.mul int": "i * 3",
    # in place
    "Tensor.add_": "z.add_(y)",
    "Tensor.mul_": "z.mul_(-1.0)",
    "Tensor.sub_": "z.sub_(y)",
    "Tensor.div_": "z.div_(-1.0)",
    "Tensor.zero_": "z.zero_()",
    "Tensor.fill_": "z.fill_(1.0)",
    "Tensor.copy_": "z.copy_(x)",
    "Tensor.clamp_": "z.clamp_(-1, 1)",
    "Tensor.neg_": "z.neg_()",
    "Tensor.abs_": "z.abs_()",
    "Tensor.floor_": "z.floor_()",
    "Tensor.addcmul_": "z.addcmul_(x, y, value=0.1)",
    "Tensor.lerp_": "z.lerp_(x, 0.1)",
    "Tensor.masked_fill_": "z.masked_fill_(b, 0.0)",
    "Tensor.setitem": "z.__setitem__((slice(None), 3), 1.0)",
    "Tensor.scatter_add_": "z.scatter_add_(1, i, y)",
    # reductions
    "torch.sum": "torch.sum(x)",
    "Tensor.sum dim": "x.sum(0)",
    "Tensor.sum last": "x.sum(-1)",
    "torch.mean": "torch.mean(x)",
    "Tensor.mean dim": "x.mean(dim=1, keepdim=True)",
    "torch.max": "torch.max(x)",
    "Tensor.max dim": "x.max(dim=1)",
    "torch.min": "torch.min(x)",
    "Tensor.min dim": "x.min(dim=0)",
    "Tensor.amax": "x.amax(1)",
    "Tensor.amin": "x.amin(1)",
    "Tensor.argmax": "x.argmax(dim=1)",
    "Tensor.argmin": "x.argmin(dim=1)",
    "Tensor.norm": "x.norm()",
    "Tensor.norm dim": "x.norm(dim=1)",
    "Tensor.std": "x.std()",
    "Tensor.var": "x.var(dim=1)",
    "Tensor.prod": "p.prod(dim=1)",
    "Tensor.all": "b.all()",
    "Tensor.any": "b.any(dim=1)",
    "torch.logsumexp": "torch.logsumexp(x, 1)",
    "Tensor.cumsum": "x.cumsum(1)",
    "Tensor.cumprod": "p.cumprod(1)",
    "torch.median": "torch.median(x)",
    "torch.bincount": "torch.bincount(i8)",
    "torch.histc": "torch.histc(x, 50)",
    "torch.diff": "torch.diff(x)",
    "torch.allclose": "torch.allclose(x, x)",
    "torch.equal": "torch.equal(x, x)",
    "torch.nonzero": "torch.nonzero(b)",
    "torch.unique": "torch.unique(i8)",
    "Tensor.topk": "x.topk(5)",
    "torch.sort": "torch.sort(x)",
    "torch.argsort": "torch.argsort(x)",
    "torch.count_nonzero": "torch.count_nonzero(b)",
    # shapes and indexing
    "Tensor.view": "x.view(-1)",
    "Tensor.reshape": "x.t().reshape(-1)",
    "Tensor.transpose": "x.transpose(0, 1)",
    "Tensor.permute": "img.permute(0, 2, 3, 1).contiguous()",
    "torch.cat": "torch.cat([x, y])",
    "torch.cat dim": "torch.cat([x, y], 1)",
    "torch.stack": "torch.stack([x, y])",
    "Tensor.chunk": "x.chunk(4)",
    "torch.split": "torch.split(x, 100)",
    "Tensor.unbind": "x.unbind()",
    "Tensor.expand": "v.expand(500, 500)",
    "Tensor.repeat": "v.repeat(500, 1)",
    "Tensor.tile": "v.tile(500)",
    "torch.repeat_interleave": "torch.repeat_interleave(v, 500)",
    "Tensor.flip": "x.flip(0)",
    "torch.roll": "torch.roll(x, 3)",
    "Tensor.flatten": "img.flatten(1)",
    "Tensor.squeeze": "x.unsqueeze(0).squeeze(0)",
    "torch.tril": "torch.tril(x)",
    "torch.triu": "torch.triu(x)",
    "torch.diagonal": "torch.diagonal(x)",
    "torch.meshgrid": "torch.meshgrid(v, v, indexing='ij')",
    "Tensor.getitem slice": "x[:, ::2].contiguous()",
    "Tensor.getitem index": "x[j]",
    "Tensor.getitem pairs": "x[j, c]",
    "Tensor.getitem mask": "x[b]",
    "Tensor.gather": "x.gather(1, i)",
    "Tensor.scatter": "x.scatter(1, i, y)",
    "Tensor.index_select": "x.index_select(0, j)",
    "torch.take_along_dim": "torch.take_along_dim(x, i, 1)",
    "torch.masked_select": "torch.masked_select(x, b)",
    "torch.index_add": "torch.index_add(x, 0, j, y)",
    "Tensor.narrow": "x.narrow(0, 10, 100)",
    "torch.as_strided": "torch.as_strided(x, (100, 100), (500, 1))",
    "Tensor.unfold": "x.unfold(1, 5, 5).contiguous()",
    "torch.searchsorted": "torch.searchsorted(torch.linspace(-3, 3, 100), x)",
    # products
    "torch.matmul": "x @ y",
    "torch.mm": "torch.mm(x, y)",
    "Tensor.matmul vector": "x @ v",
    "torch.bmm": "torch.bmm(a3, b3)",
    "torch.einsum": "torch.einsum('bij,bjk->bik', a3, b3)",
    "torch.outer": "torch.outer(v, v)",
    "torch.addmm": "torch.addmm(x, y, w1)",
    "torch.nn.functional.linear": "F.linear(x, w1, v)",
    "torch.nn.Linear": "lin(x)",
    "torch.linalg.inv": "torch.linalg.inv(sq)",
    "torch.linalg.solve": "torch.linalg.solve(sq, rhs)",
    "torch.linalg.svd": "torch.linalg.svd(rhs)",
    "torch.cdist": "torch.cdist(x, y)",
    # activations, normalisation, losses
    "torch.nn.functional.relu": "F.relu(x)",
    "torch.nn.functional.softmax": "F.softmax(x, dim=-1)",
    "torch.softmax dim 0": "torch.softmax(x, 0)",
    "torch.nn.functional.log_softmax": "F.log_softmax(x, dim=1)",
    "torch.nn.GELU": "F.gelu(x)",
    "torch.nn.GELU tanh": "F.gelu(x, approximate='tanh')",
    "torch.nn.SiLU": "F.silu(x)",
    "torch.nn.LeakyReLU": "F.leaky_relu(x)",
    "torch.nn.ELU": "F.elu(x)",
    "torch.nn.Softplus": "F.softplus(x)",
    "torch.nn.Hardtanh": "F.hardtanh(x)",
    "torch.nn.functional.logsigmoid": "F.logsigmoid(x)",
    "torch.nn.functional.mish": "F.mish(x)",
    "torch.nn.functional.glu": "F.glu(x)",
    "torch.nn.functional.normalize": "F.normalize(x, dim=1)",
    "torch.nn.functional.one_hot": "F.one_hot(c, 500)",
    "torch.nn.functional.cosine_similarity": "F.cosine_similarity(x, y)",
    "torch.nn.LayerNorm": "ln(x)",
    "torch.nn.functional.layer_norm": "F.layer_norm(x, (500,), gain, bias)",
    "torch.nn.BatchNorm2d": "bn(img)",
    "torch.nn.functional.batch_norm": "F.batch_norm(img, mean, var)",
    "torch.nn.GroupNorm": "gn(img)",
    "torch.nn.functional.instance_norm": "F.instance_norm(img)",
    "torch.nn.functional.cross_entropy": "F.cross_entropy(x, c)",
    "torch.nn.MSELoss": "F.mse_loss(x, y)",
    "torch.nn.functional.l1_loss": "F.l1_loss(x, y)",
    "torch.nn.functional.smooth_l1_loss": "F.smooth_l1_loss(x, y)",
    "torch.nn.functional.nll_loss": "F.nll_loss(x, c)",
    "torch.nn.functional.binary_cross_entropy": "F.binary_cross_entropy(prob, target)",
    "torch.nn.functional.binary_cross_entropy_with_logits": "F.binary_cross_entropy_with_logits(x, target)",
    "torch.nn.functional.kl_div": "F.kl_div(x, target, reduction='batchmean')",
    "torch.nn.Embedding": "F.embedding(i8[:2000], table)",
    # images and sequences
    "torch.nn.functional.conv2d": "F.conv2d(img, k3, padding=1)",
    "torch.nn.functional.conv2d stride": "F.conv2d(img, k3, k1, stride=2)",
    "torch.nn.functional.conv1d": "F.conv1d(sig, ks)",
    "torch.nn.Conv3d": "F.conv3d(vol, kv)",
    "torch.nn.ConvTranspose2d": "F.conv_transpose2d(img, kt, stride=2)",
    "torch.nn.functional.max_pool2d": "F.max_pool2d(img, 2)",
    "torch.nn.functional.avg_pool2d": "F.avg_pool2d(img, 2)",
    "torch.nn.AdaptiveAvgPool2d": "F.adaptive_avg_pool2d(img, 1)",
    "torch.nn.functional.interpolate": "F.interpolate(img, scale_factor=2)",
    "torch.nn.functional.interpolate bilinear": "F.interpolate(img, scale_factor=0.5, mode='bilinear')",
    "torch.nn.functional.grid_sample": "F.grid_sample(img, grid, align_corners=False)",
    "torch.nn.functional.pad": "F.pad(img, (1, 1, 1, 1))",
    "torch.nn.functional.pad reflect": "F.pad(img, (1, 1, 1, 1), mode='reflect')",
    "torch.nn.functional.unfold": "F.unfold(img, 3)",
    "torch.nn.LSTM": "lstm(seq)",
    "torch.nn.GRU": "gru(seq)",
    "torch.nn.MultiheadAttention": "mha(enc, enc, enc, need_weights=False)",
    "torch.nn.functional.scaled_dot_product_attention": "F.scaled_dot_product_attention(q, q, q)",
    "torch.fft.fft": "torch.fft.fft(x)",
    "torch.fft.rfft": "torch.fft.rfft(x)",
    "torch.stft": "torch.stft(sig[0], 256, return_complex=True, window=torch.ones(256))",
}


def force(result):
    """Make sure that the values are there: an adapter may compute late. Sharing with NumPy costs next to nothing.
    A view is left alone: it has no values of its own, and reading it would time a copy."""
    while isinstance(result, (tuple, list)) and result:
        result = result[0]
    if not hasattr(result, "numpy") or result._base is not None:
        return
    if str(result.dtype) == "torch.bfloat16":  # NumPy has no such type
        result = result[..., :1].float()
    result.detach().numpy()


def microseconds(call):
    """Best time of a call within about 60 ms, after two warm ones."""
    force(call()), force(call())
    best, end = float("inf"), time.perf_counter() + 0.06
    while True:
        start = time.perf_counter()
        force(call())
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best * 1e6


def worker(only):
    """Measure with whatever `import torch` gives; prints one line of JSON."""
    scope, results = {}, {}
    for statement in ast.parse(SETUP).body:
        try:
            exec(ast.unparse(statement), scope)
        except (AttributeError, NotImplementedError, TypeError) as e:  # the calls that need it will fail by name
            print(f"{ast.unparse(statement)}\n    {e}", file=sys.stderr)
    with scope["torch"].no_grad():
        for name, text in CALLS.items():
            if only not in name:
                continue
            try:
                results[name] = microseconds(eval(f"lambda: {text}", scope))
            except Exception as e:  # whatever a missing operator raises: the row says so
                results[name] = f"{type(e).__name__}: {e}".splitlines()[0][:200]
    print("RESULT " + json.dumps(results), flush=True)


def measure(side, python, only, kernels=None):
    command = [
        python,
        *(["-m", "msadapter_hook"] if side == "hook" else []),
        str(Path(__file__)),
        "--worker",
        "--only",
        only,
    ]
    env = {**environment(side, kernels), "PYTHONPATH": str(HERE.parent)}
    if side == "torch":
        env["MSADAPTER_HOOK"] = "0"
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    sys.stderr.write(run.stderr)
    lines = [line for line in run.stdout.splitlines() if line.startswith("RESULT ")]
    if run.returncode or not lines:
        raise SystemExit(f"{side} failed with status {run.returncode}")
    return json.loads(lines[-1].removeprefix("RESULT "))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="interpreter with real PyTorch")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the operators whose name contains this")
    parser.add_argument("--worst", type=int, help="print this many rows only")
    parser.add_argument("--kernels", choices=("host", "mindspore"), help="kernels of the hook (MSADAPTER_KERNELS)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args.only)

    hook = measure("hook", sys.executable, args.only, args.kernels)
    torch = measure("torch", args.torch, args.only) if args.torch else {}
    rows, failed = [], []
    for name, time_us in hook.items():
        reference = torch.get(name)
        if isinstance(reference, str):
            raise SystemExit(f"the call of {name} is wrong, PyTorch says {reference}")
        if isinstance(time_us, str):
            failed.append(f"{name}: {time_us}")
        else:
            rows.append((time_us / reference if reference else 0, name, time_us, reference))
    rows.sort(reverse=True)
    print("| operator | hook µs | PyTorch µs | ratio |\n| --- | --- | --- | --- |")
    for ratio, name, time_us, reference in rows[: args.worst]:
        print(f"| {name} | {time_us:.0f} | " + (f"{reference:.0f} | {ratio:.2f} |" if reference else "– | – |"))
    if torch and rows:
        print(
            f"\nmedian ratio {rows[len(rows) // 2][0]:.2f} over {len(rows)} operators; "
            f"{sum(r[0] <= 1.5 for r in rows)} at 1.5 or less, {sum(r[0] > 5 for r in rows)} above 5"
        )
    if failed:
        print(f"\n{len(failed)} failed:\n" + "\n".join(failed))
    if args.json:
        data = {n: {"hook_us": hook[n], "torch_us": torch.get(n)} for n in hook}
        Path(args.json).write_text(json.dumps(data, indent=1) + "\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
