"""`fragtrace job analyze s3://...` against a server that speaks the protocol of S3 on this machine (moto)."""

import os
import subprocess
import sys
import time
import urllib.request

import made_up_job
import real_process
import test_tools
from real_process import ANALYZER
from slurm import free_port

TOOL = test_tools.folder_of("s3fs")
PYTHON = TOOL / "bin" / "python" if TOOL else None
FOLDER = "s3://bucket/traces"
START_SECONDS = 120
# Copies a folder of files into the storage. Prints each name with the time that the storage gives the object.
UPLOAD = """
import pathlib, sys
import s3fs
files = s3fs.S3FileSystem()
files.mkdir("bucket")
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    files.put(str(path), f"bucket/traces/{path.name}")
    print(path.name, int(files.modified(f"bucket/traces/{path.name}").timestamp()))
"""


class ObjectStorage(made_up_job.MadeUpJobTest):
    def setUp(self):
        super().setUp()
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        self.server = subprocess.Popen(
            [PYTHON, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.environment,
        )
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        end = time.monotonic() + START_SECONDS
        while not self.is_answering():
            self.assertIsNone(self.server.poll(), "the server has ended")
            self.assertLess(time.monotonic(), end, "the server does not answer")
            time.sleep(0.2)

    def is_answering(self):
        try:
            with urllib.request.urlopen(f"{self.address}/moto-api/", timeout=10):
                return True
        except OSError:
            return False

    def analyze_bucket(self, folder=FOLDER):
        self.output = self.folder / "output"
        options = ("--local", "2", "--no-whatif", "-o", self.output)
        return self.analyze(*options, folder=folder, python=PYTHON, env=self.environment)

    def test_traces_in_a_bucket_give_the_same_summaries_and_are_copied_once(self):
        listed = self.run_well([PYTHON, "-c", UPLOAD, self.job], env=self.environment).stdout
        for line in listed.splitlines():
            name, modified = line.split()
            os.utime(self.job / name, (int(modified), int(modified)))
        done = self.analyze_bucket()
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("9 traces: 8 summaries made, 0 kept, 1 unreadable; ", done.stderr)
        self.assertIn(f"unreadable  {FOLDER}/{self.bad.name}: is not a trace", done.stdout)
        whole = self.folder / "serial.json"
        self.run_well([ANALYZER, "summarize", self.job, "-o", whole, "--no-whatif"], 2)
        serial = whole.read_bytes().replace(str(self.job).encode(), FOLDER.encode())
        self.assertEqual(self.result(self.output), serial)
        again = self.analyze_bucket()
        self.assertIn("9 traces: 0 summaries made, 8 kept, 1 unreadable; ", again.stderr)

    def test_a_bucket_that_is_not_there_is_refused_in_one_line(self):
        done = self.analyze_bucket("s3://nowhere/traces")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn("s3://nowhere/traces: cannot be listed: ", done.stderr)


if __name__ == "__main__":
    if PYTHON is None:
        print(f"skipped: {test_tools.missing('s3fs')}")
        sys.exit(77)
    real_process.main()
