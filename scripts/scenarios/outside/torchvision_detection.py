"""torchvision: RetinaNet on images of many sizes."""

import torch
import torchvision


def main():
    torch.manual_seed(1)
    model = (
        torchvision.models.detection.retinanet_resnet50_fpn(
            weights=None, weights_backbone=None, num_classes=5
        )
        .cuda()
        .train()
    )
    optimizer = torch.optim.SGD([weight for weight in model.parameters() if weight.requires_grad], lr=0.01)
    for _ in range(6):
        sizes = torch.randint(300, 900, (2, 2)).tolist()
        pictures = [torch.rand(3, height, width).cuda() for height, width in sizes]
        wanted = [
            {"boxes": torch.tensor([[10.0, 10.0, 100.0, 100.0]]).cuda(), "labels": torch.tensor([1]).cuda()}
            for _ in sizes
        ]
        sum(model(pictures, wanted).values()).backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()


if __name__ == "__main__":
    main()
