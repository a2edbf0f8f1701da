"""python -m fragtrace [-m MODULE | SCRIPT] [ARGUMENT...]: runs a program with the adaptors of memory pools.

The program runs as it would without `-m fragtrace`. The adaptors do something only under the recorder:

    fragtrace run -- python -m fragtrace train.py
"""

from __future__ import annotations

import os
import runpy
import sys

from . import _adaptors, _recorder

_USAGE = "usage: python -m fragtrace [-m MODULE | SCRIPT] [ARGUMENT...]"


def main() -> None:
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if is_module:
        arguments = arguments[1:]
    if not arguments or (arguments[0].startswith("-") and not is_module):
        if arguments[:1] in (["-h"], ["--help"]):
            print(_USAGE)
            sys.exit(0)
        print(f"fragtrace: no program given; {_USAGE}", file=sys.stderr)
        sys.exit(2)
    if _recorder.present:
        _adaptors.watch()
    sys.argv[:] = arguments
    # sys.path[0] is the folder from which `-m fragtrace` was started. The safe path option leaves it out.
    safe = getattr(sys.flags, "safe_path", False)
    if is_module:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return
    if not os.path.exists(arguments[0]):
        print(f"fragtrace: {arguments[0]}: no such file; {_USAGE}", file=sys.stderr)
        sys.exit(2)
    if not safe:
        sys.path[0] = os.path.dirname(os.path.realpath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
