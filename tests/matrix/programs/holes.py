"""188 blocks of 9 MiB, every other one freed, then one of 256 MiB."""

from models import MIB, tensor

blocks = [tensor(9 * MIB) for _ in range(188)]
del blocks[1::2]
blocks.append(tensor(256 * MIB))
