"""A process that uses the card, and children that inherit its environment.

fork, spawn: one child after the parent's first use of the card. grandchild: a child without the card has a
child that uses it. child-first: the child uses the card before the parent. other-rank: the child gets rank 1.
killed: the child kills itself.
"""

import ctypes
import os
import signal
import subprocess
import sys

how = sys.argv[1]


def use_card():
    cuda = ctypes.CDLL("libcudart.so.13")
    address = ctypes.c_void_p()
    if cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(8192)) != 0:
        sys.exit("cudaMalloc failed")


def start(role, **variables):
    return subprocess.Popen(
        [sys.executable, __file__, role], env=os.environ | variables, stdin=subprocess.PIPE, close_fds=True
    )


if how == "child":
    use_card()
elif how == "middle":
    start("child").wait()
elif how == "waits":
    use_card()
    print("used", flush=True)
    sys.stdin.read()
elif how == "killed-child":
    use_card()
    os.kill(os.getpid(), signal.SIGKILL)
elif how == "fork":
    use_card()
    if os.fork() == 0:
        use_card()
        sys.exit()
    os.wait()
elif how == "child-first":
    child = subprocess.Popen(
        [sys.executable, __file__, "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    child.stdout.readline()
    use_card()
    child.communicate()
else:
    use_card()
    role = {"grandchild": "middle", "killed": "killed-child"}.get(how, "child")
    start(role, **({"RANK": "1"} if how == "other-rank" else {})).wait()
