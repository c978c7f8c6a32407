"""Discussion threads, from data to predictions: cross-validate, train, save, predict.

Run by `make demo`. The model and a figure are written to the folder given as argument (default:
demo).
"""

import sys
from pathlib import Path

import saen
from saen.report.charts import plot_evaluation

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
folder.mkdir(exist_ok=True)

threads = saen.load_dataset("threads")
print(threads)
train, test = threads[:270], threads[270:]

# 10-fold cross-validation: all fifty networks (one per inner fold of every fold) train together.
classifier = saen.SAENClassifier(random_state=0)
evaluation = saen.cross_validate(classifier, train, train.targets, n_repeats=1, n_folds=10)
accuracies = 100 * evaluation.accuracies()
print(f"\n10-fold accuracy on {len(train)} threads: {accuracies.mean():.1f} %")
print("fold      " + "".join(f"{fold:>7}" for fold in range(1, 11)))
print("accuracy  " + "".join(f"{accuracy:>7.1f}" for accuracy in accuracies[0]))
plot_evaluation(evaluation, "threads: 10-fold cross-validation").savefig(folder / "evaluation.png")

# A single classifier for predictions, saved and loaded.
classifier.fit(train, train.targets).save(folder / "threads.model")
model = saen.load(folder / "threads.model")
print(f"\naccuracy on {len(test)} held-out threads: {100 * model.score(test, test.targets):.1f} %")
print("\n  thread  users  prediction   probability  target")
for number, probabilities in enumerate(model.predict_proba(test[:5])):
    prediction, target = model.classes_[probabilities.argmax()], test.targets[number]
    print(
        f"  {len(train) + number:>6}  {test.sizes[number]:>5}  {prediction:<11}"
        f"  {probabilities.max():>11.2f}  {target}"
    )
print(f"\nthe model and a figure are in {folder}/")
