"""`fragtrace demo`: trains a GPT in real PyTorch on a virtual GPU, prints the report, and writes the page.

The launcher (preload/launcher/demo.cpp) reads the options. It starts this program with its own path, the
interpreter of the training, and the path of the page.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import abort_at_end

CARD = "16GiB"
CHECK = """
try:
    import torch
except ImportError:
    raise SystemExit("has no PyTorch")
if not torch.version.cuda:
    raise SystemExit("has PyTorch %s, which is not a CUDA build" % torch.__version__)
"""


def refuse(text):
    print(f"fragtrace: demo: {text}", file=sys.stderr)
    sys.exit(2)


def note(text):
    print(f"== {text}", flush=True)


def check_pytorch(python):
    if shutil.which(python) is None:
        refuse(f"--python {python}: no such program")
    checked = subprocess.run([python, "-c", CHECK], capture_output=True, text=True, check=False)
    if checked.returncode:
        lines = checked.stderr.strip().splitlines() or ["cannot import PyTorch"]
        refuse(
            f"{python} {lines[-1]}. Run pip install 'fragtrace[demo]', or give an interpreter that has "
            "PyTorch: --python PATH"
        )


def traces_in(folder):
    return {path for path in folder.iterdir() if path.suffix == ".ftrace"}


def train(launcher, python, folder):
    """Runs the training under the recorder. Returns its exit status and its standard error."""
    program = pathlib.Path(__file__).with_name("gpt.py")
    command = [launcher, "run", "--virtual-gpu", CARD, "-o", folder, "--quiet", "--", python, program]
    said = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as training:
        for line in training.stderr:
            said.append(line)
            sys.stderr.write(line)
            sys.stderr.flush()
    return training.returncode, "".join(said)


def main():
    launcher, python, page = sys.argv[1:]
    page = pathlib.Path(page)
    analyzer = str(pathlib.Path(launcher).with_name("fraganalyze"))
    folder = page.parent
    check_pytorch(python)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        earlier = traces_in(folder)
    except OSError as error:
        refuse(f"{folder}: {error.strerror}. Give a folder that can be written: -o FILE")

    note(f"Training a GPT for 40 steps on a virtual card of {CARD[:-3]} GiB, under the recorder")
    status, said = train(launcher, python, folder)
    new = sorted(traces_in(folder) - earlier)
    # PyTorch sometimes aborts at the end of a training, with and without fragtrace.
    aborted = abort_at_end.aborted_at_end(status, said)
    if status and not (aborted and new and abort_at_end.trace_ends_killed(analyzer, new[0])):
        sys.exit(status)
    if not new:
        sys.exit(f"fragtrace: demo: the training left no trace in {folder}")

    note("The report")
    status = subprocess.run([analyzer, str(new[0]), "--html", str(page)], check=False).returncode
    if status:
        sys.exit(status)
    on_path = os.path.realpath(shutil.which("fragtrace") or "") == os.path.realpath(launcher)
    first, second = ("fragtrace", "fraganalyze") if on_path else (launcher, analyzer)
    print(f"""
== {page.absolute()} shows it in a browser.
The same with a program of yours:
  {first} run --virtual-gpu 24GiB -- python train.py    (or without --virtual-gpu, on a GPU)
  {second} TRACE.ftrace --html timeline.html
  {second} whatif TRACE.ftrace""")


if __name__ == "__main__":
    main()
