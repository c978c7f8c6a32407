"""`saen predict`: answers for labelled, unlabelled, new, foreign and very many structures."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import saen
from saen import Graphs, SAENClassifier, SAENRegressor, generate_threads
from saen.data.documents import Documents
from saen.decompositions import DependencyPaths
from saen.io.formats import jsonl, molecules
from saen.io.loading import DuplicateIdsWarning, stream_data
from saen.io.writing import write_data
from saen.jobs.train import Estimate
from saen.learning.evaluation import Evaluation
from saen.learning.prediction import predict_chunks
from saen.report.summaries import describe_estimate
from tests.cli.commandline import SMALL, fails, invoke, run


@pytest.fixture(scope="module")
def new() -> Graphs:
    return generate_threads(17, average_nodes=20, seed=2)


def stored(graphs: Graphs, folder: Path, name: str = "new.saen") -> Path:
    saen.save(graphs, folder / name)
    return folder / name


def letters(rows: list[str]) -> Graphs:
    """Paths of three nodes with these labels."""
    labels = np.array([letter for row in rows for letter in row])
    return Graphs.from_edge_lists([[(0, 1), (1, 2)]] * len(rows), node_labels=labels)


def test_a_row_says_prediction_probabilities_and_agreement(
    classifier: SAENClassifier, model: Path, new: Graphs, tmp_path: Path
) -> None:
    invoke("predict", model, stored(new, tmp_path), "--out", tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv")
    assert list(table) == ["id", "prediction", "p_discussion", "p_questions", "agreement"]
    assert table["id"].tolist() == list(range(17))
    assert table["prediction"].tolist() == classifier.predict(new).tolist()
    shares = table[["p_discussion", "p_questions"]].to_numpy()
    assert_allclose(shares, classifier.predict_proba(new), atol=1e-6)
    # By hand: a network votes for the second class where its output is positive.
    compressed = saen.compress_graphs(new, classifier.decomposition_)
    votes = classifier.network_(compressed).detach().numpy()[:, :, 0] > 0
    second = table["prediction"].to_numpy() == "questions"
    assert_allclose(table["agreement"], (votes == second[:, None]).mean(axis=1), atol=1e-6)
    assert 0 < table["agreement"].min() < 1  # or there would be nothing to see


def test_all_formats_hold_the_same_rows(model: Path, new: Graphs, tmp_path: Path) -> None:
    data = stored(new, tmp_path)
    tables = {}
    for suffix in (".csv", ".jsonl", ".parquet"):
        out = tmp_path / f"out{suffix}"
        told = invoke("predict", model, data, "-o", out).stdout
        assert told == f"saved       {out} (17 rows)\n"
        readers = {
            ".csv": pd.read_csv,
            ".jsonl": lambda path: pd.read_json(path, lines=True),
            ".parquet": pd.read_parquet,
        }
        tables[suffix] = readers[suffix](out)
    for suffix in (".jsonl", ".parquet"):
        pd.testing.assert_frame_equal(tables[suffix], tables[".csv"], check_dtype=False, atol=1e-6)
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert list(first) == list(tables[".csv"])


def test_predictions_go_to_standard_output_and_all_words_elsewhere(
    model: Path, new: Graphs, tmp_path: Path
) -> None:
    data = stored(new, tmp_path)
    invoke("predict", model, data, "-o", tmp_path / "out.csv")
    result = invoke("predict", model, data)
    assert result.stdout == (tmp_path / "out.csv").read_text()
    assert "accuracy" in result.stderr


def test_targets_are_compared_where_there_are_any(
    classifier: SAENClassifier, model: Path, new: Graphs, tmp_path: Path
) -> None:
    right = (classifier.predict(new) == new.targets).mean()
    told = invoke("predict", model, stored(new, tmp_path))
    assert f"saen: accuracy {100 * right:.1f} % on 17 graphs with targets\n" in told.stderr
    report = run("predict", model, stored(new, tmp_path), "-o", tmp_path / "out.csv")
    assert report["accuracy"] == right
    bare = stored(new.with_targets(None), tmp_path, "bare.saen")
    assert "accuracy" not in invoke("predict", model, bare).stderr
    assert invoke("predict", model, bare).stdout == told.stdout


def test_chunks_of_any_size_give_the_same_rows(classifier: SAENClassifier, new: Graphs) -> None:
    (whole,) = predict_chunks(classifier.fitted_, new)
    costs = classifier.decomposition_.costs(new)
    for limit in (1, int(costs.max()), int(costs.sum()) // 3):
        parts = list(predict_chunks(classifier.fitted_, new, limit=limit))
        assert len(parts) > 1
        assert [part.start for part in parts] == np.cumsum(
            [0, *(len(part.columns["prediction"]) for part in parts[:-1])]
        ).tolist()
        assert sum(part.objects for part in parts) == whole.objects == new.n_nodes
        assert sum(part.unseen for part in parts) == whole.unseen
        for name, column in whole.columns.items():
            joined = np.concatenate([part.columns[name] for part in parts])
            if column.dtype.kind == "f":
                assert_allclose(joined, column, atol=1e-6)
            else:
                assert_array_equal(joined, column)


def test_rows_are_written_as_they_come(
    model: Path, new: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each chunk is on the disk before the next one is begun, and at its place at the end."""
    import saen.learning.prediction

    whole = saen.learning.prediction.predict_chunks
    seen: list[int] = []

    def watched(*arguments: Any) -> Any:
        for part in whole(*arguments, limit=1):
            (temporary,) = tmp_path.glob(".out.csv.*")
            seen.append(len(temporary.read_text().splitlines()))
            assert not (tmp_path / "out.csv").exists()
            yield part

    monkeypatch.setattr("saen.jobs.predict.predict_chunks", watched)
    invoke("predict", model, stored(new, tmp_path), "-o", tmp_path / "out.csv")
    assert seen == [0, *range(2, 18)]
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 18


def test_what_fails_halfway_leaves_the_file_that_was_there(
    model: Path, new: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import saen.learning.prediction

    whole = saen.learning.prediction.predict_chunks

    def broken(*arguments: Any) -> Any:
        yield next(whole(*arguments, limit=1))
        raise saen.InputError("out of luck")

    monkeypatch.setattr("saen.jobs.predict.predict_chunks", broken)
    data = stored(new, tmp_path)
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        (tmp_path / name).write_text("as it was")
        told = fails("predict", model, data, "-o", tmp_path / name, "--force")
        assert told == "out of luck"
        assert (tmp_path / name).read_text() == "as it was"
    assert not list(tmp_path.glob(".out*"))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["abc", "cba"], None),
        (["abc", "xyc", "cab"], "22 % of the nodes have"),
        (["xyz", "zzz"], "all of the nodes have"),
        (["abc"] * 200 + ["abx"], "less than 1 % of the nodes have"),
    ],
)
def test_labels_that_the_model_never_saw_are_counted(
    tmp_path: Path, rows: list[str], words: str | None
) -> None:
    graphs = letters(["abc", "aab", "cbb", "cca"] * 3)
    SAENClassifier(**SMALL).fit(graphs, np.arange(12) % 2).save(tmp_path / "model.saen")
    result = invoke("predict", tmp_path / "model.saen", stored(letters(rows), tmp_path))
    assert len(result.stdout.splitlines()) == 1 + len(rows)
    if words is None:
        assert result.stderr == ""
    else:
        assert result.stderr == f"saen: warning: {words} labels that the model has not seen\n"


def test_numbers_come_with_an_interval(threads: Graphs, new: Graphs, tmp_path: Path) -> None:
    one = SAENRegressor(**SMALL).fit(threads, threads.sizes / 8)
    one.save(tmp_path / "model.saen")
    y = new.sizes / 8
    path = stored(new.with_targets(y), tmp_path)
    result = invoke("predict", tmp_path / "model.saen", path, "-o", tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv")
    assert list(table) == ["id", "prediction", "lower", "upper"]
    compressed = saen.compress_graphs(new, one.decomposition_)
    each = (
        one.network_(compressed).detach().numpy()[:, :, 0] * one.fitted_.scale[:, 0]
        + one.fitted_.mean[:, 0]
    )
    each = np.clip(each, *one.fitted_.bounds)  # about the range of the training targets
    assert_allclose(table["prediction"], each.mean(axis=1), rtol=1e-5)
    assert_allclose(table[["lower", "upper"]].T, one.predict_interval(new), rtol=1e-5)
    misses = each.mean(axis=1) - y
    r2 = 1 - (misses**2).sum() / ((y - y.mean()) ** 2).sum()
    assert f"R² {r2:.3f}, mean absolute error {np.abs(misses).mean():.4g} on 17" in result.stderr


def test_several_numbers_have_a_column_each(threads: Graphs, tmp_path: Path) -> None:
    y = np.column_stack([threads.sizes, -threads.sizes]).astype(float)
    one = SAENRegressor(**SMALL).fit(threads, y)
    one.save(tmp_path / "model.saen")
    path = stored(threads.with_targets(y), tmp_path)
    invoke("predict", tmp_path / "model.saen", path, "-o", tmp_path / "out.parquet")
    table = pd.read_parquet(tmp_path / "out.parquet")
    assert list(table) == [
        "id",
        *("prediction_0", "lower_0", "upper_0"),
        *("prediction_1", "lower_1", "upper_1"),
    ]
    assert_allclose(table[["prediction_0", "prediction_1"]], one.predict(threads), rtol=1e-5)


def test_a_stream_of_json_lines_is_predicted_as_the_graphs_in_memory(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = generate_threads(1000, average_nodes=6, seed=5)
    lines = tmp_path / "new.jsonl"
    write_data(graphs, lines)
    whole = run("predict", model, stored(graphs, tmp_path), "-o", tmp_path / "whole.csv")
    monkeypatch.setattr(jsonl, "_BLOCK_BYTES", 5000)
    monkeypatch.setattr(jsonl, "PART_BYTES", 20_000)
    assert len([*stream_data(lines)]) > 2
    parts = run("predict", model, lines, "-o", tmp_path / "parts.csv")
    expected, table = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("whole", "parts"))
    pd.testing.assert_frame_equal(table, expected, atol=1e-6)
    assert parts["accuracy"] == whole["accuracy"]
    told = invoke("predict", model, lines, "-o", tmp_path / "parts.csv", "--force").stderr
    assert "saen: 1,000 graphs predicted, " in told
    good = lines.read_text()
    lines.write_text(good + '{"nodes": 1, "edges": [[0, 1]], "target": "questions"}\n')
    assert fails("predict", model, lines, "-o", tmp_path / "bad.csv").startswith(
        f"{lines}, line 1001: "
    )
    assert not (tmp_path / "bad.csv").exists()
    lines.write_text(good + good.splitlines()[0].replace("{", '{"id": 3, ', 1) + "\n")
    with pytest.warns(DuplicateIdsWarning, match="1 id used by more than one graph: 3"):
        [*stream_data(lines)]


def test_no_graphs_make_a_table_without_rows(model: Path, new: Graphs, tmp_path: Path) -> None:
    path = stored(new[:0], tmp_path)
    assert invoke("predict", model, path).stdout == (
        "id,prediction,p_discussion,p_questions,agreement\n"
    )
    report = run("predict", model, path, "-o", tmp_path / "out.parquet")
    assert report.pop("seconds") > 0
    assert report == {"out": str(tmp_path / "out.parquet"), "structures": 0, "unseen": 0.0}
    assert len(pd.read_parquet(tmp_path / "out.parquet")) == 0


def test_what_cannot_be_read_is_left_out_where_that_is_asked_for(
    model: Path, tmp_path: Path
) -> None:
    good = '{"nodes": 3, "edges": [[0, 1], [1, 2]]}\n'
    bad = '{"nodes": 3, "edges": [[0, 7]]}\n'
    path = tmp_path / "own.jsonl"
    path.write_text(good + bad + good)
    assert fails("predict", model, path).startswith(f"{path}, line 2: ")
    result = invoke("predict", model, path, "--skip-bad")
    assert [line[0] for line in result.stdout.splitlines()] == ["i", "0", "2"]  # rows of the input
    assert result.stderr.startswith(f"saen: skipped: {path}, line 2: ")
    path.write_text(good + bad * 12)
    told = invoke("predict", model, path, "--skip-bad").stderr.splitlines()
    assert len(told) == 11
    assert told[-1] == "saen: skipped 12 records in total"


def test_a_model_of_documents_wants_documents(model: Path, tmp_path: Path) -> None:
    words = [[[("yes", None, "root")]], [[("no", None, "root")]]] * 4
    documents = Documents.from_sentences(words, targets=["a", "b"] * 4)
    one = SAENClassifier("dependency_paths", epochs=1, n_models=1).fit(documents, documents.targets)
    of_text = tmp_path / "text.saen"
    one.save(of_text)
    graphs = stored(letters(["abc"]), tmp_path)
    assert fails("predict", of_text, graphs) == (
        f"{of_text} reads documents, but {graphs} holds graphs"
    )
    text = tmp_path / "own.conllu"
    text.write_text("1\tyes\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    assert invoke("predict", of_text, text).stdout.startswith("id,prediction,p_a,p_b,agreement")
    assert "documents, not graphs" in fails("predict", model, text)


def test_a_model_over_word_vectors_is_given_their_file_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("yes 1 0\nno 0 1\n")
    words = [[[("yes", None, "root")]], [[("no", None, "root")]]] * 4
    documents = Documents.from_sentences(words, targets=["a", "b"] * 4)
    text = DependencyPaths(vectors="words.txt")
    SAENClassifier(text, epochs=1, n_models=1).fit(documents, documents.targets).save("m.saen")
    Path("own.conllu").write_text("1\tyes\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    commands = [
        ("predict", "m.saen", "own.conllu"),
        ("embed", "m.saen", "own.conllu", "--out", "e.csv"),
        ("explain", "m.saen", "own.conllu", "--graph", 0),
    ]
    for command in commands:
        # Not even from the folder where a file of that name lies.
        message = fails(*command)
        assert message.startswith("trained with the word vectors of 'words.txt': name that file")
        invoke(*command, "--vectors", "words.txt")
    Path("other.txt").write_text("yes 0 1\nno 1 0\n")
    message = fails(*commands[0], "--vectors", "other.txt")
    assert message.startswith("other.txt: not the word vectors that the model was trained with")
    assert run("inspect", "m.saen")["decomposition"]["file"]["name"] == "words.txt"


def test_a_model_of_hierarchies_is_for_python(threads: Graphs, tmp_path: Path) -> None:
    hierarchy = saen.decompositions.Ego().decompose(threads)
    path = tmp_path / "model.saen"
    SAENClassifier(**SMALL).fit(hierarchy, threads.targets).save(path)
    assert "fitted on hierarchies" in fails("predict", path, "threads")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing.saen", "threads"), "nothing.saen: no such file"),
        (("new.saen", "threads"), "not a model, but a file of kind 'graphs'"),
        (("model.saen", "threads", "-o", "out.xlsx"), "use .csv, .jsonl, .parquet"),
        (("model.saen", "new.saen", "-o", "no/such/out.csv"), "cannot be written"),
        (("model.saen", "new.saen", "--json"), "--json needs --out FILE"),
        (("model.saen", "new.saen", "--device", "tpu"), "unknown device 'tpu'"),
        (("model.saen", "model.saen"), "contains a model, not data or a hierarchy"),
    ],
)
def test_mistakes_are_one_line(
    model: Path,
    new: Graphs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    stored(new, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert message in fails("predict", *arguments)
    assert {file.name for file in tmp_path.iterdir()} == {"model.saen", "threads.saen", "new.saen"}


def test_parquet_without_its_library_names_the_extra(
    model: Path, new: Graphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(new, tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    out = tmp_path / "out.parquet"
    told = fails("predict", model, tmp_path / "new.saen", "-o", out)
    assert told == 'this needs pyarrow: pip install "saen[parquet]"'
    assert not out.exists()


def chains(folder: Path) -> Path:
    """A table of chains of carbon, with targets and gaps."""
    rows = "".join(f"{'C' * n},{n % 2},{'' if n == 5 else n // 6},{n}.5\n" for n in range(1, 12))
    (folder / "chains.csv").write_text(f"smiles,odd,long,size\n{rows}")
    return folder / "chains.csv"


def test_predict_scores_several_targets_by_their_names(tmp_path: Path) -> None:
    data, out = chains(tmp_path), ["-o", tmp_path / "out.csv", "--force"]
    graphs = saen.load_dataset(data, target="odd,long")
    y = pd.DataFrame(graphs.targets, columns=graphs.target_names)
    model = SAENClassifier(**{**SMALL, "epochs": 50}).fit(graphs, y)
    model.save(tmp_path / "m.saen")
    predict = ["predict", tmp_path / "m.saen", data, *out, "--target"]
    first, other = run(*predict, "odd,long"), run(*predict, "long,odd")
    assert first["targets"] == other["targets"]
    known = y["long"] != ""
    right = (model.predict(graphs)[:, 1] == y["long"])[known].mean()
    assert first["targets"]["long"]["accuracy"] == pytest.approx(right)
    told = invoke(*predict, "odd,long").stderr
    assert "means over 2 targets, on 11 graphs with targets\nsaen: ROC-AUC: odd " in told
    assert "not scored" not in told
    told = invoke(*predict, "odd,size").stderr
    assert "saen: ROC-AUC: odd " in told
    assert "saen: not scored: long (not in the data)\n" in told


def test_predict_says_why_targets_are_not_scored(tmp_path: Path) -> None:
    data, out = chains(tmp_path), ["-o", tmp_path / "out.csv", "--force"]
    graphs = saen.load_dataset(data, target="odd,long")
    y = pd.DataFrame(graphs.targets, columns=graphs.target_names)
    saen.PartCountsClassifier(inner_folds=0).fit(graphs, y).save(tmp_path / "two.saen")
    odd = graphs.targets[:, 0]
    saen.PartCountsClassifier(inner_folds=0).fit(graphs, odd).save(tmp_path / "one.saen")
    sizes = graphs.sizes.astype(float)
    saen.PartCountsRegressor(inner_folds=0).fit(graphs, sizes).save(tmp_path / "number.saen")
    for name, target, reason in (
        ("two", "size", "the model predicts odd, long, the data have size"),
        ("one", "size", "the model predicts the classes 0, 1, the data have real numbers"),
        ("one", "odd,long", "the model predicts the classes 0, 1, the data have odd, long"),
        ("number", "smiles", "the model predicts real numbers, the data have the classes C, CC, "),
    ):
        command = ["predict", tmp_path / f"{name}.saen", data, *out, "--target", target]
        assert run(*command)["not_scored"].startswith(reason)
        assert f"saen: not scored: {reason}" in invoke(*command).stderr


def test_predict_says_which_argument_comes_first(model: Path, new: Graphs, tmp_path: Path) -> None:
    write_data(new, tmp_path / "new.jsonl")
    message = fails("predict", tmp_path / "new.jsonl", model)
    assert message.endswith("new.jsonl: not a saen file: the model comes first, then the data")


def test_predict_counts_one_graph_as_one(model: Path, new: Graphs, tmp_path: Path) -> None:
    told = invoke("predict", model, stored(new[0], tmp_path), "-o", tmp_path / "out.csv").stderr
    assert "% on 1 graph with targets" in told


def test_an_estimate_with_one_duplicate_is_described_in_the_singular() -> None:
    outputs = np.array([[np.nan, np.nan, 5e28, -5e28]])
    evaluation = Evaluation(
        classes=None,
        targets=np.array([1.0, 2.0, 3.0, 5.0]),
        splits=[[(np.array([0, 1]), np.array([2, 3]))]],
        outputs=outputs,
        rows=np.array([0, 1, 1, 2]),
        loss=np.empty((0, 0)),
        seconds={},
    )
    lines = describe_estimate(Estimate("held out", "graphs", evaluation))
    assert lines["duplicates"] == "1 of these graphs is identical to training graphs"
    assert lines["held out"].startswith(
        "R² -2.5e+57, mean absolute error 5e+28 on 2 graphs (95 % interval 5e+28 to 5e+28;"
    )


# -- targets that are missing or cannot be read ------------------------------------------------


@pytest.fixture(scope="module")
def carbon(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models of chains of carbon: of their size, of two classes, and of both."""
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("carbon")
    graphs = saen.load_dataset(chains(folder), target="odd,long", partial_targets=True)
    y = pd.DataFrame(graphs.targets, columns=graphs.target_names)
    sizes = graphs.sizes.astype(float)
    saen.PartCountsRegressor(inner_folds=0).fit(graphs, sizes).save(folder / "size.saen")
    saen.PartCountsClassifier(inner_folds=0).fit(graphs, y["odd"].astype(int)).save(
        folder / "odd.saen"
    )
    saen.PartCountsClassifier(inner_folds=0).fit(graphs, y).save(folder / "both.saen")
    return folder


@pytest.mark.parametrize(
    ("model", "options", "targets", "scored", "reason"),
    [
        ("size", (), ["1", "", "3"], 2, None),
        ("size", (), ["1.5", "nan", ">10"], 1, "1 target that cannot be read as a number"),
        ("size", ("--task", "regression"), ["1", ">10", ""], 1, "1 target that cannot be read"),
        ("size", (), ["", "", ""], None, None),
        ("size", (), ["a", "b", ""], None, "the model predicts real numbers, the data have the "),
        ("odd", (), ["1", "", "0"], 2, None),
        ("odd", (), ["1", "x" * 2000, "0"], 2, None),
        (
            "odd",
            ("--target", "odd"),
            ["1", "0", "1"],
            None,
            "the data have no values of target 'odd'",
        ),
        (
            "both",
            ("--target", "odd,long"),
            ["1", "0", "1"],
            None,
            "the data have no values of target 'odd,",
        ),
        ("both", ("--target", "odd,target"), ["1", "0", "1"], None, "odd, long (not in the data)"),
    ],
)
def test_predict_needs_no_targets_in_a_table(
    model: str,
    options: tuple[str, ...],
    targets: list[str],
    scored: int | None,
    reason: str | None,
    carbon: Path,
    tmp_path: Path,
) -> None:
    data, out = tmp_path / "new.csv", tmp_path / "p.csv"
    rows = zip(["C", "CC", "CCC"], targets, strict=True)
    data.write_text("smiles,target\n" + "".join(f"{s},{t}\n" for s, t in rows))
    report = run("predict", carbon / f"{model}.saen", data, *options, "--out", out)
    assert report["structures"] == 3
    assert report.get("scored") == scored
    assert report.get("not_scored", "").startswith(reason or "")
    assert bool(report.get("not_scored")) == (reason is not None)
    assert pd.read_csv(out)["id"].tolist() == ["C", "CC", "CCC"]
    told = invoke("predict", carbon / f"{model}.saen", data, *options, "--out", out, "--force")
    assert (f"on {scored} graph" in told.stderr) == (scored is not None)
    assert len(invoke("predict", carbon / f"{model}.saen", data, *options).stdout.split()) == 4
    if model != "both":
        invoke("explain", carbon / f"{model}.saen", data, *options)
        vectors = tmp_path / "e.csv"
        invoke("embed", carbon / f"{model}.saen", data, *options, "--out", vectors)
        assert len(vectors.read_text().splitlines()) == 4


def test_predict_scores_the_targets_of_all_parts_of_a_table(
    carbon: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "new.csv"
    rows = ["C,1", "CC,", "CCC,", "CCCC,0", "CCCCC,1", "CCCCCC,"]
    data.write_text("\n".join(["smiles,target", *rows]))
    whole = run("predict", carbon / "odd.saen", data, "--out", tmp_path / "whole.csv")
    monkeypatch.setattr(molecules, "MOLECULES_PER_PART", 2)
    parts = run("predict", carbon / "odd.saen", data, "--out", tmp_path / "parts.csv")
    assert (tmp_path / "whole.csv").read_text() == (tmp_path / "parts.csv").read_text()
    assert (whole["accuracy"], whole["scored"]) == (parts["accuracy"], parts["scored"]) == (1.0, 3)


TARGET_LINES = [
    ({"target": "questions"}, {"target": 1.5}),
    ({"target": "questions"}, {"target": {"of": "whom"}}),
    ({"target": "questions"}, {"target": ["a", 1]}),
    ({"label": "questions", "target": "x"}, {"label": "discussion"}),
    ({"target": None}, {"taget": 3}),
    ({"target": "questions"}, {"target": "x" * 2000}),
]


@pytest.mark.parametrize("targets", TARGET_LINES, ids=str)
def test_predict_needs_no_targets_in_json_lines(
    targets: tuple[dict[str, Any], ...], model: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    data = tmp_path / "new.jsonl"
    graph = {"nodes": 3, "edges": [[0, 1], [1, 2]]}
    lines = [json.dumps({**graph, **own}) for own in ({}, *targets, *targets, {})]
    data.write_text("\n".join(lines) + "\n")
    for _ in range(2):
        for options in ((), ("--target", "target"), ("--target", "a,b")):
            told = invoke("predict", model, data, *options).stdout.splitlines()
            assert [line.split(",")[0] for line in told] == ["id", *"012345"]
        monkeypatch.setattr(jsonl, "_BLOCK_BYTES", 50)
        monkeypatch.setattr(jsonl, "PART_BYTES", 50)


@pytest.mark.parametrize(
    "table",
    [
        "graph,assay\n0,x\n1,y\n",  # other columns
        "name,assay\n0,x\n1,y\n",  # of something else
        "graph,target\n0,x\n0,y\n1\n,\n",  # listed twice, broken, without a graph
        "graph,target\n1,\n",
        "",
        '"',
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", "folder"])
def test_predict_and_explain_need_no_targets_in_a_table_beside_the_graphs(
    suffix: str, table: str, model: Path, tmp_path: Path
) -> None:
    edges = pd.DataFrame({"graph": [0, 0, 1], "source": [0, 1, 0], "target": [1, 2, 1]})
    data = tmp_path / f"my{suffix}"
    if suffix == "folder":
        data.mkdir()
        for name, rows in edges.groupby("graph"):
            text = "".join(f"{s} {t}\n" for s, t in zip(rows.source, rows.target, strict=True))
            (data / f"{name}.txt").write_text(text)
        (data / "targets.csv").write_text(table)
    else:
        (edges.to_csv if suffix == ".csv" else edges.to_parquet)(data, index=False)
        (tmp_path / "my_targets.csv").write_text(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        told = invoke("predict", model, data).stdout.splitlines()
        assert sorted(line.split(",")[0] for line in told) == ["0", "1", "id"]
        assert invoke("explain", model, data).stdout
        if table and "target" not in table:
            assert "target" in fails("train", data, "--out", tmp_path / "m.saen")


def test_predict_needs_no_targets_of_documents_and_nested_data(tmp_path: Path) -> None:
    words = [[[("yes", None, "root")]], [[("no", None, "root")]]] * 4
    documents = Documents.from_sentences(words, targets=["a", "b"] * 4)
    one = saen.PartCountsClassifier("dependency_paths", inner_folds=0)
    one.fit(documents, documents.targets).save(tmp_path / "text.saen")
    text = tmp_path / "own.conllu"
    word = "1\tyes\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
    text.write_text(f"# target = a\n{word}{word}")
    assert "1 document with targets" in invoke("predict", tmp_path / "text.saen", text).stderr
    pets = saen.NestedData([{"word": ["the", "dog"]}, {"word": ["a", "cat"]}] * 4, ["a", "b"] * 4)
    saen.PartCountsClassifier("nested", inner_folds=0).fit(pets, pets.targets).save(
        tmp_path / "nested.saen"
    )
    lines = [{"parts": {"word": ["dog"]}, "target": value} for value in ("a", None, 1.5, {})]
    data = tmp_path / "pets.jsonl"
    data.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"parts": {}}]))
    told = invoke("predict", tmp_path / "nested.saen", data)
    assert len(told.stdout.splitlines()) == 6
    assert "2 examples with targets" in told.stderr


def test_scores_on_the_training_graphs_are_marked(tmp_path: Path) -> None:
    model, out = tmp_path / "threads.saen", tmp_path / "out.csv"
    invoke("train", "threads", "--preset", "counts", "--out", model)
    done = invoke("predict", model, "threads", "--out", out)
    assert "on 300 graphs with targets (the training graphs: not an estimate)" in done.stderr
    lines = [
        json.dumps({"nodes": 2 + n % 3, "edges": [[0, 1]], "target": n % 3}) for n in range(40)
    ]
    mine = tmp_path / "mine.jsonl"  # one has no target, and they are read in several parts
    mine.write_text("\n".join([*lines, '{"nodes": 2, "edges": []}']))
    own = tmp_path / "mine.saen"
    invoke("train", mine, "--preset", "counts", "--skip-bad", "--out", own)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "PART_BYTES", 500)
        done = invoke("predict", own, mine, "--out", out, "--force")
    assert "on 40 graphs with targets (the training graphs: not an estimate)" in done.stderr
    saen.save(saen.load_dataset("threads")[:200], tmp_path / "some.saen")
    done = invoke("predict", model, tmp_path / "some.saen", "--out", out, "--force")
    assert "not an estimate" not in done.stderr


def test_predict_scores_the_targets_that_new_data_have(tmp_path: Path) -> None:
    train, new, model = tmp_path / "train.csv", tmp_path / "new.csv", tmp_path / "m.saen"
    train.write_text(
        "smiles,n,odd\n" + "".join(f"{'C' * n},{n}.5,{n % 2}.5\n" for n in range(1, 20))
    )
    new.write_text("smiles,odd\nCC,0\nCCC,1\nCO,0\n")
    invoke("train", train, "--target", "n", "--target", "odd", "--preset", "counts", "--out", model)
    told = invoke("predict", model, new, "--out", tmp_path / "p.csv").stderr
    assert "'odd' as targets" in told
    assert "saen: not scored: n (not in the data)\n" in told
    assert "saen: mean absolute error: odd 0." in told
