"""Molecules from SMILES: isomers that differ only in their bond types.

Every carbonyl compound (C=O) is paired with an alcohol (C–O) that has the same skeleton and
elements but its double bond elsewhere: methyl propanoate, CCC(=O)OC, with C=CC(O)OC. Both have the
formula C4H8O2, and without bond types they are the same graph.
"""

from itertools import product

import numpy as np

import saen

# Alkyl groups, and alkenyl groups with the same carbon skeleton.
ALKENYLS = {
    "CC": "C=C",
    "CCC": "CC=C",
    "CC(C)": "C=C(C)",
    "CCCC": "CC=CC",
    "CC(C)C": "CC(=C)C",
    "CCC(C)": "CC=C(C)",
    "CCCCC": "C=CCCC",
    "CC(C)CC": "CC(C)C=C",
    "CCC(C)C": "CC=C(C)C",
}
LINKS = ("O", "N", "S", "CO", "CN")  # esters, amides, thioesters, ketones
TAILS = ("C", "CC", "CCC", "C(C)C", "CC(C)C", "c1ccccc1")

pairs = [
    (f"{alkyl}C(=O){link}{tail}", f"{alkenyl}C(O){link}{tail}")
    for (alkyl, alkenyl), link, tail in product(ALKENYLS.items(), LINKS, TAILS)
]
# Isomers stay together, so that no pair is in both the training and the test set.
order = np.random.default_rng(0).permutation(len(pairs))
smiles = [molecule for number in order for molecule in pairs[number]]
molecules = saen.from_smiles(smiles, targets=["carbonyl", "alcohol"] * len(pairs))
print(molecules)

train, test = molecules[:400], molecules[400:]
print(f"\nheld-out accuracy on {len(test)} molecules")
for edges, description in (("none", "without bond types"), ("roles", "with bond types")):
    model = saen.SAENClassifier(saen.decompositions.Ego(radii=(0, 1, 2), edges=edges), epochs=20)
    model.fit(train, train.targets)
    print(f"  {description:<18} {100 * model.score(test, test.targets):5.1f} %")
