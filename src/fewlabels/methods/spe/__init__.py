"""Score mixtures for one classifier: SPE (Welinder, Welling and Perona, 2013)."""
