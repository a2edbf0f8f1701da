"""Lists the live CUDA tensors and the names that keep them alive, by a search of the interpreter.

The results are names and sizes, so the module keeps no object alive. It runs no code of the objects
that it visits, and never imports torch.
"""

import collections
import gc
import sys
import types

MOST_OBJECTS = 300_000  # visited from the roots
MOST_DEPTH = 8
MOST_NAMES = 4  # per tensor
_FUNCTION_LOCALS = 0x1  # CO_OPTIMIZED
_HISTORY = ("_", "__", "___", "_i", "_ii", "_iii", "_ih", "_oh", "_dh", "In", "Out")


class Held:
    """One storage, which one or more live tensors share."""

    def __init__(self, size, device, kind, shape, has_graph):
        self.bytes = size
        self.device = device
        self.kind = kind
        self.shape = shape
        self.has_graph = has_graph
        self.names = []  # "model.0.weight": through the program's own variables
        self.history = []  # "Out[3]"
        self.frames = []  # "h in forward (net.py:42)": kept by a traceback

    def holders(self):
        return self.names + self.history + self.frames


def is_a(thing, base):
    """Like isinstance, but runs no code of the object. Proxies run code in isinstance."""
    return base is not None and issubclass(type(thing), base)


def is_variable(name, hidden):
    """Whether a name belongs to the program and not to a notebook's history."""
    history = name in _HISTORY or (name[:1] == "_" and name.lstrip("_i").isdigit())
    return not history and name not in hidden and not name.startswith("__")


def root_of(name):
    """The first part of a holder's name: a variable, or the result of a cell."""
    root = name.split(" in the ")[-1].rsplit(" ", 1)[-1]
    if root.startswith("Out["):
        return root[: root.index("]") + 1]
    return root.split(".")[0].split("[")[0].split("{")[0]


def storage_of(tensor):
    """(key, bytes) of a CUDA tensor's storage. None for other tensors."""
    try:
        if tensor.device.type != "cuda":
            return None
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        size = storage.nbytes() if hasattr(storage, "nbytes") else 0
        return ((tensor.device.index, storage.data_ptr()), size) if size else None
    except Exception:  # sparse, nested, fake and meta tensors have none
        return None


class Walk:
    """Visits objects from roots to tensors, breadth first, so the shortest name comes first."""

    def __init__(self, torch, found, ignored):
        self.tensor = torch.Tensor
        self.module = torch.nn.Module
        self.found = found
        self.objects = 0
        self.ignored = frozenset(id(thing) for thing in ignored)
        # Emptied after each kind of root: a tensor with a name that is also in a traceback gets both.
        self.seen = set()
        self.queue = collections.deque()

    def run(self, field):
        while self.queue and self.objects < MOST_OBJECTS:
            thing, name, depth = self.queue.popleft()
            self.objects += 1
            self.visit(thing, name, depth, field)
        self.queue.clear()
        self.seen.clear()

    def add(self, thing, name, depth=0):
        kind = type(thing)
        if (
            kind in (int, float, str, bytes, bool, type(None), types.ModuleType, complex, range)
            or depth > MOST_DEPTH
            or id(thing) in self.seen
            or id(thing) in self.ignored
        ):
            return
        self.seen.add(id(thing))
        self.queue.append((thing, name, depth))

    def note(self, tensor, name, field):
        known = storage_of(tensor)
        entry = self.found.get(known[0]) if known else None
        if entry is not None:
            names = getattr(entry, field)
            if len(names) < MOST_NAMES and name not in names:
                names.append(name)

    def visit(self, thing, name, depth, field):
        if is_a(thing, self.tensor):
            self.note(thing, name, field)
            try:
                if thing.is_leaf and thing.grad is not None:
                    self.note(thing.grad, name + ".grad", field)
            except Exception:
                pass
        elif is_a(thing, dict):
            for key, value in list(dict.items(thing)):
                shown = repr(key) if type(key) in (str, int) else "..."
                self.add(value, f"{name}[{shown}]", depth + 1)
        elif is_a(thing, (list, tuple, collections.deque)):
            for index, value in enumerate(list(thing)):
                self.add(value, f"{name}[{index}]", depth + 1)
        elif is_a(thing, (set, frozenset)):
            for value in list(thing):
                self.add(value, f"{name}{{...}}", depth + 1)
        elif is_a(thing, (types.FunctionType, types.MethodType)):
            self.function(thing, name, depth)
        elif is_a(thing, types.GeneratorType):
            if thing.gi_frame is not None:
                for local, value in _locals_of(thing.gi_frame).items():
                    self.add(value, f"{local} in the generator {name}", depth + 1)
        elif not is_a(thing, type):
            self.attributes(thing, name, depth)

    def function(self, thing, name, depth):
        if is_a(thing, types.MethodType):
            self.add(thing.__self__, f"{name}.__self__", depth + 1)
            thing = thing.__func__
        if not is_a(thing, types.FunctionType):
            return
        for variable, cell in zip(thing.__code__.co_freevars, thing.__closure__ or ()):
            try:
                self.add(cell.cell_contents, f"{variable} in the closure of {name}", depth + 1)
            except ValueError:  # empty
                pass
        for value in thing.__defaults__ or ():
            self.add(value, f"a default argument of {name}", depth + 1)

    def attributes(self, thing, name, depth):
        try:
            values = object.__getattribute__(thing, "__dict__")
        except Exception:
            return
        if not is_a(values, dict):
            return
        for key, value in list(dict.items(values)):
            # A parameter is shown as model.weight, not as model._parameters["weight"].
            if (
                is_a(thing, self.module)
                and key in ("_parameters", "_buffers", "_modules")
                and is_a(value, dict)
            ):
                for part, child in list(dict.items(value)):
                    self.add(child, f"{name}.{part}", depth)
            elif type(key) is str:
                self.add(value, f"{name}.{key}", depth + 1)


def _locals_of(frame):
    """A copy of the frame's variables. Before Python 3.13 the frame keeps the dictionary of f_locals,
    which would survive frame.clear(). This function empties it again."""
    values = frame.f_locals
    copy = dict(values)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & _FUNCTION_LOCALS:
        values.clear()
    return copy


LAST = ("last_traceback", "last_value", "last_exc")  # of sys, after an error that nobody caught


def _keepers(shell):
    """The (object, attribute) pairs that keep the last traceback: those of sys and of IPython."""
    places = [
        (sys, LAST),
        (getattr(shell, "InteractiveTB", None), ("tb", "etb", "evalue")),
        (getattr(shell, "last_execution_result", None), ("error_in_exec", "error_before_exec")),
    ]
    return [
        (place, name) for place, names in places for name in names if getattr(place, name, None) is not None
    ]


def forget_last_error(shell=None):
    """Clears the last uncaught error, so the variables of its functions can be freed."""
    for keeper, name in _keepers(shell):
        setattr(keeper, name, None)
    gc.collect()


def _last_tracebacks(shell):
    kept = [getattr(keeper, name) for keeper, name in _keepers(shell)]
    tracebacks = [each for each in kept if is_a(each, types.TracebackType)]
    errors = [each for each in kept if is_a(each, BaseException)]
    seen = set()
    while errors:
        error = errors.pop()
        if error is not None and id(error) not in seen:
            seen.add(id(error))
            tracebacks.append(error.__traceback__)
            errors += [error.__context__, error.__cause__]
    return tracebacks


def _add_tracebacks(walk, shell):
    for traceback in _last_tracebacks(shell):
        while traceback is not None:
            frame = traceback.tb_frame
            of_a_function = frame.f_code.co_flags & _FUNCTION_LOCALS
            module = str(frame.f_globals.get("__name__", ""))
            if of_a_function and module.split(".")[0] not in ("IPython", "ipykernel"):
                where = "{} ({}:{})".format(
                    frame.f_code.co_name, frame.f_code.co_filename.rsplit("/", 1)[-1], traceback.tb_lineno
                )
                for local, value in _locals_of(frame).items():
                    walk.add(value, f"{local} in {where}")
            traceback = traceback.tb_next


def _own_modules():
    """(name, module) of the program's own modules, without installed ones."""
    installed = ("/site-packages/", "/dist-packages/", "/lib/python3")
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None) if type(module) is types.ModuleType else None
        if (
            type(path) is str
            and name.split(".")[0] not in ("__main__", "fragtrace")
            and not any(part in path for part in installed)
        ):
            yield name, module


def find(namespace=None, hidden=(), shell=None):
    """All live storages on CUDA devices, largest first. None without torch.

    `namespace` has the program's variables (default: those of __main__), without the `hidden` names.
    `shell` is a notebook's; objects that are reached only through it are left out.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "Tensor"):
        return None
    main = sys.modules["__main__"].__dict__
    namespace = main if namespace is None else namespace
    found = {}
    for thing in gc.get_objects():
        if not is_a(thing, torch.Tensor):
            continue
        for tensor in (thing, _gradient_of(thing)):
            known = storage_of(tensor) if tensor is not None else None
            if known is not None and known[0] not in found:
                found[known[0]] = Held(
                    known[1],
                    known[0][0],
                    str(tensor.dtype).split(".")[-1],
                    tuple(tensor.shape),
                    tensor.grad_fn is not None,
                )
        tensor = None
    thing = None
    walk = Walk(torch, found, (main, namespace, shell, found))
    for name, value in list(namespace.items()):
        if is_variable(name, hidden):
            walk.add(value, name)
    for module, contents in _own_modules():
        for name, value in list(contents.__dict__.items()):
            if not name.startswith("__"):
                walk.add(value, f"{module}.{name}")
    walk.run("names")
    outputs = namespace.get("_oh")
    if is_a(outputs, dict):
        for number, value in list(dict.items(outputs)):
            walk.add(value, f"Out[{number}]")
    for name in ("_", "__", "___"):
        if name in namespace:
            walk.add(namespace[name], name)
    walk.run("history")
    _add_tracebacks(walk, shell)
    walk.run("frames")
    value = None
    return sorted(found.values(), key=lambda held: -held.bytes)


def _gradient_of(tensor):
    try:
        return tensor.grad if tensor.is_leaf else None
    except Exception:
        return None


def size_text(size):
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if abs(size) >= 1 << power:
            return f"{size / (1 << power):.1f} {unit}"
    return f"{size} B"


def report(namespace=None, most=10, hidden=(), shell=None):
    """Lines that list the live storages and how to free them. Empty without torch. See find()."""
    held = find(namespace, hidden, shell)
    if held is None:
        return []
    torch = sys.modules["torch"]
    total = sum(each.bytes for each in held)
    tensors = "1 tensor holds" if len(held) == 1 else f"{len(held)} tensors hold"
    lines = [f"fragtrace: {tensors} {size_text(total)} of CUDA memory"]
    for each in held[:most]:
        holders = each.holders()
        names = ", ".join(holders[:3]) or "no name found (C++, or deep inside of an object)"
        more = f" and {len(holders) - 3} more" if len(holders) > 3 else ""
        shape = "x".join(str(size) for size in each.shape)
        lines.append(f"  {size_text(each.bytes):>10}  {names}{more}  ({each.kind} {shape})")
    if len(held) > most:
        rest = sum(each.bytes for each in held[most:])
        lines.append(f"  {size_text(rest):>10}  in {len(held) - most} smaller ones")
    try:
        allocated = sum(torch.cuda.memory_allocated(device) for device in range(torch.cuda.device_count()))
    except Exception:
        allocated = total
    if allocated > total and allocated - total > allocated // 50:
        lines.append(
            f"  {size_text(allocated - total):>10}  without a Python tensor: saved for a "
            "backward pass (kept by its loss or output), or held by C++"
        )
    return lines + _advice(held[:most], shell)


def _advice(held, shell):
    lines = []
    roots = []
    for each in held:
        for name in each.names:
            root = root_of(name)
            if root not in roots:
                roots.append(root)
    if roots:
        lines.append("  to free: del " + ", ".join(roots[:6]))
    if any(each.frames for each in held):
        clear = (
            "%fragtrace forget"
            if shell is not None
            else "import sys; " + " = ".join(f"sys.{name}" for name in LAST if hasattr(sys, name)) + " = None"
        )
        lines.append(f"  the last traceback keeps its functions' variables: {clear}")
    if any(each.history for each in held):
        lines.append("  the notebook's history keeps results: %reset -f out")
    if lines:
        lines.append("  then: import gc; gc.collect(); torch.cuda.empty_cache()")
    return lines
