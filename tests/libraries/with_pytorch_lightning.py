"""Trainer.fit with validation, logging and a scheduler"""

import logging

import pytorch_lightning as pl
import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Classifier(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(4, 2)

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self.layer(x), y)
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("validation", F.cross_entropy(self.layer(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), 0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]


pl.seed_everything(0)
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
model = Classifier()
trainer = pl.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                     accelerator="cpu")
trainer.fit(model, DataLoader(data, 8, shuffle=True), DataLoader(data, 8))
for name, value in trainer.callback_metrics.items():
    print(f"{name}:", value.item())
print("weight:", model.layer.weight.flatten().tolist())
