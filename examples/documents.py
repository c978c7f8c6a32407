"""Who does what to whom: classify documents by dependency paths where counting words says nothing.

Every document is a few parsed sentences about an animal and a person, in the active or the passive
voice. In one class animals act on people, in the other people act on animals, with the very same
words. Run it with `python examples/documents.py`.
"""

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import saen
from saen.decompositions import DependencyPaths
from saen.io.conllu import read_conllu

ANIMALS = ["dog", "bear", "goose", "horse", "cat", "wasp"]
PEOPLE = ["man", "girl", "farmer", "nurse", "boy", "queen"]
VERBS = ["bit", "chased", "scared", "fed", "watched", "ignored"]
ADVERBS = ["again", "today", "often", "never"]

# Word, head and relation: what a parser finds.
ACTIVE = "The/2/det {agent}/4/nsubj {adverb}/4/advmod {verb}/0/root the/6/det {patient}/4/obj"
PASSIVE = (
    "The/2/det {patient}/5/nsubj:pass {adverb}/5/advmod was/5/aux:pass {verb}/0/root "
    "by/8/case the/8/det {agent}/5/obl:agent"
)


def conllu(parse):
    """A sentence in CoNLL-U: a word a line, ten columns."""
    rows = [word.split("/") for word in parse.split()]
    return "".join(
        f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"
        for number, (word, head, relation) in enumerate(rows, start=1)
    )


def generate(n_pairs, seed=0):
    """Documents in pairs, one of either class with the words of the other."""
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(n_pairs):
        drawn = [
            (
                PASSIVE if rng.random() < 0.3 else ACTIVE,
                *map(rng.choice, (ANIMALS, PEOPLE, VERBS, ADVERBS)),
            )
            for _ in range(2)
        ]
        for label in ("animals", "people"):
            blocks.append(f"# newdoc\n# label = {label}\n")
            for voice, animal, person, verb, adverb in drawn:
                agent, patient = (animal, person) if label == "animals" else (person, animal)
                parse = voice.format(agent=agent, patient=patient, verb=verb, adverb=adverb)
                blocks.append(conllu(parse) + "\n")
    return "".join(blocks)


documents = read_conllu(generate(150))
print(documents)
print("  " + " ".join(documents[0].words) + f"  ({documents.targets[0]} act)")
print("  " + " ".join(documents[1].words) + f"  ({documents.targets[1]} act)\n")
known, new = documents[:200], documents[200:]


def bags(collection):
    """Documents as plain strings, for scikit-learn's counts of words."""
    return [" ".join(document.words) for document in collection]


# Two documents of a pair have the same counts and so the same answer: one of them is wrong.
counts = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1000))
counts.fit(bags(known), known.targets)
print(f"bag of words               {100 * counts.score(bags(new), new.targets):5.1f} %")

# Paths of words see that "by" stands with the agent of a passive sentence, but "dog – bit – man"
# is the same path whoever bites. Relations on the paths tell subject and object apart.
for name, text in {
    "dependency paths": DependencyPaths(max_length=2),
    "paths with relations": DependencyPaths(max_length=2, relations=True),
}.items():
    model = saen.SAENClassifier(text, epochs=30, normalisation="none", n_models=1)
    model.fit(known, known.targets)
    print(f"{name:<25}  {100 * model.score(new, new.targets):5.1f} %")
