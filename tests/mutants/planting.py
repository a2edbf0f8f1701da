"""Reads the lists of faults and plants all of them into a copy of the sources, to be chosen at run time."""

import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
LISTS = pathlib.Path(__file__).resolve().parent / "faults"


class PlantingError(Exception):
    pass


@dataclasses.dataclass
class Fault:
    area: str
    file: str
    words: str = ""
    behind: str = ""
    right: str = ""
    wrong: str = ""
    equal: str = ""  # the reason why it changes nothing
    number: int = 0

    @property
    def key(self):
        return f"{self.file}: {self.behind} {self.right} -> {self.wrong}"


def read_faults():
    """Reads the lists: each is a file of blocks divided by empty lines (format: README.md in this folder)."""
    faults = []
    for path in sorted(LISTS.glob("*.txt")):
        file = ""
        for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
            fault = Fault(path.stem, file)
            for line in block.splitlines():
                sign, _, text = line.partition(" ")
                if sign == "==":
                    file = fault.file = text.strip()
                elif sign == "@":
                    fault.behind = joined(fault.behind, text)
                elif sign == "-":
                    fault.right = joined(fault.right, text)
                elif sign == "+":
                    fault.wrong = joined(fault.wrong, text)
                elif sign == "=":
                    fault.equal = joined(fault.equal, text)
                elif sign != "#":
                    fault.words = joined(fault.words, line)
            if fault.right:
                faults.append(fault)
    for number, fault in enumerate(faults, 1):
        fault.number = number
    twice = {fault.key for fault in faults if [other.key for other in faults].count(fault.key) > 1}
    if twice:
        raise PlantingError("listed twice: " + "; ".join(sorted(twice)))
    return faults


def joined(before, text):
    return f"{before} {text.strip()}".strip()


def spans_of(text, snippet, begin=0):
    """Where the snippet occurs, for any white space between its words."""
    pattern = re.compile(r"\s+".join(re.escape(word) for word in snippet.split()))
    return [match.span() for match in pattern.finditer(text, begin)]


def place_of(fault, text):
    begin = 0
    if fault.behind:
        behind = spans_of(text, fault.behind)
        if len(behind) != 1:
            raise PlantingError(f"{fault.file}: occurs {len(behind)} times: {fault.behind}")
        begin = behind[0][1]
    found = spans_of(text, fault.right, begin)
    if not found or (len(found) > 1 and not fault.behind):
        raise PlantingError(f"{fault.file}: occurs {len(found)} times: {fault.right}")
    return found[0]


def planted(fault, right):
    """Both forms of the snippet, and the choice between them."""
    wrong = fault.wrong
    chosen = f"fragtrace_fault({fault.number})"
    condition = re.compile(r"((?:\} else )?(?:if|while) \()(.*)(\) ?\{?)", re.DOTALL)
    both = [condition.fullmatch(form) for form in (right, wrong)]
    if all(both) and both[0][1] == both[1][1] and balanced(both[0][2]) and balanced(both[1][2]):
        return f"{both[0][1]}{chosen} ? ({both[1][2]}) : ({both[0][2]}){both[0][3]}"
    constant = re.fullmatch(r"((?:inline )?)constexpr (.*?) = (.*);", right, re.DOTALL)
    if constant:
        value = re.fullmatch(r".*? = (.*);", wrong, re.DOTALL)[1]
        return (
            f"{constant[1] or 'static '}const {constant[2]} = "
            f"fragtrace_fault_at_run_time({fault.number}) ? {value} : {constant[3]};"
        )
    both = [re.fullmatch(r"(.*?[^=!<>] ?[-+*|&]?= )([^;]*);", form) for form in (right, wrong)]
    if all(both) and both[0][1] == both[1][1]:
        return f"{both[0][1]}({chosen} ? ({both[1][2]}) : ({both[0][2]}));"
    if right.endswith((";", "}")):
        return f"if ({chosen}) {{ {wrong} }} else {{ {right} }}"
    return f"({chosen} ? ({wrong}) : ({right}))"


def balanced(text):
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0


def with_faults(folder, file, text, faults):
    places = []
    for fault in faults:
        begin, end = place_of(fault, text)
        places.append((begin, end, planted(fault, " ".join(text[begin:end].split()))))
    places.sort()
    for (_, end, _), (begin, _, _) in zip(places, places[1:]):
        if begin < end:
            raise PlantingError(f"{file}: two faults in one place: {text[begin:end]}")
    for begin, end, form in reversed(places):
        lines = text[begin:end].count("\n")
        text = text[:begin] + form + "\n" * lines + text[end:]
    if file.endswith(".ts"):
        return (
            "const fragtraceFault = Number(globalThis.process?.env?.MUTANT ?? 0); "
            "const fragtrace_fault = (number: number): boolean => number === fragtraceFault; " + text
        )
    return f'#include "{folder}/tests/mutants/fault.h"\n#line 1\n{text}'


def copy_tree(folder, faults):
    """Copies all files that git knows or would add, with the faults. Unchanged files are left alone."""
    listed = (
        subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        .stdout.decode()
        .split("\0")
    )
    names = {name for name in listed if name and (ROOT / name).is_file()}
    by_file = {}
    for fault in faults:
        by_file.setdefault(fault.file, []).append(fault)
    problems = [f"{file}: no such file" for file in by_file if file not in names]
    for name in sorted(names):
        data = (ROOT / name).read_bytes()
        if name in by_file:
            try:
                data = with_faults(folder, name, data.decode(), by_file[name]).encode()
            except PlantingError as problem:
                problems.append(str(problem))
        to = folder / name
        if not to.exists() or to.read_bytes() != data:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(data)
            to.chmod((ROOT / name).stat().st_mode & 0o777)
    if problems:
        raise PlantingError("\n".join(problems))
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if (
            path.is_file()
            and name.parts[0] != "build"
            and str(name) not in names
            and "node_modules" not in name.parts
        ):
            path.unlink()
