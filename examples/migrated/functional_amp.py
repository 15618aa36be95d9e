"""Mixed precision in MindSpore's way: auto_mixed_precision, a scaler that is handed the gradients, clipping by global norm."""

import mindspore as ms
import mindtorch.torch as torch
from common import accuracy, lenet, loader
from mindspore.amp import auto_mixed_precision
from mindtorch.torch.amp import GradScaler

net = lenet()
net.train()
net = auto_mixed_precision(net, "O2")
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
scaler = GradScaler("cpu", init_scale=1024)


def forward_fn(data, label):
    logits = torch.cast_to_adapter_tensor(net(data))
    return scaler.scale(criterion(logits, label))


grad_fn = ms.ops.value_and_grad(forward_fn, None, optimizer.parameters)
for epoch in range(4):
    for data, label in loader():
        loss, grads = grad_fn(data, label)
        scaler.unscale_(optimizer, grads)
        grads = ms.ops.clip_by_global_norm(grads, 5.0)
        scaler.step(optimizer, grads)
        scaler.update()
    print(f"epoch {epoch} loss {loss.item() / scaler.get_scale():.6f}")
print(f"accuracy: {accuracy(net):.4f}")
