"use strict";
(async () => {
const $ = (id) => document.getElementById(id);
const ROWS = 12;

async function unpacked() {
  const bytes = Uint8Array.from(atob($("data").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function made(tag, text, attributes = {}) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function button(text, label, act) {
  const node = made("button", text, {type: "button", "aria-label": label});
  node.addEventListener("click", act);
  return node;
}

const shown = (value) => typeof value === "number"
  ? String(Number(value.toPrecision(4))).replace("-", "−") : String(value ?? "");

// A table of which one page is in the document: sorted by its headings, searched by `keep`.
class Table {
  constructor(id, caption, columns) {
    Object.assign(this, {id, columns, rows: [], order: [], page: 0, by: null, down: true});
    $(id).caption.textContent = caption;
    const head = made("tr");
    for (const column of columns) {
      const cell = made("th", undefined, {scope: "col"});
      if (column.value) cell.append(button(column.name, `sort by ${column.name}`, () => this.sort(column)));
      else cell.textContent = column.name;
      if (column.number) cell.className = "number";
      column.cell = cell;
      head.append(cell);
    }
    $(id).tHead.replaceChildren(head);
  }
  show(rows) { this.rows = rows; this.page = 0; this.arrange(); }
  sort(column) {
    this.down = this.by === column ? !this.down : Boolean(column.number);
    this.by = column;
    this.page = 0;
    this.arrange();
  }
  arrange() {
    this.order = [...this.rows];
    if (this.by) {
      const {value} = this.by, sign = this.down ? -1 : 1;
      this.order.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), undefined, {numeric: true}));
      });
    }
    for (const column of this.columns) {
      if (column === this.by) column.cell.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else column.cell.removeAttribute("aria-sort");
    }
    this.draw();
  }
  draw() {
    const pages = Math.max(1, Math.ceil(this.order.length / ROWS));
    this.page = Math.min(Math.max(this.page, 0), pages - 1);
    const rows = this.order.slice(this.page * ROWS, (this.page + 1) * ROWS).map((row) => {
      const line = made("tr");
      for (const column of this.columns) {
        const cell = made("td");
        if (column.number) cell.className = "number";
        cell.append(...[column.show ? column.show(row) : shown(column.value(row))].flat());
        line.append(cell);
      }
      if (this.marked) line.setAttribute("aria-selected", this.marked(row));
      return line;
    });
    $(this.id).tBodies[0].replaceChildren(...rows);
    const pager = $(`${this.id}-pager`);
    pager.replaceChildren(`${this.order.length.toLocaleString("en")} rows`);
    if (pages > 1) {
      const turn = (step) => () => { this.page += step; this.draw(); };
      pager.append(
        button("‹ back", "previous page", turn(-1)),
        `page ${this.page + 1} of ${pages}`,
        button("next ›", "next page", turn(1)),
      );
    }
  }
}

const data = await unpacked();
const {columns, parts, colours, rows, drawings} = data;
const n = columns.id.length;
const everything = Array.from({length: n}, (_, i) => i);

// Per part the examples that it occurs in.
parts.members = parts.what.map(() => []);
for (const i of everything) {
  for (let k = rows.starts[i]; k < rows.starts[i + 1]; k++) parts.members[rows.parts[k]].push(i);
}

// One example: its parts, each as [part, contribution, how often, nodes], and its drawing, if any.
const examples = new Map();
function example(i) {
  if (examples.has(i)) return examples.get(i);
  const found = {parts: []};
  for (let k = rows.starts[i]; k < rows.starts[i + 1]; k++) {
    found.parts.push([rows.parts[k], rows.values[k], rows.times[k], rows.nodes.slice(rows.node_starts[k], rows.node_starts[k + 1])]);
  }
  const of = (column, starts = drawings.starts) => column.slice(starts[i], starts[i + 1]);
  if (drawings && drawings.starts[i] < drawings.starts[i + 1]) {
    Object.assign(found, {
      n: drawings.sizes[i], nodes: of(drawings.nodes), values: of(drawings.values),
      labels: of(drawings.labels).map((code) => drawings.names[code]),
      edges: of(drawings.edges, drawings.edge_starts),
    });
  }
  examples.set(i, found);
  return found;
}

async function model(name) {
  for (;;) {
    for (const page of window.Bokeh?.documents ?? []) {
      const found = page.get_model_by_name(name);
      if (found) return found;
    }
    await new Promise((again) => setTimeout(again, 20));
  }
}
const points = await model("points");

// -- state: a selection of examples, a chosen part, and two examples side by side --------------

let selection = new Set();
let chosenPart = null;
const sides = {a: null, b: null};

function say(text) { $("status").textContent = text; }

function select(indices, why) {
  selection = new Set(indices);
  points.selected.indices = [...selection];
  examplesTable.draw();
  if ($("only-selected").checked) filter();
  const count = `${selection.size.toLocaleString("en")} of ${n.toLocaleString("en")} ${data.noun}s selected`;
  say(selection.size ? `${count}${why ? `: ${why}` : ""}` : `${n.toLocaleString("en")} ${data.noun}s, none selected`);
}

// -- the map -----------------------------------------------------------------------------------

function ramp(share) {
  const stops = [[68, 1, 84], [49, 104, 142], [53, 183, 121], [253, 231, 37]];
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  const mixed = stops[low].map((v, k) => Math.round(v + (place - low) * (stops[low + 1][k] - v)));
  return `rgb(${mixed.join(",")})`;
}

function paint() {
  const values = columns[$("colour").value];
  let legend, colour;
  if (values.every((value) => typeof value === "number")) {
    const low = Math.min(...values), high = Math.max(...values);
    colour = values.map((value) => ramp(high > low ? (value - low) / (high - low) : 0.5));
    legend = [[ramp(0), shown(low)], [ramp(0.5), shown((low + high) / 2)], [ramp(1), shown(high)]];
  } else {
    const counts = new Map();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    const names = [...counts.keys()].sort((a, b) => String(a).localeCompare(String(b), undefined, {numeric: true}));
    const kinds = names.filter((name) => name !== "");
    const named = new Map([["", colours.pale], ...kinds.map((name, k) => [name, k < colours.categories.length ? colours.categories[k] : colours.pale])]);
    colour = values.map((value) => named.get(value));
    legend = kinds.slice(0, colours.categories.length).map((name) => [named.get(name), `${name} (${counts.get(name)})`]);
    if (kinds.length > legend.length) legend.push([colours.pale, `${kinds.length - legend.length} others`]);
    if (counts.has("")) legend.push([colours.pale, `none (${counts.get("")})`]);
  }
  const blank = everything.map(() => "");
  points.data = {
    x: data.x, y: data.y, colour, id: columns.id.map(String),
    target: (columns.target ?? blank).map(shown), prediction: columns.prediction.map(shown),
  };
  $("legend").replaceChildren(...legend.map(([paint, name]) => {
    const dot = made("span");
    dot.style.background = paint;
    const item = made("li");
    item.append(dot, name);
    return item;
  }));
}

for (const name of ["target", "prediction", "error", "confidence", "fold", "set", "overlap"]) {
  if (columns[name]) $("colour").append(made("option", name, {value: name}));
}
$("colour").addEventListener("change", paint);
$("map-note").textContent = `Learned vectors in two dimensions (${data.method}). Drag with the lasso to select; click a point to draw it.`;
points.selected.properties.indices.change.connect(() => {
  const indices = [...points.selected.indices];
  if (indices.length === selection.size && indices.every((i) => selection.has(i))) return;
  select(indices, "on the map");
  if (indices.length === 1) draw("a", indices[0]);
});
$("clear").addEventListener("click", () => { chosenPart = null; partsTable.draw(); select([]); });
$("export").addEventListener("click", () => {
  const names = Object.keys(columns);
  const quoted = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
  const rows = selection.size ? [...selection].sort((a, b) => a - b) : everything;
  const lines = [names.join(","), ...rows.map((i) => names.map((name) => quoted(columns[name][i])).join(","))];
  const link = made("a", undefined, {download: "selection.csv"});
  link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], {type: "text/csv"}));
  link.click();
  say(`${rows.length.toLocaleString("en")} rows saved as selection.csv`);
});

// -- the table of examples ---------------------------------------------------------------------

const about = (name, options = {}) => ({name, value: (i) => columns[name][i], ...options});
const numeric = (name) => typeof columns[name][0] === "number";
const examplesTable = new Table("examples", `All ${data.noun}s`, [
  {name: "id", value: (i) => columns.id[i],
    show: (i) => button(columns.id[i], `draw ${data.noun} ${columns.id[i]}`, () => draw("a", i))},
  ...["target", "prediction", "confidence", "error", "fold", "set", "overlap"].filter((name) => columns[name])
    .map((name) => about(name, {number: numeric(name)})),
  {name: "beside", show: (i) => button("compare", `draw ${data.noun} ${columns.id[i]} beside`, () => draw("b", i))},
]);
examplesTable.marked = (i) => selection.has(i);

function filter() {
  const words = $("search").value.toLowerCase(), wanted = $("class").value;
  const searched = ["id", "target", "prediction"].filter((name) => columns[name]);
  examplesTable.show(everything.filter((i) =>
    (!words || searched.some((name) => String(columns[name][i]).toLowerCase().includes(words)))
    && (!wanted || columns.target?.[i] === wanted || columns.prediction[i] === wanted)
    && (!$("wrong").checked || columns.error[i] === "wrong")
    && (!$("only-selected").checked || selection.has(i))));
}
for (const name of data.classes) $("class").append(made("option", name, {value: name}));
$("class-filter").hidden = !data.classes.length;
$("wrong-filter").hidden = !(data.classes.length && columns.error);
for (const id of ["search", "class", "wrong", "only-selected"]) $(id).addEventListener("input", filter);

// -- one example: its drawing, its parts, its neighbours ---------------------------------------

// Places whose distances resemble those along the edges (stress majorisation).
function layout(count, edges) {
  const links = Array.from({length: count}, () => []);
  for (let k = 0; k < edges.length; k += 2) { links[edges[k]].push(edges[k + 1]); links[edges[k + 1]].push(edges[k]); }
  const far = [];
  let longest = 1;
  for (let source = 0; source < count; source++) {
    const from = new Float64Array(count).fill(-1);
    from[source] = 0;
    const queue = [source];
    for (let head = 0; head < queue.length; head++) {
      for (const next of links[queue[head]]) {
        if (from[next] < 0) { from[next] = from[queue[head]] + 1; longest = Math.max(longest, from[next]); queue.push(next); }
      }
    }
    far.push(from);
  }
  const x = new Float64Array(count), y = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const turn = 2.399963 * i, r = Math.sqrt(i + 0.5) * 0.7;
    x[i] = r * Math.cos(turn);
    y[i] = r * Math.sin(turn);
  }
  for (let round = 0; round < 150; round++) {
    for (let i = 0; i < count; i++) {
      let sum = 0, sx = 0, sy = 0;
      for (let j = 0; j < count; j++) {
        if (i === j) continue;
        const d = far[i][j] < 0 ? longest / 2 + 1.5 : far[i][j];
        const w = 1 / (d * d), gap = Math.hypot(x[i] - x[j], y[i] - y[j]) || 1e-9;
        sum += w;
        sx += w * (x[j] + d * (x[i] - x[j]) / gap);
        sy += w * (y[j] + d * (y[i] - y[j]) / gap);
      }
      if (sum) { x[i] = sx / sum; y[i] = sy / sum; }
    }
  }
  return [[...x], [...y]];
}

function tint(share) {
  const end = share < 0 ? [0, 114, 178] : [213, 94, 0];
  const strength = Math.min(Math.abs(share), 1);
  return `rgb(${end.map((v) => Math.round(247 + strength * (v - 247))).join(",")})`;
}

const drawn = drawings ? everything.filter((i) => drawings.starts[i] < drawings.starts[i + 1]).length : 0;
const missing = drawings ? `No drawing: the page has room for those of ${drawn.toLocaleString("en")} of the ${data.noun}s.` : "";

const sideTables = Object.fromEntries(["a", "b"].map((side) => [side, new Table(`parts-${side}`, "Its parts", [
  {name: "part", value: (row) => parts.what[row[0]], show: (row) =>
    button(parts.what[row[0]], `highlight ${parts.what[row[0]]}`, () => highlight(side, row[3]))},
  {name: "contribution", value: (row) => row[1], number: true},
  {name: "times", value: (row) => row[2], number: true},
  {name: "role", value: (row) => parts.role[row[0]]},
])]));

async function draw(side, i) {
  sides[side] = i;
  const graph = example(i);
  $(`name-${side}`).textContent = `${data.noun} ${columns.id[i]}`;
  const facts = [];
  if (columns.target) facts.push(`target ${shown(columns.target[i])}`);
  facts.push(`prediction ${shown(columns.prediction[i])}`);
  if (columns.confidence) facts.push(`probability ${shown(columns.confidence[i])}`);
  $(`facts-${side}`).textContent = facts.join(" · ");
  const table = sideTables[side];
  table.by ??= table.columns[1];
  table.show(graph.parts);
  const near = $(`nearest-${side}`);
  near.replaceChildren(columns.set ? `Nearest training ${data.noun}s: ` : "Nearest: ", ...data.nearest[i].map((other) =>
    button(columns.id[other], `draw ${data.noun} ${columns.id[other]} beside`, () => draw(side === "a" ? "b" : "a", other))));
  $(`table-${side}`).hidden = false;
  const molecule = drawings?.molecules[i];
  $(`figure-${side}`).hidden = !graph.nodes || Boolean(molecule);
  $(`molecule-${side}`).hidden = !molecule;
  if (molecule) drawMolecule(side, graph, molecule);
  $(`note-${side}`).textContent = !graph.nodes ? missing : graph.nodes.length < graph.n
    ? `${graph.nodes.length} of ${graph.n} nodes around the hub. Click a node to list its parts.` : "Click a node to list its parts.";
  if (graph.nodes) await drawNodes(side, graph, []);
  say(`${side === "a" ? "Left" : "Right"}: ${data.noun} ${columns.id[i]}, ${facts.join(", ")}`);
}

// RDKit's drawing: a click on an atom lists its parts.
function drawMolecule(side, graph, svg) {
  const drawn = document.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true);
  $(`molecule-${side}`).replaceChildren(drawn);
  for (const atom of drawn.querySelectorAll("ellipse[class^='atom-']")) {
    const node = Number(atom.getAttribute("class").slice(5));
    atom.addEventListener("click", () => listAround(side, graph, node));
  }
}

function listAround(side, graph, node) {
  sideTables[side].show(node === null ? graph.parts : graph.parts.filter((row) => row[3].includes(node)));
  say(node === null ? "all parts listed" : `parts around node ${node}`);
}

async function drawNodes(side, graph, marked) {
  for (const atom of $(`molecule-${side}`).querySelectorAll("ellipse[class^='atom-']")) {
    const own = marked.includes(Number(atom.getAttribute("class").slice(5)));
    atom.style.stroke = own ? "#000" : atom.style.fill;
    atom.style.strokeWidth = own ? "3px" : "1px";
  }
  const [nodes, edges] = [await model(`nodes-${side}`), await model(`edges-${side}`)];
  graph.places ??= layout(graph.nodes.length, graph.edges);
  const [x, y] = graph.places;
  const xs = [], ys = [];
  for (let k = 0; k < graph.edges.length; k += 2) {
    const [from, to] = [graph.edges[k], graph.edges[k + 1]];
    xs.push([x[from], x[to]]);
    ys.push([y[from], y[to]]);
  }
  edges.data = {xs, ys};
  const largest = Math.max(...graph.values.map(Math.abs), 1e-12);
  const ring = new Set(marked);
  // Many nodes are small dots, whose labels are shown by the pointer alone.
  const size = Math.min(18, Math.max(8, 90 / Math.sqrt(graph.nodes.length)));
  nodes.data = {
    x, y, node: graph.nodes.map(String), label: graph.labels, shown: size < 12 ? graph.labels.map(() => "") : graph.labels, value: graph.values.map(shown),
    colour: graph.values.map((value) => tint(value / largest)),
    text: graph.values.map((value) => Math.abs(value) / largest > 0.6 ? "#fff" : "#222"),
    rim: graph.nodes.map((node) => ring.has(node) ? getComputedStyle(document.body).color : colours.grey),
    width: graph.nodes.map((node) => ring.has(node) ? 4 : 1),
    size: graph.nodes.map(() => size),
  };
}

async function highlight(side, nodes) {
  const graph = example(sides[side]);
  if (graph.nodes) await drawNodes(side, graph, nodes);
  say(nodes.length ? `around node ${nodes.join(", ")}` : "this part has no node of its own");
}

for (const side of ["a", "b"]) {
  const nodes = await model(`nodes-${side}`);
  nodes.selected.properties.indices.change.connect(() => {
    const [place] = nodes.selected.indices;
    if (sides[side] === null) return;
    const graph = example(sides[side]);
    listAround(side, graph, place === undefined ? null : graph.nodes[place]);
  });
}

// -- unique parts of the whole dataset ---------------------------------------------------------

function towards(mean) {
  if (!data.classes.length) return [shown(mean[0])];
  if (mean.length > 1) return mean.map(shown);
  return [shown(-mean[0]), shown(mean[0])];
}
const partsTable = new Table("parts", "Unique parts, those that tell most first", [
  {name: "part", value: (u) => parts.what[u], show: (u) => button(parts.what[u], `select what contains ${parts.what[u]}`, () => choose(u))},
  ...(data.classes.length ? data.classes : ["prediction"]).map((name, k) => ({
    name: `→ ${name}`, number: true, show: (u) => towards(parts.means[u])[k],
    value: (u) => parts.means[u].length > 1 ? parts.means[u][k] : (data.classes.length && k === 0 ? -1 : 1) * parts.means[u][0]})),
  {name: "role", value: (u) => parts.role[u]},
  {name: "occurrences", value: (u) => parts.occurrences[u], number: true},
  {name: `${data.noun}s`, value: (u) => parts.examples[u], number: true},
  ...(parts.per_class[0]?.length ? data.classes.map((name, k) => ({name: `of ${name}`, value: (u) => parts.per_class[u][k], number: true})) : []),
  {name: "for instance", show: (u) => parts.members[u].slice(0, 3).map((i) => button(columns.id[i], `draw ${data.noun} ${columns.id[i]}`, () => draw("a", i)))},
]);
partsTable.marked = (u) => u === chosenPart;

async function choose(part) {
  chosenPart = part;
  partsTable.draw();
  select(parts.members[part], `contain ${parts.what[part]}`);
  for (const side of ["a", "b"]) {
    if (sides[side] === null) continue;
    const graph = example(sides[side]);
    const row = graph.parts.find((each) => each[0] === part);
    if (row && graph.nodes) await drawNodes(side, graph, row[3]);
  }
}
const allParts = parts.what.map((_, u) => u);
$("part-search").addEventListener("input", () => {
  const words = $("part-search").value.toLowerCase();
  partsTable.show(allParts.filter((u) => `${parts.what[u]} ${parts.role[u]}`.toLowerCase().includes(words)));
});

// -- duplicates with conflicting targets, and overlap ------------------------------------------

const groupsTable = (id, caption, why) => new Table(id, caption, [
  {name: "how many", value: (group) => group.length, number: true},
  {name: `${data.noun}s`, show: (group) => group.slice(0, 12).map((i) => button(columns.target ? `${columns.id[i]}: ${shown(columns.target[i])}` : columns.id[i], `draw ${data.noun} ${columns.id[i]}`, () => draw("a", i)))},
  {name: "select", show: (group) => button("select all", `select these ${group.length}`, () => select(group, why))},
]);

paint();
filter();
partsTable.show(allParts);
groupsTable("conflicts", "Identical parts, different targets: the data may need cleaning", "identical parts").show(data.conflicts);
if (data.overlap) groupsTable("overlap", "Share more rare parts than chance explains: keep them in one fold", "overlap").show(data.overlap);
await draw("a", Math.max(columns.set?.indexOf("new") ?? 0, 0));
select([]);
document.body.dataset.ready = "yes";
})();
