"""tinygrad: a few steps of training of a small network."""

from tinygrad import Context, Tensor, nn


class Network:
    def __init__(self):
        self.first = nn.Linear(256, 512)
        self.second = nn.Linear(512, 10)

    def __call__(self, values):
        return self.second(self.first(values).relu())


network = Network()
optimizer = nn.optim.SGD(nn.state.get_parameters(network), lr=0.1)
with Context(TRAINING=1):
    for batch in (16, 64, 32):
        optimizer.zero_grad()
        loss = network(Tensor.ones(batch, 256)).square().mean()
        loss.backward()
        optimizer.step()
        assert isinstance(loss.item(), float)
