"""A small shell with job control. It leads a session on the terminal that is its standard input and runs a
command as its foreground job. It executes the lines from descriptor 3:

    state           print the state of the command: "stopped NUMBER", "exited CODE", "running"
    resume          like fg: continue the job's whole process group
    end             end, with the command's exit code
"""

import fcntl
import os
import signal
import sys
import termios
import time


def say(text):
    os.write(4, f"{text}\n".encode())


def main():
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgid(0))
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.close(3)
        os.close(4)
        os.execvp(sys.argv[1], sys.argv[1:])
    state = "running"
    for line in os.fdopen(3, "r"):
        word = line.strip()
        if word == "resume":
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
        until = time.monotonic() + (10 if word == "end" else 0.3)
        while time.monotonic() < until:
            pid, status = os.waitpid(job, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if not pid:
                time.sleep(0.01)
                continue
            if os.WIFSTOPPED(status):
                state = f"stopped {os.WSTOPSIG(status)}"
            elif os.WIFCONTINUED(status):
                state = "running"
            else:
                state = f"ended {os.waitstatus_to_exitcode(status)}"
                break
        say(state)
        if word == "end":
            break


main()
