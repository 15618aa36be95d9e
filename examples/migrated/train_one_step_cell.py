"""A PyTorch network trained by MindSpore's own wrappers, dataset and optimizer."""

import mindspore as ms
import numpy as np
from common import accuracy, digits, lenet
from mindspore import nn

ms.set_seed(0)  # the dataset draws its order from MindSpore
net = lenet()
images, labels = digits()
dataset = ms.dataset.NumpySlicesDataset((images, labels.astype(np.int32)), ["data", "label"], shuffle=True).batch(64)
optimizer = nn.Adam(net.trainable_params(), 0.003)
step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
step.set_train()
for epoch in range(4):
    for data, label in dataset.create_tuple_iterator():
        loss = step(data, label)
    print(f"epoch {epoch} loss {float(loss):.6f}")
print(f"accuracy: {accuracy(net):.4f}")
