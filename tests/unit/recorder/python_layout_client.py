"""An interpreter whose frame layout differs from the recorder's table. The recorder must notice this."""

import ctypes
import sys

client = ctypes.PyDLL(None)
RIGHT = 0
# Fields of PythonLayout, in its order, that the check compares or follows as pointers.
FIELDS = {
    1: "thread_frame",
    3: "frame_code",
    5: "frame_instruction",
    9: "code_file",
    10: "code_name",
    11: "code_line_table",
}
# Neighbouring fields with similar values: the unqualified name (from 3.11 on), other small integers (before).
ALIKE = {("code_name", -8)}
if sys.version_info < (3, 11):
    del FIELDS[5]


def inner():
    if client.client_check_layout(0, 0) != RIGHT:
        raise SystemExit("the true layout is refused")
    for field, name in FIELDS.items():
        for delta in (-16, -8, 8, 16, 1 << 20, 1 << 28):
            if client.client_check_layout(field, delta) == RIGHT and (name, delta) not in ALIKE:
                print(name, delta)
    for field in range(2, 14):  # errors that stay unnoticed must at least not crash
        client.client_check_layout(field, 8)


def outer():
    inner()


outer()
if sys.version_info >= (3, 13) and len(sys.argv) > 1:
    # A changed copy of the interpreter's own table of offsets: events get no Python stacks, and the reason is
    # given.
    words = (ctypes.c_uint64 * 100).in_dll(client, "_PyRuntime")
    for i in range(28, 45):
        words[i] += 8
    client.client_record(ctypes.c_uint64(1))
