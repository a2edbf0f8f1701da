"""The table of scenarios: the program, the card, and the runs."""

import dataclasses


@dataclasses.dataclass
class Run:
    what: str
    arguments: str = ""
    conf: str = ""  # PYTORCH_CUDA_ALLOC_CONF
    environment: dict = dataclasses.field(default_factory=dict)
    card: str = ""  # empty = the scenario's


@dataclasses.dataclass
class Scenario:
    program: str
    card: str
    runs: list  # predictions are made from the first one
    needs: str = ""  # a module


EXPANDABLE = Run("expandable_segments:True", conf="expandable_segments:True")

SCENARIOS = {
    "variable_lengths": Scenario(
        "variable_lengths.py",
        "16GiB,context=0",
        [
            Run("unchanged"),
            EXPANDABLE,
            Run("roundup_power2_divisions:4", conf="roundup_power2_divisions:4"),
            Run("max_split_size_mb:128", conf="max_split_size_mb:128"),
            Run("lengths padded to multiples of 128", "--bucket 128"),
            Run("the largest batch first", "--longest-first"),
        ],
    ),
    "model_switch": Scenario(
        "model_switch.py",
        "16GiB,context=0",
        [
            Run("unchanged"),
            Run("empty_cache() alone", "--empty-cache"),
            Run("first model deleted", "--forget"),
            Run("first model deleted, then empty_cache()", "--forget --empty-cache"),
            EXPANDABLE,
        ],
    ),
    "gradient_accumulation": Scenario(
        "gradient_accumulation.py",
        "16GiB,context=0",
        [
            Run("24 sequences at once"),
            Run("in 4 parts", "--parts 4"),
            Run("in 4 parts, losses summed as tensors", "--parts 4 --sum-losses"),
        ],
    ),
    "mixed_precision": Scenario(
        "mixed_precision.py",
        "16GiB,context=0",
        [
            Run("float32"),
            Run("autocast", "--autocast"),
            Run("all in bfloat16", "--bf16"),
            Run("float32, 1 sequence", "--batch 1"),
            Run("autocast, 1 sequence", "--autocast --batch 1"),
        ],
    ),
    "checkpointing": Scenario(
        "checkpointing.py",
        "16GiB,context=0",
        [Run("unchanged"), Run("every block checkpointed", "--checkpoint")],
    ),
    "pinned_loader": Scenario(
        "pinned_loader.py",
        "8GiB,context=0",
        [
            Run("pageable memory"),
            Run("pin_memory=True", "--pin"),
            Run("pinned, batches kept", "--pin --keep"),
        ],
    ),
    "no_caching": Scenario(
        "no_caching.py",
        "16GiB,context=0",
        [
            Run("unchanged"),
            Run("PYTORCH_NO_CUDA_MEMORY_CACHING=1", environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}),
        ],
    ),
    "pluggable_allocator": Scenario(
        "pluggable_allocator.py",
        "16GiB,context=0",
        [
            Run("PyTorch's allocator", "--pytorch"),
            Run("an allocator of 20 lines"),
            Run("a MemPool with it for the model", "--pool"),
        ],
    ),
    "two_jobs": Scenario(
        "two_jobs.py",
        "8GiB,context=0",
        [
            Run("alone on the card"),
            Run("another job uses 3.5 GiB", card="8GiB,context=3584MiB"),
            Run(
                "the same, expandable segments", conf="expandable_segments:True", card="8GiB,context=3584MiB"
            ),
            Run("the same, batch halved at an OOM", "--adapt", card="8GiB,context=3584MiB"),
        ],
    ),
    "three_pieces": Scenario(
        "three_pieces.py",
        "6GiB,context=0",
        [
            Run("unchanged"),
            Run("empty_cache() before the request", "--empty-cache"),
            EXPANDABLE,
            Run("max_split_size_mb:512", conf="max_split_size_mb:512"),
            Run("large block allocated first", "--one-block"),
        ],
    ),
    "notebook": Scenario(
        "notebook.py",
        "8GiB,context=0",
        [Run("unchanged"), Run("%fragtrace forget after the OOM", "--forget")],
        needs="IPython",
    ),
    "fastai": Scenario(
        "fastai_resnet.py",
        "8GiB,context=0",
        [Run("unchanged"), Run("learn = None, gc, empty_cache()", "--forget")],
        needs="fastai",
    ),
}

# Programs that use third-party libraries. On some cards they run out of memory. They have no page each:
# `confirm outside` compares their reports with PyTorch's own statistics.
OUTSIDE = {
    name: Scenario(f"outside/{name}.py", card, [Run("unchanged", *arguments)], needs)
    for name, card, needs, *arguments in (
        ("hugging_face_trainer", "8GiB,context=0", "transformers"),
        ("diffusers_unet", "7GiB,context=0", "diffusers"),
        ("lightning_leak", "6GiB,context=0", "lightning"),
        ("timm_vit", "3GiB,context=0", "timm"),
        ("torchvision_detection", "8GiB,context=0", "torchvision"),
        ("peft_lora", "6GiB,context=0", "peft"),
        ("geometric_gcn", "1GiB,context=0", "torch_geometric"),
        # Fixed, because a cache sized by the card would make a different program for each card's row.
        ("graph_server", "24GiB,context=0", "", "--cache-gib 14.4"),
    )
}
