"""A Keras model, dense or convolutional, is fitted on the virtual GPU, which computes zeros."""

import sys

import keras
import numpy as np
import tensorflow as tf

layers = keras.layers
if sys.argv[1] == "dense":
    shape = (64,)
    body = [layers.Dense(256, activation="relu"), layers.Dropout(0.1)]
else:
    shape = (32, 32, 3)
    body = [
        layers.Conv2D(16, 3, activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3),
        layers.GlobalAveragePooling2D(),
    ]
print(len(tf.config.list_physical_devices("GPU")))
model = keras.Sequential([layers.Input(shape), *body, layers.Dense(10)])
model.compile(
    optimizer="adam",
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile=False,  # XLA compiles for a minute
)
inputs = np.zeros((512, *shape), "float32")
labels = np.zeros((512,), "int64")
model.fit(inputs, labels, batch_size=64, epochs=2, verbose=0)
print("done")
