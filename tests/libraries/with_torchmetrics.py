"""metrics of classification and regression"""

import torch
import torchmetrics

torch.manual_seed(0)
accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)
for _ in range(3):
    accuracy.update(torch.randn(5, 3), torch.randint(0, 3, (5,)))
print("accuracy:", accuracy.compute().item())
print("f1:", torchmetrics.F1Score(task="binary")(torch.rand(6), torch.randint(0, 2, (6,))).item())
print("auroc:", torchmetrics.AUROC(task="binary")(torch.rand(6), torch.tensor([0, 1, 0, 1, 1, 0])).item())
matrix = torchmetrics.ConfusionMatrix(task="multiclass", num_classes=3)
print("confusion:", matrix(torch.randint(0, 3, (8,)), torch.randint(0, 3, (8,))).tolist())
print("error:", torchmetrics.functional.mean_squared_error(torch.ones(3), torch.zeros(3)).item())
