"""Label models of votes: the rates of every voter, or how often they agree."""
