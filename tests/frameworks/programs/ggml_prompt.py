"""Writes a small llama model with random weights, loads it with gpt4all (llama.cpp inside) onto the GPU, and
answers prompts of growing length.

    ggml_prompt.py [MODEL.gguf]

Without a name, the model is a temporary file.
"""

import pathlib
import random
import struct
import sys
import tempfile

from gpt4all import GPT4All

LAYERS, WIDTH, HEADS, INNER, CONTEXT = 2, 512, 32, 1024, 1024
U32, F32, STRING, ARRAY, I32 = 4, 6, 8, 9, 5  # GGUF's types of values
TENSOR_F32, TENSOR_F16 = 0, 1
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # llama's types of tokens
ALIGNMENT = 32


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_of(kind, value):
    if kind == STRING:
        return text(value)
    if kind == ARRAY:
        item, values = value
        return struct.pack("<IQ", item, len(values)) + b"".join(value_of(item, one) for one in values)
    return struct.pack({U32: "<I", F32: "<f", I32: "<i"}[kind], value)


def vocabulary():
    special = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)]
    letters = [("\u2581", NORMAL), *((chr(code), NORMAL) for code in range(ord("a"), ord("z") + 1))]
    return special + [(f"<0x{byte:02X}>", BYTE) for byte in range(256)] + letters


def tensors(tokens):
    """Name, type, and sizes with the fastest first."""
    yield "token_embd.weight", TENSOR_F16, (WIDTH, tokens)
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{layer}.{name}.weight", TENSOR_F16, (WIDTH, WIDTH)
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{name}.weight", TENSOR_F32, (WIDTH,)
        for name, shape in {
            "ffn_gate": (WIDTH, INNER),
            "ffn_up": (WIDTH, INNER),
            "ffn_down": (INNER, WIDTH),
        }.items():
            yield f"blk.{layer}.{name}.weight", TENSOR_F16, shape
    yield "output_norm.weight", TENSOR_F32, (WIDTH,)
    yield "output.weight", TENSOR_F16, (WIDTH, tokens)


def write_model(path):
    tokens = vocabulary()
    settings = [
        ("general.architecture", STRING, "llama"),
        ("general.name", STRING, "random"),
        ("general.file_type", U32, 1),
        ("llama.context_length", U32, CONTEXT),
        ("llama.embedding_length", U32, WIDTH),
        ("llama.block_count", U32, LAYERS),
        ("llama.feed_forward_length", U32, INNER),
        ("llama.attention.head_count", U32, HEADS),
        ("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        ("llama.rope.dimension_count", U32, WIDTH // HEADS),
        ("tokenizer.ggml.model", STRING, "llama"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, [token for token, _ in tokens])),
        ("tokenizer.ggml.scores", ARRAY, (F32, [0.0] * len(tokens))),
        ("tokenizer.ggml.token_type", ARRAY, (I32, [kind for _, kind in tokens])),
        ("tokenizer.ggml.bos_token_id", U32, 1),
        ("tokenizer.ggml.eos_token_id", U32, 2),
    ]
    listed = list(tensors(len(tokens)))
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(listed), len(settings))
    for key, kind, value in settings:
        head += text(key) + struct.pack("<I", kind) + value_of(kind, value)
    chance = random.Random(1)
    data = bytearray()
    for name, kind, shape in listed:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, len(data))
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        few = [chance.uniform(-0.1, 0.1) for _ in range(64)]
        data += struct.pack(f"<64{'f' if kind == TENSOR_F32 else 'e'}", *few) * (count // 64)
        data += bytes(-len(data) % ALIGNMENT)
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + data)


def prompt(model, words):
    return "".join(model.generate("abc " * words, max_tokens=2, temp=0, n_batch=128, streaming=True))


def answer(path):
    write_model(path)
    model = GPT4All(
        path.name, model_path=path.parent, allow_download=False, device="cuda", n_ctx=CONTEXT, verbose=False
    )
    for words in (4, 16, 64, 128):
        prompt(model, words)
    print(f"answered on {model.backend}")
    model.close()


def main():
    if len(sys.argv) > 1:
        answer(pathlib.Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        answer(pathlib.Path(folder) / "random.gguf")


if __name__ == "__main__":
    main()
