"""Trains two models one after the other in one process. Between them, --forget deletes the first model and
its optimizer, and --empty-cache calls gc.collect() and empty_cache()."""

import gc
import sys

import torch
from training import optimizer_of, small_gpt, text, train_step


def main():
    torch.manual_seed(1)
    model = small_gpt(layers=4, width=768)
    optimizer = optimizer_of(model)
    for _ in range(2):
        train_step(model, optimizer, text(8, 512))
    if "--forget" in sys.argv:
        del optimizer
        model = None
    if "--empty-cache" in sys.argv:
        gc.collect()
        torch.cuda.empty_cache()
    # Without --forget the old optimizer keeps the old model alive while the new one is built.
    model = small_gpt(layers=8, width=512)
    second = optimizer_of(model)
    for _ in range(2):
        train_step(model, second, text(8, 512))


if __name__ == "__main__":
    main()
