"""Trains a small network with JAX, with batches of three sizes. Prints the device and each step's loss."""

import jax
import jax.numpy as jnp


def layers(sizes):
    key = jax.random.PRNGKey(0)
    for i, (inputs, outputs) in enumerate(zip(sizes[:-1], sizes[1:])):
        weights = jax.random.normal(jax.random.fold_in(key, i), (inputs, outputs)) * 0.01
        yield weights, jnp.zeros((outputs,))


def loss_of(network, inputs, wanted):
    values = inputs
    for weights, bias in network:
        values = jax.nn.relu(values @ weights + bias)
    return jnp.mean((values - wanted) ** 2)


@jax.jit
def step(network, inputs, wanted):
    loss, gradients = jax.value_and_grad(loss_of)(network, inputs, wanted)
    return jax.tree_util.tree_map(lambda old, change: old - 0.1 * change, network, gradients), loss


print(jax.devices()[0].platform)
network = list(layers([512, 2048, 2048, 512]))
for number in range(6):
    size = 64 * (1 + number % 3)
    network, loss = step(network, jnp.ones((size, 512)), jnp.ones((size, 512)))
    print(number, float(loss))
