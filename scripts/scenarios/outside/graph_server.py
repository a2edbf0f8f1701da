"""Allocates as inference servers do (vLLM): a profiling run, a cache of keys and values sized by the card, a
CUDA graph per batch size in a shared pool, then prompts of growing length. --cache-gib N: the cache has this
size on every card."""

import argparse

import torch

WIDTH, LAYERS, PAGE = 1024, 8, 16
BATCHES = (256, 192, 128, 96, 64, 32, 16, 8, 4, 2, 1)


def apply(layers, hidden):
    for layer in layers:
        hidden = hidden + layer(hidden)
    return hidden


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache-gib", type=float)
    asked = parser.parse_args().cache_gib
    layers = (
        torch.nn.ModuleList(
            [
                torch.nn.Sequential(
                    torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.SiLU(), torch.nn.Linear(4 * WIDTH, WIDTH)
                )
                for _ in range(LAYERS)
            ]
        )
        .cuda()
        .half()
    )
    apply(layers, torch.zeros(8192, WIDTH, device="cuda", dtype=torch.half))
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    pages = int(asked * 2**30 if asked else total * 0.6) // (LAYERS * 2 * PAGE * WIDTH * 2)
    cache = [torch.empty(2, pages, PAGE, WIDTH, device="cuda", dtype=torch.half) for _ in range(LAYERS)]
    pool = torch.cuda.graph_pool_handle()
    graphs = {}
    for batch in BATCHES:
        words = torch.zeros(batch * PAGE, WIDTH, device="cuda", dtype=torch.half)
        apply(layers, words)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            answer = apply(layers, words)
        graphs[batch] = (graph, words, answer)
    for step in range(50):
        graphs[BATCHES[step % len(BATCHES)]][0].replay()
        torch.empty(300 + 100 * step, 32000, device="cuda")  # the logits of a prompt
    torch.cuda.synchronize()
    del cache


if __name__ == "__main__":
    main()
