"""`saen serve`: the predictions of a trained model over HTTP."""

from __future__ import annotations

import gc
import socket
import warnings
from typing import Annotated

import typer

from saen.cli import options
from saen.cli.output import say
from saen.errors import FileError, InputError


def command(
    model: options.ModelFile,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 is all.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any free port.")] = 8000,
    max_mb: Annotated[float, typer.Option(min=0.001, help="Megabytes of a request.")] = 16,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Seconds for a request, waiting included.")
    ] = 30,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Requests computed at a time.", show_default="number of cores"),
    ] = None,
    vectors: options.VectorsFile = None,
    device: options.Device = "auto",
) -> None:
    """Serve a trained model over HTTP: predictions and explanations as JSON.

    POST /predict and /explain, GET /health, /metrics and /openapi.json. SIGTERM ends it once open
    requests are answered.

    Example: saen serve model.saen --port 8000
    """
    if not model.exists():
        raise FileError("no such file", path=model)
    options.import_estimators()
    from saen.serving import Limits, make_app

    limits = Limits(n_bytes=int(max_mb * 1e6), seconds=timeout)
    if threads is not None:
        limits = Limits(limits.n_bytes, limits.seconds, threads)
    app = make_app(model, limits, device=device, vectors=vectors)
    import uvicorn

    # A server runs for long: warnings, each about one request, would be remembered, and garbage
    # is collected as usual again.
    warnings.simplefilter("ignore")
    gc.freeze()
    gc.set_threshold(700, 10, 10)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
        # Connections inherit it; without it, small answers wait for 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise InputError(f"cannot listen at {host}, port {port}: {error.strerror}") from None
    config = uvicorn.Config(
        app,
        access_log=False,  # /metrics counts; and standard output stays clean
        log_level="error",
        limit_concurrency=2000,
        timeout_graceful_shutdown=int(timeout) + 1,
    )
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}"
    say(f"serving {model.name} at {address} (Ctrl-C ends it)")
    uvicorn.Server(config).run(sockets=[listener])
