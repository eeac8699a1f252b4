"""Mistakes in the exercises of lesson 13."""

MISTAKES = {
    "13.1": [
        "def middles(length, frames):\n    return np.linspace(0, length - 1, frames).astype(int)",  # first to last
        "def middles(length, frames):\n    return [k * length // frames for k in range(frames)]",  # beginnings
        "def middles(length, frames):\n    return [round((k + 0.5) * length / frames) for k in range(frames)]",
    ],
    "13.2": ["answer = [[1, 0], [0, 1]]", "answer = [[1, 1], [1, 1]]", "answer = [[1, 0], [1, 0]]"],
    "13.3": ["answer = 7.6", "answer = -62", "answer = 'more'"],
    "13.4": [
        "def student_loss(student, teacher, labels, a):\n"  # the norm, a sum over classes
        "    kd = ((student - teacher) ** 2).sum(-1).mean()\n"
        "    return a * nn.functional.cross_entropy(student, labels) + (1 - a) * kd",
        "def student_loss(student, teacher, labels, a):\n"  # weights the wrong way round
        "    kd = ((student - teacher) ** 2).mean()\n"
        "    return (1 - a) * nn.functional.cross_entropy(student, labels) + a * kd",
        "def student_loss(student, teacher, labels, a):\n"  # probabilities in the place of logits
        "    kd = ((student.softmax(-1) - teacher.softmax(-1)) ** 2).mean()\n"
        "    return a * nn.functional.cross_entropy(student, labels) + (1 - a) * kd",
    ],
    "13.5": ["answer = 'teacher, assistant'", "answer = 'pretrained'"],
}
