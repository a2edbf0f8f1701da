"""Started by torchrun: a training with accelerate, and its collectives of Python objects."""

import accelerate
import torch
from accelerate.utils import gather_object
from blocks import ROWS, STEPS, WIDTH, blocks


def main():
    accelerator = accelerate.Accelerator()
    model = blocks(6, "cpu")
    rows = torch.randn(accelerator.num_processes * STEPS * ROWS, WIDTH)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), ROWS)
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for (batch,) in data:
        accelerator.backward(model(batch).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    seen = gather_object([f"rank {accelerator.process_index}"])
    assert seen == [f"rank {rank}" for rank in range(accelerator.num_processes)]
    sizes = accelerator.gather(torch.tensor([accelerator.process_index + 5], device=accelerator.device))
    assert sizes.tolist() == [rank + 5 for rank in range(accelerator.num_processes)]
    accelerator.wait_for_everyone()
    print(f"{accelerator.process_index} done\n", end="", flush=True)
    accelerator.end_training()


main()
