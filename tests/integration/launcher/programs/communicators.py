"""Uses the card and joins NCCL communicators: communicators.py linked|looked-up SIZE:RANK... [fork].

linked: the functions are found in the program's global scope. looked-up: by dlsym in an opened library.
fork: a child that joins none uses the card, too.
"""

import ctypes
import os
import sys


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def use_card():
    cuda = ctypes.CDLL("libcudart.so.13")
    address = ctypes.c_void_p()
    if cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(8192)) != 0:
        sys.exit("cudaMalloc failed")


def join(number, size, rank, unique):
    communicator = ctypes.c_void_p()
    if number % 3 == 0:
        return nccl.ncclCommInitRank(ctypes.byref(communicator), size, unique, rank)
    if number % 3 == 1:
        return nccl.ncclCommInitRankConfig(ctypes.byref(communicator), size, unique, rank, None)
    return nccl.ncclCommInitRankScalable(
        ctypes.byref(communicator), size, rank, 1, ctypes.byref(unique), None
    )


def join_with_peers(number, size, rank):
    """Joins as one rank. Children that do not use the card join as the others, since all ranks must come."""
    unique = UniqueId()
    if nccl.ncclGetUniqueId(ctypes.byref(unique)) != 0:
        sys.exit("ncclGetUniqueId failed")
    peers = []
    for other in range(size) if 0 <= rank < size else ():
        if other != rank:
            peers.append(os.fork())
            if peers[-1] == 0:
                os._exit(join(number, size, other, unique))
    joined = join(number, size, rank, unique)
    for peer in peers:
        if os.waitpid(peer, 0)[1] != 0:
            sys.exit("a peer did not join")
    return joined


nccl = ctypes.CDLL(None if sys.argv[1] == "linked" else "libnccl.so.2")
for number, pair in enumerate(sys.argv[2:]):
    if pair == "fork":
        if os.fork() == 0:
            use_card()
            sys.exit()
        os.wait()
    else:
        size, rank = map(int, pair.split(":"))
        expected = 0 if 0 <= rank < size else 4
        if (join_with_peers(number, size, rank) == 0) != (expected == 0):
            sys.exit(f"wrong answer for {pair}")
    if number == 1:
        use_card()  # facts before and after the first event
use_card()
