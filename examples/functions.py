"""Which package of the standard library does a function come from? `python examples/functions.py`

Functions are structures of their own: made of statements, made of paths through syntax trees, made
of node types. Nothing is downloaded, and none of the code that is looked at is run.
"""

import numpy as np
from sklearn.model_selection import train_test_split

import saen
from saen.decompositions import Nested
from saen.io.stdlib import stdlib_functions

functions = stdlib_functions()
print(functions)
compressed = saen.compress(Nested().decompose(functions))
for level in compressed.levels():
    print(f"  {level['objects']:>7,} {level['name']:<11} {level['classes']:>7,} distinct")

rows = np.arange(len(functions))
known, new = train_test_split(rows, test_size=0.25, random_state=0, stratify=functions.targets)
classifier = saen.SAENClassifier(Nested(), epochs=20, random_state=0)
classifier.fit(functions[known], functions.targets[known])

truth = functions.targets[new]
guess = classifier.predict(functions[new])
packages, counts = np.unique(truth, return_counts=True)
print(f"\naccuracy on {len(new)} functions set aside: {100 * (guess == truth).mean():.1f} %")
print(f"the largest package alone: {100 * counts.max() / len(new):.1f} %\n")
print("  package          functions  found")
for package, count in zip(packages, counts, strict=True):
    found = 100 * (guess[truth == package] == package).mean()
    print(f"  {package:<15}  {count:>9}  {found:>4.0f} %")
