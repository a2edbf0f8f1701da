"""What the callbacks for training loops share: phases that are closed in order, and figures for a logger."""

import sys

from . import _recorder, begin, end, scalars, write

_watched = False


def needs(what, library, package, reason):
    """The ImportError that says which library is missing and how to install it."""
    return ImportError(f"{what} needs {library}: pip install {package} ({reason})", name=package)


def write_at_out_of_memory():
    """From now on, each out-of-memory error of PyTorch writes the trace, also if the program catches it.

    Needs a GPU in use. Does nothing without the recorder or if PyTorch's allocator has no such notice.
    """
    global _watched
    torch = sys.modules.get("torch")
    if _watched or not _recorder.present or torch is None or not torch.cuda.is_initialized():
        return
    attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
    if attach is not None:
        try:
            attach(lambda *_: (write(), None)[1])
        except RuntimeError:  # cudaMallocAsync and allocators of the program have no notice
            return
        _watched = True


class Phases:
    """The open phases of a training loop. An exception can leave some open: close() ends them."""

    def __init__(self, log, every):
        if every < 1:
            raise ValueError(f"every is {every}: give a number of steps, 1 or more")
        self.log = log
        self.every = every
        self.open = []

    def begin(self, name):
        self.open.append(name)
        begin(name)

    def end(self, name):
        """Ends the phase, and the phases inside it. Does nothing if it is not open."""
        while name in self.open:
            self.open.pop()
            end()

    def close(self):
        while self.open:
            self.open.pop()
            end()

    def figures(self, step):
        """Logs the memory after every so many steps."""
        if self.log is not None and step % self.every == 0:
            values = scalars()
            if values:
                self.log(values, step)
