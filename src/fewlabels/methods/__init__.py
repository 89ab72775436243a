"""Label models: predictions and a few labels in, a posterior over the missing labels out.

The room imports `checks`, `errors`, `kernels`, `posterior` and `predictions`; it knows no metric,
no file and no page.

Start with `base` (what a label model and a fitted one are), then `registry` (methods by name, which
`methods.toml` describes, and what "auto" is), then one paper, say `ssme.kde`. A folder is a paper
or a family, and says in its head where to begin:

- `ensembles`: beliefs about several classifiers, weighed by labels: the default.
- `curves`: P(label | score) of one classifier, monotone or with densities: the default for one.
- `ssme`, `spe`, `bee`: a paper each: scores of all classifiers, of one, and votes by Gibbs
  sampling.
- `votes`: other models of votes, and what all models of votes share (`votes.data`).
- `baselines`: labels alone, averages, majorities, and estimators of means.

What several of them stand on: `per_model` (one classifier at a time), `replicates` (parameter draws
by refits, or of several models), `em`, `label_distribution` (labels that differ between annotators,
for any label model), `group_curves` (groups that differ, for any fitted one), `voices` (copies, and
classifiers that were given the labels), `settings` (methods as text). Folders import one another
only so: curves -> spe; bee -> votes; ensembles -> votes; baselines -> ensembles, votes.

Traps: results depend on the items' keys, never on the order of the rows. What a fitted model
computes once, it computes in `LabelPosterior.prepare`, before threads start. It must survive
pickling.
"""
