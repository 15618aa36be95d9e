"""A character-level LSTM that learns to write simple sentences, and writes some at the end."""
import argparse
import random

import torch
import torch.nn as nn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--steps", type=int, default=200, help="training steps")
parser.add_argument("--seq-len", type=int, default=48)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--hidden", type=int, default=96)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--clip", type=float, default=1.0)
args = parser.parse_args()

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


def make_text(sentences):
    rng = random.Random(0)
    who = ["a sailor", "the baker", "my sister", "an old fox", "the north wind", "our teacher"]
    does = ["carries", "paints", "forgets", "follows", "hears", "mends"]
    what = ["the blue door", "a small boat", "seven lanterns", "the long road", "a quiet song", "every window"]
    when = ["at noon", "in winter", "before the rain", "without a word", "twice a year"]
    return "".join(f"{rng.choice(who)} {rng.choice(does)} {rng.choice(what)} {rng.choice(when)}.\n"
                   for _ in range(sentences))


text = make_text(600)
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
vocab_size = len(chars)


class CharLSTM(nn.Module):
    def __init__(self, vocab_size, embed, hidden, layers=2, dropout=0.2):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed)
        self.lstm = nn.LSTM(embed, hidden, num_layers=layers, dropout=dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.decoder = nn.Linear(hidden, vocab_size)
        self.hidden, self.layers = hidden, layers

    def forward(self, x, state):
        out, state = self.lstm(self.embedding(x), state)
        return self.decoder(self.dropout(out)), state

    def init_state(self, batch_size):
        weight = next(self.parameters())
        shape = (self.layers, batch_size, self.hidden)
        return weight.new_zeros(shape), weight.new_zeros(shape)


def get_batches(data, batch_size, seq_len):
    """Consecutive pieces of `batch_size` parallel streams, so that the state can be carried over."""
    length = (len(data) - 1) // (batch_size * seq_len) * seq_len
    xs = data[: batch_size * length].view(batch_size, length)
    ys = data[1: batch_size * length + 1].view(batch_size, length)
    return list(zip(xs.split(seq_len, dim=1), ys.split(seq_len, dim=1)))


@torch.no_grad()
def sample(model, start, length, temperature=0.7):
    model.eval()
    state = model.init_state(1)
    out = list(start)
    x = torch.tensor([[stoi[c] for c in start]], device=device)
    for _ in range(length):
        logits, state = model(x, state)
        probs = torch.softmax(logits[0, -1] / temperature, dim=-1)
        x = torch.multinomial(probs, num_samples=1).view(1, 1)
        out.append(chars[x.item()])
    return "".join(out)


model = CharLSTM(vocab_size, 32, args.hidden).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
batches = get_batches(data, args.batch_size, args.seq_len)
print(f"{len(text)} characters, {vocab_size} different, {sum(p.numel() for p in model.parameters())} parameters")

step = 0
while step < args.steps:
    model.train()
    state = model.init_state(args.batch_size)
    for x, y in batches[: args.steps - step]:
        x, y = x.to(device), y.to(device)
        state = tuple(s.detach() for s in state)
        optimizer.zero_grad()
        logits, state = model(x, state)
        loss = criterion(logits.reshape(-1, vocab_size), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        print(f"step {step} loss {loss.item():.7f}")
        step += 1

print(sample(model, "the ", 160))
