"""The shell completions are those of the built programs, and bash completes with them."""

import shutil
import subprocess
import sys

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

    def test_zsh_reads_its_files(self):
        self.check_syntax("zsh", "_fraganalyze", "_fragtrace")

    def test_fish_reads_its_files(self):
        self.check_syntax("fish", "fraganalyze.fish", "fragtrace.fish")

    def check_syntax(self, shell, *names):
        if shutil.which(shell) is None:
            self.skipTest(f"{shell} is not installed")
        for name in names:
            subprocess.run([shell, "-n", FOLDER / name], check=True)


if __name__ == "__main__":
    real_process.main()
