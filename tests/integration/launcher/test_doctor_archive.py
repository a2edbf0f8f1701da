"""`fragtrace doctor --bundle`: the archive for reports of problems."""

import getpass
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import sys
import tarfile

import real_process
from launching import CARD, CLIENT, fake_python
from real_process import LAUNCHER, environment, run


class Archive(real_process.RealProcessTest):
    def bundle(self, *arguments, expected=0, **options):
        path = self.folder / "report.tar.gz"
        done = self.run_well(
            [LAUNCHER, "doctor", "--bundle", path, *arguments], expected, cwd=self.folder, **options
        )
        with tarfile.open(path) as archive:
            names = archive.getnames()
            content = {
                pathlib.Path(name).name: archive.extractfile(name).read()
                for name in names
                if not name.endswith("/")
            }
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        return done, content

    def record(self):
        secret = self.folder / "secret_project.py"
        shutil.copy(CLIENT, secret)
        self.run_well(
            [LAUNCHER, "run", "--quiet", "--virtual-gpu", CARD, "-o", self.folder, "--"]
            + [sys.executable, secret, "/dev/null", "20", "return"],
            cwd=self.folder,
        )
        return self.only_trace()

    def test_the_archive_has_the_files_that_were_announced_and_no_name(self):
        trace = self.record()
        env = environment(
            FRAGTRACE_OUTPUT=self.folder / "of alice",
            PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
            CUDA_VISIBLE_DEVICES="GPU-01234567-89ab-cdef-0123-456789abcdef",
            LD_LIBRARY_PATH="/data/secret_folder/lib",
            USER="alice",
        )
        done, content = self.bundle("--trace", trace, "--", sys.executable, env=env)
        announced = done.stdout
        expected = {"doctor.txt", "doctor.json", "versions.txt", "settings.txt", "trace.ftrace", "README.txt"}
        self.assertEqual(set(content), expected)
        for name in expected - {"README.txt"}:
            self.assertIn(f"{name} ", announced)
        self.assertIn("expandable_segments:True", content["settings.txt"].decode())
        self.assertIn("CUDA_VISIBLE_DEVICES=<hidden>", content["settings.txt"].decode())
        self.assertEqual(json.loads(content["doctor.json"])["schema"], 1)
        names = [
            socket.gethostname(),
            "alice",
            str(self.folder),
            "secret_folder",
            "secret_project",
            "456789ab",
        ]
        names += [os.environ["HOME"]] if os.environ.get("HOME", "/") != "/" else []
        names += [getpass.getuser()] if getpass.getuser() != "root" else []
        for name, text in content.items():
            for secret in names:
                if len(secret) > 2:
                    self.assertNotIn(secret.encode(), text, f"{name} contains {secret}")
        anonymous = self.folder / "again.ftrace"
        anonymous.write_bytes(content["trace.ftrace"])
        self.assertEqual(
            self.report(anonymous)["devices"][0]["peak"], self.report(trace)["devices"][0]["peak"]
        )

    def test_no_file_of_the_archive_has_a_word_of_the_user(self):
        secrets = {
            "FRAGTRACE_OUTPUT": "secretclient/traces",
            "FRAGTRACE_RING_DIRECTORY": self.folder / "secretclient rings",
            "FRAGTRACE_STACKS": "secretclient",
            "FRAGTRACE_JOB": "secretclient",
            "LD_LIBRARY_PATH": "relative/secretclient:",
            "LD_PRELOAD": "secretclient.so",
            "LD_AUDIT": "secretclient-audit.so",
            "CUDA_HOME": "/data/secretclient corp/cuda-12",
            "CUDA_INJECTION64_PATH": "/data/other corp/secretclient.so",
            "CUDA_VISIBLE_DEVICES": "secretclient",
            "CUDA_X": "[/home/secretclient/x]",
            "CUDA_SECRETCLIENT": "1",
            "CUDA_MPS_PIPE_DIRECTORY": "%h/home/secretclient",
            "PYTORCH_KERNEL_CACHE_PATH": "~secretclient/cache",
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,secretclient:1",
            "PYTORCH_ALLOC_CONF": "$(hostname).secretclient.corp",
            "NVIDIA_VISIBLE_DEVICES": "GPU-01234567-secretclient",
            "TF_GPU_ALLOCATOR": "hf_secretclientTOKEN",
            "XLA_PYTHON_CLIENT_ALLOCATOR": "me@cluster7.secretclient.com",
            "container": "secretclient",
        }
        folder = self.folder / "of secretclient"
        folder.mkdir()
        python = folder / "python3"
        answers = {
            "module.torch": "/x/secretclient",
            "torch.version": "2.6.0+secretclient",
            "torch.cuda": "secretclient",
            "torch.library": "True",
            "executable": "/data/secretclient corp/python",
        }
        lines = [f"{key}\t{value}" for key, value in answers.items()]
        python.write_text(fake_python("3.11.2+secretclient (main)", *lines))
        failing = folder / "python3.11"
        failing.write_text("#!/bin/sh\necho 'secretclient: cannot start' >&2\nexit 1\n")
        program = folder / "program"
        program.write_text("secretclient")
        for command in (python, failing, program, folder / "none", "secretclient"):
            if isinstance(command, pathlib.Path) and command.exists():
                command.chmod(0o755)
            archive = self.folder / "report.tar.gz"
            archive.unlink(missing_ok=True)
            run(
                [LAUNCHER, "doctor", "--bundle", archive, "--", command],
                cwd=folder,
                env=environment(**secrets),
            )
            with tarfile.open(archive) as content:
                texts = {name: content.extractfile(name).read().lower() for name in content.getnames()}
            self.assertEqual(len(texts), 5)
            for name, text in texts.items():
                self.assertNotIn(b"secretclient", text, f"{name} with {command}")
                for piece in (b" corp", b"cluster7", b"token", b"other corp"):
                    self.assertNotIn(piece, text, f"{name} with {command}")
            settings = next(text for name, text in texts.items() if name.endswith("settings.txt")).decode()
            self.assertIn("pytorch_cuda_alloc_conf=<hidden>\n", settings)
            self.assertNotIn("cuda_home", settings)

    def test_usual_settings_and_paths_stay_readable(self):
        known = {
            "FRAGTRACE_STACKS": "native",
            "FRAGTRACE_SIZE_LIMIT": "20GiB",
            "FRAGTRACE_SIGNAL": "USR1",
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,roundup_power2_divisions:[256:1,512:2,>:4]",
            "CUDA_VISIBLE_DEVICES": "0,1",
            "CUDA_MODULE_LOADING": "LAZY",
            "TF_GPU_ALLOCATOR": "cuda_malloc_async",
            "XLA_PYTHON_CLIENT_MEM_FRACTION": ".75",
        }
        _, content = self.bundle("--", "true", env=environment(**known))
        settings = content["settings.txt"].decode()
        for name, value in known.items():
            self.assertIn(f"{name}={value}\n", settings)
        self.assertNotIn("<hidden>", settings)

    def test_nothing_is_said_to_be_written_if_it_is_not(self):
        taken = self.folder / "report.tar.gz"
        taken.write_text("mine")
        for path in (taken, self.folder / "no" / "folder" / "x.tar.gz"):
            done = self.run_well([LAUNCHER, "doctor", "--bundle", path, "--", "true"], 2)
            self.assertEqual(done.stdout, "")

    def test_an_archive_that_exists_and_a_trace_that_is_none_are_refused(self):
        path = self.folder / "report.tar.gz"
        path.write_text("mine")
        done = self.run_well([LAUNCHER, "doctor", "--bundle", path, "--", "true"], 2, cwd=self.folder)
        self.assertIn("exists", done.stderr)
        self.assertEqual(path.read_text(), "mine")
        path.unlink()
        (self.folder / "none.ftrace").write_text("nothing")
        done = self.run_well(
            [LAUNCHER, "doctor", "--bundle", path, "--trace", self.folder / "none.ftrace", "--", "true"],
            2,
            cwd=self.folder,
        )
        self.assertIn("none.ftrace", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertFalse(path.exists())

    def test_a_full_device_leaves_no_archive(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        path = self.folder / "report.tar.gz"
        done = self.run_well(
            [LAUNCHER, "doctor", "--bundle", path, "--", "true"], 2, cwd=self.folder, preexec_fn=limit
        )
        self.assertIn("cannot be written", done.stderr)
        self.assertFalse(path.exists())


if __name__ == "__main__":
    real_process.main()
