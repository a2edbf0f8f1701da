"""The shell completions are those of the built programs, and bash completes with them."""

import os
import select
import shutil
import subprocess
import sys
import time

import real_process
from real_process import BUILD, SOURCE

FOLDER = SOURCE / "docs" / "completions"


def complete(program, *words):
    """What bash offers for the last word of a command line."""
    script = f"""
        . {FOLDER / (program + ".bash")}
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _{program}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    return real_process.run(["bash", "-c", script, "bash", program, *words]).stdout.split()


# The beginning of a command line, and the same line after a tab.
LINES = (
    ("fragtrace tr", "fragtrace try"),
    ("fragtrace run --qu", "fragtrace run --quiet"),
    ("fragtrace run --stacks na", "fragtrace run --stacks native"),
    ("fragtrace doctor --json --bun", "fragtrace doctor --json --bundle"),
    ("fraganalyze export trace --to sq", "fraganalyze export trace --to sqlite"),
    ("fraganalyze whatif trace --no-sc", "fraganalyze whatif trace --no-scan"),
)


def complete_in_zsh(line):
    """The line that an interactive zsh makes of this one when the user presses tab."""
    controller, terminal = os.openpty()
    shell = subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    )
    os.close(terminal)
    shown = ""

    def wait_for(word):
        nonlocal shown
        until = time.monotonic() + 60
        while word not in shown:
            if not select.select([controller], [], [], max(0, until - time.monotonic()))[0]:
                raise AssertionError(f"zsh did not print {word}: {shown!r}")
            shown += os.read(controller, 65536).decode(errors="replace")

    try:
        start = f"fpath=({FOLDER} $fpath); autoload -Uz compinit; compinit -D; PS1=; print -r re''ady\n"
        os.write(controller, start.encode())
        wait_for("ready")
        shown = ""
        # Ctrl-A and Ctrl-E put the completed line between quotes, so that zsh prints it.
        os.write(controller, f"{line}\t\x01print -r -- 'be''gin:\x05'; print -r en''d\n".encode())
        wait_for("\nend")
        return shown.split("\nbegin:")[-1].split("\r")[0].rstrip()
    finally:
        shell.kill()
        shell.wait()
        os.close(controller)


class Completions(real_process.RealProcessTest):
    def test_the_completion_files_agree_with_help(self):
        self.run_well([sys.executable, "-B", SOURCE / "scripts" / "completions", "--build", BUILD, "--check"])

    def test_bash_completes_commands_options_and_values(self):
        self.assertIn("whatif", complete("fraganalyze", "wh"))
        self.assertEqual(complete("fraganalyze", "report", "trace", "--ht"), ["--html"])
        self.assertEqual(complete("fraganalyze", "whatif", "trace", "--color", "al"), ["always"])
        self.assertEqual(complete("fragtrace", "run", "--fli"), ["--flight-recorder"])
        self.assertEqual(complete("fragtrace", "run", "--stacks", "na"), ["native"])
        self.assertEqual(complete("fraganalyze", "report", "--no-such"), [])

    def test_bash_offers_values_after_an_option_with_a_value_and_options_after_a_flag(self):
        self.assertEqual(complete("fraganalyze", "export", "trace", "--to", "sq"), ["sqlite"])
        self.assertEqual(complete("fraganalyze", "replay", "trace", "--pool", "rmm-a"), ["rmm-arena"])
        self.assertEqual(complete("fragtrace", "run", "--virtual-gpu", ""), [])
        self.assertEqual(complete("fragtrace", "doctor", "--json", "--bun"), ["--bundle"])
        self.assertEqual(complete("fragtrace", "try", "trace", "--rem"), ["--remedy"])

    def test_zsh_completes_commands_options_and_values(self):
        self.needs("zsh")
        for line, expected in LINES:
            with self.subTest(line):
                self.assertEqual(complete_in_zsh(line), expected)

    def test_fish_completes_commands_options_and_values(self):
        self.needs("fish")
        for line, expected in LINES:
            with self.subTest(line):
                files = "; ".join(f"source {FOLDER / name}.fish" for name in ("fragtrace", "fraganalyze"))
                done = self.run_well(["fish", "--no-config", "-c", f'{files}; complete -C "{line}"'])
                offered = [row.split("\t")[0] for row in done.stdout.splitlines()]
                self.assertEqual(offered, [expected.split()[-1]])

    def needs(self, shell):
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")


if __name__ == "__main__":
    real_process.main()
