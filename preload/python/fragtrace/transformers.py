"""For the Trainer of Hugging Face transformers: epochs, steps and evaluation as phases of the trace.

from fragtrace.transformers import MemoryCallback

Trainer(model, arguments, callbacks=[MemoryCallback()])
"""

from ._training import Phases, needs, write_at_out_of_memory

try:
    from transformers import TrainerCallback
except ImportError as reason:
    raise needs("fragtrace.transformers", "transformers", "transformers", reason) from None


class MemoryCallback(TrainerCallback):
    """Marks the phases "epoch", "step" and "evaluation", and writes the trace at an out-of-memory error.
    Without the recorder it does nothing.

    log: a function that is called with (fragtrace.scalars(), step); fragtrace.loggers has some. It works
    without the recorder, too. every: steps between two of these calls.

    The Trainer does not say when an evaluation begins that it did not plan itself. Such a phase begins after
    the first batch.
    """

    def __init__(self, log=None, every=50):
        self._phases = Phases(log, every)

    def on_train_begin(self, args, state, control, **kwargs):
        self._phases.close()  # of a run that an exception ended
        write_at_out_of_memory()

    def on_train_end(self, args, state, control, **kwargs):
        self._phases.close()

    def on_epoch_begin(self, args, state, control, **kwargs):
        self._phases.begin("epoch")

    def on_epoch_end(self, args, state, control, **kwargs):
        self._phases.end("epoch")
        self._planned_evaluation(control)

    def on_step_begin(self, args, state, control, **kwargs):
        self._phases.begin("step")

    def on_step_end(self, args, state, control, **kwargs):
        self._phases.end("step")
        self._phases.figures(state.global_step)
        self._planned_evaluation(control)

    def _planned_evaluation(self, control):
        if control.should_evaluate:
            self._phases.begin("evaluation")

    def on_prediction_step(self, args, state, control, **kwargs):
        if "evaluation" not in self._phases.open:
            write_at_out_of_memory()
            self._phases.begin("evaluation")

    def on_evaluate(self, args, state, control, **kwargs):
        self._phases.end("evaluation")

    def on_predict(self, args, state, control, **kwargs):
        self._phases.end("evaluation")
