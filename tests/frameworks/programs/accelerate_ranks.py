"""Started by torchrun: a small training with accelerate, and its collectives of Python objects."""

import accelerate
import torch
from accelerate.utils import gather_object


def main():
    accelerator = accelerate.Accelerator()
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 256)), 8)
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
