#!/usr/bin/env python3
"""Measures the page of a million blocks, of 300,000 that are live at once, and of ten million, and compares
it with PyTorch's memory_viz.

Without --trace a transformer is trained on the virtual GPU until it has made a million blocks, while
PyTorch's own recorder keeps its history. The page and PyTorch's viewer then show the same requests. If that
viewer cannot open as many, both are measured on a tenth. Ten million blocks (8,600 steps of
scripts/demos/gpt.py, minutes) are measured only with --large.

PyTorch's viewer loads its script from the network, so it is measured only with --memory-viz. The option names
a folder with MemoryViz.js and process_alloc_data.js (torch/utils/viz of PyTorch's repository) and d3.js (the
package d3 of npm as one module: esbuild node_modules/d3/src/index.js --bundle --format=esm).

    page_cost.py --build build [--python PY] [--memory-viz FOLDER] [--large] [--trace T --snapshot S]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGE_STEPS = 8600
MOVING = "move_median_ms"
# Median frames with 300,000 live blocks, while the cursor moves.
CROWD = {
    "crowd_cursor_ms": "plain",
    "crowd_search_ms": "with a search",
    "crowd_growth_ms": "stacks by growth",
}


def record(build, folder, words):
    """Runs a program on the virtual GPU and returns its trace."""
    folder.mkdir()
    subprocess.run(
        [
            build / "bin/fragtrace",
            "run",
            "--virtual-gpu",
            "16GiB",
            "-o",
            folder,
            "--quiet",
            "--",
            *map(str, words),
        ],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.ftrace"))


def write_page(build, trace, page):
    """Seconds of wall-clock time and of processor time."""

    def spent():
        times = os.times()
        return times.elapsed, times.children_user + times.children_system

    before = spent()
    subprocess.run(
        [build / "bin/fraganalyze", trace, "--no-whatif", "--html", page], check=True, capture_output=True
    )
    return tuple(after - began for began, after in zip(before, spent()))


def write_viewer(python, snapshot, viewer):
    subprocess.run(
        [
            python,
            "-c",
            (
                "import pickle, sys\nfrom torch.cuda import _memory_viz as viz\n"
                "html = viz.trace_plot(pickle.load(open(sys.argv[1], 'rb')))\n"
                "open(sys.argv[2], 'w').write(html)"
            ),
            snapshot,
            viewer,
        ],
        check=True,
        capture_output=True,
    )


def browse(*words):
    """The figures of page_cost.mjs, or the reason why there are none."""
    done = subprocess.run(
        ["node", ROOT / "tests/bench/page_cost.mjs", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return None, lines[-1] if lines else f"it ended with {done.returncode}"
    return json.loads(done.stdout), ""


def show(name, figures):
    print(
        f"{name}: {figures.get('blocks', figures.get('polygons')):,} "
        f"{'blocks' if 'blocks' in figures else 'blocks drawn'}, {figures['mb']:.2f} MB"
    )
    print(f"  first meaningful paint {figures['paint_ms']:.0f} ms", end="")
    if "interactive_ms" in figures:
        least, most = figures["interactive_range"]
        print(f", interactive {figures['interactive_ms']:.0f} ms ({least:.0f} to {most:.0f})", end="")
    print(f", JS heap and buffers {figures['heap_mb']:.0f} MB")
    for what, (median, most, processor) in figures.get("moving", {}).items():
        print(
            f"  {what}: frame median {median:.1f} ms, 95th {most:.1f} ms, {processor:.1f} ms of "
            "processor time"
        )
    if MOVING in figures:
        print(f"  moving, all: frame median {figures[MOVING]:.1f} ms, 95th {figures['move_95th_ms']:.1f} ms")
    for what, (median, most, processor) in figures.get("cursor", {}).items():
        print(
            f"  moving the cursor, {what}: frame median {median:.1f} ms, 95th {most:.1f} ms, "
            f"{processor:.1f} ms of processor time"
        )
    for what, most in figures.get("changes", {}).items():
        print(f"  {what}: longest frame {most:.0f} ms")
    if "scrub_median_ms" in figures:
        print(
            f"  moving the cursor: frame median {figures['scrub_median_ms']:.1f} ms, "
            f"95th {figures['scrub_95th_ms']:.1f} ms"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / ".venv/bin/python")
    parser.add_argument("--blocks", type=int, default=1_000_000)
    parser.add_argument("--large", action="store_true", help="ten million blocks, too")
    parser.add_argument("--memory-viz", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--trace", type=pathlib.Path, help="of a million blocks")
    parser.add_argument("--snapshot", type=pathlib.Path, help="PyTorch's, of the same run")
    parser.add_argument("--large-trace", type=pathlib.Path)
    parser.add_argument("--loads", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="write the figures there, too")
    args = parser.parse_args()
    build, python = args.build.resolve(), args.python.absolute()
    if args.trace is None and not python.exists():
        print(f"page_cost.py: {python} is not there (--python), and no --trace is given", file=sys.stderr)
        return 2
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def pair(blocks):
            """A training with so many blocks, recorded by both recorders."""
            snapshot = folder / f"{blocks}.pickle"
            return record(
                build,
                folder / str(blocks),
                [python, ROOT / "tests/bench/record_snapshot.py", 3 * blocks, snapshot, "--least"],
            ), snapshot

        def ours(trace, loads):
            page = folder / "page.html"
            clock, processor = write_page(build, trace, page)
            print(f"written in {clock:.1f} s, {processor:.1f} s of processor time, report included")
            seen, reason = browse("page", page, "-", loads)
            if seen is None:
                raise RuntimeError(f"the page of {trace}: {reason}")
            return seen | {"write_s": clock, "write_processor_s": processor}

        def compare(seen, snapshot):
            """Whether PyTorch's viewer opens the snapshot, and our figures relative to its figures."""
            viewer = folder / "viewer.html"
            write_viewer(python, snapshot, viewer)
            theirs, reason = browse("viz", viewer, args.memory_viz, 1)
            if theirs is None:
                print(f"PyTorch's viewer: {viewer.stat().st_size / 1e6:.0f} MB, does not open: {reason}")
                return False
            show("PyTorch's viewer", theirs)
            for figure in ("mb", "paint_ms", "heap_mb", MOVING, "move_95th_ms"):
                if figure in theirs:
                    figures["of_viz_" + figure] = seen[figure] / theirs[figure]
            print(
                "  the page takes of that: "
                + ", ".join(
                    f"{figure[7:]} {value:.3f}"
                    for figure, value in figures.items()
                    if figure.startswith("of_viz_")
                )
            )
            return True

        trace, snapshot = (args.trace, args.snapshot) if args.trace else pair(args.blocks)
        figures |= ours(trace, args.loads)
        colours = [most for what, most in figures["changes"].items() if what.startswith("colours")]
        figures["colours_ms"] = max(colours)
        show("the page", figures)
        if args.memory_viz is None or not python.exists():
            print("PyTorch's viewer: not measured: no --memory-viz FOLDER, or no PyTorch")
        elif snapshot is None or not compare(figures, snapshot):
            fewer = args.blocks // 10
            trace, snapshot = pair(fewer)
            small = ours(trace, args.loads)
            show(f"the page of {fewer:,} blocks", small)
            compare(small, snapshot)
        maker = build / "bin/make_page"
        if maker.exists():
            page = folder / "crowd.html"
            subprocess.run([maker, "crowd", page], check=True, capture_output=True)
            crowd, reason = browse("page", page, "-", 1)
            if crowd is None:
                raise RuntimeError(f"the page of 300,000 live blocks: {reason}")
            show("300,000 live blocks", crowd)
            for figure, what in CROWD.items():
                figures[figure] = crowd["cursor"][what][0]
        if args.large or args.large_trace:
            large_trace = args.large_trace or record(
                build, folder / "large", [python, ROOT / "scripts/demos/gpt.py", "--steps", LARGE_STEPS]
            )
            large = ours(large_trace, min(3, args.loads))
            show("the large page", large)
            figures |= {"large_" + figure: value for figure, value in large.items()}
    if args.json:
        args.json.write_text(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
