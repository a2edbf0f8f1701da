"""Weights of 270 MiB are put into cached segments of 530 MiB and prevent their release."""

from common import MIB, tensor

FIELD = {
    "thread": "vllm-project/vllm#41268",
    "finding": "each 270 MiB weight is split off a cached 530 MiB segment and prevents its "
    "release. The remainder of 260 MiB serves no request. A max_split_size_mb "
    "during loading avoids it",
    "card": "32GiB,context=0",
    "says": "stitchable",
    "culprit": "convert_w2",
    "remedies": ["max_split_size_mb:64", "max_split_size_mb:512"],
}
LAYERS = 24


def convert_w13():
    return tensor(530 * MIB)


def convert_w2():
    return tensor(270 * MIB)


w13 = [tensor(530 * MIB) for _ in range(LAYERS)]
for layer in range(LAYERS):
    w13[layer] = convert_w13()
w2 = []
for layer in range(LAYERS):
    scratch = convert_w13()
    del scratch
    w2.append(convert_w2())
cache = [tensor(520 * MIB) for _ in range(18)]
