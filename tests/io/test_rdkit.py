from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saen import Graphs
from saen.data.compression import equivalent
from saen.data.molecules import elements, stereoisomers
from saen.decompositions import Neighbourhoods
from saen.errors import InputError, MissingExtraError
from saen.io.libraries.rdkit import descriptors, from_rdkit, from_smiles, to_rdkit
from tests.refusals import refuses

Chem = pytest.importorskip("rdkit.Chem")
Descriptors = pytest.importorskip("rdkit.Chem.Descriptors")

# Symbols and bond types alone tell these.
PLAIN = {
    "nothing": "",
    "methane": "C",
    "aspirin": "CC(=O)Oc1ccccc1C(=O)O",
    "caffeine": "Cn1cnc2c1c(=O)n(C)c(=O)n2C",
    "ibuprofen": "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "penicillin": "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O",
    "sulphone": "CS(=O)(=O)C#N",
    "phosphate": "OP(=O)(O)OCCBr",
    "two parts": "CCO.c1ccncc1",
    "silane": "C[SiH3]",
    "selenophene": "c1cc[se]c1",
    "hydrogen": "[H][H]",
    "wildcard": "*CC",
}
# Charges, radicals and the hydrogens of aromatic atoms need more than symbols.
RICHER = {
    "nitrobenzene": "O=[N+]([O-])c1ccccc1",
    "histidine": "NC(Cc1c[nH]cn1)C(=O)O",
    "indole": "c1ccc2[nH]ccc2c1",
    "glycine": "[NH3+]CC(=O)[O-]",
    "salt": "[Na+].[Cl-]",
    "methyl": "[CH3]",
    "oxide": "[O-][n+]1ccccc1",
    "carbon monoxide": "[C-]#[O+]",
    "hexafluorophosphate": "F[P-](F)(F)(F)(F)F",
    "copper": "[Cu+2]",
    "diazo": "CC=[N+]=[N-]",
}


def canonical(molecule):
    return Chem.MolToSmiles(molecule, isomericSmiles=False)


def read(text):
    return Chem.MolFromSmiles(text)


# -- from RDKit --------------------------------------------------------------------------------


def molfile(molecule):
    """Elements and bonds as RDKit's own file of the molecule lists them."""
    lines = Chem.MolToMolBlock(molecule, kekulize=False).splitlines()
    n_atoms, n_bonds = int(lines[3][:3]), int(lines[3][3:6])
    elements = [line.split()[3] for line in lines[4 : 4 + n_atoms]]
    types = {1: "SINGLE", 2: "DOUBLE", 3: "TRIPLE", 4: "AROMATIC"}
    bonds = {}
    for line in lines[4 + n_atoms : 4 + n_atoms + n_bonds]:
        begin, end, kind = int(line[:3]) - 1, int(line[3:6]) - 1, int(line[6:9])
        bonds[begin, end] = bonds[end, begin] = types[kind]
    return elements, bonds


@pytest.mark.parametrize("text", [*PLAIN.values(), *RICHER.values()], ids=[*PLAIN, *RICHER])
def test_rdkit_atoms_and_bonds_are_those_of_a_molfile(text):
    molecule = read(text)
    graphs = from_rdkit([molecule], atom_labels="element")
    symbols, bonds = molfile(molecule)
    if text == PLAIN["wildcard"]:
        symbols = ["*" if symbol == "R" else symbol for symbol in symbols]
    assert graphs.node_labels.tolist() == symbols
    assert elements(from_rdkit([molecule]).node_labels).tolist() == symbols
    rows = np.repeat(np.arange(graphs.n_nodes), np.diff(graphs.indptr)).tolist()
    entries = zip(rows, graphs.indices.tolist(), strict=True)
    assert dict(zip(entries, graphs.edge_labels.tolist(), strict=True)) == bonds
    assert not graphs.directed
    assert graphs.n_loops == 0


def test_rdkit_hydrogens_are_nodes_only_where_the_molecule_holds_them():
    methanol = read("CO")
    assert from_rdkit([methanol]).node_labels.tolist() == ["C", "O"]
    full = from_rdkit([Chem.AddHs(methanol)], atom_labels="element")
    assert sorted(full.node_labels) == ["C", "H", "H", "H", "H", "O"]


def test_rdkit_atoms_as_smiles_tell_aromatic_charged_and_unusual_atoms():
    graphs = from_smiles(
        ["C[N+](=O)[O-]", "c1cc[nH]c1", "[13CH3]N", "C[C@H](N)O"], atom_labels="smiles"
    )
    assert [g.node_labels.tolist() for g in graphs] == [
        ["C", "[N+]", "O", "[O-]"],
        ["c", "c", "c", "[nH]", "c"],
        ["C", "N"],
        ["C", "C@R", "N", "O"],
    ]


def test_rdkit_atoms_tell_the_geometry_of_double_bonds():
    graphs = from_smiles(["C/C=C/C", "C/C=C\\C", "CC=CC"])
    assert [g.node_labels[1] for g in graphs] == ["C/E", "C/Z", "C"]
    assert stereoisomers(graphs) == 3
    assert stereoisomers(graphs[:1]) == 0


def test_descriptors_of_molecules_and_of_what_is_none():
    graphs = from_smiles(["CCO", "C[N+](=O)[O-]", "C"])
    names, values = descriptors(graphs)
    weights = [Descriptors.MolWt(read(text)) for text in ("CCO", "C[N+](=O)[O-]", "C")]
    assert values[:, names.index("MolWt")].tolist() == pytest.approx(weights)
    five = Graphs.from_edge_lists(
        [[(0, i) for i in range(1, 6)]], node_labels=["C"] * 6, edge_labels=["SINGLE"] * 5
    )
    assert np.isnan(descriptors(five)[1]).all()


def test_molecules_stay_as_they_are():
    molecules = [read(text) for text in RICHER.values()]
    before = [molecule.ToBinary() for molecule in molecules]
    graphs = from_rdkit(iter(molecules), atom_labels="smiles", targets=range(len(molecules)))
    assert [molecule.ToBinary() for molecule in molecules] == before
    assert graphs.targets.tolist() == list(range(len(molecules)))


def test_smiles_are_the_molecules_that_rdkit_reads():
    texts = [*PLAIN.values(), *RICHER.values()]
    for atom_labels in ("element", "smiles"):
        expected = from_rdkit([read(text) for text in texts], atom_labels=atom_labels)
        assert from_smiles(np.array(texts), atom_labels=atom_labels) == expected
    assert from_smiles(["CO", "CC"], ["alcohol", "alkane"]).targets.tolist() == [
        "alcohol",
        "alkane",
    ]


def test_rdkit_no_molecules_are_no_graphs():
    for empty in (from_rdkit([]), from_smiles([])):
        assert len(empty) == empty.n_nodes == 0
        assert to_rdkit(empty) == []
    assert to_rdkit(Graphs.from_edge_lists([])) == []


@given(st.sampled_from([*PLAIN.values(), *RICHER.values()]), st.randoms(use_true_random=False))
def test_rdkit_the_order_of_atoms_does_not_matter(text, random):
    molecule = read(text)
    order = list(range(molecule.GetNumAtoms()))
    random.shuffle(order)
    turned = Chem.RenumberAtoms(molecule, order) if order else molecule
    first, second = (from_rdkit([m], atom_labels="smiles") for m in (molecule, turned))
    assert second.node_labels.tolist() == [first.node_labels[i] for i in order]
    for graphs in (first, second):
        assert canonical(to_rdkit(graphs)[0]) == canonical(molecule)
    decomposition = Neighbourhoods(node_labels="node")
    assert equivalent(decomposition.decompose(first), decomposition.decompose(second))


# -- to RDKit ----------------------------------------------------------------------------------


@pytest.mark.parametrize("atom_labels", ["element", "smiles"])
@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_rdkit_ordinary_molecules_come_back_from_symbols_and_from_smiles(text, atom_labels):
    [returned] = to_rdkit(from_smiles([text], atom_labels=atom_labels))
    assert canonical(returned) == canonical(read(text))


@pytest.mark.parametrize("text", RICHER.values(), ids=RICHER)
def test_rdkit_charges_radicals_and_hydrogens_come_back_from_smiles(text):
    [returned] = to_rdkit(from_smiles([text], atom_labels="smiles"))
    assert canonical(returned) == canonical(read(text))


def test_rdkit_what_is_lost_is_what_is_said():
    def back(text, **options):
        return Chem.MolToSmiles(to_rdkit(from_smiles([text], **options))[0])

    assert back("C[C@H](N)O", atom_labels="smiles") == "CC(N)O"
    assert back("C/C=C/C", atom_labels="smiles") == "CC=CC"
    assert back("[13CH4]", atom_labels="smiles") == "C"
    assert back("N->[Fe]") == "[NH3]->[Fe]"
    with pytest.raises(InputError, match="graph 0 is not a molecule: Explicit valence"):
        back(
            "[Fe]<-N", atom_labels="smiles"
        )  # dative bonds point from the smaller number to the larger
    assert back("CC(=O)[O-]", atom_labels="element") == "CC(=O)O"
    assert back("[CH3]", atom_labels="element") == "C"


VALENCES = {"C": 4, "N": 3, "O": 2, "S": 2, "F": 1, "Cl": 1}
ORDERS = {"SINGLE": 1, "DOUBLE": 2, "TRIPLE": 3}


@st.composite
def valence_graphs(draw):
    """Any atoms and bonds that leave no valence exceeded, connected or not."""
    sizes, labels, pairs, bonds = [], [], [], []
    for _ in range(draw(st.integers(0, 3))):
        elements = draw(st.lists(st.sampled_from(sorted(VALENCES)), max_size=7))
        free = [VALENCES[element] for element in elements]
        start = len(labels)
        for a in range(len(elements)):
            for b in range(a + 1, len(elements)):
                kind = draw(st.sampled_from([None, None, *ORDERS]))
                if kind is not None and min(free[a], free[b]) >= ORDERS[kind]:
                    free[a] -= ORDERS[kind]
                    free[b] -= ORDERS[kind]
                    pairs.append((start + a, start + b))
                    bonds.append(kind)
        sizes.append(len(elements))
        labels.extend(elements)
    return Graphs.from_edges(
        pairs,
        np.array(sizes, dtype=np.int64),
        node_labels=np.array(labels, dtype=np.str_),
        edge_labels=np.array(bonds, dtype=np.str_),
    )


@given(valence_graphs())
def test_from_rdkit_undoes_to_rdkit_but_for_rings_that_are_aromatic(graphs):
    molecules = to_rdkit(graphs)
    returned = from_rdkit(molecules, atom_labels="element")
    aromatic = any(m.GetAromaticAtoms() for m in molecules)
    assert returned._with(edge_labels=None) == graphs._with(edge_labels=None)
    if not aromatic:
        assert returned == graphs
    again = to_rdkit(from_rdkit(molecules, atom_labels="smiles"))
    assert [canonical(m) for m in again] == [canonical(m) for m in molecules]


# -- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: from_rdkit(read("C")),
         "expected a list of molecules, found a single one: pass [molecule]"),
        (
            lambda: from_rdkit([read("C"), None]),
            "molecule 1: expected an RDKit molecule, found NoneType (RDKit returns None for "
            "invalid molecules)",
        ),
        (lambda: from_rdkit(["CCO"]), "molecule 0: expected an RDKit molecule, found str"),
        (lambda: from_rdkit([], atom_labels="symbol"),
         'atom_labels must be "smiles" or "element", not \'symbol\''),
        (lambda: from_rdkit([read("C")], targets=[1, 2]),
         "targets: expected 1 rows, found shape (2,)"),
        (lambda: from_smiles("CCO"), "expected a list of SMILES, found a single one: pass ['CCO']"),
        (lambda: from_smiles(["C", float("nan")]), "SMILES 1: expected a string, found nan"),
        (
            lambda: from_smiles(["C", "C("]),
            "SMILES 1, 'C(': invalid SMILES: syntax error around position 2",
        ),
        (
            lambda: from_smiles(["ethanol"]),
            "SMILES 0, 'ethanol': invalid SMILES: syntax error around position 1",
        ),
        (
            lambda: from_smiles(["C", "C", "CC(C)(C)(C)C"]),
            "SMILES 2, 'CC(C)(C)(C)C': invalid SMILES: Explicit valence for atom # 1 C, 5, is "
            "greater than permitted",
        ),
        (lambda: from_smiles(["c1cccc1"]),
         "SMILES 0, 'c1cccc1': invalid SMILES: Can't kekulize mol. Unkekulized atoms: 0 1 2 3 4"),
        (
            lambda: to_rdkit(from_smiles(["C", "C[N+](=O)[O-]"], atom_labels="element")),
            "graph 1 is not a molecule: Explicit valence for atom # 1 N, 4, is greater than "
            "permitted (from_rdkit(…, atom_labels='smiles') keeps charges and hydrogens)",
        ),
        (
            lambda: to_rdkit(from_smiles(["c1cc[nH]c1"], atom_labels="element")),
            "graph 0 is not a molecule: Can't kekulize mol. Unkekulized atoms: 0 1 2 3 4 "
            "(from_rdkit(…, atom_labels='smiles') keeps charges and hydrogens)",
        ),
        (lambda: to_rdkit(Graphs.from_edges([], [1, 2], node_labels=["C", "N", "Xx"])),
         "graph 1, node 1: 'Xx' is neither the symbol of an element nor an atom in SMILES"),
        (
            lambda: to_rdkit(
                Graphs.from_edges([(0, 1)], [2], node_labels=["C", "N"], edge_labels=["bond"])
            ),
            "'bond' is not a bond type of RDKit (such as SINGLE, DOUBLE or AROMATIC)",
        ),
        (lambda: to_rdkit(Graphs.from_edges([], [1])),
         "molecules need elements as node labels, found none"),
        (lambda: to_rdkit(Graphs.from_edges([], [1], node_labels=[6])),
         "molecules need elements as node labels, found int64 of shape (1,)"),
        (lambda: to_rdkit(Graphs.from_edges([(0, 1)], [2], node_labels=["C", "N"])),
         "molecules need bond types as edge labels, found none"),
        (
            lambda: to_rdkit(
                Graphs.from_edges(
                    [(0, 1)], [2], node_labels=["C"] * 2, edge_labels=["SINGLE"], directed=True
                )
            ),
            "molecules are undirected, but these graphs are directed",
        ),
        (
            lambda: to_rdkit(
                Graphs.from_edges(
                    [(0, 1), (1, 0)],
                    [2],
                    node_labels=["C"] * 2,
                    edge_labels=["SINGLE", "DOUBLE"],
                )
            ),
            "graph 0: the two directions of edge 0 – 1 have different edge labels, but RDKit "
            "stores only one",
        ),
        (
            lambda: to_rdkit(
                Graphs.from_edges([(1, 1)], [1, 1], node_labels=["C"] * 2, edge_labels=["SINGLE"])
            ),
            "graph 1 has a self-loop, which is not a bond",
        ),
    ],
)  # fmt: skip
def test_rdkit_what_is_no_molecule_is_named_and_rdkit_keeps_quiet(call, message, capfd):
    with refuses(message):
        call()
    assert capfd.readouterr() == ("", "")


def test_rdkit_speaks_again_afterwards(capfd):
    with pytest.raises(InputError):
        from_smiles(["C("])
    assert read("C(") is None
    assert "SMILES Parse Error" in capfd.readouterr().err


def test_without_rdkit_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit.Chem", None)
    for call in (from_rdkit, from_smiles, to_rdkit):
        with pytest.raises(MissingExtraError, match=r'pip install "saen\[chem\]"'):
            call([])


@pytest.mark.parametrize("text", ["[#999]", "C[#119]"])
def test_smiles_of_an_element_that_there_is_not_are_one_line(text):
    with pytest.raises(InputError) as error:
        from_smiles(["C", text])
    assert str(error.value).startswith(f"SMILES 1, '{text}': invalid SMILES: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["C鸡C", "C\udf61", "CC." + "é鸡" * 80])
def test_smiles_with_letters_that_no_smiles_has_are_one_line(text):
    # RDKit cuts what it quotes of the text by bytes, perhaps in the middle of a letter.
    with pytest.raises(InputError, match=r"invalid SMILES: no SMILES has '") as error:
        from_smiles([text])
    assert "\n" not in str(error.value)


def test_smiles_that_are_long_and_wrong_are_cut_in_the_message():
    with pytest.raises(InputError, match="syntax error") as error:
        from_smiles(["C" * 100_000 + "("])
    assert len(str(error.value)) < 400


def test_smiles_of_a_long_molecule_take_linear_time():
    from_smiles(["C"])  # imports RDKit
    before = time.process_time()
    small = from_smiles(["C" * 4_000])
    middle = time.process_time()
    large = from_smiles(["C" * 32_000])
    after = time.process_time()
    assert small.n_edges == 3_999
    assert large.edges().tolist() == [[i, i + 1] for i in range(31_999)]
    assert after - middle < 30 * (middle - before)  # quadratic: 64 times


def test_rdkit_bonds_of_a_large_molecule_come_in_the_same_order(monkeypatch):
    molecules = [text for text in PLAIN.values() if text]
    small = from_smiles(molecules)
    monkeypatch.setattr("saen.io.libraries.rdkit._LARGE_MOLECULE", 0)
    large = from_smiles(molecules)
    assert large == small
    assert np.array_equal(large.edge_labels, small.edge_labels)
