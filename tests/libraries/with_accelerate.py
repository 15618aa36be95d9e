"""a training loop prepared by Accelerator, with gradient accumulation"""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(TensorDataset(torch.randn(16, 3)), 4)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for i, (x,) in enumerate(loader):
    with accelerator.accumulate(model):
        loss = model(x).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    print(f"loss {i}:", loss.item())
