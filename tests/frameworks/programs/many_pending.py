"""20,000 blocks are freed one after the other while another stream uses them, and then allocated again."""

import torch
from common import say, tensor

side = torch.cuda.Stream()
for _ in range(2):
    made = [tensor(4096) for _ in range(20000)]
    for one in made:
        one.record_stream(side)
    del one, made
    torch.cuda.synchronize()
    again = [tensor(4096) for _ in range(20000)]
    del again
say()
