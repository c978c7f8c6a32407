"""Speed and memory: `python -m benchmarks` measures and writes docs/results/benchmarks.*.

Every part is one module with

- `TITLE`, its heading in the report;
- `run(settings)`, which measures and returns a JSON document with at least `checks` (targets and
  measured values, see `report.check`) and `skipped` (what was not measured, and why);
- `markdown(document)`, which turns that document, and nothing else, into the part's text.

`PARTS` in `__main__` lists them. Whatever is timed runs through `measure.measure`, each time in a
process of its own.
"""
