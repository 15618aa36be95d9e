"""The random state machine: programs of views, writes, gradients, hooks, grad modes and shared memory against a NumPy model.

    python -m tests.property.machine --seed 0 --programs 20000 [--eager] [--runs 3]

prints a summary, and each failing program, made as small as it goes, as a script for PyTorch.
"""

import argparse
import collections
import os
import sys
import time
import traceback

import numpy as np

from tests.property.model import direction
from tests.property.programs import PRELUDE, Drawing

#: the two errors that a gradient may be refused with, where the model knows that a tensor was written to
REFUSALS = ("modified by an inplace operation",)


class Wrong(Exception):
    """A difference between a program and the model."""


class Expectations:
    """What the model says of a program, statement by statement."""

    def __init__(self, program):
        self.states, self.largest = [], 1.0
        self.model = program.simulate(self.note)
        self.valid = self.model is not None
        if self.valid:
            self.largest = self.model.largest

    def note(self, number, model):
        self.states.append({
            "tensors": {n: v.re.copy() for n, v in model.vars.items() if not v.dead},
            "arrays": {n: a.copy() for n, a in model.arrays.items()},
            "grads": {n: model.gathered[r] for n, r in model.leaves.items()},
            "leaves": {n: r for n, r in model.leaves.items()},
            "shapes": {n: v.shape for n, v in model.vars.items()},
            "probes": {k: (kind, row, of, model.seen[k]) for k, (row, kind, of) in model.probes.items()},
            "asked": model.asked, "risky": model.risky})


class Runner:
    """Runs programs against a module `torch`."""

    def __init__(self, torch):
        self.torch = torch
        self.outcomes = collections.Counter()

    def run(self, program, expected):
        """Raises Wrong where the program differs. Gives "ok", or "refused" where backward raised an error that may be."""
        torch = self.torch
        self.tolerance = (1e-9 if not program.double else 2e-4) if program.dtype == "float64" else 2e-3
        if program.dtype == "float32":
            self.tolerance = 4e-6 if not program.double else 5e-4
        self.scale = expected.largest
        env = {}
        exec(compile(PRELUDE, "<prelude>", "exec"), env)
        self.hooks = {}
        env.update(torch=torch, watched={}, retained={}, counting=self.counting, gradients=lambda loss: self.gradients(env, loss),
                   look=lambda t: t.tolist())
        self.leaves = []
        for k, statement in enumerate(program.statements):
            state = expected.states[k]
            self.state = state
            try:
                exec(compile(statement.source(program.dtype), f"<statement {k}>", "exec"), env)
            except Wrong:
                raise
            except Exception as error:
                refused = isinstance(error, RuntimeError) and any(r in str(error) for r in REFUSALS)
                if statement.kind in ("backward", "grad", "second") and refused and state["risky"]:
                    return "refused"
                lines = traceback.format_exc().strip().split("\n")
                raise Wrong(f"statement {k} ({statement.kind}) raised {type(error).__name__}: {str(error)[:300]}\n" + "\n".join(lines[-6:]))
            if statement.kind == "grad":
                self.compare_asked(env["asked"], state)
            if statement.kind in ("backward", "second"):
                self.compare_gradients(env, state)
            if program.every or k == len(program.statements) - 1:
                self.compare_values(env, state, k)
        return "ok"

    def counting(self, key):
        def hook(g):
            have = self.hooks.get(key)
            self.hooks[key] = (1 + (have[0] if have else 0), np.array(g.tolist()) + (have[1] if have else 0))

        return hook

    def gradients(self, env, loss):
        wanted = [env[n] for n, _, _ in self.state["asked"]]
        made = self.torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
        return [(n, None if g is None else np.array(g.tolist())) for (n, _, _), g in zip(self.state["asked"], made)]

    def compare_asked(self, found, state):
        for (n, got), (_, row, right) in zip(found, state["asked"]):
            self.along(f"autograd.grad for {n}", got, row, right)

    def compare_gradients(self, env, state):
        for name, right in state["grads"].items():
            grad = env[name].grad
            self.along(f"{name}.grad", None if grad is None else np.array(grad.tolist()), state["leaves"][name], right)
        for key, (kind, row, of, right) in state["probes"].items():
            if kind == "hook":
                count, total = self.hooks.get(key, (0, None))
                self.along(f"gradients in the hook {key} of {of}", total, row, right)
            elif kind == "retain":
                grad = env["retained"][key].grad
                self.along(f"retained gradient of {of}", None if grad is None else np.array(grad.tolist()), row, right)

    def along(self, what, got, row, right):
        """A gradient, along its direction."""
        if got is None:
            if abs(right) > self.tolerance * self.scale * 10:
                raise Wrong(f"{what} is None, along its direction it has to be {right}")
            return
        along = direction(row, got.shape)
        value = float((got * along).sum())
        size = max(1.0, abs(right), float(np.abs(got).max() if got.size else 0), self.scale)
        if not abs(value - right) <= self.tolerance * size * 8:
            raise Wrong(f"{what} is {got.tolist()}, along {along.tolist()} that is {value}; it has to be {right}")

    def compare_values(self, env, state, k):
        for name, right in state["tensors"].items():
            t = env[name]
            if tuple(t.shape) != right.shape:
                raise Wrong(f"after statement {k} {name} has shape {tuple(t.shape)}, it has to be {right.shape}")
            self.same(f"after statement {k} {name}", np.array(t.tolist()), right)
        for name, right in state["arrays"].items():
            self.same(f"after statement {k} the NumPy array {name}", env[name], right)

    def same(self, what, got, right):
        got = got.reshape(right.shape)
        if not (np.abs(got - right) <= self.tolerance * max(1.0, self.scale)).all():
            raise Wrong(f"{what} is {got.tolist()}, it has to be {np.round(right, 6).tolist()}")

    def check(self, program, runs):
        """None, or what went wrong in one of several runs in a row (the later ones are late)."""
        expected = Expectations(program)
        if not expected.valid:
            return None
        for number in range(runs):
            try:
                outcome = self.run(program, expected)
            except Wrong as wrong:
                return f"run {number + 1}: {wrong}"
            self.outcomes[outcome] += 1
        return None

    def minimise(self, program, runs):
        """The smallest program found that still goes wrong, and how."""
        what, shorter = self.check(program, runs), True
        while shorter:
            shorter = False
            for k in reversed(range(len(program.statements))):
                found = self.check(program.without(k), runs)
                if found is not None:
                    program, what, shorter = program.without(k), found, True
                    break
        return program, what


def script(program, what):
    """A program as a script of its own."""
    lines = [PRELUDE, "", *(f"# {line}" for line in what.split("\n"))]
    for statement in program.statements:
        lines.append(statement.source(program.dtype))
    lines += [f"print({s.out!r}, {s.out})" for s in program.statements if s.out.startswith("t") and s.kind in PRINTED]
    lines += [f"print('{s.out}.grad', {s.out}.grad)" for s in program.statements if s.kind == "create" and s.a[1]]
    return "\n".join(lines)


class _Printed:
    def __contains__(self, kind):
        return kind not in ("watch", "hook", "retain", "numpy")


PRINTED = _Printed()


def load(eager, reference=False):
    """The module torch: the served one, or (`reference`) the one that is installed."""
    if eager:
        os.environ["MSADAPTER_EAGER"] = "1"
    if not reference:
        os.environ.setdefault("ENABLE_BACKWARD", "1")
        import msadapter_hook

        msadapter_hook.install()
    import torch

    return torch


def explore(torch, seed, programs, runs, show=5, stream=sys.stdout, seconds=None):
    """Run random programs; gives (number run, failures)."""
    runner, failures, start = Runner(torch), [], time.time()
    done = 0
    for number in range(programs):
        if seconds is not None and time.time() - start > seconds:
            break
        program = Drawing(f"{seed}:{number}").draw()
        done += 1
        if runner.check(program, runs) is None:
            continue
        small, what = runner.minimise(program, runs)
        failures.append((number, small, what))
        if len(failures) <= show:
            print(f"#### program {number}\n{script(small, what or 'only in the longer program')}\n", file=stream, flush=True)
        elif len(failures) <= 200:
            print(f"#### program {number}: {(what or '?')[:200]}", file=stream, flush=True)
    print(f"{done} programs in {time.time() - start:.0f} s, {runs} runs each: {len(failures)} failed; "
          f"runs: {dict(runner.outcomes)}", file=stream)
    return done, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=20000)
    parser.add_argument("--first", type=int, default=None, help="only this program")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--show", type=int, default=10, help="failures printed as scripts")
    parser.add_argument("--eager", action="store_true", help="no late values")
    parser.add_argument("--reference", action="store_true", help="run the installed PyTorch instead: checks the model")
    given = parser.parse_args()
    torch = load(given.eager, given.reference)
    if given.first is not None:
        program = Drawing(f"{given.seed}:{given.first}").draw()
        print(script(program, str(Runner(torch).check(program, given.runs))))
        return
    _, failures = explore(torch, given.seed, given.programs, given.runs, given.show, seconds=given.seconds)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
