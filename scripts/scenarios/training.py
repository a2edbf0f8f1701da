"""Shared by the scenarios' programs: a small GPT, and the steps of a training."""

import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "demos"))
from gpt import GPT, VOCABULARY

__all__ = ["GPT", "VOCABULARY", "optimizer_of", "small_gpt", "text", "train_step"]


def small_gpt(layers=4, width=512, max_length=512):
    return GPT(layers, width, max_length).cuda()


def optimizer_of(model):
    return torch.optim.AdamW(model.parameters(), lr=3e-4)


def text(batch, length):
    return torch.randint(VOCABULARY, (batch, length + 1)).cuda()


def train_step(model, optimizer, tokens):
    loss = model(tokens[:, :-1], tokens[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
