"""The main job on a built-in collection: look, cross-validate, train, save, predict.

Run by `make demo`; pictures go to the folder given as argument (default: demo).
"""

import sys
from pathlib import Path

import saen
from saen._util.progress import bar
from saen.learning.cross_validation import cross_validate
from saen.report.charts import plot_evaluation
from saen.report.figures import save_figure

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
folder.mkdir(exist_ok=True)

threads = saen.load_dataset("threads")
print(threads)
known, new = threads[:270], threads[270:]

# Ten-fold cross-validation: all thirty networks (three per fold) train side by side.
classifier = saen.SAENClassifier(random_state=0)
with bar("cross-validating", 10 * classifier.n_models * classifier.epochs) as update:
    found = cross_validate(
        classifier,
        known,
        known.targets,
        repeats=1,
        progress=lambda done, total: update(done),
    )
accuracies = 100 * found.accuracies()
print(f"\n10-fold accuracy on {len(known)} threads: {accuracies.mean():.1f} %")
print("fold      " + "".join(f"{fold:>7}" for fold in range(1, 11)))
print("accuracy  " + "".join(f"{accuracy:>7.1f}" for accuracy in accuracies[0]))
save_figure(plot_evaluation(found, "threads: 10-fold cross-validation"), folder / "evaluation.png")

# One classifier for use, saved and loaded again.
classifier.fit(known, known.targets).save(folder / "threads.model")
model = saen.load(folder / "threads.model")
print(f"\naccuracy on {len(new)} threads set aside: {100 * model.score(new, new.targets):.1f} %")
print("\n  thread  users  prediction   probability  truth")
for number, row in enumerate(model.predict_proba(new[:5])):
    guess = model.classes_[row.argmax()]
    truth = new.targets[number]
    print(f"  {270 + number:>6}  {new.sizes[number]:>5}  {guess:<11}  {row.max():>11.2f}  {truth}")
print(f"\npictures and the model are in {folder}/")
