"""Mistakes in lesson 10."""

_BETA = "0.5 * (1 - math.cos(math.pi * min(tau, 2 * s_max) / (2 * s_max)))"

MISTAKES = {
    "10.1": [
        # the parts exchanged
        f"def update(x, delta, distilled, tau, lr, s_max):\n    b = {_BETA}\n"
        "    return x + lr * (b * delta + (1 - b) * distilled)",
        # the cosine turns back
        "def update(x, delta, distilled, tau, lr, s_max):\n"
        "    b = 0.5 * (1 - math.cos(math.pi * tau / (2 * s_max)))\n"
        "    return x + lr * ((1 - b) * delta + b * distilled)",
        # the distilled update is followed whole
        f"def update(x, delta, distilled, tau, lr, s_max):\n    b = {_BETA}\n"
        "    return x + lr * (1 - b) * delta + b * distilled",
    ],
    "10.2": ["answer = ('down', 'down')", "answer = ('same', 'same')", "answer = 'same'"],
    "10.3": [
        # the sign
        "def adversarial(teachers, student, labels, omega):\n    p = teachers.softmax(-1)\n"
        "    d = (p * (teachers.log_softmax(-1) - student.log_softmax(-1))).sum(-1)\n"
        "    agree = teachers.argmax(-1) == student.argmax(-1)\n"
        "    return (omega[:, labels] * agree * d).sum(0).mean()",
        # the mask asks whether the label is named
        "def adversarial(teachers, student, labels, omega):\n    p = teachers.softmax(-1)\n"
        "    d = (p * (teachers.log_softmax(-1) - student.log_softmax(-1))).sum(-1)\n"
        "    agree = teachers.argmax(-1) == labels\n"
        "    return -(omega[:, labels] * agree * d).sum(0).mean()",
        # no mask
        "def adversarial(teachers, student, labels, omega):\n    p = teachers.softmax(-1)\n"
        "    d = (p * (teachers.log_softmax(-1) - student.log_softmax(-1))).sum(-1)\n"
        "    return -(omega[:, labels] * d).sum(0).mean()",
    ],
    "10.4": [
        # Bessel's correction
        "def feature_term(features, real, labels, omega):\n"
        "    found = torch.stack([features.mean(1), features.var(1)], dim=1)\n"
        "    off = torch.linalg.vector_norm(found - real, dim=-1).sum(-1)\n"
        "    return (omega[:, labels].mean(-1) * off).sum()",
        # squares
        "def feature_term(features, real, labels, omega):\n"
        "    found = torch.stack([features.mean(1), features.var(1, correction=0)], dim=1)\n"
        "    off = (found - real).square().sum((-2, -1))\n"
        "    return (omega[:, labels].mean(-1) * off).sum()",
        # teachers without weights
        "def feature_term(features, real, labels, omega):\n"
        "    found = torch.stack([features.mean(1), features.var(1, correction=0)], dim=1)\n"
        "    return torch.linalg.vector_norm(found - real, dim=-1).sum()",
    ],
}
