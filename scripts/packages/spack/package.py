from spack.package import *
from spack_repo.builtin.build_systems.cmake import CMakePackage


class Fragtrace(CMakePackage):
    """Records the memory of GPU programs and explains out-of-memory errors."""

    maintainers("fragtrace")

    license("Apache-2.0")

    # Built from a clone: `spack dev-build fragtrace@0.1.0` in its folder.
    version("0.1.0")

    variant("virtual_gpu", default=True, description="Build the virtual GPU, which needs CUDA's headers")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.8:", type="build")
    depends_on("cli11@2:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("fmt@9:")
    depends_on("elfutils")
    depends_on("sqlite@3.34:")
    depends_on("re2")
    depends_on("zlib-api")
    depends_on("zstd")
    depends_on("cuda@11.2:", type="build", when="+virtual_gpu")

    # The recorder contains zstd and libunwind with hidden symbols (preload/libraries.cmake).
    for _name, _archive, _sum in (
        (
            "libzstd",
            "libz/libzstd/libzstd_1.5.4+dfsg2.orig.tar.xz",
            "8cf4bbb65e77ec348d052c8d6230eba66d435bddf64c8b5be2fcb16880c19953",
        ),
        (
            "libunwind",
            "libu/libunwind/libunwind_1.6.2.orig.tar.gz",
            "4a6aec666991fb45d0889c44aede8ad6eb108071c3554fcdff671f9c94794976",
        ),
    ):
        resource(
            name=_name,
            url="https://deb.debian.org/debian/pool/main/" + _archive,
            sha256=_sum,
            expand=False,
            destination="sources",
            placement=_name,
        )

    def setup_build_environment(self, env):
        # Spack has no package of esbuild, which bundles the page.
        if not which("esbuild"):
            raise InstallError("esbuild is missing on the path: npm install esbuild")

    def cmake_args(self):
        sources = join_path(self.stage.source_path, "sources", "all")
        mkdirp(sources)
        for name in ("libzstd", "libunwind"):
            for archive in find(join_path(self.stage.source_path, "sources", name), "*.orig.tar.*"):
                copy(archive, sources)
        arguments = [
            self.define("FRAGTRACE_TESTS", False),
            self.define("FRAGTRACE_SOURCES", sources),
            self.define_from_variant("FRAGTRACE_VIRTUAL_GPU", "virtual_gpu"),
        ]
        if self.spec.satisfies("+virtual_gpu"):
            arguments.append(self.define("FRAGTRACE_CUDA_ROOT", self.spec["cuda"].prefix))
        return arguments
