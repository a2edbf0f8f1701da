"""For Lightning: epochs, steps and evaluation as phases of the trace.

from fragtrace.lightning import MemoryCallback

lightning.Trainer(callbacks=[MemoryCallback()])
"""

from ._training import Phases, needs, write_at_out_of_memory

try:
    from lightning.pytorch.callbacks import Callback
except ImportError as reason:
    try:
        from pytorch_lightning.callbacks import Callback
    except ImportError:
        raise needs("fragtrace.lightning", "Lightning", "lightning", reason) from None


class MemoryCallback(Callback):
    """Marks the phases "epoch", "step", "validation", "test" and "predict", and writes the trace at an
    out-of-memory error. Without the recorder it does nothing.

    log: True writes fragtrace.scalars() to the loggers of the Trainer, a function is called with (values,
    step). It works without the recorder, too. every: steps between two of these calls.
    """

    def __init__(self, log=None, every=50):
        self._phases = Phases(None if log is True else log, every)
        self._use_loggers = log is True

    def setup(self, trainer, pl_module, stage):
        self._phases.close()
        if self._use_loggers:
            self._phases.log = lambda values, step: [
                logger.log_metrics(values, step) for logger in trainer.loggers
            ]

    def on_train_start(self, trainer, pl_module):
        write_at_out_of_memory()

    def on_train_epoch_start(self, trainer, pl_module):
        self._phases.begin("epoch")

    def on_train_epoch_end(self, trainer, pl_module):
        self._phases.end("epoch")

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self._phases.begin("step")

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        self._phases.end("step")
        self._phases.figures(trainer.global_step)

    def on_validation_start(self, trainer, pl_module):
        write_at_out_of_memory()
        self._phases.begin("validation")

    def on_validation_end(self, trainer, pl_module):
        self._phases.end("validation")

    def on_test_start(self, trainer, pl_module):
        write_at_out_of_memory()
        self._phases.begin("test")

    def on_test_end(self, trainer, pl_module):
        self._phases.end("test")

    def on_predict_start(self, trainer, pl_module):
        write_at_out_of_memory()
        self._phases.begin("predict")

    def on_predict_end(self, trainer, pl_module):
        self._phases.end("predict")

    def on_exception(self, trainer, pl_module, exception):
        self._phases.close()
