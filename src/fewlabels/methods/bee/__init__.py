"""Error rates from votes alone: BEE, CBEE and HCBEE (Platanios, Dubey and Mitchell, 2016)."""
