"""Building decompositions by name."""

import pytest

from saen.decompositions import (
    DECOMPOSITIONS,
    Ego,
    Neighbourhoods,
    Nodes,
    decomposition_class,
    make_decomposition,
)
from saen.decompositions.registry import decomposition_from_json, decomposition_to_json
from saen.errors import InputError


def test_make_decomposition_reads_values_and_plain_words():
    made = make_decomposition(" ego(radii=(2, 0), node_labels=degree, edges='roles') ")
    assert made == Ego(radii=(0, 2), node_labels="degree", edges="roles")


@pytest.mark.parametrize("name", sorted(DECOMPOSITIONS))
def test_make_decomposition_of_a_plain_name_has_the_defaults_of_the_class(name):
    assert make_decomposition(name) == decomposition_class(name)() == DECOMPOSITIONS[name]()


def test_make_decomposition_takes_the_american_spelling_of_neighbourhoods():
    assert make_decomposition("neighborhoods(depth=2)") == Neighbourhoods(depth=2)


def test_make_decomposition_prefers_the_text_then_overrides_then_defaults():
    made = make_decomposition(
        "ego(radii=(3,))",
        overrides={"node_labels": "degree", "direction": None},
        defaults={"radii": (9,), "node_labels": "core", "direction": "out", "depth": 4},
    )
    assert made == Ego(radii=(3,), node_labels="degree", direction="out")


def test_make_decomposition_calls_a_default_only_if_it_is_needed():
    def never():
        raise AssertionError("not needed")

    defaults = {"radii": never, "node_labels": lambda: "degree"}
    assert make_decomposition("nodes", defaults=defaults) == Nodes("degree")
    assert make_decomposition("ego(radii=(1,))", defaults=defaults) == Ego((1,), "degree")


@pytest.mark.parametrize(
    ("spec", "overrides", "message"),
    [
        ("ergo", {}, r"unknown decomposition 'ergo' \(did you mean ego\?\): choose from"),
        ("ego(radius=1)", {}, r"ego has no parameter 'radius' \(did you mean radii\?\)"),
        ("nodes", {"radii": (0, 1)}, "nodes has no parameter 'radii'"),
        ("ego(radii=(0,))", {"radii": (1,)}, r"radii is given twice: as \(1,\) and in 'ego\("),
        ("ego(vocabulary=3)", {}, "ego has no parameter 'vocabulary'"),
        ("ego(0, 1)", {}, "a decomposition is written name or name"),
        ("ego(radii=", {}, "a decomposition is written name or name"),
        ("ego(**{})", {}, "a decomposition is written name or name"),
        ("ego(radii=open('x'))", {}, "a decomposition is written name or name"),
    ],
)
def test_make_decomposition_says_what_is_wrong(spec, overrides, message):
    with pytest.raises(InputError, match=message):
        make_decomposition(spec, overrides=overrides)


def test_decomposition_class_needs_only_the_name():
    assert decomposition_class("nested(levels=('a', 'b'))").takes == "nested"
    with pytest.raises(InputError, match="unknown decomposition"):
        decomposition_class("ergo(radii=1)")


def test_decompositions_come_back_from_json():
    fitted = Ego(radii=(0, 2), edges="objects")
    assert decomposition_from_json(decomposition_to_json(fitted)) == fitted
