"""Asynchronous federated learning in one file: a heap of events, a delta, a buffer.

Ten clients train one model together, and their data never leave them. There are five classes. Clients 0 and 1 hold the
first class and are the fastest. Clients 8 and 9 hold the last class and are the slowest. Nobody waits for anybody. A
client that has trained sends its update to the server, receives the current model, and starts again. Time is virtual,
so the program jumps from one arrival to the next. Run it, and watch the accuracy after the first updates of clients 8
and 9:

    python examples/async_in_one_file.py
"""

import heapq

import numpy as np

CLIENTS, CLASSES, FEATURES = 10, 5, 20
MINUTES = np.geomspace(1, 9.5, CLIENTS)  # how long each client trains before it sends an update
BUFFER_SIZE = 3  # how many updates the server collects before it makes a new version of the model

rng = np.random.default_rng(seed=0)
centres = rng.normal(size=(CLASSES, FEATURES))


def draw(labels):
    """Make up one sample for each label: the centre of its class plus noise."""
    return centres[labels] + 1.5 * rng.normal(size=(len(labels), FEATURES)), labels


def predict(model, inputs):
    """Return the probability of each class for each input: a linear layer, then a softmax."""
    scores = np.exp(inputs @ model)
    return scores / scores.sum(axis=1, keepdims=True)


def train(model, inputs, labels, steps=10, learning_rate=0.1):
    """Return the model after some steps of gradient descent on the data of one client."""
    for _ in range(steps):
        error = predict(model, inputs) - np.eye(CLASSES)[labels]
        model = model - learning_rate * inputs.T @ error / len(inputs)
    return model


data = [draw(np.full(100, client // 2)) for client in range(CLIENTS)]
test_inputs, test_labels = draw(rng.integers(CLASSES, size=2000))

model, version, buffer = np.zeros((FEATURES, CLASSES)), 0, []

# An event is the arrival of an update: the minute, the client, and the model from which the client started.
events = [(MINUTES[client], client, model, version) for client in range(CLIENTS)]
heapq.heapify(events)

while version < 20:
    minute, client, start_model, start_version = heapq.heappop(events)  # the earliest event
    delta = train(start_model, *data[client]) - start_model  # the client sends how its training changed the model
    staleness = version - start_version  # the server has made this many versions since the client started
    print(f"minute {minute:5.2f}: client {client} sends an update with staleness {staleness}")

    buffer.append(delta)
    if len(buffer) == BUFFER_SIZE:
        model = model + np.mean(buffer, axis=0)
        version, buffer = version + 1, []
        accuracy = np.mean(predict(model, test_inputs).argmax(axis=1) == test_labels)
        print(f"              version {version} has a test accuracy of {accuracy:.0%}")

    heapq.heappush(events, (minute + MINUTES[client], client, model, version))

print(f"A server that waits for all ten clients needs {MINUTES.max()} minutes for each version.")
