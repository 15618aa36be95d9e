"""transforms of images and the models that need none of its compiled operators"""

import numpy as np
import torch
from PIL import Image
from torchvision import models, ops, transforms
from torchvision.transforms import v2
from torchvision.utils import make_grid

image = Image.fromarray((np.arange(32 * 32 * 3) % 255).astype("uint8").reshape(32, 32, 3))
torch.manual_seed(0)
pipeline = transforms.Compose([
    transforms.Resize(24), transforms.RandomCrop(20), transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.2, 0.2),
    transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3), transforms.RandomErasing(),
])
print("transforms:", pipeline(image).mean().item())
print("v2:", tuple(v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Resize(16)])(image).shape))
print("iou:", ops.box_iou(torch.tensor([[0, 0, 2, 2.0]]), torch.tensor([[1, 1, 3, 3.0]])).tolist())
print("grid:", tuple(make_grid(torch.ones(4, 3, 4, 4)).shape))
for name, size, options in (("resnet18", 32, {}), ("densenet121", 32, {}), ("convnext_tiny", 32, {}), ("swin_t", 32, {}), ("vgg11", 64, {}),
                            ("vit_b_16", 32, {"image_size": 32}), ("mobilenet_v2", 32, {}), ("efficientnet_b0", 32, {})):
    torch.manual_seed(0)
    model = getattr(models, name)(weights=None, num_classes=4, **options).eval()
    loss = model(torch.linspace(-1, 1, 3 * size * size).view(1, 3, size, size)).pow(2).mean()
    loss.backward()
    print(f"{name}:", loss.item())
