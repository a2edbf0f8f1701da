"""The cells of a notebook, run by IPython without a browser. Each cell is a phase and says how much memory it
left allocated. --forget clears the last traceback before the next cell."""

import sys

from IPython.core.interactiveshell import InteractiveShell

CELLS = [
    "%load_ext fragtrace",
    "import torch\nfrom training import optimizer_of, small_gpt, text, train_step",
    "torch.manual_seed(1)\nmodel = small_gpt(); optimizer = optimizer_of(model)",
    "losses = [train_step(model, optimizer, text(4, 512)) for _ in range(2)]",
    (
        "def look(n):\n    hidden = model.tokens(text(n, 512))\n    return model(text(4096, 512), None)\n"
        "look(64)"
    ),
    "%fragtrace forget" if "--forget" in sys.argv else "print('on with it')",
    "train_step(model, optimizer, text(8, 512)).item()",
]


def main():
    shell = InteractiveShell.instance(colors="nocolor")
    for cell in CELLS:
        shell.run_cell(cell, store_history=True)


if __name__ == "__main__":
    main()
