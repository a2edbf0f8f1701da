"""Started by torchrun: trainings with DeepSpeed. The arguments are the stages of ZeRO."""

import os
import sys

import deepspeed
import torch
from blocks import ROWS, STEPS, WIDTH, blocks

BUCKET = 4 * 2**20  # elements; the default of 5e8 would decide alone which card is enough


def train(stage):
    model = blocks(6, "cpu")
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        config={
            "train_micro_batch_size_per_gpu": ROWS,
            "gradient_accumulation_steps": 1,
            "optimizer": {"type": "AdamW", "params": {"torch_adam": True}},
            "bf16": {"enabled": True},
            "zero_optimization": {"stage": stage, "reduce_bucket_size": BUCKET},
        },
    )
    for _ in range(STEPS):
        batch = torch.randn(ROWS, WIDTH, device=engine.device, dtype=torch.bfloat16)
        loss = engine(batch).square().mean()
        engine.backward(loss)
        engine.step()
    print(f"{engine.global_rank} stage {stage}\n", end="", flush=True)
    engine.destroy()


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    deepspeed.init_distributed("nccl")
    for stage in sys.argv[1:]:
        train(int(stage))
    torch.distributed.destroy_process_group()


main()
