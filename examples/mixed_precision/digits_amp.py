"""The digits with automatic mixed precision: autocast, GradScaler, clipped gradients. Ends by printing the test accuracy."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, kernel_size=3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, kernel_size=3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.classifier = nn.Sequential(nn.Linear(32 * 16, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16"])
    parser.add_argument("--no-amp", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 1, 8, 8).astype("float32") / 16.0
    x_train, x_test, y_train, y_test = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=2)
    train_set = TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train).long())
    loader = DataLoader(train_set, batch_size=64, shuffle=True)

    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    scaler = torch.amp.GradScaler(device.type, init_scale=2.0 ** 12, enabled=not args.no_amp)
    dtype = getattr(torch, args.dtype)

    step = 0
    for _ in range(args.epochs):
        model.train()
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.type, dtype=dtype, enabled=not args.no_amp):
                output = model(data)
                loss = F.cross_entropy(output, target)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            scaler.step(optimizer)
            scaler.update()
            if step % 20 == 0:
                print(f"step {step} loss {loss.item():.4f} norm {norm.item():.3f} output {output.dtype} scale {scaler.get_scale():g}")
            step += 1

    model.eval()
    with torch.no_grad(), torch.autocast(device.type, dtype=dtype, enabled=not args.no_amp):
        predicted = model(torch.from_numpy(x_test).to(device)).argmax(dim=1).cpu()
    print(f"accuracy: {(predicted == torch.from_numpy(y_test)).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
