"""What fewlabels is measured by: beside the package, on it, and in no wheel."""
