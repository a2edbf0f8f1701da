"""A Slurm of this machine alone, for tests: munged, slurmctld and slurmd with own ports, keys and folders.

They need root, but no systemd and no configuration of the machine. The programs come from Debian's packages
slurmctld, slurmd, slurm-client and munge (scripts/setup --tests).
"""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "squeue", "sinfo")
START_SECONDS = 60
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
KillWait=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=100000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def path_of(program):
    return shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin")


def why_not():
    """Why there can be no Slurm here; empty = there can."""
    missing = [program for program in PROGRAMS if path_of(program) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (scripts/setup --tests)"
    if not os.path.ismount("/sys/fs/cgroup"):
        return "slurmd needs a cgroup file system in /sys/fs/cgroup"
    return "" if os.geteuid() == 0 else "Slurm's daemons need root"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Slurm:
    """One node with two processors. `environment` is that of its users."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fragtrace-slurm-"))
        self.daemons = []
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)  # munge's socket must be open to all
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))
        }
        self.environment["SLURM_CONF"] = str(self.folder / "slurm.conf")
        self.environment["PATH"] = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin"
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                host=socket.gethostname().split(".")[0],
                folder=self.folder,
                controller_port=free_port(),
                node_port=free_port(),
            )
        )

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            stack.callback(self.stop)
            key = self.folder / "munge.key"
            key.write_bytes(os.urandom(1024))
            key.chmod(0o400)
            self.start(
                "munged",
                "--foreground",
                f"--key-file={key}",
                f"--socket={self.folder}/munge.socket",
                f"--pid-file={self.folder}/munge.pid",
                f"--seed-file={self.folder}/munge.seed",
            )
            self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged")
            self.start("slurmctld", "-D", "-c")
            self.start("slurmd", "-D")
            self.wait_for(lambda: self.ask("sinfo", "--noheader", "--format=%t") == "idle", "a node")
            stack.pop_all()
        return self

    def __exit__(self, *error):
        self.stop()

    def start(self, program, *arguments):
        with open(self.folder / f"{program}.output", "wb") as output:
            self.daemons.append(
                subprocess.Popen(
                    [path_of(program), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self.environment,
                )
            )

    def stop(self):
        if len(self.daemons) == 3:
            self.ask("scancel", "--full", "--user=root")
            with contextlib.suppress(AssertionError):
                self.wait_for(lambda: not self.ask("squeue", "--noheader"), "the end of all jobs")
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, *command):
        """The output of a command of Slurm; empty if it fails."""
        done = subprocess.run(
            [path_of(command[0]), *command[1:]],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=self.environment,
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def wait_for(self, reached, what, seconds=START_SECONDS):
        end = time.monotonic() + seconds
        while not reached():
            if time.monotonic() > end:
                logs = [path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log")]
                raise AssertionError(f"{what} was not there within {seconds} s\n" + "\n".join(logs))
            time.sleep(0.1)
