"""The study: errors and intervals of methods, on real sets of classifiers and on made ones.

`sets` reads the real sets, and makes those of `families`; `trial` measures some runs of one method
on one set; `statistics` has means, ratios and their standard errors; `page` counts in how many
cells the default keeps its promises. Start with `trial`.

The classifiers of a run share its labels and miss together, so figures are averaged over them
before anything is said of runs. Items of a run depend on set, sizes and number alone: methods added
later are paired with those that were there. Delete the lines of a method whose code has changed.
"""
