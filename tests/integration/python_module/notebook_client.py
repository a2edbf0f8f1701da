"""A notebook without a browser: runs cells in a real IPython shell and prints their output.

After each cell it prints the change of memory by PyTorch's own account, as "truth: ...".
"""

import torch
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="nocolor")


def run(cell):
    before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    shell.run_cell(cell, store_history=True)
    after = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    print(f"truth: {after[0] - before[0]:+,d} {after[1] - before[1]:+,d}", flush=True)


run("%load_ext fragtrace")
run("import torch")
run("x = torch.empty(1 << 20, device='cuda')")
run("# a comment first\nmodel = torch.nn.Linear(1024, 1024).cuda()\nviews = [x[:10], x[5:]]")
run("x.sum()")
run("""
class Trainer:
    def __init__(self):
        self.ema = torch.empty(3 << 20, device='cuda')
    def closure(self):
        kept = torch.empty(5 << 20, device='cuda')
        return lambda: kept
trainer = Trainer()
keep = trainer.closure()
""")
run("""
def step(n):
    h = torch.empty(n, device='cuda')
    return torch.empty(1 << 40, device='cuda')
step(16 << 20)
""")
print("== the traceback is let go")
run("%fragtrace forget")
run("%fragtrace report")
print("== caught")
run("""
try:
    step(1 << 20)
except torch.OutOfMemoryError:
    pass
""")
print("== off")
run("%fragtrace off")
run("y = torch.empty(1 << 20, device='cuda')")
run("%fragtrace on")
run("%fragtrace maybe")
run("%fragtrace")
print("== kept")
run("""
net = torch.nn.Linear(1024, 1024, bias=False).cuda()
optimizer = torch.optim.Adam(net.parameters())
batches = []
""")
run("""
for _ in range(2):
    batch = torch.ones(1024, 1024, device='cuda')
    batches.append(batch)
    net(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
alias = x
""")
run("torch.ones(1 << 20, device='cuda')")
run("loss = (net(batch).exp() * 2).sum()")
run("small = torch.ones(10, device='cuda')")
run("""
numbers = list(range(30_000))
several = [torch.ones(1 << 18, device='cuda') for _ in range(8)]
""")
run("again = torch.ones(1 << 19, device='cuda')")
run("from fragtrace import kept; kept.MOST_SECONDS = -1")
run("not_found = torch.ones(1 << 19, device='cuda')")
print("== everything is freed")
run("del net, optimizer, batches, batch, alias, loss, small, numbers, several, again, not_found")
run("del x, model, views, trainer, keep, y")
run("%reset -f out")
run("import gc; gc.collect()")
print(torch.cuda.memory_allocated())
run("%unload_ext fragtrace")
run("z = torch.empty(1 << 20, device='cuda')")
