"""Stores that speak S3, for one test each: MinIO where it is installed, and moto, which is a server in Python."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

KINDS = ("moto", "minio")
KEYS = {"AWS_ACCESS_KEY_ID": "fleetfleet", "AWS_SECRET_ACCESS_KEY": "fleetfleet", "AWS_DEFAULT_REGION": "us-east-1"}
MINIO = shutil.which(os.environ.get("MINIO", "minio"))


@contextmanager
def s3(kind: str, folder: Path, host: str = "127.0.0.1") -> Iterator[str]:
    """The address of one. Skips where it is not installed."""
    if kind == "minio":
        if not MINIO:
            pytest.skip("no MinIO here (its program in PATH, or MINIO=PROGRAM)")
        with _minio(folder, host) as url:
            yield url
        return
    moto = pytest.importorskip("moto.server", reason="no moto here (pip install 'moto[server]')")
    server = moto.ThreadedMotoServer(host, 0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    try:
        urllib.request.urlopen(
            f"{url}/moto-api/reset", b""
        ).close()  # what it holds is of this process, and not of a server
        yield url
    finally:
        server.stop()


@contextmanager
def _minio(folder: Path, host: str) -> Iterator[str]:
    with socket.socket() as free:
        free.bind((host, 0))
        url = f"{host}:{free.getsockname()[1]}"
    own = {"MINIO_ROOT_USER": KEYS["AWS_ACCESS_KEY_ID"], "MINIO_ROOT_PASSWORD": KEYS["AWS_SECRET_ACCESS_KEY"]}
    own |= {"HOME": str(folder), "PATH": os.environ["PATH"], "MINIO_BROWSER": "off"}
    server = subprocess.Popen(
        [str(MINIO), "server", "--quiet", "--address", url, folder / "store"], env=own, stdout=subprocess.DEVNULL
    )
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://{url}/minio/health/live").close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.1)
        yield f"http://{url}"
    finally:
        server.kill()
        server.wait()
