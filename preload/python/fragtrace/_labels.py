"""Labels: the program's own names for the memory that it allocates."""

import functools
import inspect

from . import _recorder


class label:
    """Blocks that the calling thread allocates inside carry this label in the trace.

    with fragtrace.label("kv cache"):       # labels of a thread are nested, the innermost one counts
        ...

    @fragtrace.label("kv cache")            # the same for a function
    def grow(): ...

    The backward pass runs on threads of its own, which these labels do not reach. Without the recorder this
    does nothing.
    """

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = _recorder.encoded(name)

    def __enter__(self):
        if _recorder.label_begin is not None:
            _recorder.label_begin(self.name)
        return self

    def __exit__(self, kind, error, traceback):
        if _recorder.label_begin is not None:
            _recorder.label_end()
        return False

    def __call__(self, function):
        if _recorder.label_begin is None:
            return function
        if inspect.iscoroutinefunction(function):
            raise TypeError(
                f"{function.__qualname__} is a coroutine function: others run on its thread while it waits. "
                "Use `with fragtrace.label(...)` around the parts that do not wait"
            )

        @functools.wraps(function)
        def wrapper(*arguments, **options):
            _recorder.label_begin(self.name)
            try:
                return function(*arguments, **options)
            finally:
                _recorder.label_end()

        return wrapper


def label_tensor(tensor, name):
    """Labels the live block of a CUDA tensor, and replaces its label. Views share the block.

    Returns the tensor. Does nothing without the recorder, for tensors elsewhere, and for memory that does not
    come from PyTorch's allocator.
    """
    if _recorder.label_memory is not None and tensor.device.type == "cuda":
        _recorder.label_memory(tensor.untyped_storage().data_ptr(), _recorder.encoded(name))
    return tensor


class Names:
    """The hooks of name_modules()."""

    def __init__(self, handles):
        self._handles = handles

    def remove(self):
        """Removes the hooks. Blocks that have a name keep it."""
        for handle in self._handles:
            handle.remove()
        self._handles = []


def name_modules(model, name="model"):
    """From now on, blocks that a forward pass allocates carry the name of their nn.Module as a label.

    The label of a block inside model.layers[3].mlp is "model.layers.3.mlp". `name` stands for the model.
    Blocks of the backward pass, which runs on other threads, have no such label. Call it before
    torch.compile. Returns an object with remove(). Needs PyTorch 2.1. Without the recorder it adds no hooks.
    """
    handles = []
    if _recorder.label_begin is not None:
        begin, end = _recorder.label_begin, _recorder.label_end
        for path, module in model.named_modules():
            label = _recorder.encoded(f"{name}.{path}" if path else name)

            def enter(module, inputs, label=label):
                begin(label)

            def leave(module, inputs, output):
                end()

            handles.append(module.register_forward_pre_hook(enter, prepend=True))
            # Runs after an error in the forward pass, too.
            handles.append(module.register_forward_hook(leave, always_call=True))
    return Names(handles)
