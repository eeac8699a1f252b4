"""A Dask scheduler behind TLS, as docs/cluster.md says; what is wrong with certificates and addresses is one line."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from asyncfl_lite.base.errors import ConfigError
from asyncfl_reproduction.grid import workers
from asyncfl_reproduction.grid.workers import connected
from conftest import wait_for

dask = pytest.importorskip("dask")
pytest.importorskip("distributed", reason="dask.distributed is not installed: pip install 'asyncfl-lite[dask]'")


def refused(address):
    """Return the line that comes of speaking to an address."""
    with pytest.raises(ConfigError) as caught, connected(address):
        pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_certificates_that_are_missing_or_cannot_be_read_are_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tls://127.0.0.1:{server.getsockname()[1]}"
        assert "tls:// needs certificates, whose files are named by DASK_DISTRIBUTED__COMM__TLS__CA" in refused(address)
        (tmp_path / "ca.pem").write_text("no certificate")
        for file in ("missing.pem", "ca.pem"):
            names = ("ca-file", "client.cert", "client.key")
            with dask.config.set({f"distributed.comm.tls.{name}": str(tmp_path / file) for name in names}):
                assert "the files of DASK_DISTRIBUTED__COMM__TLS__CA_FILE and" in refused(address)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make certificates")
def test_only_who_has_a_certificate_is_let_in(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "SCHEDULER_SECONDS", 20)
    for command in (
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
        "req -newkey rsa:2048 -nodes -keyout node.key -out node.csr -subj /CN=node",
        "x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out node.pem -days 2",
    ):
        subprocess.run(["openssl", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    tls = ["--tls-ca-file", "ca.pem", "--tls-cert", "node.pem", "--tls-key", "node.key"]
    tls += ["--dashboard-address", "127.0.0.1:0"]
    started = []

    def start(*options):
        command = [sys.executable, "-m", "dask", *options, *tls]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        started.append(subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.DEVNULL))

    try:
        start("scheduler", "--protocol", "tls", "--host", "127.0.0.1", "--port", str(port))
        wait_for(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
        start("worker", f"tls://127.0.0.1:{port}", "--nthreads", "1", "--no-nanny")
        assert "is not a Dask scheduler of that kind" in refused(f"tcp://127.0.0.1:{port}")
        files = {"ca-file": "ca.pem", "client.cert": "node.pem", "client.key": "node.key"}
        with dask.config.set({f"distributed.comm.tls.{name}": str(tmp_path / file) for name, file in files.items()}):
            assert workers.count_workers(f"tls://127.0.0.1:{port}") == 1
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("address", "open_to_all"),
    [("tcp://127.0.0.1:8786", False), ("tcp://[::1]:8786", False), ("tcp://localhost:1", False), ("tls://10.0.0.1:1", False),
     ("tcp://10.0.0.1:8786", True), ("tcp://[fe80::1]:8786", True), ("tcp://login1:8786", True), ("ucx://10.0.0.1:1", True)],
)  # fmt: skip
def test_a_cluster_that_is_open_to_other_machines_is_told(address, open_to_all, monkeypatch, capsys):
    """Whether its scheduler is open or only a worker."""
    for scheduler, worker in ((address, "tcp://127.0.0.1:5"), ("tcp://127.0.0.1:5", address)):
        client = SimpleNamespace(
            scheduler_info=lambda own=scheduler: {"address": own}, nthreads=lambda own=worker: {own: 2}
        )
        monkeypatch.setattr(workers, "connected", lambda _, client=client: nullcontext(client))
        assert workers.count_workers(scheduler) == 2
        told = (
            f"scheduler: anyone who reaches {address} can run code as you; see docs/cluster.md\n" if open_to_all else ""
        )
        assert capsys.readouterr().err == told
