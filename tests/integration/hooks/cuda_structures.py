"""CUDA's structures as bytes: valid arguments of memory calls."""

MIB = 2**20


def pack(*numbers):
    """Numbers as 4 (int) or 8 (tuple of one) bytes."""
    return b"".join(
        n[0].to_bytes(8, "little") if isinstance(n, tuple) else (n & 0xFFFFFFFF).to_bytes(4, "little")
        for n in numbers
    )


POOL = pack(1, 0, 1, 0, (0,), (0,)) + bytes(56)
SHARED_POOL = pack(1, 1, 1, 0, (0,), (0,)) + bytes(56)
PHYSICAL = pack(1, 1, 1, 0) + bytes(64)
IMAGE = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n\0"
ARRAY = pack((64,), (16,), 0x20, 4)
ARRAY_3D = pack((64,), (16,), (0,), 0x20, 4, 0, 0)
CHANNELS = pack(32, 32, 32, 32, 2)
ALLOC_NODE = POOL + pack((0,), (0,), (MIB,), (0,))
LOCATION = pack(1, 0)
MULTICAST = pack(1, 0, (2 * MIB,), (0,), (0,))
EXTERNAL_BUFFER = pack((0,), (4096,), 0) + bytes(64)
ACCESS = pack(1, 0, 3)
