"""Installed trees and packages: programs that use the header build, and recording works from there."""

import os
import pathlib
import re
import shutil
import unittest

import real_process
from real_process import BUILD, SOURCE

CMAKE = os.environ["FRAGTRACE_CMAKE"]
CLIENT = os.environ["FRAGTRACE_CLIENT"]
PROJECT = pathlib.Path(__file__).with_name("project")
PACKAGES = SOURCE / "scripts" / "packages"
VERSION = re.search(r"project\(fragtrace VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]


def needs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class InstallTest(real_process.RealProcessTest):
    def install(self, prefix):
        self.run_well([CMAKE, "--install", BUILD, "--prefix", prefix])
        return prefix

    def assert_records(self, prefix, program, **variables):
        """Runs the client under the installed recorder and virtual GPU, and reads its report."""
        traces = self.folder / "traces"
        env = {**real_process.environment(), **variables}
        done = self.run_well(
            [prefix / "bin/fragtrace", "run", "--virtual-gpu", "1GiB", "-o", traces, "--", program, "cuda"],
            env=env,
        )
        self.assertTrue(done.stdout.startswith("write 0\n"), done.stdout)
        (trace,) = real_process.traces(traces)
        report = self.run_well([prefix / "bin/fraganalyze", trace, "--html", self.folder / "page.html"])
        self.assertIn("12 KiB", report.stdout)
        self.assertGreater((self.folder / "page.html").stat().st_size, 100_000)

    def test_find_package_and_pkg_config_build_a_program_that_is_recorded(self):
        prefix = self.install(self.folder / "moved")
        # The installation is not where it was made for: everything in it is relative.
        prefix = prefix.rename(self.folder / "prefix")
        built = self.folder / "build"
        self.run_well(
            [CMAKE, "-S", PROJECT, "-B", built, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCLIENT={CLIENT}"]
        )
        self.run_well([CMAKE, "--build", built])
        self.assert_records(prefix, built / "client")

        env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "share/pkgconfig")}
        self.assertEqual(
            self.run_well(["pkg-config", "--modversion", "fragtrace"], env=env).stdout.strip(), VERSION
        )
        flags = self.run_well(["pkg-config", "--cflags", "--libs", "fragtrace"], env=env).stdout.split()
        self.run_well(["cc", CLIENT, "-o", self.folder / "by_pkg_config", *flags])
        self.run_well([self.folder / "by_pkg_config"])

    def test_find_package_refuses_another_minor_version(self):
        prefix = self.install(self.folder / "prefix")
        project = self.folder / "project"
        shutil.copytree(PROJECT, project)
        text = (project / "CMakeLists.txt").read_text()
        (project / "CMakeLists.txt").write_text(text.replace("fragtrace 0.1", "fragtrace 0.0"))
        done = real_process.run(
            [CMAKE, "-S", project, "-B", self.folder / "b", f"-DCMAKE_PREFIX_PATH={prefix}"]
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("fragtrace", done.stderr)

    @unittest.skipUnless(
        pathlib.Path("/usr/share/modules/init/bash").exists(), "not installed: environment-modules"
    )
    def test_the_modulefile_makes_commands_and_the_python_module_available(self):
        prefix = self.install(self.folder / "prefix")
        commands = (
            ". /usr/share/modules/init/bash",
            f"module use {prefix}/share/fragtrace/modulefiles",
            f"module load fragtrace/{VERSION}",
            "type -P fragtrace fraganalyze",
            'python3 -c "import fragtrace; print(fragtrace.__file__)"',
            "man -w fraganalyze",
            "pkg-config --modversion fragtrace",
            "module help fragtrace",
            "module unload fragtrace",
            "type -P fragtrace || echo unloaded",
        )
        done = self.run_well(["bash", "-c", "\n".join(commands)])
        found = [
            f"{prefix}/bin/fragtrace",
            f"{prefix}/bin/fraganalyze",
            f"{prefix}/share/fragtrace/python/fragtrace/__init__.py",
            VERSION,
            "unloaded",
        ]
        if shutil.which("man"):
            found.insert(3, f"{prefix}/share/man/man1/fraganalyze.1")
        self.assertEqual(done.stdout.splitlines(), found, done.stderr)
        self.assertIn("srun fragtrace run", done.stderr)

    @needs("dpkg-deb", "dpkg-shlibdeps")
    def test_two_debian_packages_have_all_files_and_name_what_they_need(self):
        self.run_well([os.environ["FRAGTRACE_CPACK"], "-G", "DEB", "-B", self.folder], cwd=BUILD)
        packages = {deb.name.split("_")[0]: deb for deb in self.folder.glob("*.deb")}
        self.assertEqual(sorted(packages), ["fragtrace", "fragtrace-virtual-gpu"])

        def field(package, name):
            return self.run_well(["dpkg-deb", "--field", packages[package], name]).stdout.strip()

        needed = field("fragtrace", "Depends")
        self.assertIn("libdw1", needed)
        self.assertNotIn("zstd1 (", field("fragtrace-virtual-gpu", "Depends"))
        self.assertIn(f"fragtrace (= {VERSION})", field("fragtrace-virtual-gpu", "Depends"))

        installed = self.install(self.folder / "prefix")
        root = self.folder / "root"
        for deb in packages.values():
            self.run_well(["dpkg-deb", "--extract", deb, root])
        self.assertEqual(files_below(root / "usr"), files_below(installed))
        # Nothing in a package names the folder of the build.
        for name, file in packages.items():
            listing = self.run_well(["dpkg-deb", "--contents", file]).stdout
            self.assertNotIn(str(BUILD), listing, name)
        client = self.folder / "client"
        self.run_well(["cc", CLIENT, "-I", root / "usr/include", "-o", client, "-ldl"])
        self.assert_records(root / "usr", client)


def files_below(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


if __name__ == "__main__":
    unittest.main()
