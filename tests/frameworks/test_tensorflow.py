"""TensorFlow, which exports functions of zstd to everybody, trains under the recorder as without it.

Needs an interpreter with TensorFlow and NVIDIA's libraries, for example from

    python3 -m venv ENV && ENV/bin/pip install 'tensorflow[and-cuda]==2.21.0'

FRAGTRACE_TENSORFLOW_PYTHON names it (CMake), FRAGTRACE_TENSORFLOW_LIBRARIES, in the environment,
more folders of NVIDIA's libraries.
"""

import os
import pathlib
import sys

import real_process
from real_process import environment, traces

PYTHON = pathlib.Path(os.environ["FRAGTRACE_TENSORFLOW_PYTHON"])
PROGRAM = pathlib.Path(__file__).parent / "programs" / "tensorflow_training.py"
ROUNDS = 3


class TensorFlow(real_process.RealProcessTest):
    def train(self, record_to=None):
        env = environment("16GiB", record_to)
        own = PYTHON.parent.parent.glob("lib/python3*/site-packages/nvidia/*/lib")
        more = os.environ.get("FRAGTRACE_TENSORFLOW_LIBRARIES", "")
        env["LD_LIBRARY_PATH"] = ":".join([env["LD_LIBRARY_PATH"], *map(str, own), more])
        return self.run_well([PYTHON, PROGRAM], env=env).stdout

    def test_training_is_the_same_as_without_the_recorder(self):
        plain = self.train()
        self.assertEqual(plain.splitlines()[0], "1", "TensorFlow sees no GPU")
        for number in range(ROUNDS):
            folder = self.folder / str(number)
            self.assertEqual(self.train(folder), plain)
            found = [self.report(trace) for trace in traces(folder)]
            self.assertEqual(len(found), 1)
            source, device = found[0]["source"], found[0]["devices"][0]
            self.assertEqual((source["ended"], source["events_lost"]), ("normal", 0))
            self.assertGreater(device["peak"]["allocated"], 2 * real_process.MIB)


if __name__ == "__main__":
    if not PYTHON.is_file():
        print("skipped: no interpreter with TensorFlow (-DFRAGTRACE_TENSORFLOW_PYTHON=PATH)")
        sys.exit(77)
    real_process.main()
