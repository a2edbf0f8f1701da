"""A process that reads commands, one per line, and answers each with a line."""

import contextlib
import subprocess


class TalkingProcess:
    """Is killed at the end of the test. `greeting` is its first line."""

    def __init__(self, test, command, env):
        self.process = subprocess.Popen(
            [str(part) for part in command],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        test.addCleanup(self.kill)
        self.pid = self.process.pid
        self.greeting = self.read()

    def read(self):
        return self.process.stdout.readline().strip()

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.read()

    def kill(self):
        self.process.kill()
        self._wait()

    def end(self):
        """Ends it by the end of its input. Returns its exit code and what it wrote to standard error."""
        self.process.stdin.close()
        self.process.stdout.read()
        errors = self.process.stderr.read()
        self._wait()
        return self.process.returncode, errors

    def _wait(self):
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):  # of a command that it did not read
                pipe.close()
