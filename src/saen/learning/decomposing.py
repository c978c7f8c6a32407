"""What estimators over a single decomposition share: which one, and the data decomposed by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted

from saen.data.compression import Compressed
from saen.data.hierarchy import Hierarchy
from saen.decompositions import Decomposition
from saen.errors import InputError
from saen.io.coerce import as_data
from saen.learning.parameters import Parameters, parameter
from saen.learning.preparation import Data, DecompositionSpec, Prepared, compress_like, prepare


@dataclass(eq=False, repr=False)
class Decomposing(Parameters, BaseEstimator):
    """Estimators that decompose and compress their data in one way."""

    decomposition: str | Decomposition = parameter(
        "ego", str, HasMethods(["fit", "decompose", "costs"])
    )
    _: KW_ONLY
    radii: str | Sequence[int] = parameter("auto", StrOptions({"auto"}), "array-like")
    node_labels: str = parameter("auto", str)

    _deep: ClassVar[bool] = False
    """Whether a depth left open is as deep as the size of the data allows."""

    decomposition_: Decomposition | None = field(init=False)
    schema_: Hierarchy = field(init=False)

    @property
    def spec(self) -> DecompositionSpec:
        """The decomposition that the arguments ask for."""
        radii = self.radii if isinstance(self.radii, str) else tuple(map(int, self.radii))
        return DecompositionSpec(self.decomposition, radii, self.node_labels, self._deep)

    def prepare(self, X: Data, *, progress: Callable[[int], object] | None = None) -> Prepared:
        """Decompose and compress data, as `fit` does first.

        `fit` accepts the result in place of the data, and so do `predict` and the like of an
        estimator that was fitted on it. `progress` is called with the number of examples done.

        >>> import saen
        >>> threads = saen.generate_threads(40, seed=1)
        >>> model = saen.SAENClassifier(epochs=2)
        >>> prepared = model.prepare(threads)
        >>> model.fit(prepared, threads.targets).predict(prepared).shape
        (40,)
        """
        self.validate()
        return prepare(X, self.spec, progress)

    def _some_data(self, X: Data) -> Data:
        """The data as the decomposition takes them, at least one example."""
        data = X if isinstance(X, Prepared) else as_data(X, self.spec.takes)
        if len(data) == 0:
            raise InputError("nothing to fit: the data are empty")
        return data

    def _fitted_to(self, prepared: Prepared) -> None:
        """Remember the decomposition, and what later data must agree with."""
        self.decomposition_ = prepared.decomposition
        self.schema_ = prepared.compressed.hierarchy[[]]  # names, roles, vocabulary; no objects

    def compress(self, X: Data, *, lower_inverse: bool = False) -> Compressed:
        """New data decomposed and compressed as those of `fit`.

        `lower_inverse` keeps, for the objects of the lower levels too, which unique object each is.
        """
        check_is_fitted(self, "schema_")
        return compress_like(X, self.decomposition_, self.schema_, lower_inverse=lower_inverse)
