"""Adds up a gcovr summary (standard input) by folder: lines, and how many of them the tests run."""

import collections
import json
import pathlib
import sys

lines, covered = collections.Counter(), collections.Counter()
for file in json.load(sys.stdin)["files"]:
    folder = str(pathlib.Path(file["filename"]).parent)
    lines[folder] += file["line_total"]
    covered[folder] += file["line_covered"]
for folder in sorted(lines) + ["all"]:
    total = lines[folder] if folder in lines else lines.total()
    ran = covered[folder] if folder in lines else covered.total()
    print(f"{folder:32} {total:7,} lines {100 * ran / max(1, total):6.1f} %")
