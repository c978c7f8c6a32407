"""Predictions over HTTP: a saved model behind a FastAPI handler.

    pip install fastapi uvicorn
    SAEN_MODEL=threads.saen uvicorn serve:app --app-dir examples

The model is loaded once. Loading and predicting need neither plots nor any other extra. A handler
that is a plain function runs in a thread of its own, so requests do not wait for each other.
"""

import os
from typing import Annotated

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field

import saen

MAX_GRAPHS, MAX_NODES, MAX_EDGES = 1_000, 100_000, 1_000_000
"""Of a request: a number of nodes is a few bytes to send, and gigabytes to work with."""


class Graph(BaseModel):
    """A graph as in JSON lines: the number of nodes, or one label each, and pairs of nodes."""

    id: str | int | None = None
    nodes: (
        Annotated[int, Field(ge=0, le=MAX_NODES)]
        | Annotated[list[str | int], Field(max_length=MAX_NODES)]
    )
    edges: Annotated[list[tuple[int, int]], Field(max_length=MAX_EDGES)]


class Prediction(BaseModel):
    """What the model predicts for one graph."""

    id: str | int | None
    prediction: str
    probabilities: dict[str, float]


app = FastAPI(title="saen")
model = saen.load(os.environ["SAEN_MODEL"])
classes = [str(name) for name in model.classes_]


@app.post("/predict")
def predict(graphs: Annotated[list[Graph], Field(max_length=MAX_GRAPHS)]) -> list[Prediction]:
    """Predict a batch: one pass over the network, however many graphs it has."""
    try:
        data = saen.Graphs.from_edge_lists(
            [graph.edges for graph in graphs],
            [g.nodes if isinstance(g.nodes, int) else len(g.nodes) for g in graphs],
            node_labels=_labels(graphs),
        )
        probabilities = model.predict_proba(data)
    except saen.SaenError as error:  # the request is wrong, and the message says where
        raise HTTPException(status_code=422, detail=str(error)) from None
    return [
        Prediction(
            id=graph.id,
            prediction=classes[row.argmax()],
            probabilities=dict(zip(classes, row.tolist(), strict=True)),
        )
        for graph, row in zip(graphs, probabilities, strict=True)
    ]


def _labels(graphs: list[Graph]) -> list[str | int] | None:
    lists = [graph.nodes for graph in graphs if not isinstance(graph.nodes, int)]
    if lists and len(lists) != len(graphs):
        raise saen.InputError("either all graphs have node labels, or none")
    return [label for labels in lists for label in labels] if lists else None
