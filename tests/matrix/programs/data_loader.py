"""Samples of several lengths from a DataLoader, copied in advance on a separate stream."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.zeros(1000 + 37 * index * index % 4000, 64)


def together(samples):
    return nn.utils.rnn.pad_sequence(samples, batch_first=True)


copies = torch.cuda.Stream()
with torch.device("cuda"):
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64))
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(Samples(), batch_size=8, num_workers=1, collate_fn=together, pin_memory=True)
for _ in range(2):
    for samples in loader:
        with torch.cuda.stream(copies):
            batch = samples.cuda(non_blocking=True)
        torch.cuda.current_stream().wait_stream(copies)
        batch.record_stream(torch.cuda.current_stream())
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
