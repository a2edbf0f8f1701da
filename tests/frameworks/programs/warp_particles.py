"""Warp: particles on the device, and a kernel that Warp compiles. Each step keeps their positions, until the
card is full. Prints the number of steps."""

import warp

COUNT = 2_000_000


@warp.kernel
def move(positions: warp.array(dtype=warp.vec3), velocity: warp.vec3):
    positions[warp.tid()] += velocity


def kept_positions(device):
    return warp.empty(COUNT, dtype=warp.vec3, device=device)


device = warp.get_device("cuda:0")
warp.set_mempool_enabled(device, False)
history = []
try:
    while True:
        scratch = warp.empty(COUNT, dtype=float, device=device)
        history.append(kept_positions(device))
        warp.launch(move, dim=COUNT, inputs=[history[-1], warp.vec3(1.0, 0.0, 0.0)], device=device)
        del scratch
except RuntimeError as error:
    print(error)
print(len(history))
