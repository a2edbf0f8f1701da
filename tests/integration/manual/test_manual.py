"""The man pages list exactly the commands and options of --help."""

import re

import real_process
from real_process import ANALYZER, LAUNCHER, SOURCE


def page(name):
    """A man page as plain text, with its headings and paragraph marks."""
    text = (SOURCE / "docs" / "man" / name).read_text().replace(r"\-", "-")
    return re.sub(r"\\f.", "", text)


def section(text, name):
    return re.search(rf"^\.SH {name}\n(.*?)(?=^\.SH |\Z)", text, re.MULTILINE | re.DOTALL)[1]


def entries(text):
    """(first line, text) of each tagged paragraph."""
    return [entry.partition("\n")[::2] for entry in text.split("\n.PP\n")[0].split(".TP\n")[1:]]


def options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) - {"--help"}


class Analyzer(real_process.RealProcessTest):
    def setUp(self):
        super().setUp()
        shown = self.run_well([ANALYZER, "--help"]).stdout
        listed = shown[shown.index("\nCommands") : shown.index("\nExit status")]
        self.commands = re.findall(r"^  (\w+) +\w", listed, re.MULTILINE)
        self.text = page("fraganalyze.1")
        self.told = {line.removeprefix(".B "): text for line, text in entries(section(self.text, "COMMANDS"))}

    def known(self, command):
        """The options of a command according to its --help."""
        shown = self.run_well([ANALYZER, command, "--help"]).stdout
        return set(
            re.findall(r"^ +(?:-\w,)?(--[\w-]+)", shown[shown.index("\nOptions:") :], re.MULTILINE)
        ) - {"--help"}

    def test_each_command_has_an_entry(self):
        self.assertGreater(len(self.commands), 10)
        self.assertEqual(sorted(self.told), sorted(self.commands))

    def test_each_option_is_listed_with_its_commands(self):
        told = {command: options(text) & self.known(command) for command, text in self.told.items()}
        for line, text in entries(section(self.text, "OPTIONS")):
            of = re.search(r"\(([a-z,\s]+)\)$", text.strip())
            self.assertTrue(of, f"{line}: no commands at the end")
            for command in re.split(r",\s+", of[1]):
                told[command] |= options(line)
        for command in self.commands:
            self.assertEqual(sorted(told[command]), sorted(self.known(command)), command)

    def test_each_simulated_pool_is_named(self):
        shown = self.run_well([ANALYZER, "replay", "--help"]).stdout
        pools = re.search(r"simulated pool: ([a-z,\s-]+?)\n +--", shown)[1].split(",")
        pools = [pool.strip() for pool in pools]
        self.assertGreater(len(pools), 10)
        (told,) = [text for line, text in entries(section(self.text, "OPTIONS")) if "--pool" in line]
        self.assertEqual(
            sorted(re.findall(r"[\w-]+", told[told.index(":") : told.index(". (")])),
            sorted([*pools, "or", "a", "bound"]),
        )

    def test_no_unknown_option_is_listed(self):
        known = set().union(*map(self.known, self.commands))
        self.assertEqual(options(self.text), known)


class Version(real_process.RealProcessTest):
    def test_pages_and_packages_have_the_version_of_the_programs(self):
        (version,) = re.findall(r"\d+\.\d+\.\d+", self.run_well([ANALYZER, "--version"]).stdout)
        for name in ("fragtrace.1", "fraganalyze.1"):
            self.assertIn(f'"fragtrace {version}"', page(name).splitlines()[0])
        project = (SOURCE / "preload" / "python" / "pyproject.toml").read_text()
        self.assertEqual(re.findall(r'^version = "(.*)"$', project, re.MULTILINE), [version])


class Launcher(real_process.RealProcessTest):
    def test_options_and_variables_equal_those_of_help(self):
        told = page("fragtrace.1")
        shown = self.run_well([LAUNCHER, "--help"]).stdout
        shown = shown[shown.index("\nUsage:") :]  # without the examples
        self.assertEqual(options(told), options(shown))
        for text in (told, shown):
            self.assertGreater(len(options(text)), 10)
        self.assertEqual(*(set(re.findall(r"FRAGTRACE_[A-Z_]*[A-Z]", text)) for text in (told, shown)))

    def test_the_variables_that_the_programs_read_are_in_the_manual_and_in_the_documents(self):
        """And each variable that the documents name exists."""
        read, python = set(), set()
        for file in (SOURCE / "preload").rglob("*"):
            if file.suffix in (".cpp", ".h", ".def", ".c"):
                read |= set(re.findall(r'"(FRAGTRACE_[A-Z_]*[A-Z])"', file.read_text()))
            elif file.suffix == ".py":
                python |= set(re.findall(r'"(FRAGTRACE_[A-Z_]*[A-Z])"', file.read_text()))
        self.assertGreater(len(read), 20)
        self.assertEqual(read, set(re.findall(r"FRAGTRACE_[A-Z_]*[A-Z]", page("fragtrace.1"))))
        pages = [
            *(SOURCE / "docs").glob("*.md"),
            *(SOURCE / "preload").rglob("README.md"),
            SOURCE / "README.md",
        ]
        told = set().union(*(re.findall(r"FRAGTRACE_[A-Z_]*[A-Z]", file.read_text()) for file in pages))
        self.assertEqual((read | python) - told, set())
        # The others are of the build and of the tests.
        for name in told - read - python:
            files = [*SOURCE.glob("CMake*"), *SOURCE.glob("scripts/**/*"), *SOURCE.glob("tests/**/*")]
            self.assertTrue(
                any(name in file.read_text(errors="replace") for file in files if file.is_file()), name
            )


if __name__ == "__main__":
    real_process.main()
