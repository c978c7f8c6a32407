"""Who does what to whom: dependency paths classify documents that a bag of words cannot.

Every document has two parsed sentences about an animal and a person, in the active or the passive
voice. In one class animals act on people, in the other people act on animals, with exactly the same
words. Run it with `python examples/documents.py`.
"""

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import saen
from saen.decompositions import DependencyPaths
from saen.io.formats.conllu import read_conllu

ANIMALS = ["dog", "bear", "goose", "horse", "cat", "wasp"]
PEOPLE = ["man", "girl", "farmer", "nurse", "boy", "queen"]
VERBS = ["bit", "chased", "scared", "fed", "watched", "ignored"]
ADVERBS = ["again", "today", "often", "never"]

# Word, head and relation, as a parser would give them.
ACTIVE = "The/2/det {agent}/4/nsubj {adverb}/4/advmod {verb}/0/root the/6/det {patient}/4/obj"
PASSIVE = (
    "The/2/det {patient}/5/nsubj:pass {adverb}/5/advmod was/5/aux:pass {verb}/0/root "
    "by/8/case the/8/det {agent}/5/obl:agent"
)


def conllu(parse):
    """A sentence in CoNLL-U: one word per line, ten columns."""
    rows = [word.split("/") for word in parse.split()]
    return "".join(
        f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"
        for number, (word, head, relation) in enumerate(rows, start=1)
    )


def generate(n_pairs, seed=0):
    """Pairs of documents, one of each class, with the same words."""
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(n_pairs):
        sentences = [
            (
                PASSIVE if rng.random() < 0.3 else ACTIVE,
                *map(rng.choice, (ANIMALS, PEOPLE, VERBS, ADVERBS)),
            )
            for _ in range(2)
        ]
        for label in ("animals", "people"):
            blocks.append(f"# newdoc\n# label = {label}\n")
            for voice, animal, person, verb, adverb in sentences:
                agent, patient = (animal, person) if label == "animals" else (person, animal)
                parse = voice.format(agent=agent, patient=patient, verb=verb, adverb=adverb)
                blocks.append(conllu(parse) + "\n")
    return "".join(blocks)


documents = read_conllu(generate(150))
print(documents)
print("  " + " ".join(documents[0].words) + f"  ({documents.targets[0]} act)")
print("  " + " ".join(documents[1].words) + f"  ({documents.targets[1]} act)\n")
train, test = documents[:200], documents[200:]


def texts(documents):
    """Documents as plain strings, for scikit-learn's word counts."""
    return [" ".join(document.words) for document in documents]


# The documents of a pair have the same word counts and get the same prediction: one is wrong.
bag_of_words = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1000))
bag_of_words.fit(texts(train), train.targets)
print(f"bag of words               {100 * bag_of_words.score(texts(test), test.targets):5.1f} %")

# Paths of words show that "by" goes with the agent of a passive sentence, but "dog – bit – man" is
# the same path whoever bites. Dependency relations on the paths tell subject and object apart.
for name, decomposition in {
    "dependency paths": DependencyPaths(max_length=2),
    "paths with relations": DependencyPaths(max_length=2, relations=True),
}.items():
    model = saen.SAENClassifier(decomposition, epochs=30, normalization="none")
    model.fit(train, train.targets)
    print(f"{name:<25}  {100 * model.score(test, test.targets):5.1f} %")
