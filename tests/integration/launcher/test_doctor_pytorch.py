"""`fragtrace doctor` on an interpreter with a real PyTorch."""

import json

import real_process
from real_process import LAUNCHER, TORCH_PYTHON


class Doctor(real_process.RealProcessTest):
    def test_pytorch_is_named_with_its_release_as_it_names_itself(self):
        done = self.run_well([LAUNCHER, "doctor", "--json", "--", TORCH_PYTHON], cwd=self.folder)
        (found,) = [one for one in json.loads(done.stdout)["findings"] if one["topic"] == "pytorch"]
        names = self.run_well(
            [TORCH_PYTHON, "-c", "import torch; print(torch.__version__, 'for CUDA', torch.version.cuda)"]
        )
        self.assertEqual(found["state"], "ok")
        self.assertIn(f"PyTorch {names.stdout.strip()}: ", found["text"])


if __name__ == "__main__":
    real_process.main()
