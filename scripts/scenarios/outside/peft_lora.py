"""PEFT: LoRA on a randomly initialised Llama, with texts of many lengths."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

WORDS = 32000


def main():
    torch.manual_seed(1)
    model = (
        LlamaForCausalLM(
            LlamaConfig(
                hidden_size=1024,
                intermediate_size=2816,
                num_hidden_layers=12,
                num_attention_heads=16,
                num_key_value_heads=8,
                vocab_size=WORDS,
            )
        )
        .to(torch.bfloat16)
        .cuda()
    )
    model = get_peft_model(
        model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    )
    optimizer = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad])
    for _ in range(10):
        length = int(torch.randint(200, 1500, (1,)))
        words = torch.randint(0, WORDS, (4, length)).cuda()
        model(input_ids=words, labels=words).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
