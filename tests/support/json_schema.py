"""Validates the output of `fraganalyze --json` against docs/schema.

Tests call check_command() after each command that they run. Without the module jsonschema it does nothing,
and the test json_schema is skipped with that reason.
"""

import functools
import json
import pathlib
import re

try:
    import jsonschema
except ImportError:
    jsonschema = None

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schema"
MISSING = (
    "skipped: JSON against its schema: this Python has no module jsonschema (Debian: python3-jsonschema)"
)
COMMANDS = (
    "report",
    "check",
    "compare",
    "explain",
    "list",
    "replay",
    "summarize",
    "top",
    "validate",
    "whatif",
)
MOST_PROBLEMS = 5


@functools.cache
def load(name):
    """A schema as in its file, except that references to common.json stay inside."""
    text = (FOLDER / f"{name}.json").read_text()
    return json.loads(text.replace('"common.json#', '"#'))


def whole(name):
    """A schema together with the definitions of common.json, so that it is complete."""
    schema = load(name)
    return schema | {"$defs": load("common")["$defs"] | schema.get("$defs", {})}


def names():
    """The names of the documents. Each has a schema."""
    return sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "common")


class Schemas:
    """Validators of all documents. They remember which properties occurred in valid objects."""

    def __init__(self):
        self.seen = set()  # (identity of "properties", name)
        plain = jsonschema.Draft202012Validator

        def remembering(keyword, is_there):
            def check(validator, known, instance, schema):
                problems = list(plain.VALIDATORS[keyword](validator, known, instance, schema))
                yield from problems
                if not problems and isinstance(instance, dict):
                    self.seen.update((id(known), key) for key in known if is_there(key, instance))

            return check

        validator = jsonschema.validators.extend(
            plain,
            {
                "properties": remembering("properties", lambda key, instance: key in instance),
                "patternProperties": remembering(
                    "patternProperties",
                    lambda pattern, instance: any(re.search(pattern, key) for key in instance),
                ),
            },
        )
        self.validators = {name: validator(whole(name)) for name in names()}

    def problems(self, name, document):
        """The first few problems, as sentences."""
        found = []
        for error in self.validators[name].iter_errors(document):
            # For a choice, the branch that got furthest gives the best message.
            best = jsonschema.exceptions.best_match([error])
            place = "".join(f"[{key!r}]" for key in best.absolute_path)
            found.append(f"{name}{place}: {best.message[:300]}")
            if len(found) == MOST_PROBLEMS:
                break
        return found

    def unseen(self):
        """Properties that no valid object had, as FILE#PLACE."""
        return [
            f"{name}#{place}/{key}"
            for name in ["common", *names()]
            for place, known in tables(load(name))
            for key in known
            if (id(known), key) not in self.seen and known[key] is not False
        ]


def tables(schema, place=""):
    """Each "properties" of a schema, with its place."""
    parts = (
        enumerate(schema)
        if isinstance(schema, list)
        else (schema.items() if isinstance(schema, dict) else ())
    )
    for key, value in parts:
        if key in ("properties", "patternProperties"):
            yield f"{place}/{key}", value
        if key != "if":  # a condition describes nothing
            yield from tables(value, f"{place}/{key}")


@functools.cache
def schemas():
    return Schemas()


def kind_of(command, document):
    """The document that a command of fraganalyze, or `fragtrace top` or `fragtrace doctor`, writes."""
    word = str(command[1]) if len(command) > 1 else ""
    if pathlib.Path(command[0]).name == "fragtrace" and word == "doctor":
        return word
    word = word if word in COMMANDS else "report"
    if word == "report" and "processes" in document:
        return "job"
    if word == "summarize" and "runs" in document:
        return "summarize_folder"
    if word == "validate" and "plan" in document:
        return "validate_plan"
    return word


def documents(command, status, stdout, cwd=None):
    """The texts that a command wrote, if JSON was requested and the command did not refuse."""
    words = [str(word) for word in command]
    program = pathlib.Path(words[0]).name
    if "--json" not in words or program not in ("fraganalyze", "fragtrace"):
        return []
    if words[1] == "top":
        return stdout.splitlines()
    if program == "fragtrace" and words[1] == "doctor":
        return [stdout] if status in (0, 1) else []
    if program != "fraganalyze":
        return []
    target = "".join(words[words.index("--json") + 1 :][:1])
    if target == "-":
        return [stdout] if stdout or status == 0 else []
    if status not in (0, 1) or not target:
        return []
    return [pathlib.Path(cwd or ".", target).read_text(errors="replace")]


def check_command(command, status, stdout, cwd=None):
    """Raises AssertionError if a document that this command wrote does not match its schema."""
    if jsonschema is None:
        return
    if isinstance(stdout, bytes):
        stdout = stdout.decode(errors="replace")
    for text in documents(command, status, stdout, cwd):
        document = json.loads(text)
        problems = schemas().problems(kind_of(command, document), document)
        assert not problems, f"{' '.join(map(str, command))}:\n" + "\n".join(problems)
