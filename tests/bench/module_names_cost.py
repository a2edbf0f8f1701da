"""Measures what fragtrace.name_modules() adds to a recorded training step of a small GPT.

On the virtual GPU kernels do nothing, so a step consists of allocations and Python: the worst case. One
process runs steps without and with the hooks in turn. The ratio is the median over the rounds, of the
processor time of the thread that runs the forward pass and starts the backward pass.

    module_names_cost.py --build build --python .venv/bin/python [--rounds 15]
"""

import argparse
import os
import pathlib
import subprocess
import tempfile

CLIENT = r"""
import statistics, sys, time
import torch
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import fragtrace, gpt

torch.manual_seed(1)
model = gpt.GPT(12, 768, 1024).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
text = torch.randint(1000, (8, 513)).cuda()

def steps(count):
    begin = time.thread_time()
    for _ in range(count):
        loss = model(text[:, :-1], text[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (time.thread_time() - begin) / count

steps(5)
rows = []
for _ in range(int(sys.argv[3])):
    without = steps(5)
    names = fragtrace.name_modules(model)
    rows.append((steps(5), without))
    names.remove()
modules = sum(1 for _ in model.modules())
print(f"{modules} modules; step without names {statistics.median(r[1] for r in rows) * 1e3:.1f} ms, "
      f"with names {statistics.median(r[0] for r in rows) * 1e3:.1f} ms, "
      f"ratio {statistics.median(a / b for a, b in rows):.3f}")
"""


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--build", type=pathlib.Path, required=True)
    options.add_argument("--python", required=True)
    options.add_argument("--rounds", default="15")
    options = options.parse_args()
    source = pathlib.Path(__file__).resolve().parents[2]
    arguments = [source / "preload" / "python", source / "scripts" / "demos", options.rounds]
    with tempfile.TemporaryDirectory() as folder:
        command = [options.build / "bin" / "fragtrace", "run", "--quiet", "--virtual-gpu", "80GiB"]
        command += ["--output", folder, "--", options.python, "-c", CLIENT, *arguments]
        subprocess.run([str(part) for part in command], check=True, env={**os.environ, "TMPDIR": folder})


if __name__ == "__main__":
    main()
