"""One classifier whose score orders the items: curves that only fall or rise."""
