"""The functional loop of code migrated to MindSpore: value_and_grad over the optimizer's parameters, `optimizer(grads)`."""

import mindspore as ms
import mindtorch.torch as torch
from common import accuracy, lenet, loader

net = lenet()
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=0.003, weight_decay=0.0005)


def forward_fn(data, label):
    logits = net(data)
    return criterion(logits, label), logits


grad_fn = ms.ops.value_and_grad(forward_fn, None, optimizer.parameters, has_aux=True)
for epoch in range(4):
    for data, label in loader():
        (loss, _), grads = grad_fn(data, label)
        optimizer(grads)
    print(f"epoch {epoch} loss {loss.asnumpy():.6f}")
print(f"accuracy: {accuracy(net):.4f}")
