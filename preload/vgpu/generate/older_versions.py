"""Gives each name of a stand-in library to the older major versions of that library as well.

Usage: older_versions.py NM STEM OUT OBJECT...
  STEM: libcudart, libcublas or libcublasLt; OUT: the assembler file to write.
A program binds to a name and a version node ("cudaMalloc" in "libcudart.so.12"). One library with a node per
major version therefore serves all majors, with one state. The older version of NAME is fragtrace_v12_NAME or
fragtrace_v11_NAME if the objects define it (v12 also serves version 11 if there is no v11), and otherwise
NAME itself."""

import pathlib
import re
import subprocess
import sys

MAJORS = {"libcudart": (("12", "12"), ("11", "11.0"))}
OTHERS = (("12", "12"), ("11", "11"))


def defined_names(nm, objects):
    listed = subprocess.run(
        [nm, "--defined-only", "--extern-only", *objects], check=True, capture_output=True, text=True
    ).stdout
    return {line.split()[2] for line in listed.splitlines() if re.match(r"\w+ [TW] \w+$", line)}


def target_of(name, major, names):
    for newer in range(int(major), 13):
        if f"fragtrace_v{newer}_{name}" in names:
            return f"fragtrace_v{newer}_{name}"
    return name if name in names else None


def main():
    nm, stem, out, *objects = sys.argv[1:]
    names = defined_names(nm, objects)
    public = {re.sub(r"^fragtrace_v\d+_", "", name) for name in names}
    lines = ['#include "common/stub.h"']
    for major, node in MAJORS.get(stem, OTHERS):
        for name in sorted(public):
            target = target_of(name, major, names)
            if target and re.match(r"(cu|__cuda)", name):
                lines.append(f"FT_OLDER(fragtrace_at{major}_{name}, {target}, {name}, {stem}.so.{node})")
    pathlib.Path(out).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
