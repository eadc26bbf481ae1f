"""What editors show of laws: a language server, what it says of each function, and where the function stands."""
