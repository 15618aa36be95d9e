"""A DCGAN pair with two optimizers on 16x16 digits."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=150, help="training steps")
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--nz", type=int, default=32, help="size of the latent vector")
parser.add_argument("--ngf", type=int, default=16)
parser.add_argument("--ndf", type=int, default=16)
parser.add_argument("--lr", type=float, default=2e-4)
parser.add_argument("--beta1", type=float, default=0.5)
opt = parser.parse_args()

manualSeed = 0
torch.manual_seed(manualSeed)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

images = np.kron(load_digits().images, np.ones((1, 2, 2))) / 8.0 - 1.0
dataset = TensorDataset(torch.from_numpy(images).float().unsqueeze(1))
dataloader = DataLoader(dataset, batch_size=opt.batch_size, shuffle=True, drop_last=True)


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self, nz, ngf):
        super().__init__()
        self.main = nn.Sequential(
            # nz x 1 x 1 -> 4ngf x 2 x 2
            nn.ConvTranspose2d(nz, ngf * 4, 2, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.SiLU(True),
            # -> 2ngf x 4 x 4
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.SiLU(True),
            # -> ngf x 8 x 8
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.SiLU(True),
            # -> 1 x 16 x 16
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.SiLU(inplace=True),
            nn.Dropout2d(0.1),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.SiLU(inplace=True),
            nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 4),
            nn.SiLU(inplace=True),
            nn.Conv2d(ndf * 4, 1, 2, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1)


netG = Generator(opt.nz, opt.ngf).to(device)
netG.apply(weights_init)
netD = Discriminator(opt.ndf).to(device)
netD.apply(weights_init)

criterion = nn.BCELoss()
fixed_noise = torch.randn(4, opt.nz, 1, 1, device=device)
real_label, fake_label = 1.0, 0.0

optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))

step = 0
while step < opt.steps:
    for (real,) in dataloader:
        if step >= opt.steps:
            break
        # the discriminator: maximise log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        real = real.to(device)
        batch_size = real.size(0)
        label = torch.full((batch_size,), real_label, dtype=real.dtype, device=device)
        output = netD(real)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()

        noise = torch.randn(batch_size, opt.nz, 1, 1, device=device)
        fake = netG(noise)
        label.fill_(fake_label)
        output = netD(fake.detach())
        errD_fake = criterion(output, label)
        errD_fake.backward()
        errD = errD_real + errD_fake
        optimizerD.step()

        # the generator: maximise log(D(G(z)))
        netG.zero_grad()
        label.fill_(real_label)
        output = netD(fake)
        errG = criterion(output, label)
        errG.backward()
        D_G_z = output.mean().item()
        optimizerG.step()

        print(f"step {step} loss_d {errD.item():.7f} loss_g {errG.item():.7f} D(x) {D_x:.4f} D(G(z)) {D_G_z:.4f}")
        step += 1

netG.eval()
with torch.no_grad():
    fake = netG(fixed_noise).detach().cpu()
for row in torch.cat([f[0] for f in fake], dim=1).add(1).mul(2).clamp(0, 3).long().tolist():
    print("".join(" .+#"[v] for v in row))
