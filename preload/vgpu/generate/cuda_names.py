"""Reads the installed CUDA headers and writes what the stand-ins need at build time.

Usage: cuda_names.py {driver|runtime} INCLUDE_DIR OUT_DIR
  driver:  driver_stubs.c (every exported name as a weak stub, per-thread names as aliases),
           entry_points.inc (name, version, per-thread -> symbol), driver_errors.inc
  runtime: runtime_stubs.c, runtime_errors.inc
The output depends on the headers alone and is not kept in the repository."""

import pathlib
import re
import sys

SUFFIX = re.compile(r"_(ptsz|ptds)$")


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def exported_names(text, calling_convention, prefix):
    """Returns every symbol that a program compiled with this header can need: declared, renamed and
    per-thread names."""
    declared = set(re.findall(calling_convention + r"\s+(" + prefix + r"\w+)\s*\(", text))
    renames = re.findall(r"#\s*define\s+(" + prefix + r"\w+)[ \t]+([^\n]+)", text)
    names = set(declared)
    for source, target in renames:
        per_thread = re.match(r"__CUDA(?:RT)?_API_(PTDS|PTSZ)\((\w+)\)", target.strip())
        if per_thread:
            names.add(per_thread.group(2))
            names.add(per_thread.group(2) + "_" + per_thread.group(1).lower())
        elif re.fullmatch(prefix + r"\w+", target.strip()):
            names.add(target.strip())
        if source in declared:
            names.add(source)
    return names


def write_stubs(path, names):
    lines = ["/* Generated from the CUDA headers. */", '#include "common/stub.h"']
    for name in sorted(names):
        base = SUFFIX.sub("", name)
        if base != name and base in names:
            lines.append(f"FT_ALIAS({name}, {base})")
        else:
            lines.append(f"FT_STUB({name})")
    path.write_text("\n".join(lines) + "\n")


def write_errors(path, text, enum_tag):
    body = re.search(enum_tag + r"\s*\{(.*?)\}", text, flags=re.DOTALL).group(1)
    seen = {}
    for name, value in re.findall(r"(\w+)\s*=\s*(0x[0-9a-fA-F]+|\d+)", body):
        seen.setdefault(int(value, 0), name)
    path.write_text("".join(f"FT_ERROR({n}, {v})\n" for v, n in sorted(seen.items())))


def entry_points(typedefs, names, renames):
    """Returns cuGetProcAddress's table: version n of a name is name, name_v2, name_v3...

    If the header renames a name, its newest version is the renamed symbol."""
    versions = {}
    for name, version, per_thread in re.findall(r"PFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\)", typedefs):
        versions.setdefault((name, per_thread or ""), set()).add(int(version))
    rows = []
    for (name, per_thread), found in sorted(versions.items()):
        ordered = sorted(found)
        plain = sorted(versions.get((name, ""), found))
        for version in ordered:
            # Per-thread variants use the version numbers of the plain name: some exist only since 7.0.
            position = (
                ordered.index(version)
                if len(ordered) == len(plain)
                else (plain.index(version) if version in plain else len(plain) - 1)
            )
            symbol = name if position == 0 else f"{name}_v{position + 1}"
            newest = renames.get(name, "")
            if version == ordered[-1] and re.fullmatch(name + r"_v\d+", newest):
                symbol = newest
            if symbol not in names:
                symbol = newest if newest in names else name
            if symbol + per_thread in names:
                rows.append((name, version, 1 if per_thread else 0, symbol + per_thread))
    return rows


def driver(include, out):
    text = without_comments((include / "cuda.h").read_text())
    typedefs = without_comments((include / "cudaTypedefs.h").read_text())
    names = exported_names(text, "CUDAAPI", "cu")
    profiler = include / "cudaProfiler.h"
    names |= {"cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop"}
    if profiler.exists():
        names |= exported_names(without_comments(profiler.read_text()), "CUDAAPI", "cu")
        typedefs_file = include / "cudaProfilerTypedefs.h"
        if typedefs_file.exists():
            typedefs += without_comments(typedefs_file.read_text())
    renames = {}
    for source, target in re.findall(r"#\s*define\s+(cu\w+)[ \t]+([^\n]+)", text):
        target = re.sub(r"__CUDA_API_PT[DS][SZ]\((\w+)\)", r"\1", target.strip())
        renames.setdefault(source, target)
    write_stubs(out / "driver_stubs.c", names)
    rows = entry_points(typedefs, names, renames)
    rows += [(name, 4000, 0, name) for name in ("cuProfilerStart", "cuProfilerStop")]
    (out / "entry_points.inc").write_text("".join(f"FT_ENTRY({n}, {v}, {t}, {s})\n" for n, v, t, s in rows))
    write_errors(out / "driver_errors.inc", text, "cudaError_enum")


def runtime(include, out):
    text = without_comments((include / "cuda_runtime_api.h").read_text())
    names = exported_names(text, "CUDARTAPI(?:_CDECL)?", "cuda")
    names |= {"cudaProfilerStart", "cudaProfilerStop", "cudaGetExportTable"}
    write_stubs(out / "runtime_stubs.c", names)
    types = without_comments((include / "driver_types.h").read_text())
    write_errors(out / "runtime_errors.inc", types, "cudaError")


if __name__ == "__main__":
    kind, include_dir, out_dir = sys.argv[1:4]
    output = pathlib.Path(out_dir)
    output.mkdir(parents=True, exist_ok=True)
    {"driver": driver, "runtime": runtime}[kind](pathlib.Path(include_dir), output)
