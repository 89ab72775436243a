"""Arrays in, arrays out: numpy and scipy only, no checks, no names."""
