"""Mining of running systems: a loop that decides what to measure next, and what it sends to whoever measures."""
