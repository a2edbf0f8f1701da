"""The tables of folders in docs/architecture.md and docs/page.md are true.

Every source file lies in one of their rows. It includes only files of its own row and of the rows that the
table allows. Rows use only rows above. In the viewer no two files import each other, directly or indirectly.
"""

import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([\w./]+)[>"]', re.MULTILINE)


IMPORT = re.compile(r'^(?:import|export)\b[^;]*?"(\.[\w./]*)";', re.MULTILINE)


def read_table(page):
    """Folder -> folders that it uses, in the order of the table."""
    text = (SOURCE / "docs" / page).read_text(encoding="utf-8")
    table = re.search(r"^\| folder \|.*?\n\n", text, re.MULTILINE | re.DOTALL).group()
    rows = {}
    for line in table.strip().splitlines()[2:]:
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        rows[cells[0].strip("`")] = re.findall(r"`([^`]+)`", cells[2])
    return rows


def row_of(path, rows):
    """The row of the innermost folder that has one, else None."""
    for folder in path.parents:
        if str(folder) in rows:
            return str(folder)
    return None


def included(path):
    """The project's own files that a source includes, relative to the project."""
    for name in INCLUDE.findall((SOURCE / path).read_text(encoding="utf-8")):
        # These are include folders of the recorder and of the analyzer's library.
        for base in ("", "preload", "preload/include", "preload/vgpu", "analyzer/include", str(path.parent)):
            target = pathlib.Path(base, name)
            if (SOURCE / target).is_file():
                yield target
                break


def imported(path):
    """The viewer's files that a file imports, for values or for types."""
    for name in IMPORT.findall((SOURCE / path).read_text(encoding="utf-8")):
        target = (SOURCE / path.parent / f"{name}.ts").resolve()
        if not target.is_file():
            raise AssertionError(f"{path} imports {name}, which is no file")
        yield target.relative_to(SOURCE)


def circle(imports):
    """Files that import each other in a circle. Empty if there is none."""
    done = set()

    def visit(path, above):
        if path in above:
            return above[above.index(path) :]
        if path in done:
            return []
        for target in imports[path]:
            found = visit(target, [*above, path])
            if found:
                return found
        done.add(path)
        return []

    for path in imports:
        found = visit(path, [])
        if found:
            return [str(file) for file in found]
    return []


class Folders(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.rows = read_table("architecture.md")
        self.sources = [
            path.relative_to(SOURCE)
            for part in ("analyzer", "preload")
            for suffix in ("*.h", "*.cpp", "*.c")
            for path in (SOURCE / part).rglob(suffix)
        ]
        self.assertGreater(len(self.sources), 300)

    def test_a_row_uses_only_rows_above_it(self):
        above = set()
        for folder, uses in self.rows.items():
            self.assertTrue((SOURCE / folder).is_dir(), folder)
            self.assertEqual(sorted(set(uses) - above), [], f"used by {folder}")
            above.add(folder)

    def test_every_source_file_lies_in_a_row(self):
        self.assertEqual(
            [
                str(path)
                for path in self.sources
                if path.parts[-2:] != ("analyzer", "main.cpp") and row_of(path, self.rows) is None
            ],
            [],
        )

    def test_a_file_includes_only_what_its_row_allows(self):
        self.check_uses({path: list(included(path)) for path in self.sources})

    def check_uses(self, targets):
        wrong, used = [], {folder: set() for folder in self.rows}
        for path, others in targets.items():
            row = row_of(path, self.rows)
            if row is None:
                continue
            for target in others:
                other = row_of(target, self.rows)
                used[row].add(other)
                if other != row and other not in self.rows[row]:
                    wrong.append(f"{path} includes {target}")
        self.assertEqual(wrong, [])
        unused = [
            f"{row} does not use {other}"
            for row, allowed in self.rows.items()
            for other in allowed
            if other not in used[row]
        ]
        self.assertEqual(unused, [], "the table allows what nobody needs")


class Viewer(Folders):
    def setUp(self):
        self.rows = read_table("page.md")
        self.sources = [path.relative_to(SOURCE) for path in (SOURCE / "viewer" / "src").rglob("*.ts")]
        self.assertGreater(len(self.sources), 50)
        self.imports = {path: list(imported(path)) for path in self.sources}

    def test_a_file_includes_only_what_its_row_allows(self):
        self.check_uses(self.imports)

    def test_no_two_files_import_each_other(self):
        self.assertEqual(circle(self.imports), [])
        self.assertGreater(sum(len(targets) for targets in self.imports.values()), 200)


if __name__ == "__main__":
    unittest.main()
