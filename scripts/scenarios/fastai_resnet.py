"""fastai's vision_learner with resnet34: trains, unfreezes, changes the image size, trains again in the same
process, then predicts. --forget deletes the first learner and empties the cache between the two sizes."""

import gc
import pathlib
import sys
import tempfile

import torch
from fastai.vision.all import (
    CategoryBlock,
    DataBlock,
    ImageBlock,
    PILImage,
    RandomSplitter,
    Resize,
    resnet34,
    vision_learner,
)

IMAGES = 96


def pictures():
    folder = pathlib.Path(tempfile.mkdtemp())
    for number in range(IMAGES):
        PILImage.create(torch.randint(256, (300, 300, 3), dtype=torch.uint8)).save(
            folder / f"{'cat' if number % 2 else 'dog'}_{number}.png"
        )
    return folder


def loaders(folder, size):
    block = DataBlock(
        blocks=(ImageBlock, CategoryBlock),
        get_items=lambda path: sorted(path.glob("*.png")),
        get_y=lambda path: path.name.split("_")[0],
        splitter=RandomSplitter(seed=1),
        item_tfms=Resize(size),
    )
    return block.dataloaders(folder, bs=32, num_workers=0, device="cuda")


def train(folder, size):
    learn = vision_learner(loaders(folder, size), resnet34, pretrained=False)
    with learn.no_bar(), learn.no_logging():
        learn.fit_one_cycle(1)
        learn.unfreeze()
        learn.fit_one_cycle(1)
    return learn


def main():
    torch.manual_seed(1)
    folder = pictures()
    learn = train(folder, 128)
    if "--forget" in sys.argv:
        learn = None
        gc.collect()
        torch.cuda.empty_cache()
    learn = train(folder, 288)
    with learn.no_bar(), learn.no_logging():
        learn.get_preds()


if __name__ == "__main__":
    main()
