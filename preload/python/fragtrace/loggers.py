"""Functions log(values, step) that write the figures of fragtrace.scalars() to a tracker of experiments.

    log = fragtrace.loggers.tensorboard(writer)
    log(fragtrace.scalars(), step)

The callbacks for Lightning and the Trainer take such a function, too. wandb() and mlflow() import the
tracker's own library when they are called; tensorboard() imports nothing.
"""


def _needs(package, library, reason):
    from ._training import needs  # which imports this package

    return needs(f"fragtrace.loggers.{package}()", library, package, reason)


def tensorboard(writer):
    """Writes to a torch.utils.tensorboard.SummaryWriter, or to any object with its add_scalar()."""

    def log(values, step):
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return log


def wandb(run=None):
    """Writes to a run of Weights & Biases: the one given, or the one that wandb.init() began last.

    The step is a column of its own, because wandb ignores values for a step that lies before its newest
    one.
    """
    if run is None:
        try:
            import wandb
        except ImportError as reason:
            raise _needs("wandb", "Weights & Biases", reason) from None
        run = wandb.run
        if run is None:
            raise ValueError("there is no run of wandb yet: call wandb.init() first, or give the run")
    run.define_metric("gpu_memory/step", hidden=True)
    run.define_metric("gpu_memory/*", step_metric="gpu_memory/step")

    def log(values, step):
        run.log({**values, "gpu_memory/step": step})

    return log


def mlflow(run_id=None):
    """Writes to a run of MLflow: the one given, or the active one."""
    try:
        import mlflow
    except ImportError as reason:
        raise _needs("mlflow", "MLflow", reason) from None

    def log(values, step):
        mlflow.log_metrics(values, step=step, run_id=run_id)

    return log
