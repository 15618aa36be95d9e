"""The training loop of ImageNet examples, on the digits: distributed sampler, meters, learning rate schedule, validation over all
processes, the best model kept.

    torchrun --nproc-per-node 2 digits_imagenet.py --epochs 5
    python digits_imagenet.py                                     one process
"""
import argparse
import os
import shutil
import time
from enum import Enum

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.parallel
import torch.optim
import torch.utils.data
import torch.utils.data.distributed
from sklearn.datasets import load_digits
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import Subset

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("-j", "--workers", default=0, type=int, help="data loading workers")
parser.add_argument("--epochs", default=5, type=int)
parser.add_argument("-b", "--batch-size", default=64, type=int, help="of all processes together")
parser.add_argument("--lr", "--learning-rate", default=0.1, type=float, dest="lr")
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--wd", "--weight-decay", default=1e-4, type=float, dest="weight_decay")
parser.add_argument("-p", "--print-freq", default=10, type=int)
parser.add_argument("--resume", default="", help="checkpoint to go on from")
parser.add_argument("--folder", default="", help="where checkpoints go; none are kept without it")
parser.add_argument("--evaluate", action="store_true")
parser.add_argument("--seed", default=0, type=int)
parser.add_argument("--dist-backend", default="gloo")
parser.add_argument("--sync-bn", action="store_true", help="batch statistics over all processes")

best_acc1 = 0


class SmallResNet(nn.Module):
    def __init__(self, width=16, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(2 * width)
        self.relu = nn.ReLU(inplace=True)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2 * width, num_classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)) + x)
        x = self.relu(self.bn3(self.conv3(x)))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def main():
    global best_acc1
    args = parser.parse_args()
    args.distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
    args.rank, args.world_size = 0, 1
    if args.distributed:
        dist.init_process_group(backend=args.dist_backend, init_method="env://")
        args.rank, args.world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)

    model = SmallResNet()
    if args.distributed:
        if args.sync_bn:
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        model = nn.parallel.DistributedDataParallel(model)
    else:
        model = nn.DataParallel(model)

    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.weight_decay)
    scheduler = StepLR(optimizer, step_size=3, gamma=0.3)

    start_epoch = 0
    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=True)
        start_epoch = checkpoint["epoch"]
        best_acc1 = checkpoint["best_acc1"]
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        print(f"=> loaded checkpoint '{args.resume}' (epoch {start_epoch})")

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    dataset = torch.utils.data.TensorDataset(images, torch.tensor(digits.target))
    train_dataset, val_dataset = Subset(dataset, range(1500)), Subset(dataset, range(1500, 1797))

    if args.distributed:
        train_sampler = torch.utils.data.distributed.DistributedSampler(train_dataset, drop_last=True)
        val_sampler = torch.utils.data.distributed.DistributedSampler(val_dataset, shuffle=False, drop_last=True)
    else:
        train_sampler = val_sampler = None
    share = args.batch_size // args.world_size
    train_loader = torch.utils.data.DataLoader(train_dataset, batch_size=share, shuffle=train_sampler is None,
                                               num_workers=args.workers, sampler=train_sampler)
    val_loader = torch.utils.data.DataLoader(val_dataset, batch_size=share, shuffle=False,
                                             num_workers=args.workers, sampler=val_sampler)

    if args.evaluate:
        validate(val_loader, model, criterion, args)
        return

    for epoch in range(start_epoch, args.epochs):
        if args.distributed:
            train_sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, epoch, args)
        acc1 = validate(val_loader, model, criterion, args)
        scheduler.step()

        is_best = acc1 > best_acc1
        best_acc1 = max(acc1, best_acc1)
        if args.folder and args.rank == 0:
            save_checkpoint({
                "epoch": epoch + 1,
                "state_dict": model.state_dict(),
                "best_acc1": best_acc1,
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
            }, is_best, args.folder)

    if args.distributed:
        dist.destroy_process_group()
    if args.rank == 0:
        print(f"best accuracy {best_acc1:.2f}")


def train(train_loader, model, criterion, optimizer, epoch, args):
    batch_time = AverageMeter("Time", ":6.3f", Summary.NONE)
    losses = AverageMeter("Loss", ":.4e", Summary.NONE)
    top1 = AverageMeter("Acc@1", ":6.2f", Summary.NONE)
    progress = ProgressMeter(len(train_loader), [batch_time, losses, top1], prefix=f"Epoch: [{epoch}]")

    model.train()
    end = time.time()
    for i, (images, target) in enumerate(train_loader):
        output = model(images)
        loss = criterion(output, target)

        (acc1,) = accuracy(output, target)
        losses.update(loss.item(), images.size(0))
        top1.update(acc1[0].item(), images.size(0))

        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

        batch_time.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0 and args.rank == 0:
            progress.display(i + 1)


def validate(val_loader, model, criterion, args):
    def run_validate(loader, base_progress=0):
        with torch.no_grad():
            for images, target in loader:
                output = model(images)
                losses.update(criterion(output, target).item(), images.size(0))
                acc1, acc5 = accuracy(output, target, topk=(1, 5))
                top1.update(acc1[0].item(), images.size(0))
                top5.update(acc5[0].item(), images.size(0))

    losses = AverageMeter("Loss", ":.4e", Summary.NONE)
    top1 = AverageMeter("Acc@1", ":6.2f", Summary.AVERAGE)
    top5 = AverageMeter("Acc@5", ":6.2f", Summary.AVERAGE)
    progress = ProgressMeter(len(val_loader), [losses, top1, top5], prefix="Test: ")

    model.eval()
    run_validate(val_loader)
    if args.distributed:
        top1.all_reduce()
        top5.all_reduce()
        # what the sampler dropped so that all processes have as many
        seen = len(val_loader.sampler) * args.world_size
        if seen < len(val_loader.dataset):
            rest = Subset(val_loader.dataset, range(seen, len(val_loader.dataset)))
            run_validate(torch.utils.data.DataLoader(rest, batch_size=args.batch_size, shuffle=False), len(val_loader))
    if args.rank == 0:
        progress.display_summary()
    return top1.avg


def save_checkpoint(state, is_best, folder):
    path = os.path.join(folder, "checkpoint.pth.tar")
    torch.save(state, path)
    if is_best:
        shutil.copyfile(path, os.path.join(folder, "model_best.pth.tar"))


class Summary(Enum):
    NONE = 0
    AVERAGE = 1


class AverageMeter:
    """The latest value and the average of all."""

    def __init__(self, name, fmt=":f", summary_type=Summary.AVERAGE):
        self.name, self.fmt, self.summary_type = name, fmt, summary_type
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def all_reduce(self):
        total = torch.tensor([self.sum, self.count], dtype=torch.float32)
        dist.all_reduce(total, dist.ReduceOp.SUM, async_op=False)
        self.sum, self.count = total.tolist()
        self.avg = self.sum / self.count

    def __str__(self):
        return f"{{name}} {{val{self.fmt}}} ({{avg{self.fmt}}})".format(**self.__dict__)

    def summary(self):
        return "" if self.summary_type is Summary.NONE else f"{self.name} {self.avg:.3f}"


class ProgressMeter:
    def __init__(self, num_batches, meters, prefix=""):
        digits = len(str(num_batches))
        self.batches = f"[{{:{digits}d}}/{num_batches}]"
        self.meters, self.prefix = meters, prefix

    def display(self, batch):
        print("\t".join([self.prefix + self.batches.format(batch)] + [str(meter) for meter in self.meters]))

    def display_summary(self):
        print(" ".join([" *"] + [meter.summary() for meter in self.meters]))


def accuracy(output, target, topk=(1,)):
    """Per cent of the targets among the best k, for each k."""
    with torch.no_grad():
        _, pred = output.topk(max(topk), 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / target.size(0)) for k in topk]


if __name__ == "__main__":
    main()
