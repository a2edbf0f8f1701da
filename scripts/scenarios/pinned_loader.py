"""Batches of 33 MiB from a data loader. --pin: the loader uses pinned memory. --keep: the program keeps the
last batches in host memory."""

import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, index):
        return torch.zeros(3, 600, 600)


def main():
    torch.zeros(1).cuda()
    kept = []
    for batch in DataLoader(Images(), batch_size=8, pin_memory="--pin" in sys.argv):
        batch.cuda(non_blocking=True).mul_(2)
        if "--keep" in sys.argv:
            kept.append(batch)
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
