"""The page of `saen explore`: made by the command, and used in a browser."""

import base64
import gzip
import json
import re
import shutil
import sys
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import saen
from saen import Graphs, SAENClassifier
from saen.errors import MissingExtraError
from saen.io.writing import write_data
from saen.report import explorer_data
from saen.report.explorer import check_bokeh
from tests.cli.commandline import fails, invoke, run
from tests.report.hostile import TAG, hostile_dataset
from tests.report.html_reader import read_html

pytest.importorskip("bokeh", reason="needs the extra 'explore'")
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
HOSTILE = "</script><script>document.title='broken'</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, its graphs with duplicates of conflicting targets, and their page."""
    place = tmp_path_factory.mktemp("explore")
    graphs = saen.generate_threads(40, average_nodes=12, seed=3, name=HOSTILE)
    graphs = replace(Graphs.concatenate([graphs, graphs[:1]]), ids=None)
    targets = np.where(graphs.targets == "questions", "asks", HOSTILE)
    targets[-1] = "asks" if targets[0] == HOSTILE else HOSTILE
    graphs = graphs.with_targets(targets)
    saen.save(graphs, place / "talk.saen")
    SAENClassifier(radii=(0, 1), epochs=4).fit(graphs, targets).save(place / "model.saen")
    run("explore", place / "model.saen", place / "talk.saen", "--out", place / "page.html")
    return place


def page_data(page):
    [element] = [
        e
        for e in read_html(page.read_text("utf-8")).all("script")
        if e.attributes.get("id") == "data"
    ]
    return json.loads(gzip.decompress(base64.b64decode(element.text)))


def explored(folder):
    model = SAENClassifier.load(folder / "model.saen")
    return saen.explore(model, saen.load(folder / "talk.saen"))


def drawing(data, index):
    """The nodes of a graph, and its edges between them."""
    drawn = data["drawings"]
    return tuple(
        drawn[column][drawn[starts][index] : drawn[starts][index + 1]]
        for column, starts in (("nodes", "starts"), ("edges", "edge_starts"))
    )


def parts_of(data, index):
    """Of every listed part of an example: contribution, how often, nodes."""
    rows = data["rows"]
    return {
        rows["parts"][k]: (
            rows["values"][k],
            rows["times"][k],
            rows["nodes"][rows["node_starts"][k] : rows["node_starts"][k + 1]],
        )
        for k in range(rows["starts"][index], rows["starts"][index + 1])
    }


def test_the_page_holds_all_graphs_and_nothing_from_elsewhere(folder):
    text = (folder / "page.html").read_text("utf-8")
    data = page_data(folder / "page.html")
    graphs = saen.load(folder / "talk.saen")
    assert len(data["columns"]["id"]) == len(data["drawings"]["sizes"]) == len(graphs)
    for index in (0, 7):
        assert drawing(data, index)[0] == list(range(graphs[index].n_nodes))
        assert drawing(data, index)[1] == graphs[index].edges().ravel().tolist()
    assert HOSTILE not in text
    policy = read_html(text).all("meta")[-1].attributes["content"]
    assert re.fullmatch(r"default-src 'none'; script-src( 'sha256-[\w+/]{43}='){3}; .*", policy)
    assert len(read_html(text).all("script")) == 1 + 3
    assert data["conflicts"] == [[0, 40]]


def test_parts_of_every_graph_and_values_of_nodes_are_those_explored(folder):
    found = explored(folder)
    data, seen = page_data(folder / "page.html"), found.occurrences
    for index in (0, 7, 40):
        own = slice(seen.starts[index], seen.starts[index + 1])
        part, node, value = seen.parts[own], seen.nodes[own], seen.contributions[own]
        rows = parts_of(data, index)
        assert sorted(rows) == sorted(set(part[part >= 0].tolist()))
        for number, (total, times, nodes) in rows.items():
            mine = part == number
            assert total == pytest.approx(value[mine].sum(), rel=1e-3, abs=1e-12)
            assert (times, nodes) == (mine.sum(), sorted(set(node[mine].tolist())))
        start, stop = data["drawings"]["starts"][index : index + 2]
        sums = [value[node == each].sum() for each in range(stop - start)]
        assert data["drawings"]["values"][start:stop] == pytest.approx(sums, rel=1e-3, abs=1e-12)


def test_a_page_of_much_data_draws_and_lists_less(folder, monkeypatch):
    found = explored(folder)
    sizes = found.data.sizes
    monkeypatch.setattr(explorer_data, "MAX_NODES", 60)
    monkeypatch.setattr(explorer_data, "MAX_DRAWN_NODES", 8)
    monkeypatch.setattr(explorer_data, "MAX_ROWS", 100)
    data = explorer_data.page_data(found, None)
    drawn = np.diff(data["drawings"]["starts"])
    assert 50 <= drawn.sum() <= 60
    assert set(drawn) <= {0, *np.minimum(sizes, 8).tolist()}
    assert np.flatnonzero(drawn).max() > 20  # from all over the data
    for index in np.flatnonzero(drawn).tolist():
        nodes, edges = drawing(data, index)
        inside = np.isin(found.data[index].edges(), nodes).all(axis=1)
        assert (np.array(nodes)[edges].reshape(-1, 2) == found.data[index].edges()[inside]).all()
        assert all(set(around) <= set(nodes) for _, _, around in parts_of(data, index).values())
    assert 0 < len(data["rows"]["parts"]) <= 100
    assert len(data["parts"]["what"]) == explorer_data.n_listed_parts(found) < len(found.parts.what)


@pytest.mark.parametrize("value", [0.0, 1234.5, -0.00012345, 9.99996, 1.5e-12, 7e20, 1e-300])
def test_numbers_are_rounded_to_four_digits(value):
    assert explorer_data.rounded(np.array([value])) == [float(f"{value:.4g}")]


def test_the_command_refuses_what_exists_and_other_suffixes(folder, tmp_path):
    both = folder / "model.saen", folder / "talk.saen"

    def refused(out):
        return fails("explore", *both, "--out", out)

    assert "already exists" in refused(folder / "page.html")
    assert "an .html file" in refused(tmp_path / "page.png")
    found = run("explore", *both, "--out", tmp_path / "page.html")
    assert found["examples"] == 41
    assert (tmp_path / "page.html").read_bytes() == (folder / "page.html").read_bytes()


def test_folds_colour_the_map(folder, tmp_path):
    saved = folder / "talk.saen"
    options = ("--repeats", 1, "--folds", 3, "--preset", "counts", "--out", tmp_path / "run")
    run("evaluate", saved, *options)
    run(
        "explore", folder / "model.saen", saved, "--splits", tmp_path / "run/splits.json",
        "--out", tmp_path / "page.html",
    )  # fmt: skip
    assert set(page_data(tmp_path / "page.html")["columns"]["fold"]) == {"0", "1", "2"}


def test_explore_colours_the_records_that_splits_mean_though_one_is_skipped(folder, tmp_path):
    lines = tmp_path / "talk.jsonl"
    write_data(saen.load(folder / "talk.saen")[:8], lines)
    good = lines.read_text().splitlines(keepends=True)
    lines.write_text("".join([*good[:2], '{"nodes": 1}\n', *good[2:]]))
    (tmp_path / "split.json").write_text('{"train": [0, 1, 2, 3], "test": [5, 8]}')
    options = ("--splits", tmp_path / "split.json", "--skip-bad", "--out", tmp_path / "page.html")
    told = invoke("explore", folder / "model.saen", lines, *options)
    assert re.match(r"8 graphs, \d+ of \d+ unique [a-z ]+\nsaved ", told.stdout)
    columns = page_data(tmp_path / "page.html")["columns"]
    assert [column == "0" for column in columns["fold"]] == [i in (4, 7) for i in range(8)]


def test_without_bokeh_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh", None)
    monkeypatch.setattr("saen.report.explorer.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"saen\[explore\]"):
        check_bokeh()


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if not BROWSER:
        pytest.skip("no chromium, chromium-browser or google-chrome on the PATH")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@contextmanager
def opened_page(browser, file):
    """A page, opened; every complaint and every request fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    complaints, requests = [], []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda m: m.type in ("error", "warning") and complaints.append(m.text))
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(file.as_uri())
    opened.wait_for_selector("body[data-ready=yes]", timeout=60_000)
    yield opened
    assert complaints == []
    assert [r for r in requests if not r.startswith("blob:")] == [file.as_uri()]
    context.close()


@pytest.fixture
def page(browser, folder):
    with opened_page(browser, folder / "page.html") as opened:
        yield opened


@pytest.mark.slow
def test_sorting_searching_and_filtering_the_table(page, folder):
    data = page_data(folder / "page.html")
    page.get_by_role("button", name="sort by confidence").first.click()
    shown = page.locator("#examples tbody tr td:nth-child(4)").all_inner_texts()
    strongest = sorted(data["columns"]["confidence"], reverse=True)[: len(shown)]
    assert [float(text) for text in shown] == strongest
    page.locator("#wrong").check()
    wrong = data["columns"]["error"].count("wrong")
    assert page.locator("#examples-pager").inner_text().startswith(f"{wrong} rows")
    page.locator("#wrong").uncheck()
    page.locator("#search").fill("no such thing")
    assert page.locator("#examples-pager").inner_text().startswith("0 rows")
    assert page.title() != "broken"


@pytest.mark.slow
def test_a_part_selects_the_graphs_that_contain_it_and_is_ringed_in_the_drawing(page, folder):
    data = page_data(folder / "page.html")
    page.locator("#parts tbody tr:first-child button").first.click()
    status = page.locator("#status").inner_text()
    assert status.startswith(f"{data['parts']['examples'][0]} of 41 graphs selected")
    page.locator("#only-selected").check()
    rows = page.locator("#examples-pager").inner_text()
    assert rows.startswith(f"{data['parts']['examples'][0]} rows")
    held = parts_of(data, 0)
    ringed = "Bokeh.documents[0].get_model_by_name('nodes-a').data.width.includes(4)"
    assert page.evaluate(ringed) == (0 in held)
    with page.expect_download() as download:
        page.locator("#export").click()
    saved = download.value.path().read_text().splitlines()
    assert len(saved) == 1 + data["parts"]["examples"][0]


@pytest.mark.slow
def test_lasso_and_tap_on_the_map(page):
    page.locator("#map-title").scroll_into_view_if_needed()
    page.evaluate(
        "() => { const bar = Bokeh.documents[0].get_model_by_name('map').toolbar;"
        "bar.tools.find((tool) => tool.type === 'LassoSelectTool').active = true; }"
    )
    box = page.locator(".figure").first.bounding_box()
    corners = [(0.02, 0.15), (0.98, 0.15), (0.98, 0.98), (0.02, 0.98), (0.02, 0.16)]
    places = [(box["x"] + a * box["width"], box["y"] + b * box["height"]) for a, b in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=5)
    page.mouse.up()
    page.wait_for_function("document.getElementById('status').textContent.includes('on the map')")
    selected = page.evaluate(
        "Bokeh.documents[0].get_model_by_name('points').selected.indices.length"
    )
    assert selected > 30
    assert page.locator("#status").inner_text().startswith(f"{selected} of 41 graphs selected")
    page.evaluate("Bokeh.documents[0].get_model_by_name('points').selected.indices = [7]")
    assert page.locator("#name-a").inner_text() == "graph 7"
    page.locator("#clear").click()
    assert "none selected" in page.locator("#status").inner_text()


@pytest.mark.slow
def test_two_graphs_side_by_side_by_keyboard(page):
    page.get_by_role("button", name="draw graph 3 beside").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.getElementById('name-b').textContent === 'graph 3'")
    assert page.locator("#figure-b").is_visible()
    page.evaluate("Bokeh.documents[0].get_model_by_name('nodes-b').selected.indices = [0]")
    assert "parts around node 0" in page.locator("#status").inner_text()
    assert page.locator("#conflicts tbody tr").count() == 1


@pytest.mark.slow
def test_a_page_of_hostile_data_runs_and_loads_nothing(browser, tmp_path):
    data, model, file = hostile_dataset(tmp_path), tmp_path / "model.saen", tmp_path / "page.html"
    quick = ("--preset", "network", "--epochs", 1)
    run("train", data, "--out", model, *quick)
    run("explore", model, data, "--out", file)
    with opened_page(browser, file) as page:
        page.get_by_role("button", name="beside").first.click()
        page.locator("#parts tbody tr:first-child button").first.click()
        page.evaluate("Bokeh.documents[0].get_model_by_name('nodes-a').selected.indices = [0]")
        page.locator("#search").fill("alert")
        assert page.locator("[onerror], [onmouseover], img, a[href^=javascript]").count() == 0
        assert page.title() != "ran"
        assert TAG[:30] in page.locator("#examples").inner_text()  # it is there, as text
        assert not {*"\u202e\u2066\x1b"} & {*page.locator("body").inner_text()}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone(browser, folder, scheme):
    phone = browser.new_context(viewport={"width": 400, "height": 800}, color_scheme=scheme)
    page = phone.new_page()
    page.goto((folder / "page.html").as_uri())
    page.wait_for_selector("body[data-ready=yes]", timeout=60_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    unnamed = (
        "[...document.querySelectorAll('button, input, select')].filter((e) => "
        "!e.closest('.figure') && !e.ariaLabel && !e.textContent && !e.closest('label')).length"
    )
    assert page.evaluate(unnamed) == 0
    phone.close()


def test_molecules_are_drawn_by_rdkit_below_the_score_out_of_fold(tmp_path):
    pytest.importorskip("rdkit", reason="needs the extra 'chem'")
    rows = "".join(f"m{n},{'C' * (1 + n % 7)}{'OCN'[n % 3]},{n}.5\n" for n in range(24))
    (tmp_path / "x.csv").write_text(f"id,smiles,target\n{rows}")
    model = tmp_path / "m.saen"
    trained = run("train", tmp_path / "x.csv", "--preset", "counts", "--out", model)
    run("explore", model, tmp_path / "x.csv", "--out", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    [headline] = [e for e in read_html(text).all("p") if e.attributes.get("class") == "headline"]
    mae = trained["out_of_fold"]["mae"]
    assert headline.text.startswith(f"{mae:.3g} mean absolute error out of fold (")
    assert "which the model was trained on" in headline.text
    data = page_data(tmp_path / "page.html")
    drawn = data["drawings"]["molecules"]
    assert len(drawn) == 24
    assert all(svg.startswith("<svg") and "class='atom-0'" in svg for svg in drawn)
    assert "*CC" in data["parts"]["what"]
