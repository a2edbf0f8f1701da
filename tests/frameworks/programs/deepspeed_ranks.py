"""Started by torchrun: small trainings with DeepSpeed. The arguments are the stages of ZeRO."""

import os
import sys

import deepspeed
import torch


def train(stage):
    model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(4)])
    engine, _, _, _ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        config={
            "train_micro_batch_size_per_gpu": 8,
            "gradient_accumulation_steps": 1,
            "optimizer": {"type": "AdamW", "params": {"torch_adam": True}},
            "bf16": {"enabled": True},
            "zero_optimization": {"stage": stage},
        },
    )
    for _ in range(3):
        loss = engine(torch.randn(8, 256, device=engine.device, dtype=torch.bfloat16)).square().mean()
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
