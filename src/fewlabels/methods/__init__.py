"""Label models: a folder for a paper or a family, and what they share."""
