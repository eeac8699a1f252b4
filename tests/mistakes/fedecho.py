"""Mistakes in lesson 07."""

BY_REPORTS = """def say(reports):
    return {client: reports.count(client) / len(reports) for client in reports}"""
THE_LAST_FIVE = """def say(reports):
    heard = set(reports[-5:])
    return {client: 1 / len(heard) for client in heard}"""

WEIGHT = """def weight(p, low, high):
    entropy = -torch.xlogy(p, p).sum(-1)
    share = {share}
    return {mixed}"""
RIGHT_MIX = "share * high + (1 - share) * low"

VERSION = """def version(W, buffer, store, inputs, lr):
    student = W + sum(delta for _, _, delta in buffer) / len(buffer)
    for client, start, delta in buffer:
        store[client] = inputs @ ({model}).T
    p = {teacher}
    alpha, hard = mixing_weight(p), torch.nn.functional.one_hot(p.argmax(-1), p.shape[-1])
    error = (inputs @ {read}.T).softmax(-1) - (alpha * p + (1 - alpha) * hard)
    return student - lr * error.T @ inputs / len(inputs)"""
RIGHT = {
    "model": "start + delta",
    "teacher": "torch.stack(list(store.values())).mean(0).softmax(-1)",
    "read": "student",
}

MISTAKES = {
    "07.1": [BY_REPORTS, THE_LAST_FIVE],
    "07.2": [
        WEIGHT.format(share="entropy.mean()", mixed=RIGHT_MIX),  # not a share of log C
        WEIGHT.format(share="(entropy / math.log(p.shape[-1])).mean()", mixed="share * low + (1 - share) * high"),
        WEIGHT.format(share="entropy / math.log(p.shape[-1])", mixed=RIGHT_MIX),  # one per sample
        WEIGHT.format(share="(-(p * p.log()).sum(-1) / math.log(p.shape[-1])).mean()", mixed=RIGHT_MIX),  # 0 log 0
    ],
    "07.3": [
        VERSION.format(**RIGHT | {"model": "W + delta"}),  # the wrong start
        VERSION.format(**RIGHT | {"read": "W"}),  # the student before the mean delta
        VERSION.format(**RIGHT | {"teacher": "torch.stack([store[one] for one, *_ in buffer]).mean(0).softmax(-1)"}),
        VERSION.format(**RIGHT | {"teacher": "torch.stack(list(store.values())).softmax(-1).mean(0)"}),
    ],
}
