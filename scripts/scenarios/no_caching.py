"""A training to run with PYTORCH_NO_CUDA_MEMORY_CACHING=1: each tensor is then one cudaMalloc."""

import torch
from training import optimizer_of, small_gpt, text, train_step


def main():
    torch.manual_seed(1)
    model = small_gpt()
    optimizer = optimizer_of(model)
    for length in (512, 300, 420, 512):
        train_step(model, optimizer, text(8, length))


if __name__ == "__main__":
    main()
