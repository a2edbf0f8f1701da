"""The virtual GPU without a framework: driver clients, runtime clients, configuration."""

import subprocess

import real_process
from real_process import BUILD, VIRTUAL_GPU, environment, run

CLIENTS = BUILD / "tests" / "integration" / "vgpu"
DRIVER = CLIENTS / "vgpu_driver_client"


class VirtualGpu(real_process.RealProcessTest):
    def test_the_driver_client_passes_on_every_kind_of_card(self):
        for card in ("1GiB", "A100-80GB", "RTX-4090,count=2", "512MiB,context=0"):
            self.run_well([DRIVER], env=environment(card))

    def test_every_family_of_memory_calls_passes_its_checks(self):
        for card in ("1GiB", "RTX-4090,count=2"):
            self.run_well([CLIENTS / "vgpu_memory_client"], env=environment(card))

    def test_one_runtime_serves_programs_for_older_cuda_versions(self):
        for major in ("11.0", "12", "13"):
            self.run_well([CLIENTS / "vgpu_older_client", major], env=environment("1GiB"))

    def test_cudnn_keeps_descriptors_and_follows_the_model_of_workspaces(self):
        self.run_well([CLIENTS / "vgpu_cudnn_client"], env=environment("1GiB"))

    def test_without_the_variable_there_is_no_device(self):
        env = environment("1GiB")
        del env["FRAGTRACE_VIRTUAL_GPU"]
        self.assertIn("FAILED: cuInit", run([DRIVER], env=env).stdout)

    def test_a_bad_value_is_named_in_one_line(self):
        for card in ("", "huge", "1GiB,count=65", "1GiB,context=2GiB", "1GiB,colour=red", "0", "2TiB"):
            done = run([DRIVER], env=environment(card))
            self.assertIn("FAILED: cuInit", done.stdout, card)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(f"FRAGTRACE_VIRTUAL_GPU={card}:", done.stderr)
        self.assertIn("RTX-5090)", run([DRIVER], env=environment("huge")).stderr)
        for name, value in (("HOST", "64"), ("NCCL_LIMIT", "soon"), ("PROCESSES", "1"), ("CARDS", "a/b")):
            variable = f"FRAGTRACE_VIRTUAL_GPU_{name}"
            done = run([DRIVER], env=environment("1GiB", **{variable: value}))
            self.assertIn("FAILED: cuInit", done.stdout, variable)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(f"{variable}={value}: give ", done.stderr)

    def test_only_visible_devices_are_found(self):
        for visible, status in (("1", 0), ("", 1), ("-1", 1), ("7", 1)):
            env = environment("1GiB,count=2", CUDA_VISIBLE_DEVICES=visible)
            self.assertEqual("FAILED" in run([DRIVER], env=env).stdout, bool(status), visible)

    def test_two_devices_follow_the_order_of_cuda_visible_devices(self):
        second = "GPU-66726167-7472-6163-652d-766770752d31"
        for visible, physical in (
            (None, "01"),
            ("0,1", "01"),
            ("1,0", "10"),
            ("1", "1"),
            ("1,9,0", "1"),
            ("0,0", ""),
            (second, "1"),
            (second[:4], ""),
            (f"{second},0", "10"),
        ):
            env = environment("RTX-4090,count=2")
            env.pop("CUDA_VISIBLE_DEVICES", None)
            if visible is not None:
                env["CUDA_VISIBLE_DEVICES"] = visible
            with self.subTest(visible=visible):
                self.run_well([CLIENTS / "vgpu_devices_client", physical], env=env)

    def test_the_libraries_need_only_libc(self):
        for library in sorted(VIRTUAL_GPU.glob("*.so*")):
            dynamic = subprocess.run(
                ["readelf", "-d", library], capture_output=True, text=True, check=True
            ).stdout
            needed = [line.split("[")[1][:-1] for line in dynamic.splitlines() if "NEEDED" in line]
            extra = [name for name in needed if not name.startswith(("libc.so", "ld-linux"))]
            self.assertEqual(extra, [], library.name)

    def test_preload_list_names_built_libraries(self):
        for name in (VIRTUAL_GPU / "preload.list").read_text().split():
            self.assertTrue((VIRTUAL_GPU / name).exists(), name)
        for link in (VIRTUAL_GPU / "without-cuda").iterdir():
            self.assertTrue(link.exists(), link)


if __name__ == "__main__":
    real_process.main()
