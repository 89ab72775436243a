"""What is in a file, what is wrong with it, and how to mend it."""
