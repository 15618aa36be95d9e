"""A variational autoencoder with the reparameterisation trick on scikit-learn's digits."""
import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=300, help="training steps")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--latent", type=int, default=8)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

torch.manual_seed(args.seed)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

images = torch.tensor(load_digits().data / 16.0, dtype=torch.float)
train_loader = DataLoader(images[:1500], batch_size=args.batch_size, shuffle=True, drop_last=True)
test_loader = DataLoader(images[1500:], batch_size=args.batch_size)


class VAE(nn.Module):
    def __init__(self, latent):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64), nn.Tanh())
        self.mu = nn.Linear(64, latent)
        self.logvar = nn.Linear(64, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 64), nn.Tanh(), nn.Dropout(0.05), nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64))

    def encode(self, x):
        h = self.encoder(x)
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.decoder(z))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon, x, mu, logvar):
    """Negative evidence lower bound: reconstruction plus the divergence of q(z|x) from N(0, 1), per image."""
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (bce + kld) / x.size(0)


model = VAE(args.latent).to(device)
optimizer = optim.Adam(model.parameters(), lr=2e-3)

step = 0
while step < args.steps:
    model.train()
    for x in train_loader:
        x = x.to(device)
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        loss = loss_function(recon, x, mu, logvar)
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.5f}")
        step += 1
        if step >= args.steps:
            break

model.eval()
total = 0.0
with torch.no_grad():
    for x in test_loader:
        recon, mu, logvar = model(x.to(device))
        total += loss_function(recon, x.to(device), mu, logvar).item() * len(x)
    sample = model.decode(torch.randn(4, args.latent, device=device)).cpu().view(4, 8, 8)
print(f"test loss {total / len(test_loader.dataset):.3f}")
for row in torch.cat(list(sample), dim=1).mul(4).clamp(0, 3).long().tolist():
    print("".join(" .+#"[v] for v in row))
