"""Molecules from SMILES: isomers that only their bonds tell apart.

Every carbonyl compound (C=O) is paired with the alcohol (C–O) that has the same skeleton of the
same elements, its double bond elsewhere: methyl propanoate, CCC(=O)OC, with C=CC(O)OC. Both have
the formula C4H8O2, and without bond types they are one and the same graph.
"""

from itertools import product

import numpy as np

import saen
from saen.io.rdkit import from_smiles

# Alkyl groups, each beside the alkenyl group that has the same carbon skeleton.
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
# Isomers stay together: none of the pairs to be predicted has been seen.
order = np.random.default_rng(0).permutation(len(pairs))
smiles = [molecule for number in order for molecule in pairs[number]]
molecules = from_smiles(smiles, targets=["carbonyl", "alcohol"] * len(pairs))
print(molecules)

known, new = molecules[:400], molecules[400:]
print(f"\nheld-out accuracy on {len(new)} molecules")
for edges, said in (("none", "without bond types"), ("roles", "with bond types")):
    model = saen.SAENClassifier(saen.Ego(radii=(0, 1, 2), edges=edges), epochs=20)
    model.fit(known, known.targets)
    print(f"  {said:<18} {100 * model.score(new, new.targets):5.1f} %")
