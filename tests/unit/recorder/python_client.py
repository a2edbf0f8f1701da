"""Records events from all kinds of Python frames and writes down what their stacks should be.

With a second argument, the function that reports freed code objects is soon removed again.
"""

# Several statements in one line are separate test cases: a frame continues within its line.
# fmt: off

import ctypes
import gc
import importlib
import os
import sys
import tempfile
import threading

client = ctypes.CDLL(None)  # releases the GIL around each call, as frameworks do
holding = ctypes.PyDLL(None)
expected = open(sys.argv[1], "w", encoding="utf-8", errors="replace")
lock = threading.Lock()
numbers = iter(range(1, 1 << 30))


def expect(number):
    frame, rows = sys._getframe(1), []
    while frame is not None and len(rows) < 128:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        rows.append("%s|%s|%d" % (name, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    with lock:
        expected.write("%d\t%s\n" % (number, "\t".join(rows)))


def both(number):
    client.client_record(ctypes.c_uint64(number)), expect(number)


class Model:
    def forward(self, depth):
        if depth:
            return self.forward(depth - 1)
        n = next(numbers)
        return client.client_record(ctypes.c_uint64(n)), expect(n)

    @staticmethod
    def held():
        n = next(numbers); holding.client_record(ctypes.c_uint64(n)), expect(n)


def generator():
    for _ in range(3):
        n = next(numbers)
        client.client_record(ctypes.c_uint64(n)), expect(n)
        yield n


def größe():
    n = next(numbers); client.client_record(ctypes.c_uint64(n)), expect(n)


Model().forward(0)
if client.client_frees_are_told() != 1:
    raise SystemExit("frees of code objects are not told")
if len(sys.argv) > 2:
    client.client_take_our_function_out()
Model().forward(7)
Model().forward(100)  # deeper than the recorder's limit
Model.held()
list(generator())
[both(next(numbers)) for _ in range(3)]
(lambda: both(next(numbers)))()
größe()


def key(value):
    both(next(numbers))
    return value


sorted([3, 1, 2], key=key)

# Code objects that are freed and created again at the same addresses.
for i in range(3000):
    space = {"both": both, "numbers": numbers}
    exec(compile("\n" * (i % 50) + "def f%d(): both(next(numbers))\n" % i, "made-%d-\u4e16.py" % (i % 7),
                 "exec"), space)
    space["f%d" % i]()
    del space
    if i % 500 == 0:
        gc.collect()

# The same, but a quick comparison cannot distinguish them: neither lengths, lines nor ends of names differ.
# Each one is at the same address as the previous one, as far as the interpreter allows.
address = 0
for i in range(500):
    name = "f%04d_with_a_long_common_end_of_its_name" % (i * 7919 % 10000)
    file = "%04d/a-common-file-of-all.py" % (i % 97)
    others = []
    for attempt in range(20):
        made = compile("def %s(): both(next(numbers))\n" % name, file, "exec")
        if id(made.co_consts[0]) == address:
            break
        others.append(made)
    address = id(made.co_consts[0])
    space = {"both": both, "numbers": numbers}
    exec(made, space)
    space[name]()
    space.clear()  # the function is kept alive by its own globals
    del made, others

# The same, different only in their lines.
for i in range(500):
    space = {"both": both, "numbers": numbers}
    exec(compile("def one():\n" + "\n" * (i % 40) + "    both(next(numbers))\n", "lines.py", "exec"), space)
    space["one"]()
    space.clear()

# The same text compiled again and again counts as one code object.
for i in range(300):
    space = {"both": both, "numbers": numbers}
    exec(compile("def again(): both(next(numbers))\nagain()\n", "again.py", "exec"), space)
    kept = space if i % 3 == 0 else None  # at changing addresses

# A module that changes between its reloads.
sys.dont_write_bytecode = True
with tempfile.TemporaryDirectory() as folder:
    sys.path.insert(0, folder)
    for i in range(20):
        with open(os.path.join(folder, "reloaded_module.py"), "w") as file:
            file.write("\n" * (i % 3) + "def work_%02d(both, numbers):\n    both(next(numbers))\nwork = work_%02d\n" % (i, i))
        if i == 0:
            import reloaded_module
        else:
            importlib.invalidate_caches()
            importlib.reload(reloaded_module)
        reloaded_module.work(both, numbers)


# Generators and coroutines resumed from changing places, one while others wait.
def resumed(inner):
    while True:
        both(next(numbers))
        yield next(inner) if inner else None


waiting = [resumed(resumed(None)), resumed(resumed(resumed(None)))]


def resume_here(i):
    next(waiting[i])


def resume_there(i):
    next(waiting[1 - i])


for i in range(40):
    resume_here(i % 2); resume_there(i % 3 % 2)
    next(waiting[0])


class Awaited:
    def __await__(self):
        both(next(numbers))
        yield
        both(next(numbers))


async def coroutine():
    await Awaited(); await Awaited()


for i in range(5):
    coroutines = [coroutine(), coroutine()]
    for step in range(3):
        for each in coroutines:
            try:
                each.send(None)
            except StopIteration:
                pass


# A function whose code is replaced by other code with the same instructions.
def changing():
    both(next(numbers))


if sys.version_info >= (3, 8):
    for i in range(30):
        changing()
        changing.__code__ = changing.__code__.replace(co_name="renamed_%02d" % i, co_firstlineno=1000 + i)
        changing()


# The same callee at the same place, called from changing lines and depths.
def called():
    both(next(numbers))


def from_lines(depth):
    called()
    if depth:
        from_lines(depth - 1)
        called(); from_lines(depth - 2) if depth > 1 else called()
    called()


from_lines(6)

# A long function, whose line table has large steps.
body = "def long():\n" + "".join("    a%d = %d\n" % (i, i) + "\n" * (i % 300) for i in range(400))
space = {"both": both, "numbers": numbers}
exec(compile(body + "    both(next(numbers))\n    x = 1\n", "long.py", "exec"), space)
space["long"]()


def work():
    for _ in range(200):
        both(next(numbers))


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
expected.close()
