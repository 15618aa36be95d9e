# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
import copy

m = nn.LSTM(3, 4, 2, bidirectional=True)
print([n for n, _ in m.named_parameters()], len(m.all_weights), m._flat_weights_names[:3])
m.flatten_parameters()
m.weight_ih_l0 = nn.Parameter(torch.zeros(16, 3))
print(m._flat_weights[0].sum())
c = copy.deepcopy(m)
print(c._flat_weights[0] is c.weight_ih_l0)
x = torch.ones(2, 1, 3)
print(torch.equal(c(x)[0], m(x)[0]))
m.double()
print(m(x.double())[0].dtype)
q = nn.utils.parametrizations.weight_norm(nn.LSTM(3, 4), "weight_hh_l0")
print(q(x)[0].sum())
e = nn.Embedding.from_pretrained(torch.arange(6.0).view(3, 2))
print(
    e(torch.tensor([2, 0])),
    e.weight.requires_grad,
    nn.Embedding(5, 3, padding_idx=-1, max_norm=2.0, norm_type=1.0, scale_grad_by_freq=True, sparse=True),
    nn.EmbeddingBag(3, 2, max_norm=1.0, mode="max", padding_idx=0),
)
t = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1).eval()
with torch.no_grad():
    print(t(torch.ones(2, 3, 8), src_key_padding_mask=torch.tensor([[0, 0, 1], [0, 0, 0]]).bool())[0, :, 0])
a = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 6])
x = torch.randn(4, 8)
print(a.log_prob(x).exp().sum(1), a.predict(x), a(x[0], torch.tensor(4)))
