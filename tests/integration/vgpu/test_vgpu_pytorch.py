"""The virtual GPU under the real PyTorch."""

import pathlib

import real_process
from real_process import TORCH_PYTHON, environment

PROGRAMS = pathlib.Path(__file__).parent / "programs"


class PyTorch(real_process.RealProcessTest):
    def program(self, name, *arguments, card="24GiB", conf=""):
        env = environment(card, PYTORCH_CUDA_ALLOC_CONF=conf)
        return self.run_training([PROGRAMS / name, *arguments], env=env).stdout

    def test_fragmentation_decides_whether_the_last_request_is_served(self):
        for conf, memory, served in (
            ("", "846 1880", False),
            ("expandable_segments:True", "846 1700", False),
            ("max_split_size_mb:20", "846 1880", False),
            ("garbage_collection_threshold:0.6", "846 1880", False),
            ("roundup_power2_divisions:4", "940 1880", True),
        ):
            lines = self.program("fragmented.py", card="1894MiB,context=0", conf=conf).splitlines()
            self.assertEqual(lines[0], memory, conf)
            self.assertEqual(lines[1] == "served", served, conf)
            if not served:
                self.assertIn("total capacity of 1.85 GiB", lines[1])

    def test_two_runs_of_a_training_have_the_same_output(self):
        for arguments in ((), ("amp",)):
            first = self.program("train_gpt.py", *arguments)
            self.assertIn("step 9 ", first)
            self.assertIn("0x200000000000 ", first)
            self.assertEqual(first, self.program("train_gpt.py", *arguments))

    def test_training_runs_with_other_allocators(self):
        for conf in ("expandable_segments:True", "backend:cudaMallocAsync"):
            self.assertIn("step 9 ", self.program("train_gpt.py", conf=conf), conf)

    def test_training_runs_on_every_card(self):
        for card in ("T4", "A100-80GB", "H100-80GB", "RTX-4090"):
            self.assertIn("step 9 ", self.program("train_gpt.py", "amp", card=card), card)

    def test_a_training_with_convolutions_runs(self):
        self.assertIn("trained", self.program("train_conv.py"))

    def test_a_training_with_two_ranks_runs(self):
        env = environment("A100-80GB,count=2")
        done = self.run_well(
            [
                TORCH_PYTHON,
                "-m",
                "torch.distributed.run",
                "--standalone",
                "--nproc-per-node",
                "2",
                PROGRAMS / "two_ranks.py",
            ],
            env=env,
        )
        for rank in (0, 1):
            self.assertIn(f"{rank} done", done.stdout)

    def test_every_feature_used_by_the_program_works(self):
        self.assertEqual(
            self.program("features.py", card="A100-80GB,count=2").split(),
            ["copies", "graphs", "streams", "pinned", "pools", "devices", "after_fork"],
        )


if __name__ == "__main__":
    real_process.main()
