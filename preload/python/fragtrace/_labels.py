"""Labels: the program's own names for the memory that it allocates."""

from __future__ import annotations

import functools
import inspect
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from . import _recorder

if TYPE_CHECKING:
    from typing_extensions import Self

_Function = TypeVar("_Function", bound=Callable[..., Any])


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

    def __init__(self, name: object) -> None:
        self.name = _recorder.encoded(name)

    def __enter__(self) -> Self:
        if _recorder.label_begin is not None:
            _recorder.label_begin(self.name)
        return self

    def __exit__(self, kind: object, error: object, traceback: TracebackType | None) -> None:
        if _recorder.label_begin is not None:
            _recorder.label_end()

    def __call__(self, function: _Function) -> _Function:
        if _recorder.label_begin is None:
            return function
        if inspect.iscoroutinefunction(function):
            raise TypeError(
                f"{function.__qualname__} is a coroutine function: others run on its thread while it waits. "
                "Use `with fragtrace.label(...)` around the parts that do not wait"
            )

        @functools.wraps(function)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            _recorder.label_begin(self.name)
            try:
                return function(*arguments, **options)
            finally:
                _recorder.label_end()

        return wrapper  # type: ignore[return-value]


def label_tensor(tensor: Any, name: object) -> Any:
    """Labels the live block of a CUDA tensor, and replaces its label. Views share the block.

    Returns the tensor. Does nothing without the recorder, for tensors elsewhere, and for memory that does not
    come from PyTorch's allocator.
    """
    if _recorder.label_memory is not None and tensor.device.type == "cuda":
        _recorder.label_memory(tensor.untyped_storage().data_ptr(), _recorder.encoded(name))
    return tensor


class Names:
    """The hooks of name_modules()."""

    def __init__(self, handles: list[Any]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Removes the hooks. Blocks that have a name keep it."""
        for handle in self._handles:
            handle.remove()
        self._handles = []


def name_modules(model: Any, name: str = "model") -> Names:
    """From now on, blocks that a forward pass allocates carry the name of their nn.Module as a label.

    The label of a block inside model.layers[3].mlp is "model.layers.3.mlp". `name` stands for the model.
    Blocks of the backward pass, which runs on other threads, have no such label. Call it before
    torch.compile. Returns an object with remove(). Needs PyTorch 2.1. Without the recorder it adds no hooks.
    """
    handles: list[Any] = []
    if _recorder.label_begin is not None:
        begin, end = _recorder.label_begin, _recorder.label_end
        for path, module in model.named_modules():
            label = _recorder.encoded(f"{name}.{path}" if path else name)

            def enter(module: Any, inputs: Any, label: bytes = label) -> None:
                begin(label)

            def leave(module: Any, inputs: Any, output: Any) -> None:
                end()

            handles.append(module.register_forward_pre_hook(enter, prepend=True))
            # Runs after an error in the forward pass, too.
            handles.append(module.register_forward_hook(leave, always_call=True))
    return Names(handles)
