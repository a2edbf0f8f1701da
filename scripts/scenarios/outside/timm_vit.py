"""timm: a vision transformer under autocast. After every fourth step it is validated on larger batches."""

import timm
import torch


def main():
    torch.manual_seed(1)
    model = timm.create_model("vit_small_patch16_224", pretrained=False).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(8):
        images, kinds = torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,))
        with torch.autocast("cuda", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(images.cuda()), kinds.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 4 == 3:
            model.eval()
            with torch.no_grad():
                model(torch.randn(200, 3, 224, 224).cuda())
            model.train()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
