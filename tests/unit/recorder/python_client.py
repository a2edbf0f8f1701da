"""Records events from all kinds of Python frames and writes down what their stacks should be."""
import ctypes
import gc
import sys
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
Model().forward(7)
Model().forward(100)  # deeper than is kept
Model.held()
list(generator())
[both(next(numbers)) for _ in range(3)]
(lambda: both(next(numbers)))()
größe()


def key(value):
    both(next(numbers))
    return value


sorted([3, 1, 2], key=key)

# Code objects that come and go at the same addresses.
for i in range(3000):
    space = {"both": both, "numbers": numbers}
    exec(compile("\n" * (i % 50) + "def f%d(): both(next(numbers))\n" % i, "made-%d-\u4e16.py" % (i % 7),
                 "exec"), space)
    space["f%d" % i]()
    del space
    if i % 500 == 0:
        gc.collect()

# A long function: line tables with large steps.
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
