"""fragtrace.loggers with the real libraries of Weights & Biases and MLflow, without their servers.

Each test reads what the library wrote, with the library's own reader or classes. The libraries are
in environments of their own, which scripts/setup --tests makes. Without one, its test is skipped by name.
"""

import json
import os
import pathlib

import real_process
from real_process import SOURCE, environment

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fragtrace"
MODULE = SOURCE / "preload" / "python"

WANDB = """
import json, pathlib, sys, fragtrace, wandb
try:
    fragtrace.loggers.wandb()
except ValueError as error:
    print(json.dumps(str(error)))
run = wandb.init(mode="offline", dir=sys.argv[1], project="test", settings=wandb.Settings(silent=True))
log = fragtrace.loggers.wandb()
run.log({"loss": 1.0}, step=9)  # a newer step of the run's own
log({"gpu_memory/allocated_bytes": 4096}, 3)
log({"gpu_memory/allocated_bytes": 8192}, 5)
run.finish()
wandb.teardown()  # waits for the process that writes the file
from wandb.proto import wandb_internal_pb2
# A run that is offline is a log of LevelDB: blocks of 32 KiB after seven bytes; a record has a head with
# its checksum (4 bytes), length (2) and kind (1 whole, 2 first, 3 middle, 4 last part).
data = next(pathlib.Path(sys.argv[1]).rglob("run-*.wandb")).read_bytes()
at, whole, rows = 7, b"", []
while at + 7 <= len(data):
    if 32768 - at % 32768 < 7:
        at += 32768 - at % 32768
        continue
    length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
    whole = (b"" if kind in (1, 2) else whole) + data[at + 7 : at + 7 + length]
    at += 7 + length
    if kind in (1, 4):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(whole)
        row = {item.key or "/".join(item.nested_key): json.loads(item.value_json)
               for item in record.history.item}
        if "gpu_memory/allocated_bytes" in row:
            rows.append([row["gpu_memory/step"], row["gpu_memory/allocated_bytes"]])
print(json.dumps(rows))
"""

MLFLOW = """
import json, sys, fragtrace, mlflow
mlflow.set_tracking_uri("file://" + sys.argv[1])
with mlflow.start_run() as run:
    log = fragtrace.loggers.mlflow()
    log({"gpu_memory/allocated_bytes": 4096}, 3)
    log({"gpu_memory/allocated_bytes": 8192}, 5)
fragtrace.loggers.mlflow(run.info.run_id)({"gpu_memory/allocated_bytes": 1024}, 7)
history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "gpu_memory/allocated_bytes")
print(json.dumps([[row.step, row.value] for row in history]))
"""


class Loggers(real_process.RealProcessTest):
    def rows(self, tool, program):
        python = next(iter(sorted(CACHE.glob(f"{tool}-*/bin/python"))), None)
        if python is None:
            self.skipTest(f"no {tool} (scripts/setup --tests installs it)")
        env = environment(
            PYTHONPATH=MODULE,
            PYTHONDONTWRITEBYTECODE=1,
            HOME=self.folder,
            WANDB_MODE="offline",
            MLFLOW_DISABLE_TELEMETRY="true",
            MLFLOW_ALLOW_FILE_STORE="true",
        )
        done = self.run_well([python, "-c", program, self.folder / "runs"], env=env, cwd=self.folder)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", '"'))]

    def test_weights_and_biases_gets_each_figure_with_its_own_step(self):
        (self.folder / "runs").mkdir()
        error, rows = self.rows("wandb", WANDB)
        self.assertIn("call wandb.init() first", error)
        self.assertEqual(rows, [[3, 4096], [5, 8192]])

    def test_mlflow_gets_each_figure_with_its_step(self):
        (rows,) = self.rows("mlflow-skinny", MLFLOW)
        self.assertEqual(rows, [[3, 4096.0], [5, 8192.0], [7, 1024.0]])


if __name__ == "__main__":
    real_process.main()
