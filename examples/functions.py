"""Which package of the standard library does a function come from? `python examples/functions.py`

A function is nested data: it consists of statements, a statement of paths through its syntax tree,
a path of node types. Nothing is downloaded, and the functions are parsed, not run.
"""

import numpy as np
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split

import saen
from saen.decompositions import Nested
from saen.io.sources.stdlib import stdlib_functions

functions = stdlib_functions()
print(functions)
compressed = saen.compress(Nested().decompose(functions))
for level in compressed.levels():
    print(f"  {level['objects']:>7,} {level['name']:<11} {level['unique']:>7,} unique")

indices = np.arange(len(functions))
train, test = train_test_split(indices, test_size=0.25, random_state=0, stratify=functions.targets)
classifier = saen.SAENClassifier("nested", epochs=20, random_state=0)
classifier.fit(functions[train], functions.targets[train])

targets = functions.targets[test]
predictions = classifier.predict(functions[test])
_, counts = np.unique(targets, return_counts=True)
print(
    f"\naccuracy on {len(test)} held-out functions: {100 * (predictions == targets).mean():.1f} %"
)
print(f"majority baseline: {100 * counts.max() / len(test):.1f} %\n")
print(classification_report(targets, predictions, zero_division=0))
