"""Mistakes in lesson 09."""

MISTAKES = {
    "09.1": [
        "answer = (200, 201 ** -0.5)",  # forgets that clients leave in lots
        "answer = (248.5, 1 / 249.5)",  # forgets the root
        "answer = 248.5",
    ],
    "09.2": [
        # older shares do not shrink
        "def shares(taus):\n    betas = [(tau + 1) ** -0.5 for tau in taus]\n    return [1 - sum(betas), *betas]",
        # the initial model is forgotten
        "def shares(taus):\n    found = []\n    for tau in taus:\n        beta = (tau + 1) ** -0.5\n"
        "        found = [(1 - beta) * one for one in found] + [beta]\n    return found",
    ],
    "09.3": [
        # the cross entropy is softened too
        "def loss(z_C, z_S, y, alpha, T):\n    p, log_q = (z_S / T).softmax(-1), (z_C / T).log_softmax(-1)\n"
        "    kl = (p * (p.log() - log_q)).sum(-1)\n    ce = -log_q.gather(-1, y[:, None])[:, 0]\n"
        "    return (alpha * kl + (1 - alpha) * ce).mean()",
        # the divergence the other way round
        "def loss(z_C, z_S, y, alpha, T):\n    log_p, q = (z_S / T).log_softmax(-1), (z_C / T).softmax(-1)\n"
        "    kl = (q * (q.log() - log_p)).sum(-1)\n    ce = -z_C.log_softmax(-1).gather(-1, y[:, None])[:, 0]\n"
        "    return (alpha * kl + (1 - alpha) * ce).mean()",
        # T² as elsewhere
        "def loss(z_C, z_S, y, alpha, T):\n    p, log_q = (z_S / T).softmax(-1), (z_C / T).log_softmax(-1)\n"
        "    kl = T**2 * (p * (p.log() - log_q)).sum(-1)\n    ce = -z_C.log_softmax(-1).gather(-1, y[:, None])[:, 0]\n"
        "    return (alpha * kl + (1 - alpha) * ce).mean()",
        # the sum over the batch
        "def loss(z_C, z_S, y, alpha, T):\n    p, log_q = (z_S / T).softmax(-1), (z_C / T).log_softmax(-1)\n"
        "    kl = (p * (p.log() - log_q)).sum(-1)\n    ce = -z_C.log_softmax(-1).gather(-1, y[:, None])[:, 0]\n"
        "    return (alpha * kl + (1 - alpha) * ce).sum()",
        # the log of a softmax
        "def loss(z_C, z_S, y, alpha, T):\n    p, q = (z_S / T).softmax(-1), (z_C / T).softmax(-1)\n"
        "    kl = (p * (p.log() - q.log())).sum(-1)\n    ce = -z_C.softmax(-1).log().gather(-1, y[:, None])[:, 0]\n"
        "    return (alpha * kl + (1 - alpha) * ce).mean()",
    ],
    "09.4": [
        "def control(rate, weight):\n    return {'alpha_min': 0, 'alpha_max': 0, 'kd_lr': rate}",  # labels at full force
        "def control(rate, weight):\n    return {'alpha_min': 0, 'alpha_max': weight, 'kd_lr': rate}",  # the ramp is left
        "def control(rate, weight):\n    return {'alpha_min': 0, 'alpha_max': 0, 'kd_lr': rate * weight}",
        "def control(rate, weight):\n    return {'alpha': 0, 'kd_lr': rate * (1 - weight)}",
    ],
}
