"""Clients with slow uplinks: how long a model takes to train when its bytes take longer than its gradients.

Each client has two classes, trains with Nesterov momentum, and lowers its learning rate over its own jobs. An update of
the larger model takes longer to send, so the server makes fewer versions of it in the same time.

    python examples/uplinks.py
"""

from asyncfl_lite import Config, run

CLIENTS = {"partition": "pathological", "partition_settings": {"classes": 2}, "client_lr": 0.01}
SGD = {"client_momentum": 0.9, "client_nesterov": True, "client_lr_schedule": "cosine", "client_lr_period": 40}

for hidden in (16, 256):
    parameters = 64 * hidden + hidden + hidden * 10 + 10
    law = {"megabytes": 4e-6 * parameters, "download": (2.0, 8.0), "upload": (0.1, 0.5), "training": (0.2,)}
    config = Config(
        task="digits", algorithm="fedbuff", horizon=30.0, model_settings={"hidden": hidden}, **CLIENTS, **SGD
    )
    result = run(config.replace(delay="bandwidth", delay_settings=law, clients=20, concurrency=20))
    print(f"{hidden} hidden units: {result.summary['versions']} versions in half a minute, {result}")
