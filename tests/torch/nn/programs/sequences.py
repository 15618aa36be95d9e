# Run by test_programs, which defines torch, nn and T (prints what a call raises).
# ruff: noqa: F821, F811, E731, B018, RUF100
R = nn.utils.rnn
a = [torch.randn(4, 2), torch.randn(2, 2), torch.randn(3, 2)]
for bf in (0, 1):
    for side in ("left", "right"):
        print(R.pad_sequence(a, bool(bf), -1.0, side))
p = R.pad_sequence(a)
k = R.pack_padded_sequence(p, [4, 2, 3], enforce_sorted=False)
print(k)
print(R.pad_packed_sequence(k))
print(R.pad_packed_sequence(k, True, 9.0, 6))
print(R.unpack_sequence(k))
print(R.unpad_sequence(p, torch.tensor([4, 2, 3])))
T(lambda: R.pack_padded_sequence(p, [4, 2, 3]))
T(lambda: R.pack_padded_sequence(p, [4, 2]))
T(lambda: R.pack_padded_sequence(p, [4, 2, 0]))
T(lambda: R.pad_packed_sequence(k, total_length=2))
T(lambda: R.pad_sequence([]))
T(lambda: R.pad_sequence(3))
T(lambda: R.pack_sequence(a))
T(lambda: R.pad_sequence(a, padding_side="x"))
print(
    R.pack_sequence([torch.ones(3), torch.ones(2)]),
    R.pack_sequence(a, False).to(torch.float64).data.dtype,
    R.invert_permutation(torch.tensor([2, 0, 1])),
    k.is_cuda,
    k.double().data.dtype,
    k.long(),
)
