"""Diffusers: a UNet learns to remove noise. The batch size changes from step to step."""

import torch
from diffusers import DDPMScheduler, UNet2DModel

BATCHES = (16, 16, 24, 16, 32, 16)


def main():
    torch.manual_seed(1)
    model = UNet2DModel(
        sample_size=64,
        block_out_channels=(128, 256, 256, 512),
        layers_per_block=2,
        down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scheduler = DDPMScheduler()
    for batch in BATCHES:
        images, noise = torch.randn(2, batch, 3, 64, 64)
        times = torch.randint(0, 1000, (batch,))
        noisy = scheduler.add_noise(images, noise, times).cuda()
        predicted = model(noisy, times.cuda()).sample
        torch.nn.functional.mse_loss(predicted, noise.cuda()).backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
