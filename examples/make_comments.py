"""Make comments.csv: 1,000 simulated comments, what three classifiers say of them, and no label."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

ARTICLES = {
    "City budget": ["the new bus lanes", "the library hours", "the swimming pool", "the council"],
    "Phone review": ["the camera", "the battery", "the price", "the new screen"],
    "Match report": ["the referee", "the second half", "the away fans", "that penalty"],
    "Train strike": ["the union", "the timetable", "the replacement bus", "the ministry"],
}
FINE = [
    "I have changed my mind about {} after reading this.",
    "Could somebody explain what {} has to do with it?",
    "Honestly, {} was the best part.",
    "We discussed {} at work today and nobody agreed.",
    "The article gets {} wrong: the figures are from last year.",
    "I would have liked to read more about {}.",
    "What a shame about {}, it looked so promising in spring.",
    "Not everybody can do without {}, and I wish that were said.",
]
BLUNT = [  # rude words in a comment that is not toxic
    "This is rubbish reporting about {}, do better.",
    "Damn, {} cost me two hours today.",
    "I hate to say it, but {} was awful.",
]
TOXIC = [
    "Only an idiot would defend {}.",
    "People who like {} should be thrown out of the country.",
    "Shut up about {}, nobody cares what you think.",
    "You are all too stupid to understand {}.",
    "Whoever wrote this about {} is a pathetic liar.",
]
MORE = [
    "Thanks for the link.",
    "See also last week's thread.",
    "Just my two cents.",
    "I may be missing something here.",
    "Has anybody asked the people who work there?",
]


def make(seed: int = 0, n: int = 1000) -> tuple[pa.Table, list[str]]:
    """The table, and the class of every comment, which is not in it."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, size=n, p=[0.62, 0.16, 0.22])
    truth = np.where(kind == 2, "toxic", "fine")
    articles, comments = [], []
    for k in kind.tolist():
        article = str(rng.choice(list(ARTICLES)))
        said = rng.choice((FINE, BLUNT, TOXIC)[k]).format(rng.choice(ARTICLES[article]))
        more = rng.choice(MORE, size=rng.integers(3), replace=False)
        articles.append(article)
        comments.append(" ".join([str(said), *map(str, more)]))
    columns = {"id": [f"c{i:04d}" for i in range(n)], "article": articles, "comment": comments}
    # Name: how sharply it sees, and how far rude words alone mislead it.
    for name, (sharpness, misled) in {"large": (2.4, 0.8), "small": (1.6, 1.7)}.items():
        signal = np.choose(kind, [-1.0, -1.0 + misled, 1.0])
        logit = sharpness * signal + 1.1 * rng.normal(size=n)
        columns[f"p__{name}__toxic"] = (1 / (1 + np.exp(-logit))).round(4).tolist()
    by_words = rng.random(n) < np.choose(kind, [0.03, 0.85, 0.7])
    columns["y__keywords"] = np.where(by_words, "toxic", "fine").tolist()
    return pa.table(columns), truth.tolist()


if __name__ == "__main__":
    table, truth = make()
    pc.write_csv(table, Path(__file__).with_name("comments.csv"))
    print(f"comments.csv: {table.num_rows} comments, {truth.count('toxic')} of them toxic")
