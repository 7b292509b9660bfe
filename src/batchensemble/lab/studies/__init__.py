"""Studies, the kinds of work: each is a function `run(run, context) -> Record`.

A file or a folder each: `bandits`, `classification`, `cost`, `lifelong`, `speed`, `tables`, `translation`. They share
`study` (what a study is), `perform` (runs become records), `parts` (trainings that several methods or runs share),
`images` (image sets by name), `scores` (metrics of predictions) and `memory` (of the C library).
"""
