"""TensorFlow without cuDNN and XLA, which the virtual GPU does not have."""

import tensorflow as tf

print(len(tf.config.list_physical_devices("GPU")))
tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
weights = [tf.Variable(tf.zeros((256, 256))) for _ in range(4)]
for step in range(20):
    with tf.GradientTape() as tape:
        x = tf.zeros((64 + 32 * (step % 3), 256))
        for w in weights:
            x = tf.nn.relu(tf.matmul(x, w))
        loss = tf.reduce_mean(x)
    for w, gradient in zip(weights, tape.gradient(loss, weights)):
        w.assign_sub(0.1 * gradient)
print("done", float(loss))
